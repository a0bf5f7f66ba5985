"""The sensitivity page: cells against the measure itself, flips by hand, the choice against the rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.stacks import stack_table
from core.decide.rules import Constraints
from core.metrics import Measure
from core.stats.significance import Setup
from core.store import Snapshot, Store
from core.views.confidence import weights, words
from core.views.confidence.charts import RANGES_SHOWN, agreement, one_stack, ranges
from core.views.confidence.weights import (
    ALPHAS,
    CAPS3,
    CAPS4,
    CELLS,
    READINGS,
    Cell,
    WeightGrid,
    flips,
    letters,
)
from tests.stores import HOSTILE, Lab
from tests.views.made import AT_10, BOOK, DEMO, LAB, stacks, table

AT_1 = Quality("RA-nWG", 1)
QUICK = Setup(resamples=50, permutations=99)


def lab() -> Lab:
    """One grade 5 and many 4: the more rarity counts, the less a 4 is worth. Grade 3 alone on three queries.

    "fours" finds a 4 on eight queries, "five" the 5 on four of them; "again" ranks as "fours" does.
    """
    mixed = {f"q{n}": {"a": 5, "b": 4, "c": 4, "d": 4, "e": 4, "z": 1} for n in range(1, 9)}
    made = Lab().judge(mixed).ask({query: query for query in mixed}).hold({"a": "a"})
    fours = {query: ["b"] for query in mixed}
    made.run("fours", final=fours, ms={"sparse": [5.0] * 8})
    made.run("again", final=fours, ms={"sparse": [9.0] * 8})
    made.run(
        "five", final={query: ["a" if query < "q5" else "z"] for query in mixed}, ms={"sparse": [7.0] * 8}
    )
    made.run("none", final={query: ["z"] for query in mixed}, ms={"sparse": [7.0] * 8})
    return made.run("averages", figures=[{"measure": "RA-nWG", "k": 1, "value": 0.5, "n": 6}])


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return lab().write(tmp_path_factory.mktemp("snapshot") / "store").read()


def grid_of(snapshot: Snapshot, measure: Measure | None = None) -> WeightGrid:
    found = evidence(snapshot, ["fours", "again", "five", "none"], "gold")
    return weights.score_grid(found, measure or Measure("RA-nWG", 1))


NAMES = {name: name.upper() for name in ("fours", "again", "five", "none")}


def test_the_grid_is_the_papers():
    assert len(CELLS) == len(set(CELLS)) == 24
    assert {(cell.alpha, cell.cap4, cell.cap3) for cell in CELLS} == {
        (alpha, cap4, cap3) for alpha in (0, 0.5, 1, 2) for cap4 in (0.75, 1) for cap3 in (0.20, 0.25, 0.33)
    }
    assert weights.usual(Measure("RA-nWG", 10)) == Cell(1.0, 1.0, 0.25)
    assert str(Cell(0.5, 1.0, 0.2)) == "alpha 0.5, cap4 1, cap3 0.20"


def test_a_cell_keeps_the_other_parameters():
    measure = Measure.parse("RA-nWG@10(alpha=2,b4=0.4)")
    assert str(Cell(0.0, 0.75, 0.2).of(measure)) == "RA-nWG@10(alpha=0,cap4=0.75,cap3=0.2,b4=0.4)"
    assert Cell(1.0, 1.0, 0.25).of(measure) == Measure.parse("RA-nWG@10(b4=0.4)")


@pytest.mark.parametrize(
    ("quality", "measure", "own"),
    [
        (AT_10, "RA-nWG@10", True),
        (Quality("RA-nWG(alpha=0.5)", 5), "RA-nWG@5(alpha=0.5)", True),
        (Quality("N-Recall4+", 30), "RA-nWG@30", False),
        (Quality("house-score", 30), "RA-nWG@30", False),
    ],
)
def test_which_measure_is_weighed(quality: Quality, measure: str, own: bool):
    assert weights.weighed(quality) == (Measure.parse(measure), own)


@pytest.mark.slow
def test_every_cell_is_the_measure_with_its_weights(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    runs = table(snapshot, DEMO)
    found = evidence(snapshot, runs["run_id"].to_list(), DEMO.golden_set_id or "")
    grid = weights.score_grid(found, Measure("RA-nWG", 10))
    assert grid.cells == CELLS
    for place in (0, grid.start, 17, 23):
        cell = grid.cells[place]
        bare = f"RA-nWG(alpha={cell.alpha},cap4={cell.cap4},cap3={cell.cap3})"
        same = stack_table(snapshot, DEMO, Quality(bare, 10), Latency(), BOOK).sort("run_id")
        order = np.argsort(grid.run_ids)
        for ours, theirs in ((grid.means, "quality"), (grid.low, "quality_low"), (grid.high, "quality_high")):
            assert ours[place][order] == pytest.approx(same[theirs].to_numpy(), abs=1e-9)
        rounded = np.round(grid.means[[grid.start, place]], 9)
        assert grid.taus[place] == pytest.approx(kendalltau(*rounded, variant="b").statistic)
        better = (rounded[1][None, :] > rounded[1][:, None]).sum(axis=1)
        assert grid.ranks[place].tolist() == (better + 1).tolist()
    assert grid.taus[grid.start] == pytest.approx(1.0)


def test_alpha_decides_between_one_five_and_many_fours(snapshot: Snapshot):
    grid = grid_of(snapshot)
    # w4 = min(0.5·(1/4)^alpha, cap4): .5, .25, .125, .03125; "five" finds the 5 on half of the queries.
    w4 = {0.0: 0.5, 0.5: 0.25, 1.0: 0.125, 2.0: 0.5 / 16}
    for place, cell in enumerate(grid.cells):
        assert grid.means[place] == pytest.approx([w4[cell.alpha], w4[cell.alpha], 0.5, 0.0])
    assert grid.n.tolist() == [8, 8, 8, 8]
    start = grid.ranks[grid.start].tolist()
    assert start == [2, 2, 1, 4]
    assert grid.ranks[0].tolist() == [1, 1, 1, 4]  # alpha 0: a tie at 0.5
    assert grid.twins.tolist() == [0, 0, 2, 3]
    assert grid.best.tolist() == [2, 0, 3]
    assert grid.leader == "five"


def test_a_setting_outside_the_grid_is_a_cell_of_its_own(snapshot: Snapshot):
    grid = grid_of(snapshot, Measure.parse("RA-nWG@1(alpha=0.7)"))
    assert len(grid.cells) == 25
    assert grid.cells[grid.start] == Cell(0.7, 1.0, 0.25)
    assert "shapes" not in agreement(grid, ["x"] * 25).layout.to_plotly_json()


def made(values: list[list[list[float]]], cells: tuple[Cell, ...] = CELLS[:2]) -> WeightGrid:
    """A grid of given scores [cells, stacks, queries]."""
    scores = np.array(values)
    means = scores.mean(axis=2)
    run_ids = tuple("abcdefgh"[: scores.shape[1]])
    best = np.argsort(-means[0], kind="stable")
    return WeightGrid(
        measure=Measure("RA-nWG", 1), cells=cells, start=0, run_ids=run_ids,
        means=means, low=means, high=means, n=np.full(len(run_ids), scores.shape[2]),
        ranks=(means[:, None, :] > means[:, :, None]).sum(axis=2) + 1,
        taus=np.array([1.0, 0.5]), tops=np.array([1.0, 0.4]), twins=np.arange(len(run_ids)), best=best,
        best_values=scores[:, best],
    )  # fmt: skip


NOISE = [0.01 * (n % 3) for n in range(20)]
HIGH, LOW = [0.8 + each for each in NOISE], [0.2 + each for each in NOISE]
BIT_MORE = [0.6, 0.4] * 10
BIT_LESS = [0.4, 0.59] * 10


@pytest.mark.parametrize(
    ("usual", "there", "real_usual", "real_there"),
    [
        ((HIGH, LOW), (LOW, HIGH), True, True),
        ((HIGH, LOW), (BIT_LESS, BIT_MORE), True, False),
        ((BIT_MORE, BIT_LESS), (LOW, HIGH), False, True),
        ((BIT_MORE, BIT_LESS), (BIT_LESS, BIT_MORE), False, False),
    ],
)
def test_what_a_flip_means(
    usual: tuple[list[float], ...], there: tuple[list[float], ...], real_usual: bool, real_there: bool
):
    found = flips(made([list(usual), list(there)]), {"a": "A", "b": "B"}, QUICK)
    row = found.row(0, named=True)
    assert (row["better"], row["worse"], row["flips"]) == ("A", "B", 1)
    assert row["difference"] == pytest.approx(np.mean(usual[0]) - np.mean(usual[1]))
    assert row["reversal"] == pytest.approx(np.mean(there[0]) - np.mean(there[1]))
    assert row["where"] == str(CELLS[1])
    assert (row["p_holm"] < 0.05, row["p_there"] < 0.05) == (real_usual, real_there)
    assert row["reading"] == READINGS[real_usual, real_there]


def test_an_order_that_holds_and_a_tie_that_is_none():
    grid = made([[HIGH, LOW, LOW], [HIGH, BIT_MORE, BIT_LESS]])
    found = flips(grid, dict(zip("abc", "ABC", strict=True)), QUICK)
    assert found.select("better", "worse").rows() == [("A", "B"), ("A", "C")]  # B and C are equal as usual
    assert found["flips"].to_list() == [0, 0]
    assert found["reading"].to_list() == ["holds", "holds"]
    assert found["where"].to_list() == found["reversal"].to_list() == [None, None]


def test_one_stack_has_no_orders():
    grid = made([[HIGH], [LOW]])
    found = flips(grid, {"a": "A"}, QUICK)
    assert found.is_empty()
    assert words.weighed(grid, ["A", "A"], found)[0] == "A stays the choice in all 2 settings (n = 20)."


@pytest.mark.slow
def test_the_limits_choose_in_every_cell(snapshot: Snapshot):
    grid = grid_of(snapshot)
    rows = table(snapshot, LAB, AT_1).with_columns(name=pl.col("run_id").str.to_uppercase())
    free = weights.choices(grid, rows, Constraints(jitter_ms=1.0))
    # At alpha 0 all tie in quality; the rule then prefers the lower latency within its band, else the best.
    assert set(free[6:]) == {"FIVE"}
    fast = weights.choices(grid, rows, Constraints(sla_ms=6.0))
    assert set(fast) == {"FOURS"}
    good = weights.choices(grid, rows, Constraints(min_quality=0.3, sla_ms=6.0))
    assert good[:6] == ["FOURS"] * 6
    assert set(good[6:]) == {None}
    sentence, _ = words.weighed(grid, good, flips(grid, NAMES, QUICK))
    assert sentence == "No stack is within the limits as usual."
    marks = letters(good, grid.start)
    assert marks == {"FOURS": "A", None: "–"}
    assert "A = FOURS; – = none" in words.weighing_legend(grid, good)


def test_a_choice_that_moves_in_words(snapshot: Snapshot):
    grid = grid_of(snapshot)
    chosen = ["FOURS"] * 6 + ["FIVE"] * 17 + [None]
    sentence, details = words.weighed(grid, chosen, flips(grid, NAMES, QUICK))
    assert sentence == (
        "It depends: FIVE is the choice in 17 of 24 settings (n = 8), FOURS in 6, no stack in 1."
    )
    choice, order, pairs = words.weighed_cards(grid, chosen, flips(grid, NAMES, QUICK))
    assert choice[1:] == (
        "17 of 24",
        "other weights of RA-nWG@1 tried: of rarity (alpha) and of grades 4 and 3 (cap4, cap3)",
    )
    assert order[1] == f"≥ {grid.taus.min():.2f}"
    assert "4 stacks" in order[2]
    assert pairs[1] == "0 of 3"
    assert details.startswith("None of 3 pairs of the 3 best stacks")


def test_a_measure_that_applies_nowhere(tmp_path: Path):
    store = Lab().judge({"q1": {"a": 1}}).run("one", final={"q1": "a"}).run("other", final={"q1": "b"})
    found = evidence(store.write(tmp_path / "store").read(), ["one", "other"], "gold")
    grid = weights.score_grid(found, Measure("RA-nWG", 1))
    names = {"one": "One", "other": "Other"}
    turned = flips(grid, names, QUICK)
    assert turned.is_empty()
    assert words.weighed(grid, [None] * 24, turned)[0] == "RA-nWG@1 applies to no query of these stacks."
    assert weights.stack_ranges(grid, names).is_empty()
    assert weights.long_table(grid, names, [None] * 24)["rank"].is_null().all()
    assert grid.leader == "one"
    assert one_stack(grid, "one").data[0].text[0][0] == "–"
    assert ranges(weights.stack_ranges(grid, names), "x").data[0].x.tolist() == []


def test_tables_of_stacks(snapshot: Snapshot):
    grid = grid_of(snapshot)
    moved = weights.stack_ranges(grid, NAMES)
    assert moved.select("name", "rank", "best_rank", "worst_rank", "twin", "twins").rows() == [
        ("FIVE", 1, 1, 1, None, 0),
        ("AGAIN", 2, 1, 2, "FOURS", 1),
        ("FOURS", 2, 1, 2, None, 1),
        ("NONE", 4, 4, 4, None, 0),
    ]
    assert moved.filter(name="FOURS").select("lowest", "highest").row(0) == pytest.approx((0.03125, 0.5))
    rows = weights.long_table(grid, NAMES, ["FIVE"] * 24)
    assert rows.height == 4 * 24
    cell = rows.filter(alpha=0.5, cap4=0.75, cap3=0.2)
    assert cell["quality"].to_list() == pytest.approx([0.25, 0.25, 0.5, 0.0])
    assert cell.filter("chosen")["name"].to_list() == ["FIVE"]
    assert rows.filter("usual").select("alpha", "cap4", "cap3").unique().rows() == [(1.0, 1.0, 0.25)]


def test_charts_of_the_grid(snapshot: Snapshot):
    grid = grid_of(snapshot)
    chosen: list[str | None] = [HOSTILE[0]] * 24
    fig = agreement(grid, chosen)
    heat = fig.data[0]
    assert np.shape(heat.z) == (len(ALPHAS), len(CAPS4) * len(CAPS3))
    assert heat.text[2][4] == "1.00<br>A"
    assert "<b>" not in heat.hovertext[0][0]
    frame = fig.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (3.5, 4.5, 1.5, 2.5)
    score = one_stack(grid, "fours").data[0]
    assert score.z[0][0] == pytest.approx(0.5)
    assert score.text[3][5] == "0.031<br>#2"
    drawn = ranges(weights.stack_ranges(grid, {**NAMES, "five": HOSTILE[0]}), "RA-nWG@1")
    assert len(drawn.data[0].x) == 3  # a twin has no line of its own
    words = [each.text for each in drawn.layout.annotations]
    assert words[0].startswith("&lt;b&gt;bold")
    assert words[1] == "FOURS (+1 equal) · rank 1 to 2"
    many = pl.concat([weights.stack_ranges(grid, NAMES)] * RANGES_SHOWN)
    assert len(ranges(many, "x").data[0].x) == RANGES_SHOWN


@pytest.mark.parametrize(
    ("ranked", "scope", "said"),
    [([False], LAB, "without per-query data"), ([True], Scope("lab"), "no golden set")],
)
def test_why_nothing_can_be_scored_again(ranked: list[bool], scope: Scope, said: str):
    rows = stacks(1).with_columns(pl.Series("has_rankings", ranked))
    sentence, todo = words.nothing(rows, scope) or ("", "")
    assert said in sentence
    assert todo
    assert words.nothing(stacks(1).with_columns(has_rankings=True), LAB) is None
