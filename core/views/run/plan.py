"""Plans and evaluations as tables and sentences, and the stored material that sweeps name by its id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from core.errors import InputError, UnknownNameError
from core.records import Batch, Collection, GoldenSet
from core.store import Snapshot
from core.views import text
from core.views.library.export import records
from core.views.text import count, usd, weight

if TYPE_CHECKING:  # the engines take a second to load, which reading a plan does not need
    from core.golden.pool import Kind, Ranked
    from core.pipeline.sweep.plan import Bill, Plan

_LINES = {
    "stage": pl.String,
    "model": pl.String,
    "calls": pl.Int64,
    "unit": pl.String,
    "amount": pl.Float64,
    "counted": pl.String,
    "usd": pl.Float64,
    "unknown": pl.String,
}
_STACKS = {
    "stack_id": pl.String,
    "label": pl.String,
    "pool": pl.String,
    "usd_per_1k": pl.Float64,
    "unknown": pl.String,
}


def line_rows(made: Bill) -> pl.DataFrame:
    """What is paid for, one row per stage, model and unit; usd is null where it is not known."""
    rows = [
        (
            line.stage,
            line.model,
            line.calls,
            line.unit,
            line.amount,
            "; ".join(("exact" if line.exact else "estimated", *line.notes)),
            line.usd,
            line.reason,
        )
        for line in made.lines
    ]
    return pl.DataFrame(rows, schema=_LINES, orient="row")


def stack_rows(made: Plan) -> pl.DataFrame:
    """The stacks, with what 1,000 queries cost in production (null where it is not known)."""
    rows = [
        (each.stack.stack_id, each.label, each.pool, each.usd_per_1k, each.reason) for each in made.stacks
    ]
    return pl.DataFrame(rows, schema=_STACKS, orient="row")


def services(made: Plan) -> list[str]:
    """Who is asked for each model, and which key goes there."""
    told = []
    for each in made.services:
        if not each.key_env:
            key = "no key"
        elif not each.allowed_by:
            key = f"key {each.key_env}, which may not be sent there"
        else:
            key = f"key {each.key_env}" + (
                ", allowed by who runs this" if each.allowed_by != "vendor" else ""
            )
        told.append(f"{each.model} is asked at {each.url}: {key}")
    return told


def size_of(made: Plan) -> str:
    """What will run: ``76 stacks, 64 questions asked 5 times, 3,423 passages``."""
    passages = ", ".join(
        f"{number:,} passages" + (f" ({name})" if name else "") for name, number in made.passages.items()
    )
    return f"{len(made.stacks):,} stacks, {made.queries:,} questions asked {made.asked} times, {passages}"


def button(made: Plan) -> str:
    """What the button says: ``Run 27 stacks · $0 · about 13 s``."""
    price = (
        "$0" if not made.lines else f"≥ {usd(made.usd_known, '')}" if made.usd is None else usd(made.usd, "")
    )
    return f"Run {count(len(made.stacks), 'stack')} · {price} · about {duration(made.resources.total_s)}"


def dollars(made: Plan) -> str:
    """What it costs, how that was counted, and whether the budget is enough."""
    if not made.lines:
        return "Nothing is paid for: everything runs on this machine."
    how = "exact" if made.exact else "estimated"
    if made.usd is None:
        total = f"Dollars: unknown, at least ${made.usd_known:,.4f} ({how})"
    else:
        total = f"Dollars: ${made.usd:,.4f} ({how})"
    if made.limit is None:
        return f"{total}, no budget"
    left = "it stops before its end" if made.over_budget else "enough as far as is known"
    return f"{total} of a budget of ${made.limit:,.2f}: {left}"


def time_and_memory(made: Plan) -> tuple[str, str]:
    """How long it takes by stage, and what it needs in memory and on disk."""
    taken = made.resources
    parts = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in taken.seconds.items() if seconds)
    return (
        f"Time: about {duration(taken.total_s)} ({parts}; {', '.join(taken.basis)})",
        f"Memory: {weight(taken.index_bytes)} with all indexes open, the largest "
        f"{weight(taken.largest_bytes)}; on disk {weight(taken.vector_bytes)} of vectors",
    )


def duration(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h, 2.1 d."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36)):
        if seconds < most * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} d"


if TYPE_CHECKING:
    from core.pipeline.evaluate import Status

RUNNING = "running"
_RESUMABLE = ("stopped by budget", "cancelled", "interrupted", "failed", "killed")


def resumable(status: Status) -> bool:
    """Whether it was begun, did not finish and does not run now."""
    return str(status.state) in _RESUMABLE


def headline(known: Sequence[Status]) -> str:
    """How many there are and which run now: ``3 evaluations; “paris” is running.``."""
    if not known:
        return "No evaluation was run here yet."
    names = " and ".join(f"“{status.name}”" for status in known if str(status.state) == RUNNING)
    now = f"{names} {'are' if ' and ' in names else 'is'} running" if names else "none is running"
    return f"{text.count(len(known), 'evaluation')}; {now}."


def progress(status: Status) -> str:
    """How far one is: stage, stacks that have landed, time left, dollars so far."""
    parts = [status.stage, status.so_far]
    if status.runs_total:
        parts.append(f"{status.runs_done:,} of {text.count(status.runs_total, 'stack')} in the store")
    if status.eta_s is not None:
        parts.append(f"about {duration(status.eta_s)} left")
    if status.usd or status.usd_limit is not None:
        limit = "" if status.usd_limit is None else f" of {text.usd(status.usd_limit, '')}"
        parts.append(f"{text.usd(status.usd, '')} spent{limit}")
    return " · ".join(part for part in parts if part)


def ended(status: Status) -> str:
    """How it ended, in a sentence; what a lost answer may have cost besides is said."""
    lost = (
        f" Lost answers may have cost up to {text.usd(status.usd_lost, '')} more." if status.usd_lost else ""
    )
    if status.calls_again:
        calls = text.count(status.calls_again, "call")
        lost += f" {calls} whose answers were lost were sent again and may have been paid twice."
    landed = f"{status.runs_done:,} of {text.count(status.runs_total, 'stack')} in the store"
    landed += f", {answers:,} answers" if (answers := status.facts.get("answers")) else ""
    return f"{status.state} ({landed}). {status.message}{lost}".strip()


def table(found: Sequence[Status]) -> pl.DataFrame:
    """All of them, newest first: name, state, stacks, of, usd, began (UTC), message."""
    rows = [
        (each.name, str(each.state), each.runs_done, each.runs_total, each.usd, each.started_at, each.message)
        for each in found
    ]
    columns: dict[str, pl.DataType] = {
        "name": pl.String(),
        "state": pl.String(),
        "stacks": pl.Int64(),
        "of": pl.Int64(),
        "usd": pl.Float64(),
        "began": pl.Datetime("us", "UTC"),
        "message": pl.String(),
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


class StoreShelf:
    """Reads from one revision of a store; see `core.pipeline.sweep.sources.Shelf`.

    Args:
        snapshot: The revision.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collection(self, collection_id: str) -> Batch:
        """A collection with passages, questions and its golden set, if it has only one.

        Raises:
            UnknownNameError: If there is none of this id.
            InputError: If it has no passages with text, as after an import of rankings alone.
        """
        known = self._snapshot.collections()
        rows = known.filter(pl.col("collection_id") == collection_id)
        if rows.is_empty():
            raise UnknownNameError("collection", collection_id, known["collection_id"])
        if not rows["passages"].item():
            found = "The collection has no passages in the store."
            raise InputError(found, where=collection_id, do="Import its corpus, or name a path.")
        golden = self._snapshot.golden_sets(collection_id)["golden_set_id"].to_list()
        judged = self.golden_set(golden[0]) if len(golden) == 1 else Batch()
        return Batch(
            collections=tuple(records(Collection, rows)),
            golden_sets=judged.golden_sets,
            frames={
                "passages": self._snapshot.passages(collection_id),
                "queries": self._snapshot.queries(collection_id),
                **judged.frames,
            },
        )

    def golden_set(self, golden_set_id: str) -> Batch:
        """A golden set with its judgements and spans.

        Raises:
            UnknownNameError: If there is none of this id.
        """
        known = self._snapshot.golden_sets()
        rows = known.filter(pl.col("golden_set_id") == golden_set_id)
        if rows.is_empty():
            raise UnknownNameError("golden set", golden_set_id, known["golden_set_id"])
        frames = {
            "judgements": self._snapshot.judgements(golden_set_id),
            "spans": self._snapshot.spans(golden_set_id),
        }
        return Batch(
            golden_sets=tuple(records(GoldenSet, rows)),
            frames={table: some for table, some in frames.items() if some.height},
        )

    def gradings(self, golden_set_id: str) -> pl.DataFrame:
        """The acts of judging behind a golden set."""
        return self._snapshot.gradings(golden_set_id)

    def ranked(self, collection_id: str, names: Sequence[str] | None, depth: int) -> list[Ranked]:
        """The first ranks of runs on the collection's own passages; all of them where none is named.

        Raises:
            UnknownNameError: If a named run is none of these.
        """
        from core.golden.pool import Ranked  # noqa: PLC0415 - loads the engines

        runs = self._snapshot.runs(collection_id).filter(
            pl.col("has_rankings") & pl.col("chunking").is_null()
        )
        known = runs["run_id"].to_list()
        for name in names or ():
            if name not in known:
                raise UnknownNameError("run", name, known, where=collection_id)
        chosen = runs if names is None else runs.filter(pl.col("run_id").is_in(list(names)))
        found = []
        for row in chosen.sort("run_id").iter_rows(named=True):
            rows = self._snapshot.rankings([row["run_id"]], stage="final").filter(pl.col("rank") <= depth)
            mode = json.loads(row["spec"]).get("mode")
            kind: Kind = mode if mode in ("dense", "sparse") else "hybrid"
            found.append(Ranked(row["label"], kind, rows.select("query_id", "passage_id", "rank")))
        return found
