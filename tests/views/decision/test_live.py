import json
from base64 import b64decode
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.workspace.scope import Latency
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, decide, feasible
from core.views.decision.charts import drawing, figure_json, pareto, points
from core.views.decision.marks import DENSE_FROM
from tests.stores import HOSTILE
from tests.views.made import AT_10, stacks

LEVELS = st.sampled_from([None, 0.1, 0.2, 0.3, 0.5])
LIMITS = (None, 0.1, 0.2, 0.3)


def sent(rows: pl.DataFrame, *, higher: bool = True):
    free = Constraints(higher_is_better=higher)
    view = pareto(rows, decide(rows, free), free, quality=AT_10, latency=Latency())
    return points(rows, view), drawing(rows, view)


@pytest.mark.slow
@given(st.lists(st.tuples(LEVELS, LEVELS, LEVELS), min_size=1, max_size=10), st.booleans())
def test_the_order_and_the_names_hold_for_every_limit(found: list[tuple[float | None, ...]], higher: bool):
    sign = 1 if higher else -1
    columns = dict(zip(("quality", "latency_ms", "cost"), map(list, zip(*found, strict=True)), strict=True))
    rows = stacks(**columns)
    numbers, drawn = sent(rows, higher=higher)
    latency, quality = numbers["latency"].to_numpy(), sign * numbers["quality"].to_numpy()
    for sla, budget, floor in product(LIMITS, LIMITS, LIMITS):
        asked = Constraints(sla_ms=sla, budget=budget, min_quality=floor, higher_is_better=higher)
        left = feasible(rows, asked)
        line: list[int] = []
        for row in numbers["order"]:
            if left[row] and not np.isnan(latency[row]):
                better = not line or quality[row] > quality[line[-1]]
                if better or (quality[row], latency[row]) == (quality[line[-1]], latency[line[-1]]):
                    line.append(row)
        on = np.where(left, 1.0, np.nan)
        assert line == sorted(frontier_2d(latency * on, quality * on).tolist(), key=line.index)
        best = [quality[int(row)] for row in drawn["names"] if left[int(row)]]
        assert max(best, default=None) == (quality[left].max() if left.any() else None)
    assert left.tolist() == decide(rows, asked).feasible.tolist()


def test_a_budget_brings_a_stack_onto_the_frontier_that_was_not_on_it():
    rows = stacks(quality=[0.9, 0.8], latency_ms=[1.0, 2.0], cost=[9.0, 1.0])
    numbers, _ = sent(rows)
    assert numbers["order"].to_list() == [0, 1]
    assert frontier_2d([1.0, 2.0], [0.9, 0.8]).tolist() == [0]
    assert frontier_2d([np.nan, 2.0], [np.nan, 0.8]).tolist() == [1]


def test_marks_are_known_again_by_trace_and_place():
    rows = stacks(quality=[0.5, None, 0.6], latency_ms=[1.0, 1.0, None], reranker=["a", "a", None])
    numbers, drawn = sent(rows)
    assert sorted(row for trace in drawn["marks"].values() for row in trace) == [0, 2]
    assert drawn["panels"] == []
    assert numbers["cell"].to_list() == [-1, -1, -1]
    assert np.isnan(numbers["quality"][1])


def test_every_trace_of_marks_has_a_name_that_css_can_say():
    _, drawn = sent(stacks(quality=[0.5] * 8, latency_ms=[1.0] * 8, reranker=HOSTILE))
    assert all(name.replace("-", "").isalnum() for name in drawn["marks"])


@pytest.mark.parametrize("unknown", [0, 5])
def test_cells_are_those_of_the_panels(unknown: int):
    height = DENSE_FROM + 7
    latency = [None] * unknown + [1.0 + place for place in range(height - unknown)]
    quality = [0.1 + 0.8 * place / height for place in range(height)]
    numbers, drawn = sent(stacks(quality=quality, latency_ms=latency))
    assert [panel["axis"] for panel in drawn["panels"]] == ["x", "x2"][: 1 + (unknown > 0)]
    for row in (*range(unknown), unknown, height // 2, height - 1):
        panel = drawn["panels"][row < unknown]
        line, column = divmod(numbers["cell"][row] - panel["start"], len(panel["x"]) - 1)
        assert panel["y"][line] <= quality[row] <= panel["y"][line + 1]
        if row >= unknown:
            assert panel["x"][column] <= latency[row] <= panel["x"][column + 1]
    assert np.bincount(numbers["cell"].to_numpy()).max() == drawn["most"]


def unpacked(spec: object) -> object:
    """A chart with its numbers as lists, however they travelled."""
    if isinstance(spec, list):
        return [unpacked(part) for part in spec]
    if not isinstance(spec, dict):
        return spec
    if "bdata" in spec:
        numbers = np.frombuffer(b64decode(spec["bdata"]), dtype=spec["dtype"])
        known = np.where(np.isnan(numbers), None, numbers)
        return known.reshape([int(n) for n in spec.get("shape", str(numbers.size)).split(",")]).tolist()
    return {name: unpacked(part) for name, part in spec.items()}


@pytest.mark.parametrize("copies", [1, DENSE_FROM])
def test_the_chart_travels_as_plotly_would_write_it(copies: int):
    rows = stacks(
        quality=[0.5, None, 0.6, 0.7, 0.8] * copies,
        latency_ms=[1.0, 1.0, None, 3.0, 40.0] * copies,
        cost=[1.0, 2.0, None, 4.0, 5.0] * copies,
        name=[*HOSTILE[:3], "NaN", "Infinity"] * copies,
    )
    limits = Constraints(sla_ms=20.0, budget=4.5, min_quality=0.1)
    view = pareto(rows, decide(rows, limits), limits, quality=AT_10, latency=Latency())
    theirs = json.loads(view.figure.to_json())
    theirs["layout"].pop("template", None)
    assert unpacked(json.loads(figure_json(view))) == unpacked(theirs)
