import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.pareto import frontier, frontier_rows
from core.decide.rules import Constraints, decide
from tests.decide.test_rules import table

known = st.one_of(st.none(), st.integers(0, 6).map(float))
four = st.tuples(known, known, known, known)  # quality, latency, cost, harm
FIELDS = ("min_quality", "sla_ms", "budget", "max_harm")


def naive(rows, limits, rule, sign):
    """Row by row: which meet all, which lack a number only, and the best values of those that meet all."""
    paid = {"latency": 1, "cost": 2}.get(rule)
    asked = [True, *(limits[axis] is not None or axis == paid for axis in (1, 2, 3))]
    feasible, promising = set(), set()
    for place, row in enumerate(rows):
        if row[0] is None:
            continue
        signs = (-sign, 1, 1, 1)  # every limit as "at most"
        broken = any(
            value is not None and limit is not None and up * value > up * limit
            for value, limit, up in zip(row, limits, signs, strict=True)
        )
        lacks = any(value is None and needed for value, needed in zip(row, asked, strict=True))
        if not broken:
            (promising if lacks else feasible).add(place)
    least = min((rows[place][paid] for place in feasible), default=0) if paid else 0
    slack = 1.01 if rule == "cost" else 1.0
    among = [rows[place][0] for place in feasible if paid is None or rows[place][paid] <= least * slack]
    return feasible, promising, (max if sign > 0 else min)(among, default=None)


@pytest.mark.slow
@given(rows=st.lists(four, min_size=1, max_size=20), limits=four, higher=st.booleans(), data=st.data())
def test_equals_a_naive_oracle_in_both_directions(rows, limits, higher, data):
    rule = data.draw(st.sampled_from(["quality", "cost", "latency"]))
    named = [(f"r{n}", q, q, q, ms, usd, 1) for n, (q, ms, usd, _) in enumerate(rows)]
    made = table(*named).with_columns(pl.Series("harm", [row[3] for row in rows], dtype=pl.Float64))
    asked = dict(zip(FIELDS, limits, strict=True))
    found = decide(made, Constraints(**asked, jitter_ms=0, higher_is_better=higher), rule)
    feasible, promising, best = naive(rows, limits, rule, 1 if higher else -1)
    assert set(np.flatnonzero(found.feasible)) == feasible
    assert set(np.flatnonzero(found.promising)) == promising
    assert (None if found.chosen is None else rows[found.chosen][0]) == best
    lacking = found.unknown[found.promising]
    assert lacking.any(axis=1).all()
    assert not found.unknown[found.feasible].any()


@pytest.mark.slow
@given(rows=st.lists(four, min_size=1, max_size=20), higher=st.booleans(), weak=st.booleans(), sla=known)
def test_the_frontier_equals_comparing_every_pair(rows, higher, weak, sla):
    named = [(f"r{n}", q, None, None, ms, usd, 1) for n, (q, ms, usd, _) in enumerate(rows)]
    made, asked = table(*named), Constraints(sla_ms=sla, higher_is_better=higher)
    found = decide(made, asked)
    left = {int(row) for row in np.flatnonzero(found.feasible)}
    compared = [axis for axis in (1, 2) if any(row[axis] is not None for row in rows)]
    points = {
        row: [*(rows[row][axis] for axis in compared), (-1 if higher else 1) * rows[row][0]]
        for row in left
        if all(rows[row][axis] is not None for axis in compared)  # what is unknown stands on no frontier
    }

    def beats(one, other):
        if weak:
            return all(a < b for a, b in zip(one, other, strict=True))
        return all(a <= b for a, b in zip(one, other, strict=True)) and one != other

    expected = {row for row in points if not any(beats(points[each], points[row]) for each in points)}
    assert set(np.flatnonzero(frontier(made, found, weak=weak))) == expected
    order = [points[row][-1] for row in frontier_rows(made, found, weak=weak)]
    assert order == sorted(order)


stacks = st.lists(st.tuples(known, known, known, known), min_size=1, max_size=25)


@pytest.mark.slow
@given(
    rows=stacks,
    sla=known,
    budget=known,
    min_quality=known,
    rule=st.sampled_from(["quality", "cost", "latency"]),
)
def test_invariants(rows, sla, budget, min_quality, rule):
    named = [(f"r{n}", q, q, q, latency, cost, k) for n, (q, latency, cost, k) in enumerate(rows)]
    found = decide(
        table(*named), Constraints(sla_ms=sla, budget=budget, min_quality=min_quality, jitter_ms=1), rule
    )
    assert found.feasible.sum() + found.excluded().height == len(rows)
    assert (found.chosen is None) == (not found.feasible.any())
    assert (found.runner_up is None) == (found.feasible.sum() < 2)
    for row in found.ties:
        assert found.feasible[row]
    if found.chosen is None:
        return
    quality, latency, cost, _ = rows[found.chosen]
    feasible = [rows[row] for row in np.flatnonzero(found.feasible)]
    assert sla is None or latency <= sla
    assert budget is None or cost <= budget
    assert min_quality is None or quality >= min_quality
    if rule == "quality":  # averages tie where they are equal
        assert quality == max(row[0] for row in feasible)
    if rule == "cost":
        assert cost <= 1.01 * min(row[2] for row in feasible)
    if rule == "latency":
        assert latency <= min(row[1] for row in feasible) + 1
