"""``store backup DST`` and ``store restore SRC``: copies of the whole store, verified by checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, waiting
from core.cli.output import Format, FormatOption, emit
from core.store.upkeep import backup as copies

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
    _told(copies.backup(context.store(), target, on_wait=waiting), form)


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
    _told(copies.restore(context.store(), source, back=back, on_wait=waiting), form)


def _told(done: copies.Copied, form: Format) -> None:
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
