"""Importing as a person does it: look, decide, preview, then one transaction.

It also lists the formats that can be imported, generated from the importers so that the list cannot go stale.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from core.errors import ClqError, UnknownNameError
from core.importers import FORMATS, Import, Offered, Options, ReadProgress, load
from core.importers.base import merged
from core.importers.own_ids import own_words
from core.importers.read.text import shown
from core.importers.runs import slug
from core.pipeline.own.config import MatchBy as By
from core.records import Run
from core.store import Snapshot, Store
from core.work.imports.anchored import StoredDocuments, with_chunks_graded, with_grades
from core.work.imports.background import ChangedError, IfStored
from core.work.imports.matching import (
    Match,
    Unmatched,
    UnmatchedError,
    belongs_anywhere,
    follows,
    matches,
    refused,
    suggested,
)
from core.work.imports.told import are_told, with_chunkings
from core.work.imports.versions import Settled, settle
from core.work.imports.words import worded

if TYPE_CHECKING:
    from core.work.imports.placing import Placeable

ALWAYS = "What is left out is counted, with its reason; ids and texts stay as they are, gaps stay gaps."
SplitFiles = Mapping[str, Mapping[str, str]]
"""Offered file → the part removed from its ids (`Options.strip`); "" = it makes a new collection."""
REPORT = {"status": pl.String, "what": pl.String, "count": pl.Int64, "detail": pl.String}


def format_table() -> pl.DataFrame:
    """Return all formats, one row each.

    Returns:
        format, as (name for ``--as``), brings, recognised, units, left_out; all of them text, "" if
        there is nothing to say.
    """
    rows = [
        (
            known.title,
            known.name,
            ", ".join(known.brings),
            known.recognised,
            known.units,
            " ".join(known.traps),
        )
        for known in FORMATS
    ]
    names = ("format", "as", "brings", "recognised", "units", "left_out")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def described(name: str) -> list[tuple[str, str]]:
    """Return everything about one format, as pairs of heading and text.

    Args:
        name: A name of `FORMATS`.
    """
    known = next(known for known in FORMATS if known.name == name)
    plainly = [table for table, what in known.takes.items() if not what]
    return [
        ("recognised by", known.recognised),
        *([("taken as they are", ", ".join(plainly))] if plainly else []),
        *((table, what) for table, what in known.takes.items() if what),
        *([("units", known.units)] if known.units else []),
        *(("left out", trap) for trap in known.traps),
        *([("untried", known.untried)] if known.untried else []),
    ]


def knowing(snapshot: Snapshot, **options: Any) -> Options:  # noqa: ANN401
    """Return options of an import into a store, with its collections and their documents."""
    return Options(
        known_collections=frozenset(snapshot.collections()["collection_id"]),
        documents=StoredDocuments.of(snapshot),
        **options,
    )


@dataclass(frozen=True)
class Strange:
    """Offered files whose names do not exist in their collection."""

    files: tuple[str, ...]  # their names
    matches: tuple[Match, ...]  # how far their ids match the collection's


@dataclass(frozen=True)
class ImportPlan:
    """The import that offered files would make, or the problem with them."""

    made: Import | None = None  # the preview; None if something must be decided or fixed first
    problem: ClqError | None = None  # why nothing can be imported yet; None if it can
    matches: tuple[Match, ...] = ()  # how far the ids match those of their target collections
    # The files whose ids do not match, and that nobody has decided on
    strange: tuple[Strange, ...] = ()
    # The matches with a fitting stored collection, if the files make a new one
    suggested: tuple[Match, ...] = ()
    # The matches with the workspace, which they do not fit, if the files make a new one
    apart: tuple[Match, ...] = ()
    # The collections that have passages of the files under other names
    placeable: tuple[Placeable, ...] = ()
    own: str = ""  # how many queries retrieve the passage with their own id, if most do


def plan(
    offered: Sequence[Offered],
    options: Options,
    snapshot: Snapshot,
    *,
    workspace: str | None = None,
    apart: SplitFiles | None = None,
    by: By = "ids",
) -> ImportPlan:
    """Read the offered files without writing anything.

    Returns:
        The plan; a problem with the files is part of it, not raised.
    """
    try:
        imported = read_into(offered, options, snapshot, workspace=workspace, apart=apart, by=by)
        matched = matches(snapshot, imported)
        foreign = workspace and not apart and belongs_anywhere(imported, options.known_collections)
        return ImportPlan(
            imported,
            None,
            matched,
            _strange(offered, options, snapshot, matched, apart or {}),
            () if apart else suggested(snapshot, imported),
            tuple(match for match in matches(snapshot, imported, workspace) if not match.own)
            if foreign
            else (),
            elsewhere(snapshot, imported, workspace if foreign else None) if by == "ids" else (),
            own_words(imported),
        )
    except ClqError as error:
        return ImportPlan(problem=error)


def read_into(
    offered: Sequence[Offered],
    options: Options,
    snapshot: Snapshot,
    *,
    workspace: str | None = None,
    unmatched: Unmatched = "refuse",
    by: By = "ids",
    apart: SplitFiles | None = None,
    progress: ReadProgress | None = None,
) -> Import:
    """Read the offered files for the collection that they belong to.

    Args:
        options: The user's decisions. If they name no collection, and the files would make a new one,
            their ids decide whether they go into a stored one (`core.work.imports.matching.follows`).
        unmatched: "own": data with names unknown to its collection makes a new collection instead.
        by: How passages of rankings may be recognised, besides their ids.
        apart: How to treat single offered files whose ids do not match the collection.

    Raises:
        ClqError: As in `core.importers.load`.
    """
    if apart:
        return _in_groups(offered, options, snapshot, workspace, apart)
    imported = load(offered, options, progress)
    into = follows(snapshot, imported, workspace) if options.collection_id is None else None
    if into is None and unmatched == "own" and refused(matches(snapshot, imported)):
        into = own_name(imported, snapshot)
    if into is not None:
        imported = load(offered, replace(options, collection_id=into), progress)
        if into in options.known_collections and into != workspace:
            note = f"It goes into {shown(into)}, whose queries it names; or name another (--collection)."
            imported = replace(imported, notes=(*imported.notes, note))
    imported = with_chunkings(snapshot, imported)
    _require_collections(imported, snapshot)
    if by == "ids":
        return imported
    from core.work.imports.placing import with_places  # noqa: PLC0415 - half a second, for the engines

    return with_places(snapshot, imported, by)


def _require_collections(imported: Import, snapshot: Snapshot) -> None:
    """Refuse golden sets of a collection that neither the files nor the store have; name the files."""
    there = snapshot.with_deleted().collections(parts=True)["collection_id"]
    known = {*there, *(collection.collection_id for collection in imported.collections)}
    for golden_set in imported.golden_sets:
        if golden_set.collection_id not in known:
            files = ", ".join(file.name for file in imported.detected)
            raise UnknownNameError("collection", golden_set.collection_id, known, where=shown(files, 200))


def elsewhere(snapshot: Snapshot, imported: Import, into: str | None = None) -> tuple[Placeable, ...]:
    """Return the collections that have an import's passages under other names, if these can be recognised.

    Args:
        into: A collection that everything goes into; None = those that the import names.
    """
    if into is not None:
        imported = replace(imported, runs=tuple(replace(run, collection_id=into) for run in imported.runs))
    if not are_told(snapshot, imported):
        return ()
    from core.work.imports.placing import placeable  # noqa: PLC0415 - half a second, for the engines

    return placeable(snapshot, imported)


def name_of(item: Offered) -> str:
    """Return the name of an offered file or folder."""
    return item.name if hasattr(item, "name") else Path(item).name


def _in_groups(
    offered: Sequence[Offered], options: Options, snapshot: Snapshot, workspace: str | None, apart: SplitFiles
) -> Import:
    """Return the files that belong to the collection together, and the others as decided."""
    rest = [item for item in offered if name_of(item) not in apart]
    parts = [read_into(rest, options, snapshot, workspace=workspace)] if rest else []
    groups: dict[tuple[tuple[str, str], ...], list[Offered]] = {}
    for item in offered:
        if name_of(item) in apart:
            groups.setdefault(tuple(sorted(apart[name_of(item)].items())), []).append(item)
    for strips, items in groups.items():
        into = options.collection_id or workspace if strips else own_name(load(items, options), snapshot)
        parts.append(load(items, replace(options, collection_id=into, strip=dict(strips))))
    return merged(parts)


def _strange(
    offered: Sequence[Offered],
    options: Options,
    snapshot: Snapshot,
    matched: Sequence[Match],
    apart: SplitFiles,
) -> tuple[Strange, ...]:
    """Return the files behind refused matches; several are checked one by one, unless all are refused."""
    foreign = tuple(refused(matched))
    items = [item for item in offered if name_of(item) not in apart]
    if not foreign or not items:
        return ()
    into = options.collection_id or foreign[0].collection_id
    alone = [Strange((name_of(item),), _alone(item, replace(options, collection_id=into), snapshot))
             for item in items if len(items) > 1]  # fmt: skip
    strangers = tuple(strange for strange in alone if strange.matches)
    whole = Strange(tuple(map(name_of, items)), foreign)
    return strangers if 0 < len(strangers) < len(items) else (whole,)


def _alone(item: Offered, options: Options, snapshot: Snapshot) -> tuple[Match, ...]:
    """Return the refused matches of one file, or () if it cannot be read by itself."""
    try:
        return tuple(refused(matches(snapshot, load([item], options))))
    except ClqError:
        return ()


def own_name(imported: Import, snapshot: Snapshot) -> str:
    """Make a name that no collection has or had, from the collection's and its first item's."""
    first = imported.runs[0] if imported.runs else imported.golden_sets[0]
    label = first.label if isinstance(first, Run) else first.name
    taken = {*snapshot.collections()["collection_id"], *snapshot.collections(removed=True)["collection_id"]}
    name = slug(f"{first.collection_id} {label}")
    later = (slug(f"{name} {number}") for number in itertools.count(2))
    return next(free for free in itertools.chain([name], later) if free not in taken)


@dataclass(frozen=True)
class StoredImport:
    """An import as it was written."""

    fresh: bool  # whether anything was new
    said: str  # whether anything was new, and what, in sentences
    made: Import  # with the names and ids that it has in the store
    revision: int  # the store's, with it


def store_import(
    store: Store,
    imported: Import,
    note: str,
    on_wait: Callable[[float], None] | None = None,
    *,
    choice: IfStored | None = None,
    unmatched: Unmatched = "refuse",
    on_step: Callable[[str], None] = lambda _: None,
) -> StoredImport:
    """Write an import in one transaction.

    Args:
        note: Its origin, for the list of revisions.
        choice: How to treat stored items of the same name with other content.
        unmatched: "take": import also runs and judgements with names unknown to their collection.

    Raises:
        UnmatchedError: If there are such runs or judgements; nothing was written then.
        ChangedError: If no choice was made about changed or deleted items; nothing was written then.
        ClqError: If the store refuses it; nothing was written then.
    """
    before = store.revision()
    with store.write("import", note, on_wait=on_wait) as writer:
        snapshot = store.read()
        if unmatched != "take" and (strange := refused(matches(snapshot, imported))):
            found = elsewhere(snapshot, imported)
            raise UnmatchedError(strange, [f"{each} (--match {each.match})" for each in found])
        settled = settle(snapshot, imported, choice)
        if settled.undecided:
            raise ChangedError(settled.undecided)
        for kind, name in settled.restored:
            writer.restore(kind, [name])
        settled, graded = with_grades(snapshot, settled)
        writer.remove("run", settled.removed)
        writer.add(
            with_chunks_graded(snapshot, settled.made.batch), replacing=settled.replacing, on_step=on_step
        )
    after = store.revision()
    if after == before:
        known = "Everything in these files is in the store already; nothing was written."
        return StoredImport(fresh=False, said=known, made=settled.made, revision=after)
    words = ", ".join(worded(what, rows) for what, rows in imported.taken.items())
    said = f"Added as revision {after}: {words}.{graded}{_done(settled, choice)}"
    said += begins(snapshot, settled.made)
    return StoredImport(fresh=True, said=said, made=settled.made, revision=after)


def begins(snapshot: Snapshot, imported: Import) -> str:
    """Name the workspaces that an import begins, in a sentence after a blank; "" if it begins none."""
    known = set(snapshot.collections()["collection_id"])
    new = [one.collection_id for one in imported.collections if not one.part_of]
    named = [shown(name) for name in dict.fromkeys(new) if name not in known]
    return f" New workspace{'s' * (len(named) > 1)}: {', '.join(named)}." if named else ""


def _done(settled: Settled, choice: IfStored | None) -> str:
    """Describe how existing items with other content were treated."""
    if not settled.changes:
        return ""
    restored = [change for change in settled.changes if change.deleted == "same" and choice != "new"]
    others = [change for change in settled.changes if change not in restored]
    words = {"Replaced": others} if choice == "replace" else {"Kept beside what was there": others}
    return "".join(
        f" {what}: {', '.join(map(str, named[:5]))}."
        for what, named in {"Restored": restored, **words}.items()
        if named
    )


def collection_of(imported: Import) -> str | None:
    """Return the collection to open in the workspace: the one with most runs, then most figures."""
    if imported.runs:
        figures = _figures(imported)
        rank: Counter[str] = Counter()
        for run in imported.runs:
            rank[run.collection_id] += 1_000_000 + figures.get(run.run_id, 0)
        return rank.most_common(1)[0][0]
    named = [golden_set.collection_id for golden_set in imported.golden_sets]
    named += [collection.collection_id for collection in imported.collections]
    return named[0] if named else None


def _figures(imported: Import) -> dict[str, int]:
    """Return the number of results over all queries for each run."""
    if "aggregates" not in imported.frames:
        return {}
    counted = imported.frames["aggregates"].lazy().group_by("run_id").len().collect()
    return dict(counted.iter_rows())


def came(imported: Import) -> int:
    """Return the number of collections that an import has data for."""
    named = {collection.collection_id for collection in imported.collections}
    named |= {golden_set.collection_id for golden_set in imported.golden_sets}
    return len(named | {run.collection_id for run in imported.runs})


def report(imported: Import, status: str, sentence: str = "", *, most: int | None = None) -> pl.DataFrame:
    """Report what an import took, left out and decided: status, what, count, detail; names `most` runs."""
    rows: list[tuple[str, str, int | None, str]]
    rows = [("read", file.format, None, file.name) for file in imported.detected]
    rows += [(status, table, count, "") for table, count in imported.taken.items()]
    rows += [(status, "run", None, f"{run.run_id}  {run.label}") for run in imported.runs[:most]]
    if most is not None and len(imported.runs) > most:
        rows.append((status, "more runs", len(imported.runs) - most, "--format json lists all"))
    rows += [
        (status, "golden set", None, f"{golden_set.golden_set_id}  {golden_set.mapping}")
        for golden_set in imported.golden_sets
    ]
    rows += [("left out", loss.reason, loss.count, loss.first) for loss in imported.left_out]
    rows += [("note", "", None, note) for note in (*imported.notes, sentence) if note]
    return pl.DataFrame(rows, schema=REPORT, orient="row")
