"""What is best follows the direction of the measure on every page: the same numbers, read both ways."""

import polars as pl
import pytest

from core.analysis import per_query as queries
from core.analysis.paired import with_verdict
from core.analysis.sides import usual
from core.analysis.status import marked, ordered, status_rows
from core.analysis.workspace.scope import Latency, Quality
from core.decide.axes import quality_axis
from core.decide.marginal import marginal
from core.decide.near import turns
from core.decide.neighbours import neighbours
from core.decide.routing import Depths, oracle
from core.decide.rules import Constraints, decide
from core.stats.intervals import Sample
from core.stats.significance import Setup, compare
from core.ui.pick import listed
from core.views.confidence.hold import front
from core.views.curves import page as curves
from core.views.curves.sections import step_rows
from core.views.decision.charts import pareto
from core.views.decision.marks import density, grid
from core.views.golden.data import with_bounds
from core.views.latency import data as latency
from core.views.what_if import scenarios
from core.views.what_if.scenarios import Scenario
from core.views.words.facts import frontier_rows
from core.views.words.near import overturned
from tests.views.made import stacks

BOTH = pytest.mark.parametrize("higher", [True, False])
NUMBERS = {"quality": [0.2, 0.5, 0.8], "latency_ms": [100.0, 500.0, 900.0], "cost": [1.0, 2.0, 3.0]}
"""The slower, the dearer, the higher: of a measure that is better the lower the first beats the others."""


def made(**changed):
    return stacks(**{**NUMBERS, **changed})


def decided(rows, higher, **limits):
    return decide(rows, Constraints(**limits, higher_is_better=higher))


def first_is_best(higher):
    return [2, 1, 0] if higher else [0, 1, 2]


@BOTH
def test_tables_begin_with_the_best(higher):
    rows = made()
    found = decided(rows, higher)
    order = [f"r{row}" for row in first_is_best(higher)]
    assert status_rows(rows, found)["run_id"].to_list() == order
    assert ordered(marked(rows, found), found)["run_id"].to_list() == (
        order if higher else ["r0", "r1", "r2"]
    )
    assert frontier_rows(rows, found) == ([2, 1, 0] if higher else [0])
    assert usual(rows, found)[:2] == [f"stack {row}" for row in first_is_best(higher)[:2]]
    bounds = rows.with_columns(hole_low=pl.lit(0.1), hole_high=pl.lit(0.9))
    assert with_bounds(bounds, higher_is_better=higher)["name"].to_list() == [
        f"stack {row}" for row in first_is_best(higher)
    ]


@BOTH
def test_a_long_list_keeps_the_best(higher):
    rows = stacks(quality=[place / 1000 for place in range(1000)])
    names = set(listed(rows, "stack", quality_axis(higher_is_better=higher)))
    assert len(names) == 300
    assert names == {f"stack {place}" for place in (range(700, 1000) if higher else range(300))}


@BOTH
def test_a_cell_of_the_density_stands_for_its_best_stack(higher):
    height = 50
    rows = stacks(quality=[0.5 + place * 1e-6 for place in range(height)], latency_ms=[1.0] * height)
    found = decided(rows, higher)
    drawn = pareto(rows, found, Constraints(), quality=Quality("Harm", 10), latency=Latency()).drawn
    traces = density(drawn, grid(drawn, log=False), found.quality)
    cells = [cell for trace in traces for line in trace["customdata"] for cell in line if cell[1] > 0]
    best = {int(cell[0]) for cell in cells}
    assert (height - 1 if higher else 0) in best


@BOTH
def test_the_frontier_has_its_corner_and_its_shape(higher):
    rows = made(quality=[0.2, 0.7, 0.8] if higher else [0.8, 0.3, 0.2])
    found = front(rows, decided(rows, higher))
    mirrored = rows.with_columns((1 - pl.col("quality")).alias("quality"))
    other = front(mirrored, decided(mirrored, not higher))
    assert found.size == 3
    assert (other.size, other.knee) == (found.size, found.knee)
    chart = pareto(
        rows, decided(rows, higher), Constraints(), quality=Quality("Harm", 10), latency=Latency()
    ).figure
    better = chart.layout.annotations[0]
    assert (better.text, better.y) == (("↖ better", 0.99) if higher else ("↙ better", 0.01))


@BOTH
def test_what_would_turn_the_choice(higher):
    rows = made(latency_ms=[100.0, 500.0, 900.0] if higher else [900.0, 500.0, 100.0], cost=[1.0] * 3)
    found = {(turn.of, turn.axis.key): turn for turn in turns(rows, Constraints(higher_is_better=higher))}
    best, second = first_is_best(higher)[:2]
    then = 0.7995 if higher else 0.2005  # which reads as equal, and it is faster
    assert found[second, "quality"].then == pytest.approx(then, abs=1e-6)
    assert found[best, "quality"].then == pytest.approx(0.5005 if higher else 0.4995, abs=1e-6)


@BOTH
def test_wins_and_verdicts(higher):
    sample = Sample.means([[0.2] * 12, [0.6] * 12])
    compared = compare(sample, [0], [1], Setup(higher_is_better=higher))
    each_its_own = compared.with_columns(clusters=pl.lit(None, pl.Int32))
    row = with_verdict(each_its_own, higher_is_better=higher).row(0, named=True)
    assert row["difference"] == pytest.approx(0.4)
    assert (row["wins"], row["losses"]) == ((12, 0) if higher else (0, 12))
    assert row["superiority"] == (1.0 if higher else 0.0)
    assert row["verdict"] == ("better" if higher else "worse")


