"""A stack's records as inputs of the calculator and priced item by item, and the available models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.figures.costs import assumed_prices, retrieval, with_answers, with_embedding
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.view import View
from core.number_format import usd
from core.prices import PriceBook
from core.prices.calculator import USUAL, CostInputs
from core.prices.cost import mean_usage, priced_usage
from core.records import Basis
from core.store import Snapshot

NONE = "none"  # Stands for a stage that bills nothing: absent, or run on one's own machine
MODELS = ("embedder", "reranker", "generator")
MACHINE = USUAL.machine
_STAGE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "embed": ("embedder", "query_tokens"),
    "rerank": ("reranker", "candidates", "tokens_per_candidate"),
    "machine": ("cpu_ms",),
}
"""Inputs that determine the basis of a stage's amount."""
COLUMNS = ("stage", "item", "unit", "units_per_query", "usd_per_1k", "basis", "reason")
"""Columns of the recorded cost."""
_WEAKEST_LAST = (Basis.MEASURED, Basis.IMPORTED, Basis.PUBLISHED, Basis.MODELLED)
_SPECIFIED = "from its specification"
_LOCAL = "it ran on the machine"
LIST_PRICE, ASSUMED_PRICE = "list price", "assumed price"
"""Basis of costs from measured usage: prices that were confirmed, or assumed."""
IDLE = "idle time excluded"
MACHINES = ("cpu_hour", "gpu_hour")
"""Units of time on the user's own machines."""
HOURS = 730
"""Hours in a month for a machine that answers all the time."""


@dataclass(frozen=True, slots=True)
class StackAmount:
    """An input and its source: measured, imported, modelled, or read from the specification."""

    value: float | str
    basis: str


@dataclass(frozen=True, slots=True)
class CostStart:
    """A stack that the calculator starts from."""

    name: str  # the stack's name
    # the inputs it provides, by field of `CostInputs`; unrecorded ones are absent
    amounts: Mapping[str, StackAmount]
    left_out: tuple[str, ...]  # recorded usage that the calculator has no input for, in words
    assumed: bool  # whether it has a reranker but no record of its input: K x tokens is then a guess


def models(books: Iterable[PriceBook]) -> dict[str, tuple[str, ...]]:
    """Return the items that books price, sorted, by role: embedder, reranker or generator.

    Price files do not state a model's role: one that sells output tokens is a generator; one billed by search
    or request, or with "rerank" in its name, is a reranker; the rest that sell input are embedders.

    Args:
        books: Price books; a model of any of them is offered, whether the chosen one prices it or not.
    """
    sold = {(price.item, price.unit) for book in books for price in book.prices}
    generators = {item for item, unit in sold if unit == "output_tokens"}
    rerankers = {
        item for item, unit in sold if unit in ("search_units", "requests") or "rerank" in item.lower()
    }
    embedders = {item for item, unit in sold if unit == "input_tokens"} - generators - rerankers
    kinds = {"embedder": embedders, "reranker": rerankers - generators, "generator": generators}
    return {kind: tuple(sorted(names)) for kind, names in kinds.items()}


def filled(start: CostStart | None, given: Mapping[str, Any], usual: CostInputs = USUAL) -> CostInputs:
    """Return the given inputs, otherwise the stack's, otherwise the defaults; models "none" are left out."""
    values: dict[str, Any] = {}
    if start:
        values |= {name: amount.value for name, amount in start.amounts.items()}
    values |= given
    return replace(usual, **values | {name: None for name in MODELS if values.get(name) == NONE})


def start_from(snapshot: Snapshot, stack: Mapping[str, object]) -> CostStart:
    """Derive the calculator's inputs from a stack's records.

    Args:
        stack: A row of the stack table: run_id, name, embedder, reranker, candidates.

    Returns:
        K and the models from the specification, tokens and machine time per query from the recorded usage
        (means over the queries). Tokens per candidate = the reranker's tokens of a query / K.
    """
    used = mean_usage(snapshot.usage([str(stack["run_id"])])).drop_nulls("amount")
    amounts = {
        "embedder": _model(used, "embed", stack["embedder"]),
        "reranker": _model(used, "rerank", stack["reranker"]),
    }
    amounts |= {"partitions": parts} if (parts := _partitions(snapshot, str(stack["run_id"]))) else {}
    depth = stack["candidates"]
    if isinstance(depth, int):
        amounts["candidates"] = StackAmount(depth, _SPECIFIED)
        tokens = _total(used.filter(_at("rerank", "input_tokens")), 1 / depth)
        amounts |= {"tokens_per_candidate": tokens} if tokens else {}
    local = pl.col("item").eq(MACHINE) & pl.col("unit").eq("cpu_ms")
    for field, part in (("query_tokens", _at("embed", "input_tokens")), ("cpu_ms", local)):
        amount = _total(used.filter(part))
        amounts |= {field: amount} if amount else {}
    known = local | _at("rerank", "input_tokens", "search_units", "requests") | _at("embed", "input_tokens")
    rest = used.filter(~known).sort("stage", "item", "unit").select("stage", "unit", "item")
    left_out = tuple(f"{stage}: {unit} of {item}" for stage, unit, item in rest.iter_rows())
    assumed = amounts["reranker"].value != NONE and used.filter(pl.col("stage") == "rerank").is_empty()
    return CostStart(str(stack["name"]), amounts, left_out, assumed)


