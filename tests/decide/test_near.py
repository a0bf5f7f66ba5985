from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.near import lets_in, near_misses, substitute
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired

FIELDS = {"sla": "sla_ms", "budget": "budget", "floor": "floor"}
SCHEMA = {"run_id": pl.String, "quality": pl.Float64, "latency_ms": pl.Float64, "cost": pl.Float64}


def stacks(*rows):
    return pl.DataFrame([(f"s{at}", *row) for at, row in enumerate(rows)], schema=SCHEMA, orient="row")


# The CLQ paper at 500 ms and $2.50, and others around it: quality, ms, $ / 1k.
PAPER = stacks((0.610, 222.0, 0.0), (0.805, 506.6, 1.25), (0.804, 519.3, 1.25), (0.90, 480.0, 5.0))


def found(table, limits, rule="quality"):
    return near_misses(table, decide(table, limits, rule), limits, rule)


def test_the_stack_just_past_the_sla_and_the_one_past_the_budget():
    dear, slow = found(PAPER, Constraints(sla_ms=500, budget=2.5))
    assert (slow.row, slow.limit, slow.value, slow.unit, slow.set_to) == (1, "sla", 506.6, "ms", 510)
    assert slow.over == pytest.approx(6.6)
    assert slow.gain == pytest.approx(0.195)
    assert slow.edge
    assert (dear.row, dear.limit, dear.over, dear.unit, dear.set_to) == (3, "budget", 2.5, "$ / 1k", 5.0)
    assert not dear.edge


@pytest.mark.parametrize(
    ("limits", "rule", "missed"),
    [
        (Constraints(), "quality", []),
        (Constraints(sla_ms=100, budget=2.5), "quality", [("sla", 1, None), ("sla", 0, None)]),  # none left
        (Constraints(sla_ms=600, budget=2.5), "quality", [("budget", 3, 0.095)]),
        (Constraints(sla_ms=500, floor=0.7, budget=1), "quality", [("budget", 3, None), ("floor", 0, None)]),
        (Constraints(sla_ms=490), "quality", []),  # what is slower is worse than the chosen one
        (Constraints(sla_ms=600, floor=0.8, budget=3), "cost", [("budget", 3, 0.095), ("floor", 0, -0.195)]),
    ],
)  # fmt: skip
def test_which_limit_excludes_what(limits, rule, missed):
    # The band is 0: ties do not choose for us here.
    limits = replace(limits, jitter_ms=0)
    misses = [(miss.limit, miss.row, miss.gain) for miss in found(PAPER, limits, rule)]
    assert misses == [(limit, row, gain and pytest.approx(gain)) for limit, row, gain in missed]


def test_what_is_at_the_edge_is_named_beside_what_is_far_beyond_it():
    table = stacks((0.5, 400.0, 1.0), (0.7, 540.0, 1.0), (0.9, 3000.0, 1.0))
    misses = found(table, Constraints(sla_ms=500))
    assert [(miss.row, miss.edge, miss.set_to) for miss in misses] == [(2, False, 3000), (1, True, 540)]


def test_a_stack_that_is_unknown_there_is_no_near_miss():
    table = stacks((0.5, 400.0, 1.0), (0.9, None, 1.0), (0.8, 450.0, None), (None, 600.0, 1.0))
    assert found(table, Constraints(sla_ms=500, budget=2.0)) == []


@pytest.mark.parametrize(
    ("value", "upper", "limit"),
    [
        (506.6, True, 510.0),
        (1.25, True, 1.25),
        (333.2, True, 334.0),
        (0.0123456, True, 0.0124),
        (1001.0, True, 1010.0),
        (0.805, False, 0.8),
        (0.7953, False, 0.79),
        (0.0, True, 0.0),
        (0.1 + 0.2, True, 0.301),
    ],
)
def test_a_limit_is_set_to_a_round_number(value, upper, limit):
    assert lets_in(value, upper=upper) == limit


@given(st.floats(1e-9, 1e9), st.booleans())
def test_the_limit_lets_the_value_in_and_is_near_it(value, upper):
    limit = lets_in(value, upper=upper)
    assert (limit >= value) if upper else (limit <= value)
    assert abs(limit - value) <= 0.0100001 * value


