"""``import PATH…``: bring results of other tools into the store, or only report what would be taken.

``formats [NAME]``: the importable formats, or everything about one.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import polars as pl
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from core.cli.base import Context, complain, waiting
from core.cli.context import Format, FormatOption, emit
from core.errors import ClqError, InputError, UnknownNameError, refusal
from core.importers import FORMATS, GRADE_MAPPINGS, Import, ReadProgress
from core.importers.meaning import RowMeaning, mapped
from core.importers.read.number_format import READINGS, readings
from core.importers.read.ordering import OwnIds, TieOrder
from core.importers.read.text import shown
from core.importers.rewriting import WRITINGS
from core.importers.runs import patterns
from core.jobs import JobStatus, State, Tracker, asked_to_stop
from core.pipeline.own.config import MatchBy
from core.store import Snapshot
from core.work.imports.background import ChangedError, IfStored, as_sentence, offers
from core.work.imports.imports import (
    REPORT,
    StoredImport,
    begins,
    came,
    collection_of,
    described,
    elsewhere,
    format_table,
    knowing,
    read_into,
    report,
    store_import,
)
from core.work.imports.matching import Unmatched, UnmatchedError, matches, refused, suggested
from core.work.imports.words import summary

IfChanged = Literal["refuse", "ask", IfStored]  # If the store has something else under the same name
_DECIDED: dict[str, IfStored] = {choice: choice for choice in get_args(IfStored)}
_MOST_RUNS = 50  # Maximum runs listed by name in a table
_FORMATS = ", ".join(each.name for each in FORMATS)


class InFile:
    """Reports an import's progress through the state file that the dashboard reads."""

    def __init__(self, tracker: Tracker[JobStatus]) -> None:
        self._tracker = tracker

    def __call__(self, now: ReadProgress) -> None:
        """Report the stage, and the bytes and rows so far, unless that was done a moment ago."""
        if now.stage != self._tracker.status.stage:
            self._tracker.begin(now.stage, now.stage)
        self._tracker.within(now.read, now.total, "bytes", facts={"rows": now.rows})

    def done(self, imported: Import, *, fresh: bool, sentence: str) -> None:
        """Report what was taken."""
        facts = {
            "fresh": fresh,
            "more": summary(imported),
            "collection": collection_of(imported),
            "came": came(imported),
        }
        self._tracker.close(State.FINISHED, sentence, facts=facts)

    def failed(self, error: BaseException) -> None:
        """Report the reason of a failure, in words for users."""
        if isinstance(error, KeyboardInterrupt):
            self._tracker.close(State.CANCELLED, "Cancelled; the store is as it was.")
            return
        changed = [str(change) for change in error.changes] if isinstance(error, ChangedError) else []
        said = error if isinstance(error, ClqError) else refusal(error)
        words = str(said or f"It failed: {type(error).__name__}. Nothing was written.")
        self._tracker.close(State.FAILED, words, facts={"changed": changed})