def _partitions(snapshot: Snapshot, run_id: str) -> StackAmount | None:
    """Return the number of indexes by tenant or the like that a stack asks; None if it has one index."""
    told = snapshot.runs().filter(pl.col("run_id") == run_id)["manifest"].to_list()
    indexes = (json.loads(told[0]).get("indexes") or {}).values() if told else ()
    counts = [about["partitions"] for about in indexes if about.get("partitions")]
    return StackAmount(max(counts), str(Basis.MEASURED)) if counts else None


def _at(stage: str, *units: str) -> pl.Expr:
    return pl.col("stage").eq(stage) & pl.col("unit").is_in(units)


def _model(used: pl.DataFrame, stage: str, specified: object) -> StackAmount:
    """Return who bills a stage; nobody bills a stage that used only the machine."""
    here = used.filter(pl.col("stage") == stage)
    billed = here.filter(pl.col("unit") != "cpu_ms").sort("item")
    if not billed.is_empty():
        return StackAmount(billed["item"][0], billed["basis"][0])
    if not here.is_empty():
        return StackAmount(NONE, _LOCAL)
    return StackAmount(NONE if specified is None else str(specified), _SPECIFIED)


def _total(part: pl.DataFrame, scale: float = 1.0) -> StackAmount | None:
    if part.is_empty():
        return None
    # an input field shows six digits; keeping more would make its value differ from its text
    value = float(f"{scale * float(part['amount'].sum()):.6g}")
    basis = part["basis"].unique().to_list()
    return StackAmount(value, basis[0] if len(basis) == 1 else str(Basis.MODELLED))


def basis_by_stage(start: CostStart | None, asked: Mapping[str, float | str]) -> dict[str, str]:
    """Return the basis of the amounts in the bill's stages.

    Returns:
        By stage the weakest of measured, imported, published and modelled; a stage with any typed or
        changed amount is modelled. Stages that a stack cannot fill are left out.
    """
    amounts, order = start.amounts if start else {}, [str(basis) for basis in _WEAKEST_LAST]
    bases = {}
    for stage, fields in _STAGE_FIELDS.items():
        taken = [
            amounts[name].basis for name in fields if name in amounts and amounts[name].value == asked[name]
        ]
        known = [basis for basis in taken if basis in order]
        whole = known and len(taken) == len(fields)
        bases[stage] = max(known, key=order.index) if whole else str(Basis.MODELLED)
    return bases


def recorded(
    snapshot: Snapshot, run_id: str, book: PriceBook, decided: Scope | None = None, k: int = 0
) -> pl.DataFrame:
    """Price the recorded usage of a run.

    Args:
        decided: The workspace whose costs the bill explains; None = everything recorded.
        k: Number of passages sent to readers there.

    Returns:
        `COLUMNS`, one row per stage, item and unit: means over the queries; usd_per_1k is null, with the
        reason, if a price or an amount is unknown. Empty if the run has recorded no usage.
    """
    run = snapshot.runs().filter(pl.col("run_id") == run_id)
    usage = snapshot.usage([run_id])
    if decided:
        sent = decided.answering.sent(k)
        usage = retrieval(run, usage) if sent is None else with_answers(snapshot, run, usage, book, sent)
    priced = priced_usage(pl.concat(with_embedding(run, usage)), book)
    columns = priced.select(
        "stage",
        "item",
        pl.col("priced_unit").alias("unit"),
        pl.col("amount").alias("units_per_query"),
        pl.when(pl.col("reason").is_null()).then(pl.col("usd")).alias("usd_per_1k"),
        "basis",
        "reason",
    )
    return columns.select(COLUMNS).sort("stage", "item", "unit")


def price_basis(confirmed: Iterable[bool]) -> str:
    """Return the basis of a workspace's prices: assumed if any of them was not confirmed."""
    return LIST_PRICE if all(confirmed) else ASSUMED_PRICE


def cost_basis(basis: str | None, paid: str) -> str:
    """Return the basis of a cost: if its usage was measured, its price's, from `priced_by`."""
    return paid if basis == Basis.MEASURED.value else basis or ""


@cached(entries=64)
def priced_by(view: View) -> str:
    """Return the basis of the prices behind a workspace's costs; see `price_basis`."""
    return price_basis([not assumed_prices(view.snapshot, view.table, view.book)])


def idle(bill: pl.DataFrame) -> str:
    """State that idle machine time is in no bill, and the cost of a machine that runs all month.

    It is "" if no machine is billed.
    """
    machines = bill.filter(pl.col("unit").is_in(MACHINES)) if bill.height else bill
    if machines.is_empty():
        return ""
    used = machines.filter(pl.col("units_per_query") > 0, pl.col("usd_per_1k").is_not_null())
    hourly = used.select("item", pl.col("usd_per_1k") / pl.col("units_per_query") / 1000)
    return idle_words(sum(dict(hourly.iter_rows()).values()))


def machines_needed(bill: pl.DataFrame, queries_per_month: float) -> int:
    """Return how many machines so many queries keep busy, if none ever waits."""
    return math.ceil(_hours(bill) * queries_per_month / HOURS)


def of_one_machine(bill: pl.DataFrame) -> float:
    """Return how many queries keep one machine busy all month, if it never waits; inf = none is used."""
    hours = _hours(bill)
    return HOURS / hours if hours else math.inf


def _hours(bill: pl.DataFrame) -> float:
    return float(sum(bill.filter(pl.col("unit").is_in(MACHINES))["units_per_query"].drop_nulls().to_list()))


def idle_words(usd_per_hour: float) -> str:
    """Say that idle time is in no bill, and what machines of this hourly price cost all month."""
    return f"{IDLE}; a machine costs {usd(usd_per_hour * HOURS)} monthly" if usd_per_hour else IDLE
