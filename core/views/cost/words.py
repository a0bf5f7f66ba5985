"""Words of page Cost and its command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.analysis.stack_cost import HOURS, MACHINES, NONE
from core.choices import declared
from core.number_format import CostUnit, usd_apart
from core.prices import MS_PER_HOUR, Price, PriceBook
from core.prices.calculator import CostBreakdown, CostInputs, Swing
from core.views import text

if TYPE_CHECKING:
    from core.analysis.stack_cost import CostStart
    from core.views.cost.bill import CostView

STAGES: Mapping[str, str] = {
    "embed": "the embedding call",
    "rerank": "the reranker call",
    "generate-input": "the reader's input",
    "generate-output": "the reader's output",
    "machine": "local machine time",
    "gpu": "local GPU time",
    "embed-corpus": "the embedding of the corpus",
    "index": "the index in memory",
    "storage": "the index on disk",
}
FILLED = ("embedder", "query_tokens", "cpu_ms", "reranker", "candidates", "tokens_per_candidate")
"""The inputs that a stack can fill, as fields of `CostInputs`."""
BUYS: Mapping[str, str] = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "search_units": "search units",
    "requests": "requests",
    "cpu_hour": "CPU hours",
    "gpu_hour": "GPU hours",
    "gib_month": "GiB-months",
}
"""Names of priced amounts, by unit."""
_NAMED = 3
_ALIKE = 0.99  # Share of the widest swing above which inputs move the bill equally


def called(field: str) -> str:
    """Return an input's name within a sentence."""
    return declared(CostInputs)[field].choice.word


def lead(view: CostView, partly: str = "") -> tuple[str, str]:
    """Return the cost and its largest part: a sentence, and one below it.

    Args:
        partly: The stack's own cost if a part of it isn't on record.
    """
    breakdown = view.found
    if not breakdown.lines or breakdown.per_1k is None:
        return answer(view), ""
    share, stage = _largest(breakdown)
    cost = view.said.per_queries(breakdown.per_1k)
    if not share:
        return "Nothing is billed.", ""
    if partly:
        return f"{cost}, modelled; recorded: {partly}.", f"{share[:1].upper()}{share[1:]} of it is {stage}."
    if machine := rented(breakdown):
        number, usd, busy = machine
        queries = text.count(round(breakdown.queries_per_month), "query")
        used = f"This busy time is worth {cost}, at a mean of {text.ms(_mean_ms(breakdown))} per query."
        if number > 1:
            return f"{queries} a month keep {number:,} machines busy: {text.usd(usd)} a month.", used
        return f"A machine costs {text.usd(usd)} a month; {queries} keep it busy for {busy}.", used
    part = "all" if share == "all" else f"{share} of it"
    return f"{cost}, {part} for {stage}.", always_on(breakdown)


def rented(breakdown: CostBreakdown) -> tuple[int, float, str] | None:
    """Return how many machines a bill of machine time alone keeps busy, their dollars a month and share.

    None if anything else is billed, or the machines differ.
    """
    prices = {line.item: line.price for line in breakdown.lines if line.unit in MACHINES}
    if len(prices) != 1 or len(breakdown.lines) > 1 or (price := next(iter(prices.values()))) is None:
        return None
    hours = breakdown.queries_per_month * (_mean_ms(breakdown) or 0.0) / MS_PER_HOUR
    number = max(1, math.ceil(hours / HOURS))
    return number, number * price.each * HOURS, share_of(hours, number * HOURS)


def always_on(breakdown: CostBreakdown) -> str:
    """Say what a machine costs that waits between queries; "" if none is billed by the hour."""
    machines = {line.item: line.price for line in breakdown.lines if line.unit in MACHINES and line.price}
    hourly = sum(price.each for price in machines.values())
    whole = f"{'An always-on machine costs' if len(machines) == 1 else 'Always-on machines cost'}"
    return f"Busy time only. {whole} {text.usd(hourly * HOURS)} a month." if machines else ""


def _mean_ms(breakdown: CostBreakdown) -> float | None:
    """Return the mean time per query that a one-machine bill charges for; latencies elsewhere are medians."""
    used = breakdown.lines[0].units_per_query
    return None if used is None else used * MS_PER_HOUR


def answer(view: CostView) -> str:
    """Return the bill in one sentence, or the reason it is unknown."""
    breakdown, said = view.found, view.said
    if not breakdown.lines:
        return "$0: no billed model and no machine time is chosen."
    if breakdown.per_1k is None:
        known = sum(line.usd_per_query or 0.0 for line in breakdown.lines)
        rest = f" The other stages cost {said.per_queries(1000 * known)}." if known else ""
        return f"Unknown: {'; '.join(dict.fromkeys(breakdown.unknown))}.{rest}"
    named = " + ".join(dict.fromkeys(line.item for line in breakdown.lines))
    month = text.count(round(breakdown.queries_per_month), "query")
    words = f"{named}: {said.per_queries(breakdown.per_1k)}"
    share, stage = _largest(breakdown)
    most = f"; all of it is {stage}" if share == "all" else f"; {share} of it is {stage}" if share else ""
    return f"{words}, {text.usd(breakdown.per_month)} a month at {month}{most}."


def _largest(breakdown: CostBreakdown) -> tuple[str, str]:
    """Return the share of the most expensive stage, and the stage; empty if nothing is paid."""
    largest = max(breakdown.lines, key=lambda line: line.usd_per_query or 0.0)
    if not largest.usd_per_query or not breakdown.per_query:
        return "", ""
    share = "all" if len(breakdown.lines) == 1 else share_of(largest.usd_per_query, breakdown.per_query)
    return share, STAGES[largest.stage]


