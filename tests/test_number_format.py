"""How dollars are written: digits that tell them apart, and one unit for all costs of a workspace."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.number_format import PER_1K, UNIT, CostUnit, digits_apart, dollars_per_1k, usd, usd_apart

MILLION = CostUnit(million=True)
COSTS = st.floats(1e-9, 1e4).map(lambda cost: float(f"{cost:.6g}"))


@pytest.mark.parametrize(
    ("amount", "digits", "shown"),
    [
        (1.25, 2, "$1.25"), (0, 2, "$0.00"), (1234.5, 2, "$1,234.50"), (0.1, 2, "$0.10"),
        (0.012, 2, "$0.012"),
        (0.00001234, 2, "$0.000012"), (0.15191, 4, "$0.1519"), (1.2504, 4, "$1.25"), (1.2512, 4, "$1.251"),
        (-0.5, 2, "−$0.50"), (None, 2, "unknown"), (math.nan, 2, "unknown"),
    ],
)  # fmt: skip
def test_dollars(amount: float | None, digits: int, shown: str):
    assert usd(amount, digits) == shown


@pytest.mark.parametrize(
    ("amounts", "shown"),
    [
        ([0.15024, 0.15191], ["$0.15", "$0.152"]),
        ([0.15191, 0.15227], ["$0.1519", "$0.1523"]),
        ([2.5, 2.5], ["$2.50", "$2.50"]),
        ([0.1 + 0.2, 0.3], ["$0.30", "$0.30"]),  # the same number, but for the last bit
        ([1.0, None], ["$1.00", "unknown"]),
    ],
)
def test_dollars_beside_one_another_are_told_apart(amounts: list[float | None], shown: list[str]):
    assert usd_apart(*amounts) == shown


@pytest.mark.parametrize(
    ("costs", "million"),
    [
        ([0.0000012, 0.0133], True), ([0.0000012, 1.9], False), ([0.5, 1.9], False), ([], False),
        ([None, math.nan, 0.0], False), ([None, 0.0005], True), ([0.02, 0.05], False),
        ([0.0000012, 0.00015, 0.00031, 0.036], True), ([0.0004, 0.5004, 1.25, 2.5], False),
    ],
)  # fmt: skip
def test_costs_are_per_million_where_most_would_be_tiny(costs: list[float | None], million: bool):
    assert CostUnit.among(costs).million == million


@given(st.lists(COSTS, min_size=1, max_size=30))
def test_two_different_costs_are_never_written_alike_beside_one_another(costs: list[float]):
    said = CostUnit.among(costs)
    assert said.digits == min(4, digits_apart(said.factor * cost for cost in costs))
    for one, other in combinations(dict.fromkeys(costs), 2):
        assert len({*said.apart(one, other)}) == 2
        beside = said.beside(one, other)
        assert beside.usd(one) != beside.usd(other)
        assert said.usd(one) != said.usd(other) or abs(one - other) < 0.001 * one, (
            "by a thousandth they differ"
        )


@given(st.floats(0, 1e9), st.booleans())
def test_what_an_address_says_is_the_very_amount(cost: float, million: bool):
    typed = CostUnit(million).typed(cost)
    assert typed.endswith("per1M" if million else "per1k")
    assert dollars_per_1k(typed) == cost


@pytest.mark.parametrize(
    ("typed", "cost"),
    [
        ("2.5", 2.5), ("2.5per1k", 2.5), ("0.2per1M", 0.0002), ("0.2per1m", 0.0002), ("0", 0.0),
        ("1e-3", 0.001), (" 2 ", 2.0), ("", None), ("abc", None), ("-1", None), ("2,5", None), ("nan", None),
        ("inf", None), ("2.5per1", None), ("2.5 per 1k", None), ("1e10", None), ("$2.5", None), ("٣", None),
    ],
)  # fmt: skip
def test_what_is_read_as_a_budget(typed: str, cost: float | None):
    assert dollars_per_1k(typed) == cost


def test_a_row_says_its_unit_and_one_that_does_not_is_per_1000():
    said = CostUnit(million=True, digits=4)
    assert CostUnit.of(dict(zip(UNIT, said.said, strict=True))) == said
    assert CostUnit.of({}) == CostUnit.of(dict.fromkeys(UNIT)) == PER_1K
    assert said.usd(0.00015191) == "$0.1519 / 1M"
    assert said.usd(0.00015191, "correct") == "$0.1519 / 1M correct"
    assert said.per_queries(0.00015191) == "$0.1519 per million queries"
    assert said.label("$ / 1k correct") == "$ / 1M correct"
    assert PER_1K.label("Per 1,000 queries.") == "Per 1,000 queries."
