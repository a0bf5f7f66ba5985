from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.near import lets_in, near_misses
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired

FIELDS = {"sla_ms": "sla_ms", "budget": "budget", "min_quality": "min_quality"}
SCHEMA = {"run_id": pl.String, "quality": pl.Float64, "latency_ms": pl.Float64, "cost": pl.Float64}


def stacks(*rows):
    return pl.DataFrame([(f"s{at}", *row) for at, row in enumerate(rows)], schema=SCHEMA, orient="row")


# The CLQ paper at 500 ms and $2.50, and others around it: quality, ms, $ / 1k.
PAPER = stacks((0.610, 222.0, 0.0), (0.805, 506.6, 1.25), (0.804, 519.3, 1.25), (0.90, 480.0, 5.0))


def found(table, limits, rule="quality"):
    return near_misses(table, decide(table, limits, rule), limits, rule)


def test_the_stack_just_past_the_sla_and_the_one_past_the_budget():
    dear, slow = found(PAPER, Constraints(sla_ms=500, budget=2.5))
    assert (slow.row, slow.limit, slow.value, slow.unit, slow.set_to) == (1, "sla_ms", 506.6, "ms", 510)
    assert slow.over == pytest.approx(6.6)
    assert slow.gain == pytest.approx(0.195)
    assert slow.edge
    assert (dear.row, dear.limit, dear.over, dear.unit, dear.set_to) == (3, "budget", 2.5, "$ / 1k", 5.0)
    assert not dear.edge


@pytest.mark.parametrize(
    ("limits", "rule", "missed"),
    [
        (Constraints(), "quality", []),
        (Constraints(sla_ms=100, budget=2.5), "quality", [("sla_ms", 1, None), ("sla_ms", 0, None)]),
        (Constraints(sla_ms=600, budget=2.5), "quality", [("budget", 3, 0.095)]),
        (Constraints(sla_ms=500, min_quality=0.7, budget=1), "quality",
         [("budget", 3, None), ("min_quality", 0, None)]),
        (Constraints(sla_ms=490), "quality", []),  # what is slower is worse than the chosen one
        (Constraints(sla_ms=600, min_quality=0.8, budget=3), "cost", [("min_quality", 0, -0.195)]),
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


@pytest.mark.parametrize(
    ("delta", "first"),
    [
        (0.01, [(4, 900), (3, 120)]),  # 2 stands no nearer than the band tells, and 3 is better
        (0.2, [(4, 900)]),
        (0.5, []),  # none gains that much
    ],
)
def test_the_least_loosening_that_gains_what_matters_is_named_too(delta, first):
    table = stacks(
        (0.5, 50.0, 1.0), (0.505, 111.0, 1.0), (0.52, 117.0, 1.0), (0.6, 120.0, 1.0), (0.71, 900.0, 1.0)
    )
    misses = found(table, Constraints(sla_ms=100, jitter_ms=10.0, delta=delta))
    assert [(miss.row, miss.set_to) for miss in misses] == first


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
    min_quality=st.none() | st.integers(0, 8).map(lambda n: n / 8),
    jitter_ms=st.sampled_from([0.0, 75.0]),
)


def ships_by_one_limit(table, limits, rule):
    """Widen each limit just so that each row comes in that it alone excludes: which then ship, and gain."""
    now = decide(table, limits, rule)
    quality, cost, latency = (table[name].to_list() for name in ("quality", "cost", "latency_ms"))
    paid = {"cost": cost, "latency": latency}.get(rule)
    expected = {}
    for name, field in FIELDS.items():
        if getattr(limits, field) is None:
            continue
        free = decide(table, replace(limits, **{field: None}), rule).feasible
        values = {"sla_ms": latency, "budget": cost, "min_quality": quality}[name]
        for row in np.flatnonzero(free & ~now.feasible).tolist():
            if values[row] is None:
                continue
            wide = replace(limits, **{field: lets_in(values[row], upper=name != "min_quality")})
            gains = now.chosen is None or (
                quality[row] > quality[now.chosen] or (paid is not None and paid[row] < paid[now.chosen])
            )
            if decide(table, wide, rule).chosen == row and gains:
                expected.setdefault(name, set()).add(row)
    return expected


@pytest.mark.slow
@given(st.lists(rows, min_size=1, max_size=12), limits, st.sampled_from(["quality", "cost", "latency"]))
def test_near_misses_are_what_would_ship_and_gain(listed, limits, rule):
    table = stacks(*listed)
    misses = found(table, limits, rule)
    expected = ships_by_one_limit(table, limits, rule)
    for miss in misses:
        assert miss.row in expected[miss.limit]
    quality = table["quality"]
    if rule == "quality":
        assert {miss.limit for miss in misses} == set(expected)
        for name, ships in expected.items():
            best = max(quality[miss.row] for miss in misses if miss.limit == name)
            assert best == pytest.approx(max(quality[row] for row in ships), abs=5e-4)
    assert np.all(np.diff([quality[miss.row] for miss in misses]) <= 0)


def test_a_stack_that_gains_nothing_over_what_would_then_ship_is_none():
    """Of 194 ms and of 9 ms with the same quality, the nearer one is the near miss."""
    table = stacks((0.46, 0.1, 1.0), (0.62, 9.0, 1.0), (0.62, 194.0, 1.0))
    assert [(miss.row, miss.set_to) for miss in found(table, Constraints(sla_ms=5, jitter_ms=1))] == [
        (1, 9.0)
    ]
    assert found(table, Constraints(sla_ms=20, jitter_ms=1)) == []


def test_a_near_miss_is_named_with_what_ships_by_its_limit():
    """The best that comes in ties with a cheaper one, which then ships."""
    values = np.random.default_rng(3).random((1, 40)) * 0.5
    values = np.vstack([values, values + 0.3, values + 0.299])
    table = stacks(
        *((row.mean(), ms, usd) for row, ms, usd in zip(values, (10.0, 90.0, 95.0), (1, 5, 2), strict=True))
    )
    limits, paired = Constraints(sla_ms=50, jitter_ms=10, delta=0.01), Paired(["s0", "s1", "s2"], values)
    decision = decide(table, limits, paired=paired)
    misses = near_misses(table, decision, limits, paired=paired)
    assert [(miss.row, miss.set_to) for miss in misses] == [(1, 90.0)]
    for miss in misses:
        assert decide(table, replace(limits, sla_ms=miss.set_to), paired=paired).chosen == miss.row
