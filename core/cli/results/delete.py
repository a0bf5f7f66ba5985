"""``delete RUN…``: hide runs, golden sets or collections; ``restore`` brings them back."""

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
        list[str] | None, typer.Argument(help="Run ids, or labels of one run.", show_default=False)
    ] = None,
    *,
    golden_set: GoldenSets = None,
    collection: Collections = None,
    dry_run: DryRun = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Delete runs, golden sets or collections; earlier revisions show them, and restore brings them back.

    A collection takes its runs, golden sets, queries and passages along; restoring it brings back just those.
    """
    context: Context = ctx.obj
    named: dict[Kind, list[str]] = {
        "run": runs or [],
        "golden_set": golden_set or [],
        "collection": collection or [],
    }
    turn(context, "delete", named, form, dry_run=dry_run)
