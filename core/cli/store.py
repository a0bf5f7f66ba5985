"""``list runs|stacks|golden-sets|collections``: the contents of the store.

``delete RUN…`` hides runs, golden sets or collections with their contents; ``restore`` undoes it.

``store backup DST`` and ``store restore SRC``: copies of the whole store, verified by checksums.

``doctor``: whether the store is intact, its contents, and what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from core.analysis.workspace.scope import resolve_runs
from core.cli.base import Context, require_collection, waiting
from core.cli.context import Format, FormatOption, emit
from core.cli.runs import work_of
from core.cli.sql import views
from core.errors import StoreError, UnknownNameError
from core.golden.book import FILE, Book, bring_back
from core.prices.copies import bring_prices_back, copy_prices
from core.prices.write import OWN_FOLDER, own_folder
from core.store import LedgerKind, Snapshot, upkeep
from core.store.doctor import Complaint, Level, Report, examine
from core.views import text
from core.views.golden.judging import book_path
from core.views.library.data import NAMES, goes_along, listed

Runs = Annotated[list[str] | None, typer.Argument(help="Run ids, or labels of one run.", show_default=False)]
GoldenSets = Annotated[list[str] | None, typer.Option("--golden-set", help="A golden set; may be repeated.")]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", help="A collection with all that belongs to it; may be repeated."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what goes along; write nothing.")]
_TURNED = {"kind": pl.String, "id": pl.String, "name": pl.String, "along": pl.String, "status": pl.String}
_Listed = Literal["runs", "stacks", "golden-sets", "collections"]
_FOUND = dict.fromkeys(("kind", "what", "found", "do"), pl.String)
_ARTIFACTS = "Results do not need them; the next evaluation that does builds them again."


def delete(
    ctx: typer.Context,
    runs: Runs = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Delete runs, golden sets or collections; earlier revisions show them, and restore brings them back.

    A collection takes its runs, golden sets, queries and passages along; restoring it brings back just those.
    """
    _turn(ctx.obj, "delete", (runs, golden_set, collection), form, dry_run=dry_run)


