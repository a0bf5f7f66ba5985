"""Importing as a person does it: look, decide, see what would be taken, then one transaction."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.errors import ClqError
from core.importers import Import, Offered, Options, Preview, Progress, load, preview
from core.importers.base import slug
from core.records import Run
from core.store import Snapshot, Store
from core.views import text
from core.views.add.anchored import with_grades
from core.views.add.changed import ChangedError, Choice
from core.views.add.matching import (
    Match,
    Unmatched,
    UnmatchedError,
    belongs_anywhere,
    fits,
    matches,
    refused,
    suggested,
)
from core.views.add.versions import Settled, settle


@dataclass(frozen=True)
class Plan:
    """What offered files would bring.

    Attributes:
        previews: The beginning of every file, as recognised.
        made: What would be taken; None where something must be decided or mended first.
        problem: Why nothing can be taken yet; None if it can.
        matches: How far the ids are those of the collections that they go into.
        suggested: The matches with a stored collection that the ids fit, where the files make a new one.
        apart: The matches with the workspace that they do not fit, where the files make a new one.
    """

    previews: tuple[Preview, ...]
    made: Import | None
    problem: ClqError | None
    matches: tuple[Match, ...] = ()
    suggested: tuple[Match, ...] = ()
    apart: tuple[Match, ...] = ()


def plan(
    offered: Sequence[Offered],
    options: Options,
    snapshot: Snapshot,
    *,
    workspace: str | None = None,
    unmatched: Unmatched = "refuse",
) -> Plan:
    """Read what was offered without writing anything.

    Args:
        offered: Paths or uploads.
        options: The user's decisions so far.
        snapshot: The store that it would go into.
        workspace: As for `read_into`.
        unmatched: As for `read_into`.

    Returns:
        The plan; a problem with the files is part of it, not raised.
    """
    try:
        previews = preview(offered, options)
        made = read_into(offered, options, snapshot, workspace=workspace, unmatched=unmatched)
        apart = workspace and belongs_anywhere(made, options.known_collections)
        return Plan(
            previews,
            made,
            None,
            matches(snapshot, made),
            suggested(snapshot, made),
            matches(snapshot, made, workspace) if apart else (),
        )
    except ClqError as error:
        return Plan(_looked(offered, options), None, error)


def read_into(
    offered: Sequence[Offered],
    options: Options,
    snapshot: Snapshot,
    *,
    workspace: str | None = None,
    unmatched: Unmatched = "refuse",
    progress: Progress | None = None,
) -> Import:
    """Read what was offered for the collection that it belongs to.

    Args:
        offered: Paths or uploads.
        options: The user's decisions. Where they name no collection, and the files would make a new one
            without queries and passages, their ids decide whether they go into the workspace.
        snapshot: What is in the store.
        workspace: The collection that is open.
        unmatched: "own": what names nothing that its collection has makes a new collection instead.
        progress: Told how far it is.

    Raises:
        ClqError: As `core.importers.load`.
    """
    made = load(offered, options, progress)
    into = None
    if options.collection_id is None and workspace and belongs_anywhere(made, options.known_collections):
        into = workspace if fits(matches(snapshot, made, workspace)) else None
    elif unmatched == "own" and refused(matches(snapshot, made)):
        into = _own(made, snapshot)
    return load(offered, replace(options, collection_id=into), progress) if into else made


def _own(made: Import, snapshot: Snapshot) -> str:
    """A name that no collection has or had, from those of the collection and of the first thing in it."""
    first = made.runs[0] if made.runs else made.golden_sets[0]
    label = first.label if isinstance(first, Run) else first.name
    taken = {*snapshot.collections()["collection_id"], *snapshot.collections(removed=True)["collection_id"]}
    name = slug(f"{first.collection_id} {label}")
    return next(each for number in itertools.count(1) if (each := _numbered(name, number)) not in taken)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else slug(f"{name} {number}")


def _looked(offered: Sequence[Offered], options: Options) -> tuple[Preview, ...]:
    try:
        return preview(offered, options)
    except ClqError:
        return ()


_WORDS: Mapping[str, tuple[str, str]] = {
    "collections": ("collection", "collections"),
    "golden sets": ("golden set", "golden sets"),
    "runs": ("run", "runs"),
    "queries": ("query", "queries"),
    "passages": ("passage", "passages"),
    "chunks": ("chunk", "chunks"),
    "judgements": ("judgement", "judgements"),
    "spans": ("judged span", "judged spans"),
    "rankings": ("ranked passage", "ranked passages"),
    "timings": ("timing", "timings"),
    "usage": ("usage record", "usage records"),
    "signals": ("figure of one query", "figures of one query each"),
    "aggregates": ("figure over all queries", "figures over all queries"),
    "answers": ("answer", "answers"),
}
"""What the rows of a table are called: one, many."""
_FIELDS = {
    "as": "Format",
    "label": "Run name",
    "collection": "Collection",
    "golden-set": "Golden set",
    "split": "Split",
    "sheet": "Sheet",
    "unmatched": "Where no id exists in the collection",
    "skip": "Leave out",
    "all-tasks": "Tasks",
}
"""Option of the command → what the page calls it."""


def worded(what: str, rows: int) -> str:
    """A number of rows of a table in words: ``1 run``, ``40 ranked passages``."""
    return text.count(rows, *_WORDS.get(what, (what, what)))


def on_page(message: str) -> str:
    """An error in the words of the page: options of the command are called as its fields are."""

    def on_form(found: re.Match[str]) -> str:
        field = _FIELDS.get(found[1])
        return f"({field} above)" if field else f"{found[0][:-1]} on the command line)"

    return re.sub(r"\(--([a-z-]+)[^)]*\)", on_form, message)


def taken(made: Import) -> pl.DataFrame:
    """What will be taken, per table: what, rows."""
    names = [_WORDS.get(each, ("", each))[1] for each in made.taken]
    return pl.DataFrame({"what": names, "rows": list(made.taken.values())})


def makes(made: Import) -> pl.DataFrame:
    """What the store will list: kind, name, collection and, where there are any, details; runs first."""
    rows = [("run", run.label, run.collection_id, "") for run in made.runs]
    rows += [
        ("golden set", each.name, each.collection_id, f"grades: {each.mapping}") for each in made.golden_sets
    ]
    schema = dict.fromkeys(("kind", "name", "collection", "details"), pl.String)
    listed = pl.DataFrame(rows, schema=schema, orient="row")
    return listed if made.golden_sets else listed.drop("details")


def left_out(made: Import) -> pl.DataFrame:
    """What will be left out: how many, reason, first place."""
    rows = [(each.count, each.reason, each.first) for each in made.left_out]
    return pl.DataFrame(rows, schema=["how_many", "reason", "first"], orient="row")


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
        found.append(
            "no latencies: on the Pareto chart the stacks stand apart, in a strip of unknown latency"
        )
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
    unmatched: Unmatched = "refuse",
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[bool, str]:
    """Write an import in one transaction.

    Args:
        store: Where to.
        made: What to write.
        note: What it came from, for the list of revisions.
        on_wait: Told now and then while another process writes.
        choice: What to do with things that are in the store under the same name with other content.
        unmatched: "take": also runs and judgements that name nothing that their collection has.
        on_step: Told what is being done, in a few words.

    Returns:
        Whether anything was new, and a sentence that says so.

    Raises:
        UnmatchedError: If there are such; nothing was written then.
        ChangedError: If no choice was made about such things, or deleted ones; nothing was written then.
        ClqError: If the store refuses it; nothing was written then.
    """
    before = store.revision()
    with store.write("import", note, on_wait=on_wait) as writer:
        snapshot = store.read()
        if unmatched != "take" and (strange := refused(matches(snapshot, made))):
            raise UnmatchedError(strange)
        settled = settle(snapshot, made, choice)
        if settled.undecided:
            raise ChangedError(settled.undecided)
        for kind, name in settled.restored:
            writer.restore(kind, [name])
        settled, graded = with_grades(snapshot, settled)
        writer.remove_runs(settled.removed)
        writer.add(settled.made.batch, replacing=settled.replacing, on_step=on_step)
    after = store.revision()
    if after == before:
        return False, "Everything in these files is in the store already; nothing was written."
    words = ", ".join(worded(what, rows) for what, rows in made.taken.items())
    return True, f"Imported as revision {after}: {words}.{graded}{_done(settled, choice)}"


def _done(settled: Settled, choice: Choice | None) -> str:
    """What became of things that were there with other content, in words."""
    if not settled.changes:
        return ""
    restored = [each for each in settled.changes if each.deleted == "same" and choice != "new"]
    others = [each for each in settled.changes if each not in restored]
    words = {"Replaced": others} if choice == "replace" else {"Kept beside what was there": others}
    return "".join(
        f" {what}: {', '.join(map(str, named[:5]))}."
        for what, named in {"Restored": restored, **words}.items()
        if named
    )


def collection_of(made: Import) -> str | None:
    """The collection to open in the workspace: of several the one with most runs, then most figures."""
    if made.runs:
        figures = _figures(made)
        rank: Counter[str] = Counter()
        for run in made.runs:
            rank[run.collection_id] += 1_000_000 + figures.get(run.run_id, 0)
        return rank.most_common(1)[0][0]
    named = [each.collection_id for each in made.golden_sets]
    named += [each.collection_id for each in made.collections]
    return named[0] if named else None


def _figures(made: Import) -> dict[str, int]:
    """Results over all queries that each run came with."""
    if "aggregates" not in made.frames:
        return {}
    counted = made.frames["aggregates"].lazy().group_by("run_id").len().collect()
    return dict(counted.iter_rows())


@dataclass(frozen=True, slots=True)
class Next:
    """Where an import can be looked at.

    Attributes:
        pages: Names of pages that show something of it: decision, queries, headroom, golden, library.
        hint: What is still needed, or what else came; empty where there is nothing to say.
    """

    pages: tuple[str, ...]
    hint: str = ""


def next_steps(snapshot: Snapshot, collection_id: str | None, came: int = 1) -> Next:
    """Where to look at a workspace.

    Args:
        snapshot: The store after the import.
        collection_id: The workspace; None if the import has none.
        came: How many collections came with the import.
    """
    runs = snapshot.runs().filter(collection_id=collection_id or "")
    judged = not snapshot.golden_sets(collection_id).is_empty()
    others = (
        f"It is one of {came} workspaces that came; the list in the sidebar has the others."
        if came > 1
        else ""
    )
    if runs.is_empty():
        hint = "No run of this workspace is in the store yet: import the rankings of a stack next."
        return Next(("golden", "library") if judged else ("library",), hint)
    ranked = bool(runs["has_rankings"].any())
    pages = (
        "decision",
        *(("headroom",) if ranked and judged else ()),
        *(("queries",) if ranked else ()),
        "library",
    )
    return Next(pages, others)


def came(made: Import) -> int:
    """How many collections an import has something of."""
    named = {each.collection_id for each in made.collections}
    named |= {each.collection_id for each in made.golden_sets}
    return len(named | {each.collection_id for each in made.runs})


def weight(size: int) -> str:
    """Bytes in words: ``512 bytes``, ``4.6 kB``, ``3.8 MB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return text.count(size, "byte")


def sizes(previews: Sequence[Preview]) -> str:
    """How much was offered, in words."""
    total = sum(each.bytes for each in previews) / 1e6
    return f"{text.count(len(previews), 'part')}, {total:,.1f} MB"
