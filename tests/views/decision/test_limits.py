import math

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.views.decision.limits import LARGEST, limits
from core.views.theme import logarithmic
from tests.views.made import AT_10, stacks


def offered(measure=AT_10, harm=None, **columns):
    rows = stacks(**columns)
    rows = rows if harm is None else rows.with_columns(pl.Series("harm", harm, dtype=pl.Float64))
    return {limit.key: limit for limit in limits(rows, measure, Latency())}


def test_a_limit_needs_something_known_to_compare():
    assert list(offered(quality=[0.5])) == ["min_quality"]
    assert list(offered(quality=[0.5], latency_ms=[3.0])) == ["sla_ms", "min_quality"]
    assert list(offered(quality=[0.5], cost=[0.0])) == ["min_quality"]
    assert list(offered(quality=[0.5], harm=[None])) == ["min_quality"]
    assert list(offered(quality=[0.5], harm=[0.0])) == ["min_quality", "max_harm"]


def test_the_floor_of_a_measure_that_is_better_the_lower_is_a_cap():
    cap = offered(Quality("Harm", 10), quality=[0.5])["min_quality"]
    assert (cap.upper, cap.loose) == (True, cap.top)
    assert "Harm@10" in cap.help
    floor = offered(quality=[0.5])["min_quality"]
    assert (floor.upper, floor.loose) == (False, floor.bottom)


@pytest.mark.parametrize(
    ("latencies", "ends", "log"),
    [
        ([333.0, None], (0.0, 400.0), False),
        ([1000.0, 100.0], (0.0, 1000.0), False),
        ([0.17], (0.0, 0.2), False),
        ([170.0, 3130.0], (150.0, 4000.0), True),
        ([0.0, 3130.0], (0.0, 4000.0), False),
    ],
)
def test_a_slider_has_the_scale_of_the_chart_and_ends_at_round_numbers(latencies, ends, log: bool):
    limit = offered(latency_ms=latencies)["sla_ms"]
    assert ((limit.bottom, limit.top), limit.log) == (ends, log)
    assert logarithmic([each for each in latencies if each is not None]) == log


@pytest.mark.parametrize(
    ("values", "bottom", "top"), [([-0.31, 2.26, None], -0.4, 2.3), ([0.5], 0.5, 0.6), ([None], 0.0, 1.0)]
)
def test_the_floor_of_a_measure_that_counts_has_the_range_of_its_values(values, bottom: float, top: float):
    floor = offered(Quality("T", 10), quality=values)["min_quality"]
    assert (floor.bottom, floor.top, floor.loose) == (bottom, top, bottom)
    assert floor.allows(-3.0)
    assert floor.taken(-3.0) == -3.0


@pytest.mark.parametrize(
    ("key", "sent", "taken"),
    [
        ("sla_ms", 100, 100.0),
        ("sla_ms", 510.5, 510.5),
        ("sla_ms", 9000, 9000.0),  # beyond the slider, and still what was typed
        ("sla_ms", 400.0, None),  # its loose end, as links of the last release have it
        ("sla_ms", math.nan, None),
        ("sla_ms", math.inf, None),
        ("sla_ms", "7", None),
        ("sla_ms", True, None),
        ("sla_ms", None, None),
        ("sla_ms", [1], None),
        ("min_quality", 0.0, None),
        ("min_quality", 0.01, 0.01),
        ("max_harm", 1.0, None),
        ("max_harm", 0.99, 0.99),
    ],
)
def test_what_is_taken_for_a_limit(key: str, sent: object, taken: float | None):
    assert offered(quality=[0.6], latency_ms=[333.0], harm=[0.2])[key].taken(sent) == taken


@pytest.mark.parametrize(("key", "value"), [("sla_ms", -5.0), ("sla_ms", 2 * LARGEST), ("min_quality", 7.0)])
def test_what_no_field_takes(key: str, value: float):
    limit = offered(quality=[0.6], latency_ms=[333.0])[key]
    assert not limit.allows(value)
    assert limit.allows(None)


@pytest.mark.parametrize(("cost", "factor", "unit"), [(0.0000066, 1000, "1M"), (1.25, 1, "1k")])
def test_a_budget_too_small_to_read_is_typed_per_million(cost: float, factor: int, unit: str):
    budget = offered(cost=[cost])["budget"]
    assert (budget.factor, budget.label) == (factor, f"Budget ($ / {unit})")
    assert budget.suffix == (" / 1M" if factor > 1 else " / 1k")
    assert budget.top == pytest.approx(cost, rel=0.3), "the address holds dollars per 1,000"
