import math

import numpy as np
import polars as pl
import pytest

from core.analysis.status import marked, ordered
from core.decide.rules import Constraints, decide
from core.views import theme
from core.views.decision import charts
from tests.stores import HOSTILE
from tests.views.made import AT_10, stacks

TABLE = stacks(
    name=["best", "dominated", "slow", "cheap", HOSTILE[0]],
    quality=[0.8, 0.7, 0.9, 0.5, None],
    latency_ms=[100.0, 200.0, 4000.0, 50.0, 10.0],
    cost=[1.0, 2.0, 5.0, 0.0, 1.0],
    candidates=[50, 100, 200, None, None],
    dim=[1024, 512, 1024, None, None],
)


def shown(table: pl.DataFrame = TABLE, *, weak: bool = False, **limits: float):
    decision = decide(table, Constraints(**limits))
    return ordered(marked(table, decision, weak=weak), decision), decision


def test_the_selected_stack_stands_out_unless_it_is_the_chosen_one():
    rows, decision = shown(sla_ms=1000.0)
    for name, fate in (("cheap", "selected"), ("slow", "selected"), ("best", "chosen")):
        run_id = rows.row(by_predicate=pl.col("name") == name, named=True)["run_id"]
        found = dict(zip(rows["name"], charts.fates(rows, decision, run_id), strict=True))
        assert found[name] == fate


def test_every_stack_has_one_fate():
    rows, decision = shown(sla_ms=1000.0)
    found = dict(zip(rows["name"], charts.fates(rows, decision), strict=True))
    assert found == {
        "best": "chosen",
        "dominated": "within the limits",
        "slow": "excluded",
        "cheap": "frontier",
        HOSTILE[0]: "excluded",
    }


def test_the_weak_form_keeps_what_ties_on_one_axis():
    tied = stacks(quality=[0.8, 0.7], latency_ms=[10.0, 20.0], cost=[1.0, 1.0])
    assert shown(tied)[0].sort("row")["frontier"].to_list() == [True, False]
    assert shown(tied, weak=True)[0].sort("row")["frontier"].to_list() == [True, True]


def test_parallel_axes_have_a_place_for_what_is_missing():
    rows, decision = shown(sla_ms=1000.0)
    drawn = charts.parallel(rows, decision, AT_10)
    assert drawn is not None
    (trace,) = drawn.data
    assert [axis.label for axis in trace.dimensions] == [
        "limits",
        "RA-nWG@10",
        "latency ms",
        "$ / 1k",
        "K",
        "dimensions",
    ]
    depth = trace.dimensions[4]
    assert list(depth.ticktext) == ["none", "50", "100", "200"]
    order = rows.filter(pl.col("quality").is_not_null())
    place = dict(zip(depth.ticktext, depth.tickvals, strict=True))
    assert sorted(depth.values) == sorted(place["none" if k is None else str(k)] for k in order["candidates"])
    assert min(depth.range) <= place["none"] < place["50"]
    assert list(trace.line.color) == sorted(trace.line.color)  # the chosen one is drawn last
    latency = trace.dimensions[2]
    assert max(latency.values) == pytest.approx(math.log10(4000))


def test_tiny_costs_are_written_as_on_the_other_charts():
    costs = [0.000002, 0.0000054]
    (trace,) = charts.parallel(*shown(stacks(quality=[0.5, 0.6], cost=costs)), AT_10).data
    assert (trace.dimensions[1].label, *trace.dimensions[1].ticktext) == ("$ / 1M", "0.002", "0.0054")


def test_axes_without_any_value_are_left_out_and_nothing_known_is_no_chart():
    rows, decision = shown(stacks(quality=[0.5, 0.5]))
    drawn = charts.parallel(rows, decision, AT_10)
    assert drawn is not None
    assert [axis.label for axis in drawn.data[0].dimensions] == ["RA-nWG@10"]
    empty, nothing = shown(stacks(2))
    assert charts.parallel(empty, nothing, AT_10) is None


def test_what_is_excluded_is_faint_and_the_key_names_only_what_is_there():
    (trace,) = charts.parallel(*shown(sla_ms=1000.0), AT_10).data
    met = trace.dimensions[0]
    assert sorted(met.values) == [0.0, 1.0, 1.0, 1.0]
    assert met.constraintrange[0] > 0
    assert trace.unselected.line.opacity < 0.5
    assert list(trace.line.colorbar.ticktext) == ["excluded", "within the limits", "frontier", "chosen"]
    (free,) = charts.parallel(*shown(), AT_10).data
    assert free.dimensions[0].label == "RA-nWG@10"
    assert "excluded" not in free.line.colorbar.ticktext


@pytest.mark.parametrize(
    ("low", "high", "log"), [(0.1, 0.93, False), (1.0, 1.0, False), (0.0, 3.4, True), (0.31, 0.6, True)]
)
def test_ticks_lie_on_the_axis(low: float, high: float, log: bool):
    ticks = np.array(theme.ticks_of(low, high, log=log))
    at = np.log10(ticks) if log else ticks
    assert 1 <= len(ticks) <= 12
    assert (at >= low - 1e-3).all()
    assert (at <= high + 1e-3).all()
