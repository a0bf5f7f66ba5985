"""The cost calculator: the cost of a retrieval stack and its generator at a query volume (CLQ paper §3.2.1).

It also computes the sensitivity of the monthly bill to each input, lowered and raised by a given range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import polars as pl

from core.choices import Choice
from core.errors import InputError, UnknownNameError
from core.prices import CURRENCY, MS_PER_HOUR, Price, PriceBook
from core.prices.book import PriceKey
from core.tables import schema

DOCUMENTS_PER_SEARCH_UNIT = 100
TOKENS_PER_DOCUMENT = 500
"""Cohere: a search unit is one query with up to 100 documents; longer documents count once per 500 tokens."""

GIB = 2**30
LINKS = 32  # Neighbours per vector in a graph (M of HNSW); 32 take 0.25 GiB a million vectors
INDEX_KINDS: Mapping[str, tuple[int, bool]] = {
    "flat": (4, False),
    "int8": (1, False),
    "hnsw-f32": (4, True),
    "hnsw-int8": (1, True),
}
"""Indexes whose bytes are known: bytes per number of a vector, and whether they keep a graph."""
_MIB_PER_GIB = 1024
_BYTES_PER_LINK = 4
_BYTES_BESIDE_LINKS = 12  # Bytes for the position of a vector's links, and its level
NO_INDEX = "none"  # Stands for a corpus without a dense index
_NOT_SPREAD = "it is paid by the month, and there is no query to spread it over"
_MODEL = "As a price book names it; none: not part of the stack, or run on a machine of your own."
_BILLED = (
    "Query + chunk + metadata, as the reranker bills it. A reranker billed by search unit counts up to 100 "
    "candidates as one, and a longer candidate once per started 500 tokens."
)
_BYTES = "Bytes of vectors (4 per number in float32, 1 as int8) and links of the graph (M = 32)"
_BILL = schema(
    "stage item unit units_per_query:float usd_per_query:float reason usd_per_1k:float usd_per_month:float"
)
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
    "storage": ("passages", "dim", "partitions", "least_mib"),
}
"""Amounts that a stage of the bill depends on, by their field of `CostInputs`."""


def search_units(documents: float, tokens_per_document: float = 0) -> float:
    """Return the search units of one query."""
    per_document = max(1, math.ceil(tokens_per_document / TOKENS_PER_DOCUMENT))
    return float(math.ceil(documents * per_document / DOCUMENTS_PER_SEARCH_UNIT))


def index_bytes(kind: str, *, vectors: float, dim: float, links: float = LINKS) -> float:
    """Return the bytes of a dense index, in memory or on disk.

    A vector takes 4 bytes per number in float32 and 1 as int8. A graph keeps 2 M links per vector on its
    ground level and, as 1 / (M - 1) further levels are expected, M / (M - 1) above it (Malkov and Yashunin,
    TPAMI 2020).
    """
    if kind not in INDEX_KINDS:
        raise UnknownNameError("index", kind, INDEX_KINDS)
    if links <= 1:
        raise InputError(f"{links} links are too few for a graph.", do="Give 2 or more.")
    width, graph = INDEX_KINDS[kind]
    linked = _BYTES_PER_LINK * (2 * links + links / (links - 1)) + _BYTES_BESIDE_LINKS if graph else 0.0
    return vectors * (width * dim + linked)


def _amount(
    key: str, word: str, about: str, needs: str = "", *, flag: str = "", whole: bool = False
) -> Choice:
    return Choice(key, word, about, low=0, flag=flag, whole=whole, needs=needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInputs:
    """Inputs of the calculator. A model that is None isn't part of the stack."""

    queries_per_month: Annotated[
        float,
        Choice(
            "queries", "queries per month", "Asked in a month.", 0, flag="--queries", step=1e5, whole=True
        ),
    ] = 0.0
    embedder: Annotated[str | None, Choice("emb", "embedder", _MODEL)] = None
    query_tokens: Annotated[float, _amount("tokq", "query tokens", "Sent to the embedder.", "embedder")] = 20
    cpu_ms: Annotated[float, _amount("cpu", "mean machine ms", "Mean CPU time per query, all stages.")] = 0
    reranker: Annotated[str | None, Choice("rer", "reranker", _MODEL)] = None
    candidates: Annotated[
        float,
        _amount("cand", "candidate depth", "K: candidates that the reranker sees.", "reranker", whole=True),
    ] = 50
    tokens_per_candidate: Annotated[float, _amount("tokc", "tokens per candidate", _BILLED, "reranker")] = 500
    generator: Annotated[str | None, Choice("gen", "reader model", f"Model that answers. {_MODEL}")] = None
    chunks_sent: Annotated[
        float,
        _amount(
            "chunks",
            "passages in the prompt",
            "Sent to the reader.",
            "generator",
            flag="--chunks",
            whole=True,
        ),
    ] = 0
    tokens_per_chunk: Annotated[
        float, _amount("toks", "tokens per passage sent", "Length of a passage sent.", "generator")
    ] = 500
    prompt_tokens: Annotated[
        float,
        _amount("prompt", "prompt tokens", "Instructions and query, beside the passages.", "generator"),
    ] = 0
    output_tokens: Annotated[float, _amount("out", "output tokens", "Of the answer.", "generator")] = 0
    gpu_ms: Annotated[float, _amount("gpu", "local GPU ms", "GPU time per query.")] = 0
    passages: Annotated[
        float, _amount("npas", "passages", "Of the corpus; 0: it is left out.", whole=True)
    ] = 0
    tokens_per_passage: Annotated[
        float, _amount("tokp", "tokens per passage", "Length of a passage.", "passages")
    ] = 500
    spread_queries: Annotated[
        float,
        _amount(
            "spread",
            "queries that the corpus is spread over",
            "That its embedding is paid by; 0: left out.",
            "passages",
            whole=True,
        ),
    ] = 0
    dim: Annotated[float, _amount("dims", "dimensions", "Of the vectors.", "passages", whole=True)] = 1024
    index: Annotated[
        str, Choice("idx", "index", f"{', '.join(INDEX_KINDS)} or {NO_INDEX}. {_BYTES}.", needs="passages")
    ] = "hnsw-f32"
    copies: Annotated[
        float, _amount("copies", "copies of the index", "In memory.", "passages", whole=True)
    ] = 1
    partitions: Annotated[
        float, _amount("parts", "partitions", "Indexes that hold the passages.", "passages", whole=True)
    ] = 1
    least_mib: Annotated[
        float, _amount("mib", "least MiB of an index", "On disk, whatever it holds.", "passages")
    ] = 0
    machine: str = "local-cpu"  # items for machine resources that no vendor bills: CPU time,
    gpu: str = "local-gpu"  # GPU time,
    memory: str = "local-memory"  # a GiB-month in memory,
    disk: str = "local-disk"  # and on disk
    links: float = LINKS  # neighbours per vector in a graph (M)