@BOTH
def test_the_worst_query_and_the_largest_loss_come_first(higher):
    rows = pl.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "score": [0.1, 0.5, 0.9],
            "delta": [-0.3, 0.0, 0.4],
            "best": [None] * 3,
        },
        schema_overrides={"best": pl.Float64},
    )
    for sort, up in (("worst first", ["a", "b", "c"]), ("largest loss", ["a", "b", "c"])):
        found = queries.ordered(rows, sort, higher_is_better=higher)["query_id"].to_list()
        assert found == (up if higher else up[::-1])


@BOTH
def test_steps_in_k(higher):
    rows = pl.DataFrame({
        "series": ["s", "s"], "run_id": ["a", "b"], "candidates": [10, 20], "quality": [0.3, 0.4],
        "latency_ms": [100.0, 200.0], "cost": [1.0, 2.0],
    })  # fmt: skip
    step = marginal(rows, quality=quality_axis(higher_is_better=higher)).row(0, named=True)
    assert step["d_quality"] == pytest.approx(0.1 if higher else -0.1)
    assert step["pays"] == higher
    two = pl.concat(
        [rows, rows.with_columns(series=pl.lit("t"), run_id=pl.col("run_id") + "t", quality=pl.lit(0.9))]
    )
    names = two.select("run_id", "quality").with_columns(name=pl.col("run_id"))
    found = step_rows(marginal(two), names, higher_is_better=higher)
    assert found["series"][0] == ("t" if higher else "s")


@BOTH
def test_scenarios(higher):
    rows = made()
    limits = Constraints(higher_is_better=higher, jitter_ms=0.0)
    best = scenarios.choose(rows, Scenario("best"), limits)
    assert best == f"r{first_is_best(higher)[0]}"
    worst = Scenario("worst", min_quality=0.4, max_harm=0.3)
    harmed = rows.with_columns(harm=pl.Series([0.5, 0.1, 0.1]) if not higher else pl.Series([0.1, 0.1, 0.5]))
    assert scenarios.choose(harmed, worst, limits) == ("r1" if higher else None)
    saver = next(
        each for each in scenarios.derived(rows, higher_is_better=higher) if each.name == "Cost saver"
    )
    assert (saver.min_quality < 0.8) if higher else (saver.min_quality > 0.2)
    assert f"quality at {'least' if higher else 'most'}" in saver.words(higher_is_better=higher)


@BOTH
def test_routing_sends_a_query_where_it_fares_best(higher):
    depths = Depths.of([[0.1, 0.9], [0.8, 0.2]], higher_is_better=higher)
    assert oracle(depths).argmax(axis=0).tolist() == ([1, 0] if higher else [0, 1])


@BOTH
def test_the_leader_of_the_curves(higher):
    rows = [("a", 0.2), ("b", 0.6)]
    measure = Quality("RA-nWG" if higher else "Harm", 10)
    table = pl.DataFrame(
        [
            {"name": name, "measure": measure.bare, "k": 10, "value": value, "n": 5, "basis": "measured"}
            for name, value in rows
        ],
        schema=curves.COLUMNS,
    )
    found = curves.curves(table, measure, {"a": "#000000", "b": "#111111"})
    assert found.details.startswith("Of b" if higher else "Of a")
    assert found.answer.startswith("RA-nWG is 0.600 " if higher else "Harm is 0.200 ")


@BOTH
def test_holes_can_overturn_in_the_direction_of_the_measure(higher):
    rows = made().with_columns(
        hole=pl.lit(0.3), hole_low=pl.Series([0.1, 0.4, 0.7]), hole_high=pl.Series([0.3, 0.75, 0.9])
    )
    found = overturned(rows, decided(rows, higher), Quality("Harm", 10))
    assert (found is not None) == higher  # 0.75 may pass 0.70; downwards 0.40 never passes 0.30
    wider = rows.with_columns(hole_low=pl.Series([0.1, 0.25, 0.7]))
    assert overturned(wider, decided(wider, higher), Quality("Harm", 10)) is not None


@BOTH
def test_the_latency_page_takes_the_best_that_is_timed(higher):
    rows = made(latency_ms=[None] * 3)
    times = pl.DataFrame(
        {"run_id": ["r0", "r1", "r2"], "name": ["stack 0", "stack 1", "stack 2"], "p50": [1.0] * 3}
    )
    picked = latency.usual(times.head(2) if higher else times.tail(2), rows, decided(rows, higher))
    assert picked[0] == "stack 1"


@BOTH
def test_a_neighbour_beats_the_choice_in_the_direction_of_the_measure(higher):
    grid_of = [(a, b) for a in "123" for b in "wxyz" if (a, b) != ("3", "z")]
    noise = [0.01, -0.01, 0.0, 0.01, -0.01]
    quality = [0.2 * int(a) + noise[place % 5] for place, (a, _) in enumerate(grid_of)]
    table = pl.DataFrame({"quality": quality, "a": [a for a, _ in grid_of], "b": [b for _, b in grid_of]})
    axis = quality_axis(higher_is_better=higher)
    (found,) = neighbours(table, ["a", "b"], [grid_of.index(("2", "z"))], 0.4, axis)
    assert (found.axis, found.after) == ("a", "3")
    assert found.quality == pytest.approx(0.6, abs=0.05)
    assert (found.chance > 0.9) if higher else (found.chance < 0.1)
