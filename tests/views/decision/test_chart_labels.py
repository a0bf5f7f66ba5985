import itertools
import math
import re

import plotly.graph_objects as go
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency
from core.decide.axes import COST, LATENCY, Axis
from core.decide.rules import Constraints, decide
from core.views.decision.charts import pareto
from core.views.decision.overlay import _FARTHEST, STACK
from tests.views.decision.test_chart import view
from tests.views.made import AT_10, stacks


def drawn_labels(figure: go.Figure) -> list[str]:
    return [each.text for each in figure.layout.annotations if each.xshift is not None]


def test_identical_stacks_are_one_mark_with_how_many_it_stands_for():
    rows = stacks(
        name=["one", "same", "dear", "other"],
        quality=[0.8, 0.8, 0.8, 0.5],
        latency_ms=[100.0, 100.0, 100.0, 50.0],
        cost=[1.0, 1.0, 2.0, 1.0],
        quality_low=[0.6, 0.6, 0.6, 0.4],
        quality_high=[0.95, 0.95, 0.95, 0.6],
    )
    found = view(rows)
    (marks,) = [trace for trace in found.figure.data if str(trace.meta).startswith("marks-")]
    assert list(marks.text) == ["one<br>and 1 equal in every number", "dear", "other"]
    assert "<b>one (+1 equal)</b>" in drawn_labels(found.figure)
    low, high = found.figure.layout.yaxis.range
    assert (low < 0.4, high > 0.95) == (True, True)


def test_of_identical_stacks_the_selected_one_is_the_mark():
    rows = stacks(quality=[0.8] * 3, latency_ms=[1.0] * 3, cost=[1.0] * 3)
    (marks,) = [t for t in view(rows, selected="r2").figure.data if str(t.meta).startswith("marks-")]
    assert [int(row) for (row,) in marks.customdata] in ([0], [2])


@pytest.mark.parametrize("across", [LATENCY, COST])
def test_labels_lie_neither_on_marks_nor_on_one_another(paper: pl.DataFrame, across: Axis):
    limits = Constraints(sla_ms=600.0, budget=2.5)
    figure = pareto(
        paper, decide(paper, limits), limits, quality=AT_10, latency=Latency(), across=across
    ).figure
    (low, high), (bottom, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    wide, tall = 880 * figure.layout.xaxis.domain[1] if figure.layout.xaxis.domain else 880, 300
    log = figure.layout.xaxis.type == "log"

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - low) / (high - low) * wide, (top - y) / (top - bottom) * tall

    boxes = []
    for each in figure.layout.annotations[1:]:
        x, y = at(each.x, each.y)
        letters = 6.2 * len(re.sub("<.*?>", "", each.text))
        left = x + each.xshift - letters * {"left": 0, "center": 0.5, "right": 1}[each.xanchor]
        boxes.append((left, y - each.yshift - 7, left + letters, y - each.yshift + 7))
        if each.name == STACK and each.xanchor != "center":
            assert 0 < abs(each.xshift) < _FARTHEST, "it begins at its mark"
    marks = [
        at(math.log10(x) if log else x, y)
        for trace in figure.data
        if trace.customdata is not None and trace.xaxis == "x"
        for x, y in zip(trace.x, trace.y, strict=True)
    ]
    assert len(boxes) >= 3
    for left, above, right, below in boxes:
        assert not [(x, y) for x, y in marks if left < x < right and above < y < below]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_cost_across_has_its_limit_and_no_band(paper: pl.DataFrame):
    limits = Constraints(budget=2.5, sla_ms=600.0)
    found = pareto(paper, decide(paper, limits), limits, quality=AT_10, latency=Latency(), across=COST)
    assert [shape.x0 for shape in found.figure.layout.shapes] == [2.5]
    assert "budget $2.50 / 1k" in drawn_labels(found.figure)
    line = next(trace for trace in found.figure.data if trace.name == "frontier")
    assert list(line.x) == sorted(line.x)
    assert found.drawn.filter("line")["feasible"].all()
