"""Sensitivity of the monthly bill: each input by itself lower and higher by a stated range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError
from core.prices import PriceBook
from core.prices.calculator import CostInputs, calculator

RANGE = 0.25  # Share by which an input is changed, downwards and upwards, unless another is stated
STAGE_INPUTS: Mapping[str, tuple[str, ...]] = {
    "embed": ("query_tokens",),
    "rerank": ("candidates", "tokens_per_candidate"),
    "generate-input": ("chunks_sent", "tokens_per_chunk", "prompt_tokens"),
    "generate-output": ("output_tokens",),
    "machine": ("cpu_ms",),
    "gpu": ("gpu_ms",),
    "embed-corpus": ("passages", "tokens_per_passage", "spread_queries"),
    "index": ("passages", "dim", "copies"),
    "storage": ("passages", "dim"),
}
"""Amounts that a stage of the bill depends on, by their field of `CostInputs`."""


@dataclass(frozen=True, slots=True)
class Swing:
    """What one input does to the monthly bill.

    Attributes:
        field: Of `CostInputs`; "price" for a price.
        item, unit: What is priced; empty for an amount.
        value, low, high: The input as it is and at both ends of its range; a price for its own number of
            units.
        usd, low_usd, high_usd: The monthly bill there, in dollars.
    """

    field: str
    item: str
    unit: str
    value: float
    low: float
    high: float
    usd: float
    low_usd: float
    high_usd: float

    @property
    def width(self) -> float:
        """By how many dollars the bill moves from one end of the range to the other."""
        return abs(self.high_usd - self.low_usd)


def tornado(
    inputs: CostInputs, book: PriceBook, *, share: float = RANGE, shares: Mapping[str, float] | None = None
) -> tuple[Swing, ...]:
    """What each input does to the monthly bill, the rest unchanged.

    Args:
        share: By which every input is changed, above 0 and below 1: 0.25 is 25 % less and 25 % more.
        shares: Other shares, by field of `CostInputs`, or "price" for all prices.

    Returns:
        One per amount and price that the bill depends on and that is not 0, the widest first; empty when the
        bill is unknown or there is none. An amount may move nothing: up to 100 documents are one search unit.

    Raises:
        InputError: If a share is not between 0 and 1, or an amount is negative or not a number.
    """
    wanted = {"": share, **(shares or {})}
    for name, each in wanted.items():
        if not (math.isfinite(each) and 0 < each < 1):
            raise InputError(f"A range of {each} {name}".rstrip() + " is not between 0 and 1.")
    bill = calculator(inputs, book)
    if bill.per_month is None:
        return ()
    fields = ("queries_per_month", *(field for line in bill.lines for field in STAGE_INPUTS[line.stage]))
    found = [
        _amount(inputs, book, field, wanted.get(field, share), bill.per_month)
        for field in dict.fromkeys(fields)
        if bill.lines and getattr(inputs, field)
    ]
    priced = dict.fromkeys((line.item, line.unit) for line in bill.lines if line.price and line.price.price)
    found += [_price(inputs, book, key, wanted.get("price", share), bill.per_month) for key in priced]
    # rounded, so that the last digit of equal widths does not decide their order
    return tuple(
        sorted(found, key=lambda each: (-float(f"{each.width:.9g}"), each.field, each.item, each.unit))
    )


def _amount(inputs: CostInputs, book: PriceBook, field: str, share: float, usd: float) -> Swing:
    value = float(getattr(inputs, field))
    low, high = value * (1 - share), value * (1 + share)
    changed: list[dict[str, Any]] = [{field: low}, {field: high}]
    ends = [_bill(replace(inputs, **each), book) for each in changed]
    return Swing(field, "", "", value, low, high, usd, *ends)


def _price(inputs: CostInputs, book: PriceBook, key: tuple[str, str], share: float, usd: float) -> Swing:
    price = book.find(*key)
    value = price.price if price else 0.0
    low, high = value * (1 - share), value * (1 + share)
    ends = [_bill(inputs, book.with_changes({key: end})) for end in (low, high)]
    return Swing("price", *key, value, low, high, usd, *ends)


def _bill(inputs: CostInputs, book: PriceBook) -> float:
    found = calculator(inputs, book).per_month
    return math.nan if found is None else found
