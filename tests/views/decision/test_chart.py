import itertools
import math

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.status import marked
from core.analysis.workspace.scope import Latency
from core.decide.rules import Constraints, decide
from core.views.decision.charts import pareto
from core.views.decision.marks import COLOURS, DENSE_FROM, SIZES
from tests.stores import HOSTILE
from tests.views.made import AT_10, stacks

FREE = Constraints()
LEVELS = st.sampled_from([None, 0.1, 0.2, 0.3, 0.5])


def view(rows: pl.DataFrame, constraints: Constraints = FREE, **options: str):
    decision = decide(rows, constraints)
    return pareto(rows, decision, constraints, quality=AT_10, latency=Latency(), **options)


def dominated(row: dict[str, float], others: list[dict[str, float]]) -> bool:
    """Whether another is at least as good on every axis and better on one."""
    for other in others:
        no_worse = all(other[axis] <= row[axis] for axis in ("cost", "latency_ms"))
        if no_worse and other["quality"] >= row["quality"] and any(other[axis] != row[axis] for axis in row):
            return True
    return False


@pytest.mark.slow
@given(st.lists(st.tuples(LEVELS, LEVELS, LEVELS), max_size=12), LEVELS)
def test_the_frontier_is_what_nobody_dominates(points: list[tuple[float | None, ...]], sla: float | None):
    columns = dict(zip(("quality", "latency_ms", "cost"), map(list, zip(*points, strict=True)), strict=False))
    rows = stacks(0, **columns)
    found = marked(rows, decide(rows, Constraints(sla_ms=sla)))
    compared = [axis for axis in ("latency_ms", "cost") if rows[axis].is_not_null().any()]
    for flag, axes in (("frontier", ["quality", *compared]), ("line", ["quality", "latency_ms"])):
        known = found.filter(pl.col("feasible"), *(pl.col(axis).is_not_null() for axis in axes))
        free = {"cost": 0.0, "latency_ms": 0.0}
        at = [{**free, **row} for row in known.select(axes).iter_rows(named=True)]
        expected = {row for row, each in zip(known["row"], at, strict=True) if not dominated(each, at)}
        assert set(found.filter(flag)["row"]) == expected


def test_without_any_price_the_frontier_compares_latency_and_quality():
    rows = stacks(quality=[0.9, 0.5, 0.4], latency_ms=[2.0, 1.0, 3.0])
    assert marked(rows, decide(rows, FREE))["frontier"].to_list() == [True, True, False]


def test_an_infeasible_stack_dominates_nobody_and_says_why():
    rows = stacks(quality=[0.9, 0.5, None], latency_ms=[100.0, 400.0, 100.0], cost=[5.0, 1.0, 1.0])
    found = marked(rows, decide(rows, Constraints(budget=2.0)))
    assert found["frontier"].to_list() == [False, True, False]
    assert found["reason"].to_list() == ["$3.00 / 1k over the budget", None, "unknown quality"]
    assert found["row"].to_list() == [0, 1, 2]


@pytest.mark.parametrize(("colour", "size"), [*itertools.product(COLOURS, SIZES)])
def test_every_colour_and_size_draws_every_stack_with_a_quality(paper: pl.DataFrame, colour: str, size: str):
    found = view(paper, Constraints(sla_ms=600.0, min_quality=0.5), colour=colour, size=size)
    marks = [trace for trace in found.figure.data if trace.customdata is not None]
    drawn = [int(each[0]) for trace in marks for each in trace.customdata]
    scored = np.flatnonzero(paper["quality"].is_not_null().to_numpy())
    numbers = paper.select("quality", "latency_ms", "cost", "reranker").rows()
    assert {numbers[row] for row in drawn} == {numbers[row] for row in scored}
    assert len(drawn) == len(set(drawn))
    assert found.undrawn["quality"].is_null().all()
    assert found.undrawn.height + len(scored) == paper.height == found.rows.height
    bright = {int(each[0]): trace.marker.opacity > 0.5 for trace in marks for each in trace.customdata}
    feasible = decide(paper, Constraints(sla_ms=600.0, min_quality=0.5)).feasible
    assert bright == {row: bool(feasible[row]) for row in bright}
    assert {trace.marker.opacity for trace in marks} == {0.9, 0.4}
    assert [trace.marker.opacity for trace in marks] == sorted(trace.marker.opacity for trace in marks)
    go.Figure(found.figure.to_dict())  # raises on anything that Plotly does not know