USUAL = CostInputs(queries_per_month=1_000_000, chunks_sent=10, output_tokens=300)
"""Default inputs."""


@dataclass(frozen=True, slots=True)
class CostLine:
    """A stage of the bill. usd_per_query is None, with the reason, if the price is unknown.

    For monthly costs that do not depend on usage, units_per_month is set; units_per_query is then a query's
    share of it, and None without queries.
    """

    stage: str
    item: str
    unit: str
    units_per_query: float | None
    price: Price | None
    usd_per_query: float | None
    reason: str = ""
    units_per_month: float | None = None

    def per_month(self, queries: float) -> float | None:
        """Return $ per month at a query volume, or None if the price is unknown."""
        if self.units_per_month is None:
            return None if self.usd_per_query is None else queries * self.usd_per_query
        if self.price is None or self.price.currency != CURRENCY:
            return None
        return self.units_per_month * self.price.each


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """The bill by stage; totals are None if a line is unknown."""

    lines: tuple[CostLine, ...]
    queries_per_month: float

    @property
    def per_query(self) -> float | None:
        """$ per query, or None if a line is unknown."""
        return _sum(line.usd_per_query for line in self.lines)

    @property
    def per_1k(self) -> float | None:
        """$ per 1,000 queries, or None if a line is unknown."""
        return None if self.per_query is None else 1000 * self.per_query

    @property
    def per_month(self) -> float | None:
        """$ per month at the query volume, or None if a line is unknown."""
        return _sum(line.per_month(self.queries_per_month) for line in self.lines)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Why the total is unknown; () if it is known."""
        return tuple(line.reason for line in self.lines if line.usd_per_query is None)

    def frame(self) -> pl.DataFrame:
        """Return the lines as a table."""
        rows = [
            (
                *(getattr(line, name) for name in list(_BILL)[:6]),
                None if line.usd_per_query is None else 1000 * line.usd_per_query,
                line.per_month(self.queries_per_month),
            )
            for line in self.lines
        ]
        return pl.DataFrame(rows, schema=_BILL, orient="row")


def _sum(amounts: Iterable[float | None]) -> float | None:
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return math.fsum(known) if len(known) == len(every) else None


def calculator(inputs: CostInputs, book: PriceBook) -> CostBreakdown:
    """Compute the cost of a query, split by stage.

    The stages are embed, rerank, generate-input, generate-output, machine, gpu, and of the corpus
    embed-corpus, index (in memory) and storage (on disk).

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
        lines.append(_line("machine", inputs.machine, "cpu_hour", inputs.cpu_ms / MS_PER_HOUR, book))
    if inputs.gpu_ms:
        lines.append(_line("gpu", inputs.gpu, "gpu_hour", inputs.gpu_ms / MS_PER_HOUR, book))
    return CostBreakdown((*lines, *_corpus_lines(inputs, book)), inputs.queries_per_month)