def restore(
    ctx: typer.Context,
    runs: Runs = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Restore deleted runs, golden sets or collections, with what their deletion hid."""
    _turn(ctx.obj, "restore", (runs, golden_set, collection), form, dry_run=dry_run)


def _turn(
    context: Context,
    event: Literal["delete", "restore"],
    asked: tuple[list[str] | None, list[str] | None, list[str] | None],
    form: Format,
    *,
    dry_run: bool,
) -> None:
    """Delete or restore runs, golden sets and collections in one transaction; print what goes with them."""
    kinds: tuple[LedgerKind, ...] = ("run", "golden_set", "collection")
    named: Mapping[LedgerKind, list[str]] = {
        kind: names or [] for kind, names in zip(kinds, asked, strict=True)
    }
    if not any(named.values()):
        raise typer.BadParameter("Name runs, a --golden-set or a --collection.", param_hint="RUN")
    snapshot = context.store().read()
    removed = event == "restore"
    labels = _labels(snapshot, removed=removed)
    chosen = {kind: _ids(kind, labels[kind], names) for kind, names in named.items()}
    # A golden set of a collection that is restored with it, or that must stay deleted then.
    steps = [(kind, chosen[kind]) for kind in (reversed(kinds) if removed else kinds) if chosen[kind]]
    if not dry_run:
        with context.write(event, "; ".join(listed(ids, kind) for kind, ids in steps)) as writer:
            for kind, ids in steps:
                (writer.restore if removed else writer.remove)(kind, ids)
    status = f"would {event}" if dry_run else f"{event}d"
    rows = [
        (
            NAMES[kind],
            item_id,
            labels[kind][item_id],
            goes_along(snapshot, kind, [item_id], removed=removed),
            status,
        )
        for kind, ids in steps
        for item_id in ids
    ]
    emit(pl.DataFrame(rows, schema=_TURNED, orient="row"), form)


def _labels(snapshot: Snapshot, *, removed: bool) -> dict[LedgerKind, dict[str, str]]:
    """Return, by kind, the names of the existing things.

    With `removed`, return those of the others, whether deleted or hidden.
    """
    seen = snapshot.with_deleted() if removed else snapshot
    tables: dict[LedgerKind, tuple[pl.DataFrame, str]] = {
        "run": (seen.runs(), "label"),
        "golden_set": (seen.golden_sets(parts=True), "name"),
        "collection": (seen.collections(parts=True), "name"),
    }
    there = _labels(snapshot, removed=False) if removed else {}
    return {
        kind: {
            item_id: name
            for item_id, name in rows.select(f"{kind}_id", label).iter_rows()
            if item_id not in there.get(kind, ())
        }
        for kind, (rows, label) in tables.items()
    }


def _ids(kind: LedgerKind, labels: dict[str, str], names: Sequence[str]) -> list[str]:
    if kind == "run":
        schema = {"run_id": pl.String, "label": pl.String}
        return resolve_runs(pl.DataFrame(list(labels.items()), schema=schema, orient="row"), names)
    for name in names:
        if name not in labels:
            raise UnknownNameError(NAMES[kind], name, labels)
    return list(dict.fromkeys(names))


def list_(
    ctx: typer.Context,
    kind: Annotated[_Listed, typer.Argument(help="What to list.", show_default=False)],
    collection: Annotated[str | None, typer.Option(help="Only of this collection.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="What was deleted instead.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List runs, stacks, golden sets or collections."""
    context: Context = ctx.obj
    snapshot = context.store().read()
    require_collection(snapshot.with_deleted() if removed else snapshot, collection)
    rows = _listed(snapshot, kind, collection, removed=removed)
    if kind == "runs" and form is Format.TABLE:
        rows = rows.select(
            "run_id", "label", "collection_id", "origin", "pool", "stack_id", "created_at", "has_rankings"
        )
    emit(rows, form, empty=f"No {kind}.")


def _listed(snapshot: Snapshot, kind: _Listed, collection: str | None, *, removed: bool) -> pl.DataFrame:
    if kind == "runs":
        return snapshot.runs(collection, removed=removed)
    if kind == "golden-sets":
        return snapshot.golden_sets(collection, removed=removed)
    if kind == "stacks":
        if collection is None:
            return snapshot.stacks()
        return snapshot.stacks().join(snapshot.runs(collection), on="stack_id", how="semi")
    rows = snapshot.collections(removed=removed)
    return rows if collection is None else rows.filter(pl.col("collection_id") == collection)


def doctor(
    ctx: typer.Context,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First go back to the newest sound catalogue, and make derived files anew."
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Examine the store: every byte against its checksum; exit code 1 if something is damaged.

    A repair deletes nothing; it says what is lost, which only a backup can bring back.
    """
    context: Context = ctx.obj
    done = upkeep.repair(context.store(), on_wait=waiting) if repair else []
    report = examine(context.store())
    mended = pl.DataFrame([("repair", "", sentence, "") for sentence in done], schema=_FOUND, orient="row")
    judging = _judging(context)
    report = replace(report, findings=(*judging, *report.findings))
    emit(pl.concat([mended, _artifacts(context), _rows(report)]), form)
    if not report.sound:
        raise typer.Exit(1)


def _judging(context: Context) -> list[Complaint]:
    """Check the judgement book, every row against its seal."""
    try:
        strokes = len(_book(context).strokes_of_all())
    except StoreError as error:
        return [Complaint(Level.DAMAGE, error.found, error.do)]
    return (
        [Complaint(Level.NOTE, f"{strokes:,} strokes of people's judging, all as written.")]
        if strokes
        else []
    )


def _artifacts(context: Context) -> pl.DataFrame:
    """Return the artifacts that evaluations keep beside the store: folders by kind, and their size."""
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415 - with the engines, a second

    sizes: dict[str, list[int]] = {}
    for folder in (work_of(context) / ARTIFACTS).glob("[!.]*-*/"):
        total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        sizes.setdefault(folder.name.rpartition("-")[0], []).append(total)
    rows = [
        (
            "artifacts",
            kind,
            f"{text.count(len(folder_sizes), 'folder')}, {sum(folder_sizes) / 1e6:,.1f} MB",
            _ARTIFACTS,
        )
        for kind, folder_sizes in sorted(sizes.items())
    ]
    return pl.DataFrame(rows, schema=_FOUND, orient="row")


def _rows(report: Report) -> pl.DataFrame:
    rows = [
        ("store", "path", str(report.path), ""),
        ("store", "revision", _known(report.revision), ""),
        ("store", "schema", f"{_known(report.schema)} (this release writes {report.newest_schema})", ""),
        *(("count", name, str(count), "") for name, count in report.counts.items()),
        *((finding.level.value, "", finding.found, finding.do) for finding in report.findings),
        ("verdict", "", "sound" if report.sound else "damaged", ""),
    ]
    return pl.DataFrame(rows, schema=_FOUND, orient="row")


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)


app = typer.Typer(help="Back up the store, and restore it.", no_args_is_help=True, rich_markup_mode=None)


@app.command("backup")
def back_up(
    ctx: typer.Context,
    target: Annotated[Path, typer.Argument(help="A new folder, or an earlier backup.", show_default=False)],
    form: FormatOption = Format.TABLE,
) -> None:
    """Copy the store with its history, the grades of people and own prices, while others write.

    Later only what is new is copied. The copy is a store itself: --store shows it. Evaluations and artifacts,
    which lie beside the store, are not part of it.
    """
    context: Context = ctx.obj
    done = upkeep.backup(context.store(), target, on_wait=waiting)
    strokes = _book(context).copy_to(target / FILE)
    files = copy_prices(own_folder(context.store().path), target / OWN_FOLDER)
    judged = f"{strokes:,} strokes of people's judging" if strokes else ""
    _told(done, form, judged, text.count(files, "price file") if files else "")


@app.command("restore")
def restore_backup(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument(help="A backup.", show_default=False)],
    *,
    back: Annotated[
        bool,
        typer.Option("--back", help="Go back to the backup's revision, even if the store has a later one."),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Mend the store with a backup: replaces what is missing or damaged, deletes nothing.

    The backup's revision becomes the current one where the store has no sound one, or an older one. What goes
    out of use is kept in aside/. Grades of people and own prices come back too; others of their name stay.
    """
    context: Context = ctx.obj
    done = upkeep.restore(context.store(), source, back=back, on_wait=waiting)
    judged = bring_back(_book(context), source / FILE, back=back)
    folder = own_folder(context.store().path)
    _told(done, form, judged, bring_prices_back(folder, source / OWN_FOLDER, back=back))


def _book(context: Context) -> Book:
    return Book(book_path(context.store()))


def _told(done: upkeep.Copied, form: Format, judged: str, priced: str) -> None:
    emit(
        pl.DataFrame(
            {
                "judging": [judged or "none"],
                "prices": [priced or "none"],
                "revision": [done.revision],
                "files": [done.files],
                "copied": [done.copied],
                "mb": [done.size / 1e6],
                "set_aside": [done.aside],
            }
        ),
        form,
    )


app.command("views")(views)
