"""What section Noise answers, by what the intervals allow to say."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis.perturbed import better_first, hardest
from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.diagnostics.noise import EFFECTS
from core.prices import PriceBook
from core.views.confidence.data import choice_under_noise
from core.views.diagnostics.noise_costs import answer, best_rewrite, cards, chart, names
from tests.stores import Lab
from tests.views.made import LAB

QUALITY = Quality("RA-nWG", 10)


def rows(
    *given: tuple[str, str, str, float, tuple[float, float, float] | None, float | None],
) -> pl.DataFrame:
    """Family, rewrite, perturbation, quality, change with its ends, and what is won back (± 0.01)."""
    made = [
        {"run_id": f"{family}{rewrite}{perturb}", "family": family, "stack": family, "rewrite": rewrite,
         "perturb": perturb, "n": 50, "quality": quality, "low": quality - 0.1, "high": quality + 0.1,
         **dict(zip(("change", "change_low", "change_high"), change or (None,) * 3, strict=True)),
         **({} if won is None else {"won": won, "won_low": won - 0.01, "won_high": won + 0.01}),
         "overlap": 0.5 if change else None}
        for family, rewrite, perturb, quality, change, won in given
    ]  # fmt: skip
    return better_first(pl.DataFrame(made, schema=EFFECTS), QUALITY)


LOST = (-0.2, -0.3, -0.1)
CLEAN, NOISY = ("a", "none", "", 0.6, None, None), ("a", "none", "noise 4", 0.4, LOST, None)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (rows(), "is unknown"),
        (rows(("a", "none", "noise 4", 0.4, None, None)), "is unknown"),
        (
            rows(CLEAN, ("a", "none", "noise 4", 0.6, (0.0, -0.1, 0.1), None)),
            "Small talk (level 4 of 4) costs no measurable RA-nWG@10 (n = 50). Of a.",
        ),
        (rows(CLEAN, NOISY), 'rewrite = ["rules", "chat:MODEL"]'),
        (rows(CLEAN, NOISY, ("a", "rules", "noise 4", 0.55, None, 0.15)), "Rewrite queries by rules"),
        (
            rows(CLEAN, NOISY, ("a", "rules", "noise 4", 0.42, None, 0.02)),
            "lowers RA-nWG@10 from 0.600 to 0.400 (n = 50). Of a. Cutting small talk recovers only 10.0 %",
        ),
        (rows(CLEAN, NOISY, ("a", "rules", "noise 4", 0.4, None, 0.0)), "by a chat model"),
        (rows(CLEAN, NOISY, ("a", "chat:m", "noise 4", 0.42, None, 0.02)), ": choose by Robust quality"),
    ],
    ids=range(8),
)
def test_the_answer_says_what_to_do(table: pl.DataFrame, said: str):
    assert said in " ".join(answer(table, QUALITY))


def test_the_best_stack_and_what_costs_it_most_stand_first():
    better = ("b", "none", "", 0.9, None, None)
    typo = ("b", "none", "typo 1", 0.5, (-0.4, -0.5, -0.3), None)
    table = rows(CLEAN, NOISY, better, ("b", "none", "noise 4", 0.8, (-0.1, -0.2, -0.05), None), typo)
    row = hardest(table, QUALITY)
    assert row is not None
    assert (row["family"], row["perturb"]) == ("b", "typo 1")
    assert best_rewrite(table, row, QUALITY) is None
    assert len(cards(table, QUALITY)) <= 4


def test_perturbations_say_their_level_in_words():
    asked = ["", "noise 2", "noise 2 typo 1"]
    assert names(asked) == [
        "as they are",
        "small talk (level 2 of 4)",
        "small talk and typos (noise 2 typo 1)",
    ]


def test_equal_lines_are_drawn_once_and_stacks_share_their_scale():
    same = [("a", "hygiene", each[2], *each[3:]) for each in (CLEAN, NOISY)]
    figure = chart(rows(CLEAN, NOISY, *same), QUALITY)
    assert figure is not None
    assert [trace.name for trace in figure.data] == ["no rewrite"]
    assert [trace.name for trace in chart(rows(CLEAN, NOISY, same[1]), QUALITY).data] == ["no rewrite"]
    assert list(figure.data[0].x) == ["as they are", "small talk (level 4 of 4)"]
    assert chart(rows(), QUALITY) is None
    other = ("b", "none", "", 0.6, None, None), ("b", "none", "names mask", 0.1, LOST, None)
    assert chart(rows(*other), QUALITY) is None, "other names are another section's"
    assert [trace.y for trace in chart(rows(CLEAN, NOISY, *other), QUALITY).data] == [(0.6, 0.4)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "noisy_of_a", "said"),
    [
        ({"noise": 4}, [], "b would be chosen by Robust[N-Recall4+]@1, a by N-Recall4+@1"),
        ({"noise": 2}, [], "b would be chosen by Robust[N-Recall4+]@1(noise=2)"),
        ({"typo": 1}, [], "b would be chosen by Robust[N-Recall4+]@1(noise=0,typo=1)"),
        ({"noise": 4}, ["q1", "q2"], "as well"),
        ({}, None, ""),
    ],
)
def test_confidence_says_what_would_be_chosen_for_noisy_queries(
    tmp_path: Path, way: dict[str, int], noisy_of_a: list[str] | None, said: str
):
    queries = [f"q{n}" for n in range(1, 13)]
    made = Lab().judge({query: {"p": 5, "x": 1} for query in queries})

    def ranked(right: list[str]) -> dict[str, list[str]]:
        return {query: ["p", "x"] if query in right else ["x", "p"] for query in queries}

    made.run("a", final=ranked(queries), spec={"name": "a"}).run(
        "b", final=ranked(["q1"]), spec={"name": "b"}
    )
    if noisy_of_a is not None:
        noise = {"perturb": way}
        made.run("an", final=ranked(noisy_of_a), spec={"name": "a", **noise})
        made.run("bn", final=ranked(["q1"]), spec={"name": "b", **noise})
    snapshot = made.write(tmp_path / "store").read()
    quality, latency, book = Quality("N-Recall4+", 1), Latency(), PriceBook("none", ())
    view = View(snapshot, LAB, quality=quality, latency=latency, book=book)
    assert view.table.height == 2
    found = choice_under_noise(view)
    assert said in found if said else not found
