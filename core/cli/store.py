"""``store backup DST`` and ``store restore SRC``: copies of the whole store, verified by checksums.

``doctor``: is the store whole, what does it hold, what is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, Format, FormatOption, emit, waiting
from core.cli.runs.evaluating import work_of
from core.store import upkeep
from core.store.doctor import Report, examine
from core.views import text

_SCHEMA = dict.fromkeys(("kind", "what", "found", "do"), pl.String)
_ARTIFACTS = "Results do not need them; the next evaluation that does builds them again."


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
    mended = pl.DataFrame([("repair", "", each, "") for each in done], schema=_SCHEMA, orient="row")
    emit(pl.concat([mended, _artifacts(context), _rows(report)]), form)
    if not report.sound:
        raise typer.Exit(1)


def _artifacts(context: Context) -> pl.DataFrame:
    """What evaluations have built and keep beside the store: how many folders by kind, and their size."""
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415 - with the engines, a second

    sizes: dict[str, list[int]] = {}
    for folder in (work_of(context) / ARTIFACTS).glob("[!.]*-*/"):
        total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        sizes.setdefault(folder.name.rpartition("-")[0], []).append(total)
    rows = [
        ("artifacts", kind, f"{text.count(len(found), 'folder')}, {sum(found) / 1e6:,.1f} MB", _ARTIFACTS)
        for kind, found in sorted(sizes.items())
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _rows(report: Report) -> pl.DataFrame:
    rows = [
        ("store", "path", str(report.path), ""),
        ("store", "revision", _known(report.revision), ""),
        ("store", "schema", f"{_known(report.schema)} (this release writes {report.newest_schema})", ""),
        *(("count", name, str(count), "") for name, count in report.counts.items()),
        *((each.level.value, "", each.found, each.do) for each in report.findings),
        ("verdict", "", "sound" if report.sound else "damaged", ""),
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)


app = typer.Typer(help="Back up the store, and restore it.", no_args_is_help=True, rich_markup_mode=None)


@app.command("backup")
def backup(
    ctx: typer.Context,
    target: Annotated[Path, typer.Argument(help="A new folder, or an earlier backup.", show_default=False)],
    form: FormatOption = Format.TABLE,
) -> None:
    """Copy the store with its history into a folder, while others write; a later one copies what is new.

    The copy is a store itself: --store shows it. Evaluations, artifacts and own prices, which lie beside the
    store, are not part of it.
    """
    context: Context = ctx.obj
    _told(upkeep.backup(context.store(), target, on_wait=waiting), form)


@app.command("restore")
def restore(
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
    out of use is kept in aside/.
    """
    context: Context = ctx.obj
    _told(upkeep.restore(context.store(), source, back=back, on_wait=waiting), form)


def _told(done: upkeep.Copied, form: Format) -> None:
    emit(
        pl.DataFrame(
            {
                "revision": [done.revision],
                "files": [done.files],
                "copied": [done.copied],
                "mb": [done.size / 1e6],
                "set_aside": [done.aside],
            }
        ),
        form,
    )