@contextmanager
def _telling(status: Path | None, name: str) -> Iterator[Callable[[ReadProgress], None]]:
    """Report an import's progress: in a file, on a terminal, or not at all if standard error isn't one."""
    if status is not None:
        teller = InFile(Tracker(JobStatus(name=name), path=status))
        with asked_to_stop(_interrupt):
            try:
                yield teller
            except BaseException as error:
                teller.failed(error)
                raise
    elif sys.stderr.isatty():
        rows, left = TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), rows, left)
        with Bar(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("reading", total=None, rows=0)

            def move(now: ReadProgress) -> None:
                total = now.total if now.stage == "reading" else None  # later stages have no known end
                shown.update(task, description=now.stage, completed=now.read, total=total, rows=now.rows)

            yield move
    else:
        yield lambda _: None


def _interrupt() -> None:
    """Treat a request to terminate like Ctrl-C: started work is undone."""
    raise KeyboardInterrupt


def run(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files and folders, also packed.", show_default=False)],
    *,
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help=f"Format instead of by content: {_FORMATS}; of one file as FILE=FORMAT. May be repeated.",
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    collection: Annotated[
        str | None, typer.Option(help="Collection that the files belong to; by default ids decide.")
    ] = None,
    golden_set: Annotated[
        str | None, typer.Option(help="Name of the golden set that judgements make.")
    ] = None,
    grades: Annotated[
        str | None,
        typer.Option(
            help=f"How grades become 1-5: {', '.join(GRADE_MAPPINGS)}, or pairs such as 0=1,1=3,2=5."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of a BEIR collection, or all.")] = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel workbook.")] = None,
    all_tasks: Annotated[
        bool, typer.Option("--all-tasks", help="Of MTEB results those of other tasks than retrieval too.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Meaning of a table's column, as meaning=column, such as run=system, nDCG@10=score, "
            "latency_p95_s=time or usd_per_query=cost; grade=label_* for a judge each; nDCG@10=* where each "
            "column is a stack; may be repeated."
        ),
    ] = None,
    row: Annotated[
        RowMeaning | None, typer.Option(help="What a row of a table is, where its columns do not say.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Column of a table to leave out; may be repeated.")
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option(
            help=f"How a table's column writes its numbers, as column={'|'.join(READINGS)}: 1,5 is 1.5; "
            "1,500 is 1500; 41 is 0.41; 41 and .5 are 0.41 and 0.5. May be repeated."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(help="Name of a file to leave out, as errors name it; may be repeated."),
    ] = None,
    tie_order: Annotated[
        TieOrder,
        typer.Option(
            help="Order of passages with equal scores: that of the file's own ranks, where it has them, or "
            "trec_eval's (by score, ties by descending id)."
        ),
    ] = "file",
    strip: Annotated[
        list[str] | None,
        typer.Option(
            help="How ids are written there: passages=doc-* (taken off; the star is kept), add:doc-*, "
            f"{', '.join(WRITINGS)} or pad8; may be repeated."
        ),
    ] = None,
    own_ids: Annotated[
        OwnIds,
        typer.Option(help="What becomes of a passage with the id of the query that it is ranked for."),
    ] = "keep",
    permission: Annotated[
        list[str] | None,
        typer.Option(
            help="Field of the passages' metadata that says what an asker may see; may be repeated."
        ),
    ] = None,
    unmatched: Annotated[
        Unmatched,
        typer.Option(
            help="Where runs or judgements name nothing that their collection has: stop, take them all the "
            "same, make a collection of their own."
        ),
    ] = "refuse",
    match: Annotated[
        MatchBy,
        typer.Option(
            help="What passages of rankings are known by: ids; places: also source and characters, or the "
            "words of their texts; headings: also source and heading."
        ),
    ] = "ids",
    workspace: Annotated[
        str | None, typer.Option(hidden=True, help="Collection, where none is named, if the ids are its ids.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be taken; write nothing.")
    ] = False,
    if_changed: Annotated[
        IfChanged,
        typer.Option(
            help="Where the store has another content under the same name: stop, ask, keep both, replace; "
            "where the same was deleted: restore it."
        ),
    ] = "refuse",
    status: Annotated[
        Path | None, typer.Option(hidden=True, help="File that tells the dashboard how far this is.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Import results of other tools: TREC runs and qrels, BEIR collections, tables, own exports."""
    context: Context = ctx.obj
    store = context.store()
    snapshot = store.read()
    options = knowing(
        snapshot,
        **_formats(as_ or []),
        label=label,
        collection_id=collection,
        golden_set_id=golden_set,
        grades=grades,
        split=split,
        sheet=sheet,
        all_tasks=all_tasks,
        columns=_columns(column or []),
        row=row,
        without=frozenset(without or []),
        numbers=readings(numbers or []),
        skip=frozenset(skip or []),
        strip=patterns(strip or []),
        tie_order=tie_order,
        own_ids=own_ids,
        permissions=frozenset(permission or []),
    )
    note = shown(", ".join(path.name for path in paths), 200)
    most = _MOST_RUNS if form is Format.TABLE else None
    with _telling(status, note) as tell:
        progress = ReadProgress(tell)
        imported = read_into(
            paths, options, snapshot, workspace=workspace, unmatched=unmatched, by=match, progress=progress
        )
        seen = _seen(snapshot, imported, named=bool(collection or workspace), unmatched=unmatched)
        if match == "ids":
            seen = pl.concat([seen, _elsewhere(snapshot, imported)])
        if dry_run:
            new = begins(snapshot, imported).strip()
            emit(pl.concat([report(imported, "would take", new, most=most), seen]), form)
            return

        def write(choice: IfStored | None) -> StoredImport:
            return store_import(
                store, imported, note, waiting, choice=choice, unmatched=unmatched, on_step=progress.step
            )

        done = _written(write, if_changed)
        if isinstance(tell, InFile):
            tell.done(imported, fresh=done.fresh, sentence=done.said)
    taken = "taken" if done.fresh else "known already"
    emit(pl.concat([report(imported, taken, done.said, most=most), seen]), form)


def _seen(snapshot: Snapshot, imported: Import, *, named: bool, unmatched: Unmatched) -> pl.DataFrame:
    """Return rows of `report` on how far the ids match the collection, or which one they match."""
    matched = matches(snapshot, imported)
    rows: list[tuple[str, str, int | None, str]]
    rows = [("match", match.what, match.known, str(match)) for match in matched]
    if unmatched != "take" and (strange := refused(matched)):
        rows.append(("refused", "match", None, str(UnmatchedError(strange))))
    for match in () if named else suggested(snapshot, imported):
        offer = f"{match}: --collection {shlex.quote(match.collection_id)} puts it there"
        rows.append(("match", match.what, match.known, offer))
    return pl.DataFrame(rows, schema=REPORT, orient="row")


def _elsewhere(snapshot: Snapshot, imported: Import) -> pl.DataFrame:
    """Return rows of `report` on passages that the collection has under other names."""
    rows = [
        ("match", "passages", each.found, f"{each}: --match {each.match} takes them so")
        for each in elsewhere(snapshot, imported)
    ]
    return pl.DataFrame(rows, schema=REPORT, orient="row")


def _written(write: Callable[[IfStored | None], StoredImport], wanted: IfChanged) -> StoredImport:
    """Write, treating existing things with other content as the user wants."""
    try:
        return write(_DECIDED.get(wanted))
    except ChangedError as error:
        if wanted != "ask" or not sys.stdin.isatty():
            raise
        changed = [str(change) for change in error.changes]
        complain(as_sentence(changed))
        said = typer.prompt(f"{', '.join(offers(changed))} or stop?", default="stop", err=True)
        if said not in offers(changed):
            raise
        return write(said)


def _formats(said: list[str]) -> dict[str, Any]:
    """Return format options: for all files, and for named ones."""
    whole = [name for name in said if "=" not in name]
    if len(whole) > 1:
        problem = f"Two formats for all files: {' and '.join(whole[:2])}."
        raise InputError(problem, where="--as", do=f"Name the file of each: --as FILE={whole[0]}.")
    pairs = (name.rpartition("=") for name in said if "=" in name)
    return {"format": next(iter(whole), None), "formats": {file: name for file, _, name in pairs}}


def _columns(pairs: list[str]) -> dict[str, str]:
    bad = next((pair for pair in pairs if "=" not in pair), None)
    if bad is not None:
        raise InputError(
            f"{bad!r} is not meaning=column.", where="--column", do="For example --column score=cosine."
        )
    return mapped((role.strip(), name) for role, _, name in (pair.partition("=") for pair in pairs))


def formats(
    name: Annotated[
        str | None, typer.Argument(help="One format, as for import --as.", show_default=False)
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the formats that can be imported, or say what is taken of one and what is left out."""
    if name is None:
        rows = format_table()
        emit(rows.select("as", "format", "brings") if form is Format.TABLE else rows, form)
        return
    known = [known_format.name for known_format in FORMATS]
    if name not in known:
        raise UnknownNameError("format", name, known)
    emit(pl.DataFrame(described(name), schema=["what", "how"], orient="row"), form)