@pytest.mark.parametrize("height", [4, 600, DENSE_FROM])
def test_many_marks_are_drawn_once(height: int):
    rows = stacks(
        quality=[0.5] * height,
        latency_ms=[float(place) for place in range(height)],
        reranker=["a reranker", None] * (height // 2),
        cost=[1.0, 2.0] * (height // 2),
    )
    found = view(rows, Constraints(sla_ms=200.0), colour="reranker")
    marks = [trace for trace in found.figure.data if trace.customdata is not None]
    assert found.grid is None
    assert {trace.type for trace in marks} == {"scatter"}
    assert len({trace.marker.symbol for trace in marks}) == 2
    assert sorted(int(each[0]) for trace in marks for each in trace.customdata) == list(range(height))
    legend = {trace.name: trace.marker.symbol for trace in found.figure.data if trace.showlegend is None}
    assert legend == {"no reranker": "circle", "a reranker": "diamond"}
    assert found.figure.layout.margin.autoexpand is False
    go.Figure(found.figure.to_dict())


@pytest.mark.parametrize("unknown", [0, 3, DENSE_FROM])
def test_thousands_are_a_density_that_counts_all_of_them(unknown: int):
    height = DENSE_FROM + 100
    quality = np.random.default_rng(3).uniform(0.2, 0.8, height)
    latency = [None] * unknown + [1.0 + place for place in range(height - unknown)]
    rows = stacks(quality=quality.tolist(), latency_ms=latency, cost=[1.0] * height)
    decision = decide(rows, Constraints(sla_ms=300.0))
    found = view(rows, Constraints(sla_ms=300.0))
    cells = [trace for trace in found.figure.data if trace.type == "heatmap"]
    counted = {"feasible": 0, "excluded": 0}
    for trace in cells:
        title = trace.name.partition(" (")[0]
        best, counts = trace.customdata[..., 0], trace.customdata[..., 1]
        assert trace.name == f"{title} ({counts.sum():,})"
        counted[title] += int(counts.sum())
        assert (np.isnan(trace.z) == (counts == 0)).all()
        assert ((best < 0) == (counts == 0)).all()
        assert set(decision.feasible[best[counts > 0]]) == {title == "feasible"}
    assert counted["feasible"] == decision.feasible.sum()
    assert sum(counted.values()) == height
    assert len({trace.xaxis for trace in cells}) == 1 + (unknown > 0)
    (marks,) = [t for t in found.figure.data if t.type == "scatter" and t.customdata is not None]
    shown = marked(rows, decision).filter(pl.col("line") | pl.col("frontier"))
    assert [int(each[0]) for each in marks.customdata] == shown["row"].to_list()
    go.Figure(found.figure.to_dict())


def test_a_cell_of_a_density_leads_to_its_best_stack():
    height = DENSE_FROM + 10
    rows = stacks(
        quality=[0.5, 0.9, *[0.1] * (height - 2)], latency_ms=[100.0, 1.0, *[100.0 + 1e-9] * (height - 2)]
    )
    found = view(rows)
    (cells,) = [trace for trace in found.figure.data if trace.type == "heatmap"]
    by_row = {int(row): int(n) for row, n in cells.customdata.reshape(-1, 2) if n}
    assert by_row == {0: 1, 1: 1, height - 1: height - 2}


def test_thousands_in_one_place_are_still_a_density():
    found = view(stacks(quality=[0.5] * (DENSE_FROM + 1), latency_ms=[0.0] * (DENSE_FROM + 1)))
    assert found.grid is not None
    assert found.grid.most == DENSE_FROM + 1


@pytest.mark.parametrize("rows", [stacks(0), stacks(1), stacks(3, quality=[0.1, 0.2, 0.3])])
def test_nothing_one_or_no_latency_is_still_a_chart(rows: pl.DataFrame):
    found = view(rows)
    assert found.rows.height == rows.height
    assert found.figure.layout.yaxis.title.text == (
        "RA-nWG@10: share of the best<br>possible evidence in ten passages"
    )
    drawn = [len(trace.customdata) for trace in found.figure.data if trace.customdata is not None]
    assert sum(drawn) == rows["quality"].drop_nulls().len()


def test_the_feasible_and_the_frontier_come_first():
    rows = stacks(quality=[0.2, 0.9, 0.5, None], latency_ms=[1.0, 2.0, 3.0, 1.0])
    assert view(rows, Constraints(sla_ms=2.5)).rows["row"].to_list() == [1, 0, 2, 3]


def test_limits_are_drawn_and_named():
    rows = stacks(quality=[0.2, 0.9], latency_ms=[1.0, 2.0])
    fig = view(rows, Constraints(sla_ms=2.5, min_quality=0.25)).figure
    words = [each.text for each in fig.layout.annotations]
    assert "SLA 2.50 ms" in words
    assert "floor 0.25" in words
    assert [each.type for each in fig.layout.shapes] == ["line", "line"]


@pytest.mark.parametrize(
    ("fastest", "slowest", "kind"), [(1.0, 9.0, None), (1.0, 11.0, "log"), (0.0, 50.0, None)]
)
def test_more_than_a_decade_of_latency_is_logarithmic(fastest: float, slowest: float, kind: str | None):
    fig = view(stacks(quality=[0.2, 0.9], latency_ms=[fastest, slowest])).figure
    assert fig.layout.xaxis.type == kind


def test_chosen_and_selected_are_ringed():
    rows = stacks(quality=[0.2, 0.9, 0.8], latency_ms=[1.0, 900.0, 500.0])
    fig = view(rows, selected="r0").figure
    rings = {trace.name: trace.y[0] for trace in fig.data if trace.name in ("chosen", "selected")}
    assert rings == {"chosen": 0.9, "selected": 0.2}
    assert "selected" not in [trace.name for trace in view(rows, selected="gone").figure.data]


def test_names_are_escaped_wherever_plotly_reads_tags():
    height = len(HOSTILE)
    rows = stacks(
        name=HOSTILE,
        quality=[0.1 * place for place in range(1, height + 1)],
        latency_ms=[10.0 * place for place in range(1, height + 1)],
        embedder=HOSTILE,
    )
    words = view(rows, colour="embedder").figure.to_json().replace("<br>", "").replace("<extra></extra>", "")
    assert "<b" not in words.replace("<b>excluded", "")
    assert "<img" not in words


def test_whiskers_show_the_interval_of_the_frontier():
    rows = stacks(quality=[0.5], quality_low=[0.4], quality_high=[0.7], latency_ms=[1.0])
    whisker = next(trace for trace in view(rows).figure.data if trace.name == "95 % interval")
    assert math.isclose(whisker.error_y.array[0], 0.2)
    assert math.isclose(whisker.error_y.arrayminus[0], 0.1)


def test_a_hover_never_shows_what_is_unknown_as_a_number():
    rows = stacks(quality=[0.5] * 3, latency_ms=[0.0, 1.0, 2.0], n=[None, 50, 50], cost=[None, 1.25, 1.25])
    hovers = {
        name: words
        for trace in view(rows, Constraints(budget=2.0)).figure.data
        if trace.customdata is not None
        for name, words in zip(trace.text, trace.hovertext, strict=True)
    }
    assert hovers == {
        "stack 0": "0.500 (n unknown) · 0.00 ms · cost unknown<br><b>excluded: unknown cost</b>",
        "stack 1": "0.500 (n = 50) · 1.00 ms · $1.25 / 1k",
        "stack 2": "0.500 (n = 50) · 2.00 ms · $1.25 / 1k",
    }


def test_a_hover_says_every_limit_that_is_broken():
    rows = stacks(quality=[0.9, 0.5], latency_ms=[900.0, 100.0], cost=[5.0, 1.0])
    figure = view(rows, Constraints(sla_ms=500.0, budget=2.0)).figure
    (out,) = [trace for trace in figure.data if trace.customdata is not None and trace.marker.opacity < 0.5]
    (words,) = out.hovertext
    assert "400 ms over the SLA and $3.00 / 1k over the budget" in words


def scale_of(rows: pl.DataFrame, colour: str) -> tuple[list[float], list[str]]:
    """The colour of every mark, and the labels of the scale."""
    traces = [each for each in view(rows, colour=colour).figure.data if str(each.meta).startswith("marks-")]
    found = {
        int(row[0]): code
        for each in traces
        for row, code in zip(each.customdata, each.marker.color, strict=True)
    }
    return [found[row] for row in sorted(found)], list(traces[0].marker.colorbar.ticktext)


def test_more_categories_than_colours_are_the_most_frequent_and_the_others():
    names = ["a", *"bcdefgh", *"bcdefgh", "i", "j"]
    codes, labels = scale_of(
        stacks(quality=[0.5] * len(names), latency_ms=[1.0] * len(names), embedder=names), "embedder"
    )
    assert labels == [*"bcdefgh", "other (3)"]
    assert codes == [7.0, *range(7), *range(7), 7.0, 7.0]


def test_as_many_categories_as_colours_keep_theirs():
    depths = [100, 50, 20, 10, 5, 200, 150, None]
    codes, labels = scale_of(stacks(quality=[0.5] * 8, latency_ms=[1.0] * 8, candidates=depths), "candidates")
    assert labels == ["5", "10", "20", "50", "100", "150", "200", "–"]
    assert codes == [4, 3, 2, 1, 0, 6, 5, 7]


@pytest.mark.parametrize("colour", COLOURS)
def test_no_marks_need_no_colours(colour: str):
    assert not any(str(each.meta).startswith("marks-") for each in view(stacks(2), colour=colour).figure.data)


@pytest.mark.parametrize(
    ("jitter", "strip"),
    [(10.0, (90.0, 110.0)), (75.0, None), (0.0, None)],  # 75 ms would cover all of the axis
)
def test_the_jitter_band_is_a_strip_around_the_chosen_stack(jitter: float, strip: tuple[float, float] | None):
    rows = stacks(quality=[0.8, 0.7, 0.6], latency_ms=[100.0, 60.0, 170.0])
    shapes = view(rows, Constraints(jitter_ms=jitter, sla_ms=1000)).figure.layout.shapes
    drawn = [(each.x0, each.x1) for each in shapes if each.type == "rect"]
    assert drawn == ([strip] if strip else [])
    assert [each.x0 for each in shapes if each.type == "line"] == [1000]
    unknown = stacks(quality=[0.8, 0.7], latency_ms=[None, None])
    assert not [each for each in view(unknown).figure.layout.shapes if each.type == "rect"]


@pytest.mark.parametrize(
    ("sla", "place"), [(1000.0, ("center", "center")), (104.0, ("left", "right")), (100.5, ("left", "right"))]
)
def test_the_name_of_the_band_stands_beside_it_away_from_the_line_of_the_limit(
    sla: float, place: tuple[str, str]
):
    rows = stacks(quality=[0.8, 0.7, 0.6], latency_ms=[100.0, 60.0, 170.0])
    shapes = view(rows, Constraints(jitter_ms=10.0, sla_ms=sla)).figure.layout.shapes
    (band,) = [each for each in shapes if each.type == "rect"]
    assert band.label.text == "jitter<br>± 10.0 ms"
    assert (band.label.textposition.split()[1], band.label.xanchor) == place
