"""Plans and evaluations as tables and sentences.

They include the started and dropped stacks of a search, as a table and a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING

import polars as pl

from core.axes import stack_key
from core.number_format import count, duration, format_bytes, percent, usd
from core.records import JsonMap, canonical_json
from core.tables import schema
from core.work import paid

if TYPE_CHECKING:  # the engines take a second to load, which reading a plan does not need
    from core.pipeline.evaluate import Status
    from core.pipeline.sweep.plan import Plan
    from core.prices import PriceBook


_COLUMNS = schema(
    "label state queries:int64 round:int64 quality:float latency_ms:float usd_per_1k:float harm:float "
    "beaten_by bound:float stack_id"
)
_SCALE = schema(
    "index params dim:int64 passages:int64 indexes:int64 asked:bool memory_bytes:int64 disk_bytes:int64 "
    "build_s:float build_usd:float usd_per_month:float"
)
_STACKS = schema("stack_id label pool usd_per_1k:float unknown")


def search_rows(search: JsonMap) -> pl.DataFrame:
    """Return the stacks that a search started, the surviving ones first, then by quality.

    Args:
        search: The record of the search (`Folder.search`).
    """
    rows = [tuple(entry.get(name) for name in _COLUMNS) for entry in search["entries"]]
    table = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
    return table.sort(pl.col("state") != "through", "quality", descending=[False, True], nulls_last=True)


def search_words(search: JsonMap) -> str:
    """Describe the progress of a search: ``212 of 848 stacks begun, 180 dropped …``."""
    share = search["asked"] / search["asked_of"]
    begun, dropped, through = (f"{search[name]:,}" for name in ("begun", "dropped", "through"))
    return (
        f"{begun} of {count(search['stacks'], 'stack')} begun, {dropped} dropped, {through} asked all"
        f" {count(search['queries'], 'question')}; {percent(share)} of the work of asking every stack"
        " everything"
    )


def stack_rows(plan: Plan) -> pl.DataFrame:
    """Return the stacks, with the cost of 1,000 queries in production (null if unknown)."""
    rows = [
        (stack.stack.stack_id, stack.stack.label, stack.pool, stack.usd_per_1k, stack.reason)
        for stack in plan.stacks
    ]
    return pl.DataFrame(rows, schema=_STACKS, orient="row")


def scale_rows(plan: Plan, passages: int, book: PriceBook) -> pl.DataFrame:
    """Estimate the size of every kind of index for so many passages; those of the stacks first."""
    from core.pipeline.sweep.scale import at_scale  # noqa: PLC0415 - the engines

    sizes = at_scale((stack.stack.spec for stack in plan.stacks), passages, book, plan.partitions)
    rows = [{**asdict(size), "params": canonical_json(size.params) if size.params else ""} for size in sizes]
    made_of = pl.DataFrame(rows, schema=_SCALE, orient="row")
    return made_of.with_columns(
        (pl.col(f"{place}_bytes") / 1e9).round(3).alias(f"{place}_gb") for place in ("memory", "disk")
    )


def services(plan: Plan) -> list[str]:
    """Return the service behind each model, and the key it receives."""
    lines = []
    for service in plan.services:
        if not service.key_env:
            key = "no key"
        elif not service.allowed_by:
            key = f"key {service.key_env}, which may not be sent there"
        else:
            allowed = "" if service.allowed_by == "vendor" else ", allowed by who runs this"
            key = f"key {service.key_env}{allowed}"
        lines.append(f"{service.model} is asked at {service.url}: {key}")
    return lines


def size_of(plan: Plan) -> str:
    """Describe what will run: ``76 stacks, 64 questions asked 5 times, 3,423 passages``.

    It says how many of the stacks pages compare: some may differ in a K alone that nothing reads.
    """
    passages = ", ".join(
        f"{count(number, 'passage')}" + (f" ({name})" if name else "")
        for name, number in plan.passages.items()
    )
    stacks = count(len(plan.stacks), "stack")
    compared = len({stack_key(planned.stack.spec) for planned in plan.stacks})
    if compared < len(plan.stacks):
        stacks += f" (Decision compares {compared:,}: without a reranker K changes nothing)"
    stacks = stacks if plan.begun is None else f"Up to {plan.begun:,} of {stacks}"
    return f"{stacks}, {count(plan.queries, 'question')} asked {count(plan.asked, 'time')}, {passages}"


def button(plan: Plan) -> str:
    """Return the label of the button: ``Run 27 stacks · $0 · about 13 s``."""
    stacks, seconds = count(len(plan.stacks), "stack"), plan.resources.total_s
    if plan.begun is not None:
        return paid.press(f"Search {stacks}", plan, seconds).replace(" · ", " · at most ", 1)
    return paid.press(f"Run {stacks}", plan, seconds)


def dollars(plan: Plan, *, here: bool = True) -> str:
    """Describe the cost on this machine or a cluster, its basis, and whether the budget is enough."""
    if not plan.lines:
        where = "No vendor is paid: everything runs on this machine."
        return where if here else "No vendor is paid: everything runs on the cluster."
    how = "exact" if plan.exact else "estimated"
    sum_known = f"${plan.usd_known:,.4f} ({how})"
    least = sum_known if plan.usd is not None else f"unknown, at least {sum_known}"
    total = f"Dollars: {least if plan.usd is not None or plan.usd_known else 'unknown'}"
    if plan.begun is not None:
        total = f"{total}, at most"
    lacking = f".{paid.without_price(plan)}" if plan.unpriced else ""
    if plan.limit is None:
        return f"{total}, no budget{lacking}"
    left = "it stops before its end" if plan.over_budget else "enough as far as is known"
    return f"{total} of a budget of ${plan.limit:,.2f}: {left}{lacking}"


def time_and_memory(plan: Plan) -> tuple[str, str]:
    """Describe the duration by stage, and the memory and disk space needed."""
    taken = plan.resources
    parts = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in taken.seconds.items() if seconds)
    return (
        f"Time: about {duration(taken.total_s)} ({parts}; {', '.join(taken.basis)})",
        f"Memory: {format_bytes(taken.index_bytes)} with all indexes open, the largest "
        f"{format_bytes(taken.largest_bytes)}; on disk {format_bytes(taken.vector_bytes)} of vectors",
    )


def headline(known: Sequence[Status]) -> str:
    """State how many evaluations there are, or which are running: ``“paris” is running.``."""
    if not known:
        return "Choose what to compare; you see time and cost before anything starts."
    evaluations = count(len(known), "evaluation")
    latest = "; the latest did not finish" if paid.resumable(known[0]) else ""
    return f"{paid.now(known, 'running', f'{evaluations} run here{latest}')}."


def stored(status: Status) -> str:
    """State how many of its stacks are stored."""
    done = f"{status.runs_done:,} of {count(status.runs_total, 'stack')} in the store"
    return done if status.runs_total else ""


def progress(status: Status) -> str:
    """Describe the progress: stage, stored stacks, time left, dollars so far."""
    return paid.progress(status, stored(status))


def ended(status: Status) -> str:
    """Describe how an evaluation ended, in a sentence, plus the possible cost of a lost answer."""
    answers = status.facts.get("answers")
    done = f"{stored(status)}, {answers:,} answers" if answers else stored(status)
    lost = [f"Lost answers may have cost up to {usd(status.usd_lost)} more."] if status.usd_lost else []
    return paid.closing(status, done, lost)


def table(known: Sequence[tuple[str, Status]]) -> pl.DataFrame:
    """Return all evaluations, newest first: name, state, stacks, of, usd, began (UTC), message."""
    own = {"stacks": attrgetter("runs_done"), "of": attrgetter("runs_total")}
    return paid.listed(known, own, stacks=pl.Int64(), of=pl.Int64())
