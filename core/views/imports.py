"""Importing as a person does it: look, decide, see what would be taken, then one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from core.errors import ClqError
from core.importers import Import, Offered, Options, Preview, load, preview
from core.store import Snapshot, Store
from core.views import text
from core.views.versions import ChangedError, Choice, Settled, settle


@dataclass(frozen=True)
class Plan:
    """What offered files would bring.

    Attributes:
        previews: The beginning of every file, as recognised.
        made: What would be taken; None where something must be decided or mended first.
        problem: Why nothing can be taken yet; None if it can.
    """

    previews: tuple[Preview, ...]
    made: Import | None
    problem: ClqError | None


def plan(offered: Sequence[Offered], options: Options) -> Plan:
    """Read what was offered without writing anything.

    Args:
        offered: Paths or uploads.
        options: The user's decisions so far.

    Returns:
        The plan; a problem with the files is part of it, not raised.
    """
    try:
        previews = preview(offered, options)
        return Plan(previews, load(offered, options), None)
    except ClqError as error:
        return Plan(_looked(offered, options), None, error)


def _looked(offered: Sequence[Offered], options: Options) -> tuple[Preview, ...]:
    try:
        return preview(offered, options)
    except ClqError:
        return ()


def taken(made: Import) -> pl.DataFrame:
    """What will be taken, per table: what, rows."""
    return pl.DataFrame({"what": list(made.taken), "rows": list(made.taken.values())})


def left_out(made: Import) -> pl.DataFrame:
    """What will be left out: rows, reason, first place."""
    rows = [(each.count, each.reason, each.first) for each in made.left_out]
    return pl.DataFrame(rows, schema=["rows", "reason", "first"], orient="row")


def summary(made: Import) -> list[str]:
    """What was read as what, what was left out and what was decided, each a line."""
    read = [f"{each.name}: {each.format}" for each in made.detected[:20]]
    lost = [f"Left out: {each.count:,} {each.reason} ({each.first})" for each in made.left_out[:20]]
    return [*read, *lost, *made.notes[:20]]


def missing_parts(snapshot: Snapshot, made: Import, collection_id: str) -> list[str]:
    """What the store will still lack before every page can show the import, in words."""
    has_rankings = "rankings" in made.frames
    judged = bool(made.golden_sets) or not snapshot.golden_sets(collection_id).is_empty()
    found = []
    if has_rankings and not judged:
        found.append(
            "no judgements: rankings can be browsed, but quality stays unknown until you import qrels"
        )
    if has_rankings and "timings" not in made.frames and not _reports(made, "latency_p"):
        found.append("no latencies: the stacks are in tables and curves, but not on the Pareto chart")
    if has_rankings and "usage" not in made.frames and "aggregates" not in made.frames:
        found.append("no usage: the cost of these stacks stays unknown")
    return found


def _reports(made: Import, measure: str) -> bool:
    """Whether results over all queries hold a measure whose name begins so."""
    figures = made.frames.get("aggregates")
    if figures is None:
        return False
    return not figures.lazy().filter(pl.col("measure").str.starts_with(measure)).collect().is_empty()


def bring(
    store: Store,
    made: Import,
    note: str,
    on_wait: Callable[[float], None] | None = None,
    *,
    choice: Choice | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[bool, str]:
    """Write an import in one transaction.

    Args:
        store: Where to.
        made: What to write.
        note: What it came from, for the list of revisions.
        on_wait: Told now and then while another process writes.
        choice: What to do with things that are in the store under the same name with other content.
        on_step: Told what is being done, in a few words.

    Returns:
        Whether anything was new, and a sentence that says so.

    Raises:
        ChangedError: If there are such things and no choice was made; nothing was written then.
        ClqError: If the store refuses it; nothing was written then.
    """
    before = store.revision()
    with store.write("import", note, on_wait=on_wait) as writer:
        settled = settle(store.read(), made, choice)
        if settled.changes and choice is None:
            raise ChangedError(settled.changes)
        writer.remove_runs(settled.removed)
        writer.add(settled.made.batch, replacing=settled.replacing, on_step=on_step)
    after = store.revision()
    if after == before:
        return False, "Everything in these files is in the store already; nothing was written."
    words = ", ".join(f"{rows:,} {what}" for what, rows in made.taken.items())
    return True, f"Imported as revision {after}: {words}.{_done(settled, choice)}"


def _done(settled: Settled, choice: Choice | None) -> str:
    """What became of things that were there with other content, in words."""
    if not settled.changes:
        return ""
    named = ", ".join(map(str, settled.changes[:5]))
    return f" Replaced: {named}." if choice == "replace" else f" Kept beside what was there: {named}."


def collection_of(made: Import) -> str | None:
    """The collection that an import belongs to, to open it in the workspace."""
    runs, golden, collections = made.runs, made.golden_sets, made.collections
    named = [*(each.collection_id for each in runs), *(each.collection_id for each in golden)]
    named += [each.collection_id for each in collections]
    return named[0] if named else None


def sizes(previews: Sequence[Preview]) -> str:
    """How much was offered, in words."""
    total = sum(each.bytes for each in previews) / 1e6
    return f"{text.count(len(previews), 'part')}, {total:,.1f} MB"