def share_of(part: float, whole: float) -> str:
    """Return a percentage whose rounding hides no remainder: 0 and 100 % mean nothing and all."""
    share = part / whole
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= share < 1 else text.percent(share)


def caveats(inputs: CostInputs, book: PriceBook, view: CostView) -> dict[str, str]:
    """Return the assumptions of a bill, keyed by the words of a chip; empty if there are none."""
    dates = sorted({price.looked_up.isoformat() for price in view.prices})
    span = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
    loose = [price for price in view.prices if not price.confirmed and price.was is None]
    line = next((line for line in view.found.lines if line.stage == "embed-corpus"), None)
    once = None if line is None or line.usd_per_query is None else line.usd_per_query * inputs.spread_queries
    queries = text.count(round(inputs.spread_queries), "query")
    return {
        f"prices of {span}": f"Prices: book {book.title}, looked up {span}." if dates else "",
        text.count(len(loose), "price not confirmed", "prices not confirmed"): " ".join(
            f"Not confirmed: {price.item}. {price.note}".strip() for price in loose
        ),
        "corpus": ""
        if once is None
        else f"Embedding the corpus costs {text.usd(once)} once, spread over {queries}.",
    }


def changed(book: PriceBook) -> list[str]:
    """Return every changed price, before and now."""
    return [
        f"{price.item}: ${price.was:.10g} → ${price.price:.10g} per {buying(price)}" for price in book.changed
    ]


def buying(price: Price) -> str:
    """Say what a price buys: ``1,000,000 input tokens``, ``processor hour``."""
    units = BUYS[price.unit]
    return units.removesuffix("s") if price.per == 1 else f"{price.per:,.10g} {units}"


def rechosen(now: str | None, then: str | None) -> str:
    """Name the stack chosen under trial prices, beside the one chosen now."""
    if now == then:
        return (
            f"With these prices the choice stays {then}."
            if then
            else "With these prices, too, no stack fits."
        )
    return f"With these prices the choice would be {then or 'no stack'} (now {now or 'none'})."


def recorded_answer(rows: pl.DataFrame, name: str, said: CostUnit) -> str:
    """Say what a stack's recorded usage costs; unknown if a part is."""
    if rows.is_empty():
        return f"{name} has recorded no usage."
    how = ", ".join(sorted(set(rows["basis"].drop_nulls())))
    total = said.per_queries(float(rows["usd_per_1k"].sum()))
    if rows["usd_per_1k"].null_count():
        return f"{name}: unknown; what is known costs {total} ({how})."
    return f"{name}: {total} ({how})."


def provenance(start: CostStart | None, asked: Mapping[str, float | str]) -> str:
    """Say which inputs come from a stack, how each is known, and which are usual or typed."""
    if start is None:
        return "All amounts are defaults or your own values."
    unread = {"candidates"} if asked.get("reranker") == NONE else set()
    amounts = {field: amount for field, amount in start.amounts.items() if field not in unread}
    kept = [field for field in FILLED if field in amounts and amounts[field].value == asked[field]]
    taken = [f"{_named(field, asked[field])} ({amounts[field].basis})" for field in kept]
    other = [
        f"{called(field)} (there {_amount(amount.value)}, {amount.basis})"
        for field, amount in amounts.items()
        if field not in kept
    ]
    sentences = [f"From {start.name}: {', '.join(taken) or 'nothing as it stands'}."]
    if other:
        sentences.append(f"Changed since: {', '.join(other)}.")
    if start.assumed:
        sentences.append("What it sent to its reranker is not recorded, so K × tokens is an assumption.")
    if start.left_out:
        sentences.append(f"Not taken over, as no input stands for it: {'; '.join(start.left_out)}.")
    return " ".join([*sentences, "The rest are defaults or your own values."])


def _named(field: str, value: float | str) -> str:
    """Return an input with its value; a model that nobody bills is said not to be."""
    return f"no billed {called(field)}" if value == NONE else f"{called(field)} {_amount(value)}"


def _amount(value: float | str) -> str:
    if isinstance(value, str):
        return text.shorten(value)
    whole = float(value).is_integer() or value >= 1000
    return f"{value:,.0f}" if whole else f"{value:.3g}"  # all digits stand in its field


def moved(swings: Sequence[Swing], share: float) -> str:
    """Say what moves the monthly bill most, and by how much, or why that is unknown."""
    if not swings:
        return "There is no month's usage to vary: it is unknown, or nothing is billed."
    first, change = swings[0], f"± {100 * share:g} %"
    if not first.width:
        return f"No input moves the month's usage of {text.usd(first.usd)} by itself within {change}."
    equal = [swung(swing) for swing in swings if swing.width >= _ALIKE * first.width]
    now, low, high = usd_apart(first.usd, *sorted((first.low_usd, first.high_usd)))
    who = text.first_of(equal, _NAMED)
    says = "Each moves the month's usage alike" if alike(swings) else "What moves the month's usage most"
    return f"{says}: {who}. {change} takes it from {now} to {low} or {high}."


def alike(swings: Sequence[Swing]) -> bool:
    """Return whether several inputs all move the bill equally, so that a chart of them shows nothing."""
    widths = [swing.width for swing in swings]
    return len(widths) > 1 and min(widths) >= _ALIKE * max(widths)


def swung(swing: Swing) -> str:
    """Return an input in words; a price with the thing it prices."""
    if swing.field == "price":
        return f"price of {text.shorten(swing.item)} ({BUYS[swing.unit]})"
    return called(swing.field)
