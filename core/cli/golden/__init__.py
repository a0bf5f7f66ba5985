"""Commands of golden sets: ``golden …``."""

from __future__ import annotations

from collections.abc import Callable

import typer

from core.cli.golden import simulate

# One line per command: its name and its function.
COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("simulate", simulate.run),)

app = typer.Typer(help="Build, judge and refine golden sets.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def main() -> None:
    """Build, judge and refine golden sets."""


for _name, _command in COMMANDS:
    app.command(_name)(_command)
