"""The cost calculator: what a retrieval stack and its generator cost at a query volume (CLQ paper §3.2.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from core.clq.prices import CPU_MS_PER_HOUR, CURRENCY, Price, PriceBook
from core.errors import InputError

DOCUMENTS_PER_SEARCH_UNIT = 100
TOKENS_PER_DOCUMENT = 500
"""Cohere: a search unit is one query with up to 100 documents; longer documents count once per 500 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInputs:
    """What the calculator asks for. A model left None is not part of the stack.

    Attributes:
        queries_per_month: Query volume, 0 or more.
        candidates: K, how many candidates the reranker sees.
        tokens_per_candidate: Query + chunk + metadata, as the reranker is billed (500 in the paper's tables).
        query_tokens: What the embedder is sent per query.
        reranker, embedder, generator: Items of the price book.
        chunks_sent: How many chunks go to the generator.
        tokens_per_chunk: Their length.
        prompt_tokens: Instructions and question sent beside the chunks.
        output_tokens: Length of the answer.
        cpu_ms: Local machine time per query; 0 = none.
        machine: The item that prices machine time.
    """

    queries_per_month: float = 0.0
    candidates: float = 50
    tokens_per_candidate: float = 500
    query_tokens: float = 20
    reranker: str | None = None
    embedder: str | None = None
    chunks_sent: float = 0
    tokens_per_chunk: float = 500
    prompt_tokens: float = 0
    generator: str | None = None
    output_tokens: float = 0
    cpu_ms: float = 0
    machine: str = "local-cpu"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One stage of the bill. usd_per_query is None, with the reason, when the price is unknown."""

    stage: str
    item: str
    unit: str
    units_per_query: float
    price: Price | None
    usd_per_query: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """The bill by stage; totals are None when a line is unknown."""

    lines: tuple[CostLine, ...]
    queries_per_month: float

    @property
    def per_query(self) -> float | None:
        """$ per query, or None when a line is unknown."""
        amounts = [line.usd_per_query for line in self.lines]
        known = [amount for amount in amounts if amount is not None]
        return math.fsum(known) if len(known) == len(amounts) else None

    @property
    def per_1k(self) -> float | None:
        """$ per 1,000 queries, or None when a line is unknown."""
        return None if self.per_query is None else 1000 * self.per_query

    @property
    def per_month(self) -> float | None:
        """$ per month at the query volume, or None when a line is unknown."""
        return None if self.per_query is None else self.queries_per_month * self.per_query

    @property
    def unknown(self) -> tuple[str, ...]:
        """Why the total is unknown; empty when it is known."""
        return tuple(line.reason for line in self.lines if line.usd_per_query is None)

    def frame(self) -> pl.DataFrame:
        """The lines as a table: stage, item, unit, units_per_query, reason, usd_per_query, _1k and _month."""
        rows = [
            (line.stage, line.item, line.unit, line.units_per_query, line.usd_per_query, line.reason)
            for line in self.lines
        ]
        text, number = pl.String(), pl.Float64()
        schema = {"stage": text, "item": text, "unit": text, "units_per_query": number}
        return pl.DataFrame(
            rows, schema={**schema, "usd_per_query": number, "reason": text}, orient="row"
        ).with_columns(
            (pl.col("usd_per_query") * 1000).alias("usd_per_1k"),
            (pl.col("usd_per_query") * self.queries_per_month).alias("usd_per_month"),
        )


def calculator(inputs: CostInputs, book: PriceBook) -> CostBreakdown:
    """What a query costs, split by stage: embed, rerank, generate-input, generate-output and local machine.

    Args:
        inputs: What is sent where.
        book: Prices.

    Returns:
        One line per stage that is part of the stack.

    Raises:
        InputError: If an amount is negative or not a number.
    """
    _check(inputs)
    lines = []
    if inputs.embedder:
        lines.append(_line("embed", inputs.embedder, "input_tokens", inputs.query_tokens, book))
    if inputs.reranker:
        lines.append(_rerank_line(inputs, inputs.reranker, book))
    if inputs.generator:
        sent = inputs.chunks_sent * inputs.tokens_per_chunk + inputs.prompt_tokens
        lines.append(_line("generate-input", inputs.generator, "input_tokens", sent, book))
        lines.append(_line("generate-output", inputs.generator, "output_tokens", inputs.output_tokens, book))
    if inputs.cpu_ms:
        hours = inputs.cpu_ms / CPU_MS_PER_HOUR
        lines.append(_line("machine", inputs.machine, "cpu_hour", hours, book))
    return CostBreakdown(tuple(lines), inputs.queries_per_month)


def _rerank_line(inputs: CostInputs, reranker: str, book: PriceBook) -> CostLine:
    amounts = {
        "input_tokens": inputs.candidates * inputs.tokens_per_candidate,
        "search_units": search_units(inputs.candidates, inputs.tokens_per_candidate),
        "requests": 1.0,
    }
    unit = next((unit for unit in amounts if book.find(reranker, unit)), "input_tokens")
    return _line("rerank", reranker, unit, amounts[unit], book)


def _line(stage: str, item: str, unit: str, units: float, book: PriceBook) -> CostLine:
    if units == 0:
        return CostLine(stage, item, unit, 0.0, book.find(item, unit), 0.0)
    price = book.find(item, unit)
    if price is None:
        return CostLine(stage, item, unit, units, None, None, f"no price for {item} ({unit}) in {book.name}")
    if price.currency != CURRENCY:
        return CostLine(stage, item, unit, units, price, None, f"{item} is priced in {price.currency}")
    return CostLine(stage, item, unit, units, price, units * price.each)


def _check(inputs: CostInputs) -> None:
    for name in CostInputs.__dataclass_fields__:
        value = getattr(inputs, name)
        if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} = {value} is not an amount.", do="Give a number of 0 or more.")


def search_units(documents: float, tokens_per_document: float = 0) -> float:
    """Search units of one query.

    Args:
        documents: How many documents are ranked, 0 or more.
        tokens_per_document: Their length including the query; above 500 a document counts once per 500.

    Returns:
        One unit for every started 100 documents; 101 documents are 2 units.
    """
    each = max(1, math.ceil(tokens_per_document / TOKENS_PER_DOCUMENT))
    return float(math.ceil(documents * each / DOCUMENTS_PER_SEARCH_UNIT))


def rerank_usd_per_1k(candidates: float, tokens_per_candidate: float, price: Price) -> float | None:
    """Rerank cost of 1,000 queries, as in the paper's table (§3.2.1).

    K = 50 at 500 tokens of rerank-2.5 is $1.25.

    Args:
        candidates: K.
        tokens_per_candidate: Query + chunk + metadata.
        price: Of input tokens, search units or requests.

    Returns:
        $ per 1,000 queries; None if the price is not in dollars.
    """
    inputs = CostInputs(candidates=candidates, tokens_per_candidate=tokens_per_candidate, reranker=price.item)
    return calculator(inputs, PriceBook("one price", (price,))).per_1k
