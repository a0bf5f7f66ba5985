"""Refusing and answering as limits beside another quality."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path

import pytest

from core.analysis.workspace.figures.beside import limit_words, measure_of
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.scope import Answering, Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.axes import ANSWERING, BESIDE, REFUSING
from core.decide.joint import chances
from core.decide.near import near_misses
from core.decide.rules import Constraints, decide
from core.records import Batch
from core.store import Snapshot
from core.tables import frame
from core.views.decision.limits import limits
from core.views.decision.words import why
from core.views.link import settings
from core.views.what_if.scenarios import Scenario, choose, parse, written
from core.views.words.facts import record
from tests.stores import Lab
from tests.views.made import BOOK, LAB, table

GOOD, BAD = ("g1", "g2", "g3", "g4"), ("b1", "b2")
AT_2 = Quality("RA-nWG", 2)
FIRST = {"bold": 4, "fair": 3, "shy": 2, "mute": 1}
"""On how many of the good questions a stack finds the good passage."""
REFUSES: dict[str, tuple[str, ...]] = {"bold": (), "fair": ("b1",), "shy": (*BAD, "g1", "g2")}


def scores(refuses: dict[str, tuple[str, ...]], reader: str = "r", k: int = 2) -> list[dict[str, object]]:
    """Return rows of "answer_scores" of stacks whose readers refuse some questions."""
    rows = []
    for run_id, refused in refuses.items():
        for query in (*GOOD, *BAD):
            scorer = "no_wrong_refusal" if query in GOOD else "right_refusal"
            value = float((query in refused) == (query in BAD))
            key = {"run_id": run_id, "query_id": query, "reader": reader, "mode": "top_k", "k": k, "pass": 1}
            rows.append({**key, "scorer": scorer, "value": value, "scale": "0-1"})
    return rows


def lab(folder: Path, rows: list[dict[str, object]], judged: tuple[str, ...] = (*GOOD, *BAD)) -> Snapshot:
    made = Lab().judge({name: {"a": 5 if name in GOOD else 1, "x": 1} for name in judged})
    made.ask({name: name for name in (*GOOD, *BAD)})
    for run_id, right in FIRST.items():
        final = {name: ["a", "x"] if name in GOOD[:right] else ["x"] for name in (*GOOD, *BAD)}
        made.run(run_id, final=final)
    store = made.write(folder / "store")
    said = [{**{name: row[name] for name in row if name not in ("scorer", "value", "scale")}, "text": "…"}
            for row in rows]  # fmt: skip
    with store.write("answers") as writer:
        frames = {"answers": frame("answers", said), "answer_scores": frame("answer_scores", rows)}
        writer.add(Batch(frames=frames))
    return store.read()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return lab(tmp_path_factory.mktemp("refusals"), scores(REFUSES))


def view(snapshot: Snapshot, quality: Quality = AT_2, scope: Scope = LAB, **asked: float) -> View:
    limited = Constraints(**asked)
    return View(snapshot, scope, quality=quality, latency=Latency(), book=BOOK, constraints=limited)


def test_rates_stand_beside_the_quality_each_over_its_own_questions(snapshot: Snapshot):
    rows = table(snapshot, LAB, AT_2)
    kept = rows.select("run_id", "refusal_rate", "refusal_rate_n", "answer_rate", "answer_rate_n").rows()
    assert {name: rest for name, *rest in kept} == {
        "bold": [0.0, 2, 1.0, 4], "fair": [0.5, 2, 1.0, 4], "shy": [1.0, 2, 0.5, 4],
        "mute": [None] * 4,
    }  # fmt: skip
    for axis, scorer in ((REFUSING, "right_refusal"), (ANSWERING, "no_wrong_refusal")):
        name = measure_of(rows, axis)
        assert name == f"Answer@2(reader=r,scorer={scorer})"
        own = table(snapshot, LAB, Quality(name.replace("@2", ""), 2))
        same = rows.drop_nulls(axis.column)["run_id"].to_list()
        numbers = [rows, own]
        for column, other in zip((axis.column, f"{axis.column}_low", f"{axis.column}_high"),
                                 ("quality", "quality_low", "quality_high"), strict=True):  # fmt: skip
            beside, alone = (
                dict(part.select("run_id", one).iter_rows())
                for part, one in zip(numbers, (column, other), strict=True)
            )
            assert [beside[run] for run in same] == pytest.approx([alone[run] for run in same])


@pytest.mark.parametrize(
    ("asked", "chosen", "reasons"),
    [
        ({}, "bold", {}),
        (
            {"min_refusal_rate": 0.4}, "fair",
            {"bold": "min_refusal_rate", "mute": "unknown right-refusal rate"},
        ),
        (
            {"min_refusal_rate": 0.8}, "shy",
            {
                "bold": "min_refusal_rate", "fair": "min_refusal_rate",
                "mute": "unknown right-refusal rate",
            },
        ),
        ({"min_answer_rate": 0.9}, "bold", {"shy": "min_answer_rate", "mute": "unknown answer rate"}),
        (
            {"min_refusal_rate": 0.8, "min_answer_rate": 0.9}, None,
            {
                "bold": "min_refusal_rate", "fair": "min_refusal_rate", "shy": "min_answer_rate",
                "mute": "unknown right-refusal rate",
            },
        ),
        ({"min_refusal_rate": 0.4, "min_quality": 0.99}, None,
         {"bold": "min_refusal_rate", "fair": "min_quality", "shy": "min_quality", "mute": "min_quality"}),
    ],
)  # fmt: skip
def test_a_floor_leaves_those_that_reach_it(snapshot: Snapshot, asked, chosen, reasons):
    rows = table(snapshot, LAB, AT_2)
    found = decide(rows, Constraints(**asked))
    assert (None if found.chosen is None else rows["run_id"][found.chosen]) == chosen
    assert dict(found.excluded().select("run_id", "constraint").iter_rows()) == reasons


def test_a_near_miss_and_a_scenario_know_the_floors(snapshot: Snapshot):
    rows = table(snapshot, LAB, AT_2)
    limited = Constraints(min_refusal_rate=0.6)
    (miss,) = near_misses(rows, decide(rows, limited), limited)[:1]
    assert (rows["run_id"][miss.row], miss.limit, miss.set_to) == ("bold", "min_refusal_rate", 0.0)
    (own,) = parse("Careful: quality, refusals 0.4, answers 0.9")
    assert own == Scenario("Careful", min_refusal_rate=0.4, min_answer_rate=0.9)
    assert parse(written([own])) == [own]
    assert choose(rows, own, Constraints()) == "fair"
    assert "right-refusal rate at least 0.4, answer rate at least 0.9" in own.words()


def test_the_chance_to_keep_a_floor_varies_with_its_own_questions(snapshot: Snapshot):
    rows = table(snapshot, LAB, AT_2)
    sample = joint_sample(snapshot, rows, LAB, quality=AT_2, latency=Latency())
    assert set(sample.query_ids) == {*GOOD, *BAD}
    shares = chances(sample, Constraints(min_refusal_rate=0.5), resamples=8_000, seed=1).feasible
    met = dict(zip(rows["run_id"], shares.tolist(), strict=True))
    # Of six draws of six questions b1, refused, is drawn at least as often as b2, and at all.
    ways = sum(_drawn(ones, twos) for ones in range(1, 7) for twos in range(min(ones, 6 - ones) + 1))
    assert met["fair"] == pytest.approx(ways, abs=0.02)
    assert met["bold"] == 0.0
    assert met["shy"] == pytest.approx(1 - (4 / 6) ** 6, abs=0.02)  # where neither is drawn nothing is known


def _drawn(ones: int, twos: int) -> float:
    """Return the chance that of six draws of six so many are the one, and so many the other."""
    return comb(6, ones) * comb(6 - ones, twos) * 4 ** (6 - ones - twos) / 6**6


def test_link_record_and_words_name_the_floor(snapshot: Snapshot):
    asked = view(snapshot, min_refusal_rate=0.4)
    assert settings(asked)["min_refusal_rate"] == 0.4
    made = record(asked.table, asked)
    name = "Answer@2(reader=r,scorer=right_refusal)"
    assert (made["asked"]["min_refusal_rate"], made["asked"]["refusal_rate"]) == (0.4, name)
    assert (made["chosen"]["refusal_rate"], made["chosen"]["refusal_rate_n"]) == (0.5, 2)
    (words,) = limit_words(asked.table, asked.constraints, asked.decision.chosen).values()
    assert words.startswith(f"The refusal floor of 0.400 is about {name}; fair has 0.500 [")
    assert words.endswith("], n = 2.")
    assert words in made["warnings"]


OTHER = {"bold": (*BAD, *GOOD), "fair": (*BAD, *GOOD), "shy": (*BAD, *GOOD)}
"""A reader that refuses everything."""


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["", "no", "r"])
def test_both_rates_are_of_one_reader(tmp_path: Path, reader: str):
    both = lab(tmp_path, [*scores(dict.fromkeys(REFUSES, ())), *scores(OTHER, "no")])
    scope = replace(LAB, answering=Answering(reader=reader)) if reader else LAB
    rows = table(both, scope, AT_2).filter(run_id="fair")
    rates = rows.select("refusal_rate", "answer_rate").row(0)
    assert rates in {(0.0, 1.0), (1.0, 0.0)}
    assert not reader or rates == ((1.0, 0.0) if reader == "no" else (0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "judged", "known"),
    [
        (scores(REFUSES, k=3), (*GOOD, *BAD), set()),  # from other passages than the cutoff
        (scores(REFUSES, "fake"), (*GOOD, *BAD), set()),  # made up
        (scores(REFUSES)[:4], (*GOOD, *BAD), {"answer_rate"}),  # no question without an answer
        (scores(REFUSES), GOOD, {"answer_rate", "refusal_rate"}),  # those without one are not judged
    ],
)
def test_what_is_not_known_is_not_offered_and_not_asked_for(tmp_path: Path, rows, judged, known):
    asked = view(lab(tmp_path, rows, judged), min_refusal_rate=0.4, min_answer_rate=0.4)
    offered = {limit.key for limit in limits(asked.table, AT_2, Latency())}
    axes = {axis.column: axis for axis in BESIDE}
    assert offered & {"min_refusal_rate", "min_answer_rate"} == {axes[name].limit for name in known}
    lacking = [axis.key for axis in asked.decision.lacking]
    assert set(lacking) == {"refusal_rate", "answer_rate"} - known
    assert (asked.decision.chosen is None) >= bool(lacking)
    assert not lacking or axes[lacking[0]].remedy in why(asked)
