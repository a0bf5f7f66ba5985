"""``restore RUN…``: bring deleted runs, golden sets or collections back."""

from __future__ import annotations

from typing import Annotated

import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption
from core.cli.results.turning import Collections, DryRun, GoldenSets, turn
from core.store import Kind


def run(
    ctx: typer.Context,
    runs: Annotated[
        list[str] | None, typer.Argument(help="Ids or labels of deleted runs.", show_default=False)
    ] = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Restore deleted runs, golden sets or collections, with what their deletion hid."""
    context: Context = ctx.obj
    named: dict[Kind, list[str]] = {
        "run": runs or [],
        "golden_set": golden_set or [],
        "collection": collection or [],
    }
    turn(context, "restore", named, form, dry_run=dry_run)
