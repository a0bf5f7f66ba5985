"""Imports in separate processes: they can be watched and cancelled, and survive a closed dashboard.

Each leaves ``imports/<nanoseconds>`` beside the store with its files, progress and output. A killed
process has changed nothing: its data become part of the store in one step at its end.

The module also finds conflicts of an import with names in the store, and renames its contents.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

import polars as pl

from core import jobs
from core.errors import InputError
from core.importers import Import, Offered, Options
from core.jobs import JobStatus, Launch, State
from core.jobs.job import STATUS
from core.pipeline.own.config import MatchBy as By
from core.records import Collection, GoldenSet, Run, short_hash
from core.store import LedgerKind, Snapshot
from core.store.rules import RULES
from core.tables import TABLES, altered
from core.work.imports.matching import Unmatched

IfStored = Literal["new", "replace", "restore"]
CHOICES: Mapping[IfStored, str] = {
    "new": "Keep both: what comes now is a new version",
    "replace": "Replace: what comes now takes its place (earlier revisions still show the old)",
}
AFTER_DELETION: Mapping[IfStored, str] = {
    "restore": "Restore: it is what was deleted, and comes back with all that its deletion hid",
    "new": "Leave that deleted: what comes now is a new version",
}
_GONE = {"no": "", "same": " (deleted)", "other": " (deleted, had other content)"}
RECORDS: Mapping[LedgerKind, str] = {"collection": "collections", "golden_set": "golden_sets"}
OWNED: Mapping[LedgerKind, tuple[str, ...]] = {
    kind: tuple(table for table, rules in RULES.items() if rules.kind == kind) for kind in RECORDS
}
"""Tables whose rows belong to a collection or a golden set."""
_FOLDER, _SCRATCH, _FILES = "imports", "scratch", "files"


@dataclass(frozen=True, slots=True)
class Changed:
    """An item that is in the store under the same name with other content, or that was deleted."""

    kind: str  # "run", "golden_set" or "collection"
    name: str  # label of a run, id of the others
    known: tuple[str, ...]  # ids in the store with that name, or a later version of it; newest last
    # Whether none of them is visible any more; "same" if one has the imported content
    deleted: Literal["no", "same", "other"] = "no"

    def __str__(self) -> str:
        """Describe it in words."""
        return f"{self.kind.replace('_', ' ')} {self.name!r}{_GONE[self.deleted]}"


def offers(changed: Sequence[str]) -> Mapping[IfStored, str]:
    """Offer the ways to settle changes, in words; restoring only if all of them are merely deleted."""
    return AFTER_DELETION if all(words.endswith(_GONE["same"]) for words in changed) else CHOICES


def as_sentence(changed: Sequence[str]) -> str:
    """List changes in a sentence."""
    some = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if changed[5:] else "")
    if offers(changed) is AFTER_DELETION:
        return f"The same was in the store and was deleted: {some}."
    return f"In the store already with other content: {some}."


class ChangedError(InputError):
    """An import would change existing items, or restore deleted ones, and nobody has decided how.

    Attributes:
        changes: The changes it would make.
    """

    def __init__(self, changes: tuple[Changed, ...]) -> None:
        words = [str(change) for change in changes]
        how = (
            "Say whether to restore what was deleted (--if-changed restore) or to leave it deleted and "
            "import a new version (--if-changed new)."
            if offers(words) is AFTER_DELETION
            else "Say whether to keep both as a new version (--if-changed new) or to replace what is there "
            "(--if-changed replace)."
        )
        super().__init__(f"{as_sentence(words)} Nothing was written.", do=how)
        self.changes = changes


_Named = TypeVar("_Named", Collection, GoldenSet, Run)


def renamed(imported: Import, kind: LedgerKind, name: str, chosen: str, *, known: bool) -> Import:
    """Return an import with a collection or golden set and its parts renamed, wherever they are named."""
    if name == chosen:
        return imported
    for part in parts_of(imported, kind, name):
        imported = _with_id(imported, kind, part, chosen + part.removeprefix(name), known=False)
    return _with_id(imported, kind, name, chosen, known=known)


def parts_of(imported: Import, kind: LedgerKind, name: str) -> list[str]:
    """Return ids of the records in an import that are parts of a collection or golden set."""
    records = getattr(imported, RECORDS[kind])
    return [getattr(record, f"{kind}_id") for record in records if record.part_of == name]


def _with_id(imported: Import, kind: LedgerKind, name: str, chosen: str, *, known: bool) -> Import:
    key, own = f"{kind}_id", Collection if kind == "collection" else GoldenSet
    frames = {
        table: altered(rows, pl.col(key).replace(name, chosen)) if table in OWNED[kind] else rows
        for table, rows in imported.frames.items()
    }

    def moved(record: _Named) -> _Named:
        changes: dict[str, Any] = {}
        if isinstance(record, GoldenSet) and kind == "golden_set" and name in record.parents:
            changes["parents"] = tuple(chosen if parent == name else parent for parent in record.parents)
        if isinstance(record, own) and record.part_of == name:
            changes["part_of"] = chosen
        elif getattr(record, key, None) == name:
            changes[key] = chosen
            if isinstance(record, own):  # otherwise it only refers to the id
                changes["name"] = chosen if record.name == name else f"{record.name} ({chosen})"
        return replace(record, **changes)

    collections = [moved(collection) for collection in imported.collections]
    if kind == "collection" and known:
        collections = [collection for collection in collections if collection.collection_id != chosen]
    elif kind == "collection" and chosen not in {collection.collection_id for collection in collections}:
        collections.append(Collection(collection_id=chosen, name=chosen, source=f"another version of {name}"))
    return replace(
        imported,
        frames=frames,
        collections=tuple(collections),
        golden_sets=tuple(moved(golden) for golden in imported.golden_sets),
        runs=tuple(moved(run) for run in imported.runs),
    )


def with_own_runs(imported: Import, snapshot: Snapshot) -> Import:
    """Return an import with new ids for runs whose id the store has in another collection, even deleted.

    A run's id is derived from its content; the same run on a new version of its collection is another one.
    """
    stored = dict(snapshot.with_deleted().runs().select("run_id", "collection_id").iter_rows())
    ids = {
        run.run_id: f"r-{short_hash(run.run_id, run.collection_id)}"
        for run in imported.runs
        if stored.get(run.run_id, run.collection_id) != run.collection_id
    }
    if not ids:
        return imported
    moved = pl.col("run_id").replace(ids)
    frames = {
        table: altered(rows, moved) if "run_id" in TABLES[table] else rows
        for table, rows in imported.frames.items()
    }
    runs = tuple(replace(run, run_id=ids.get(run.run_id, run.run_id)) for run in imported.runs)
    return replace(imported, frames=frames, runs=runs)


def begin(
    store: Path,
    offered: Sequence[Offered],
    options: Options,
    choice: IfStored | None = None,
    *,
    workspace: str | None = None,
    unmatched: Unmatched = "refuse",
    by: By = "ids",
) -> Launch:
    """Start an import.

    Args:
        offered: Paths, or uploads, which are saved for the process.
        choice: How to treat existing items with other content.
        workspace: The open collection; see `core.work.imports.imports.read_into`.
        unmatched: How to treat names that its collection does not have.
        by: How passages of rankings may be recognised.

    Raises:
        InputError: If the folder beside the store cannot be written.
    """
    folder = jobs.new_folder(store.absolute().parent / _FOLDER)
    try:
        paths = [_placed(item, folder / _FILES / str(place)) for place, item in enumerate(offered)]
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"The upload cannot be written down: {error}.", where=str(folder)) from error
    more = [f"--unmatched={unmatched}", f"--match={by}", *([f"--workspace={workspace}"] if workspace else [])]
    return _start(folder, store, [*map(str, paths), *_flags(options), *more], choice)


def again(job: Launch, store: Path, choice: IfStored) -> Launch:
    """Restart an import that was refused, with a decision about changed items."""
    return _start(job.folder, store, job.arguments, choice)


def look(job: Launch) -> JobStatus:
    """Return the current progress of an import.

    Uploads of an import that is over and was not refused are deleted.
    """
    status = job.status()
    if status.state in (State.FINISHED, State.CANCELLED):
        _forget(job, _FILES)
    return status


def cancel(job: Launch) -> None:
    """Cancel an import; the store stays unchanged."""
    job.cancel(wait_s=5)
    _forget(job, _SCRATCH, _FILES)


def open_jobs(store: Path) -> list[Launch]:
    """Return imports that run, or whose end nobody has seen yet; the newest first."""
    return [job for job in jobs.jobs(store.absolute().parent / _FOLDER) if not job.seen]


def see(job: Launch) -> None:
    """Record that somebody has seen how an import ended, and delete its uploads."""
    _forget(job, _FILES)
    job.see()


def _forget(job: Launch, *parts: str) -> None:
    for part in parts:
        shutil.rmtree(job.folder / part, ignore_errors=True)


def _flags(options: Options) -> list[str]:
    # The options of the command apply to all tables: a setting for one applies to all if it is the only
    # one.
    (said,) = options.tables.values() if len(options.tables) == 1 else (options.table_as(""),)
    given = {
        "--as": options.format,
        "--label": options.label,
        "--collection": options.collection_id,
        "--golden-set": options.golden_set_id,
        "--grades": options.grades,
        "--split": options.split,
        "--sheet": options.sheet,
        "--row": said.row,
    }
    flags = [f"{name}={value}" for name, value in given.items() if value]
    flags += ["--all-tasks"] * options.all_tasks
    flags += ["--own-ids=drop"] * (options.own_ids == "drop")
    flags += [f"--permission={name}" for name in sorted(options.permissions)]
    flags += [f"--as={name}={format_}" for name, format_ in options.formats.items()]
    flags += [f"--skip={name}" for name in sorted(options.skip)]
    flags += [f"--strip={what}={pattern}" for what, pattern in options.strip.items()]
    flags += [f"--without={name}" for name in sorted(said.without)]
    flags += [f"--numbers={column}={reading}" for column, reading in said.numbers.items()]
    return [*flags, *(f"--column={role}={name}" for role, name in said.columns.items())]


def _placed(item: Offered, folder: Path) -> Path:
    """Return the path of an offered item; an upload is written to a file of its name."""
    if isinstance(item, str | os.PathLike):
        return Path(item).expanduser().absolute()
    folder.mkdir(parents=True)
    path = folder / (PurePosixPath(item.name.replace("\\", "/")).name.lstrip(".") or "upload")
    path.write_bytes(item.getvalue())
    return path


def _start(folder: Path, store: Path, arguments: Sequence[str], choice: IfStored | None) -> Launch:
    (folder / _SCRATCH).mkdir(exist_ok=True)
    decided = [f"--if-changed={choice}"] if choice else []
    command = ["--store", str(store), "import", *arguments, *decided, "--status", str(folder / STATUS)]
    name = ", ".join(Path(argument).name for argument in arguments if not argument.startswith("--"))[:200]
    scratch = {"TMPDIR": str(folder / _SCRATCH)}
    return jobs.begin(folder, name, command, arguments=arguments, environ=scratch)