unknown = st.none()
rows = st.tuples(
    st.integers(0, 8).map(lambda n: n / 8) | unknown,
    st.integers(1, 12).map(lambda n: n * 40.0) | unknown,
    st.integers(0, 6).map(lambda n: n / 2) | unknown,
)
limits = st.builds(
    Constraints,
    sla_ms=st.none() | st.integers(0, 12).map(lambda n: n * 40.0),
    budget=st.none() | st.integers(0, 6).map(lambda n: n / 2),
    floor=st.none() | st.integers(0, 8).map(lambda n: n / 8),
    jitter_ms=st.sampled_from([0.0, 75.0]),
)


def without_one_limit(table, limits, rule):
    """Drop each limit and look at every row that comes in: highest quality by limit, and that at the edge."""
    there = {column: table[column].is_not_null().any() for column in ("latency_ms", "cost")}
    needs = {**there, "quality": True}
    columns = {"sla": "latency_ms", "budget": "cost"}
    asked = {
        name: getattr(limits, field) if there.get(columns.get(name), True) else None
        for name, field in FIELDS.items()
    }

    def broken(row):
        if any(row[column] is None for column, needed in needs.items() if needed):
            return {"unknown"}
        tests = {
            "sla": asked["sla"] is not None and row["latency_ms"] > asked["sla"],
            "budget": asked["budget"] is not None and row["cost"] > asked["budget"],
            "floor": asked["floor"] is not None and row["quality"] < asked["floor"],
        }
        return {name for name, fails in tests.items() if fails}

    chosen = decide(table, limits, rule).chosen
    mine = None if chosen is None else table.row(chosen, named=True)
    objective = {"cost": "cost", "latency": "latency_ms"}.get(rule)
    objective = objective if there.get(objective) else None
    expected = {}
    for name in FIELDS:
        coming = [row for row in table.iter_rows(named=True) if broken(row) == {name}]
        if mine is not None:
            coming = [
                row
                for row in coming
                if row["quality"] > mine["quality"] or (objective and row[objective] < mine[objective])
            ]
        if coming:
            best = max(row["quality"] for row in coming)
            near = [
                row["quality"]
                for row in coming
                if name == "sla" and row["latency_ms"] - asked["sla"] < limits.jitter_ms
            ]
            expected[name] = (best, max(near, default=None))
    return expected


@pytest.mark.slow
@given(st.lists(rows, min_size=1, max_size=12), limits, st.sampled_from(["quality", "cost", "latency"]))
def test_near_misses_against_dropping_each_limit(listed, limits, rule):
    table = stacks(*listed)
    misses = found(table, limits, rule)
    expected = without_one_limit(table, limits, rule)
    quality = table["quality"]
    assert {miss.limit for miss in misses} == set(expected)
    for name, (best, edge) in expected.items():
        mine = [miss for miss in misses if miss.limit == name]
        assert max(quality[miss.row] for miss in mine) == best
        assert max((quality[miss.row] for miss in mine if miss.edge), default=None) == edge
    assert np.all(np.diff([quality[miss.row] for miss in misses]) <= 0)
    for miss in misses:
        wider = replace(limits, **{FIELDS[miss.limit]: miss.set_to})
        assert decide(table, wider, rule).feasible[miss.row]


CLOSE, FAR = [0.0, 0.1, -0.1, 0.05, -0.05, 0.0], [-0.4] * 6  # around the chosen one's qualities


@pytest.mark.parametrize(
    ("gap", "ms", "usd", "gains"),
    [
        (CLOSE, 100.0, 1.0, (True, False)),
        (CLOSE, 500.0, 0.5, (False, True)),  # as fast, within the jitter
        (CLOSE, 100.0, 0.5, (True, True)),
        (CLOSE, 500.0, 0.99, None),  # not worth it
        (CLOSE, 100.0, 2.0, None),  # faster, but dearer
        (CLOSE, 900.0, 0.5, None),  # cheaper, but slower
        (FAR, 100.0, 0.5, None),  # significantly worse
        (CLOSE[:5], 100.0, 0.5, None),  # too few queries for a test
    ],
)
def test_a_stack_that_would_do(gap, ms, usd, gains):
    values = np.array([[0.8] * len(gap), [0.79 + step for step in gap]])
    table = stacks((0.8, 500.0, 1.0), (values[1].mean(), ms, usd))
    paired, limits = Paired(["s0", "s1"], values), Constraints()
    decision = replace(decide(table, limits, paired=paired), chosen=0)
    other = substitute(table, decision, limits, paired)
    assert (None if other is None else (other.faster, other.cheaper)) == gains
    assert other is None or other.low < other.difference < other.high
    assert substitute(table, decision, limits, None) is None