def _corpus_lines(inputs: CostInputs, book: PriceBook) -> list[CostLine]:
    lines = []
    if inputs.embedder and inputs.passages and inputs.spread_queries:
        tokens = inputs.passages * inputs.tokens_per_passage / inputs.spread_queries
        lines.append(_line("embed-corpus", inputs.embedder, "input_tokens", tokens, book))
    if inputs.passages and inputs.index != NO_INDEX:
        whole = index_bytes(inputs.index, vectors=inputs.passages, dim=inputs.dim, links=inputs.links) / GIB
        lines.append(_monthly("index", inputs.memory, whole * inputs.copies, inputs.queries_per_month, book))
        stored = max(whole, inputs.partitions * inputs.least_mib / _MIB_PER_GIB)
        lines.append(_monthly("storage", inputs.disk, stored, inputs.queries_per_month, book))
    return lines


def _monthly(stage: str, item: str, gib: float, queries: float, book: PriceBook) -> CostLine:
    gib_per_query = gib / queries if queries else None
    line = _line(stage, item, "gib_month", gib if gib_per_query is None else gib_per_query, book)
    if gib_per_query is None:
        line = replace(line, units_per_query=None, usd_per_query=None, reason=line.reason or _NOT_SPREAD)
    return replace(line, units_per_month=gib)


def _rerank_line(inputs: CostInputs, reranker: str, book: PriceBook) -> CostLine:
    amounts = {
        "input_tokens": inputs.candidates * inputs.tokens_per_candidate,
        "search_units": search_units(inputs.candidates, inputs.tokens_per_candidate),
        "requests": 1.0,
    }
    unit = next((unit for unit in amounts if book.find(reranker, unit)), "input_tokens")
    return _line("rerank", reranker, unit, amounts[unit], book)


def _line(stage: str, item: str, unit: str, units: float, book: PriceBook) -> CostLine:
    price = book.find(item, unit)
    if units == 0:
        return CostLine(stage, item, unit, 0.0, price, 0.0)
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


@dataclass(frozen=True, slots=True)
class Swing:
    """The effect of one input on the monthly bill."""

    field: str  # a field of `CostInputs`, or "price" for a price
    item: str  # the priced item; "" for an amount, like its unit
    unit: str
    value: float  # the current value; a price for its own number of units
    low: float  # the values at both ends of its range
    high: float
    usd: float  # the monthly bill there, in dollars
    low_usd: float
    high_usd: float

    @property
    def width(self) -> float:
        """Difference of the bill between the ends of the range, in dollars."""
        return abs(self.high_usd - self.low_usd)


def tornado(inputs: CostInputs, book: PriceBook, *, share: float = RANGE) -> tuple[Swing, ...]:
    """Compute the effect of each input on the monthly bill, with the rest unchanged.

    Args:
        share: Change of every input, above 0 and below 1: 0.25 is 25 % less and 25 % more.

    Returns:
        One per amount and price that the bill depends on and that is not 0, the widest first; empty if the
        bill is unknown or zero. An amount may change nothing: up to 100 documents are one search unit.

    Raises:
        InputError: If the share is not between 0 and 1, or an amount is negative or not a number.
    """
    if not (math.isfinite(share) and 0 < share < 1):
        raise InputError(f"A range of {share} is not between 0 and 1.")
    bill = calculator(inputs, book)
    usd = bill.per_month
    if usd is None:
        return ()

    def swing(field: str, key: PriceKey, value: float, at: Callable[[float], CostBreakdown]) -> Swing:
        low, high = value * (1 - share), value * (1 + share)
        ends = (at(end).per_month for end in (low, high))
        return Swing(field, *key, value, low, high, usd, *(math.nan if end is None else end for end in ends))

    def with_amount(field: str, amount: float) -> CostBreakdown:
        changed: dict[str, Any] = {field: amount}
        return calculator(replace(inputs, **changed), book)

    def with_price(key: PriceKey, amount: float) -> CostBreakdown:
        return calculator(inputs, book.with_changes({key: amount}))

    fields = ("queries_per_month", *(field for line in bill.lines for field in STAGE_INPUTS[line.stage]))
    swings = [
        swing(field, ("", ""), float(getattr(inputs, field)), partial(with_amount, field))
        for field in dict.fromkeys(fields)
        if bill.lines and getattr(inputs, field)
    ]
    prices = {line.price.key: line.price.price for line in bill.lines if line.price and line.price.price}
    swings += [swing("price", key, price, partial(with_price, key)) for key, price in prices.items()]
    # rounded, so that the last digit of equal widths does not determine their order
    return tuple(
        sorted(swings, key=lambda moved: (-float(f"{moved.width:.9g}"), moved.field, moved.item, moved.unit))
    )
