"""``doctor``: is the store whole, what does it hold, what is missing."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, waiting
from core.cli.output import Format, FormatOption, emit
from core.cli.runs.evaluating import work_of
from core.store.upkeep.doctor import Report, examine
from core.store.upkeep.repair import repair as mend
from core.views import text

_SCHEMA = dict.fromkeys(("kind", "what", "found", "do"), pl.String)
_ARTIFACTS = "Results do not need them; the next evaluation that does builds them again."


def run(
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
    done = mend(context.store(), on_wait=waiting) if repair else []
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
