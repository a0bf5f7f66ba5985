"""The command line: global options, commands, and errors as one plain line.

Exit codes: 0 done; 1 refused input or failed run; 2 wrong usage; of evaluations also 3 stopped by the budget
and 130 interrupted; of `decide --gate` also 4, a recorded decision no longer holds; of `gate` 4, 5 and 6 by
the cause. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from core.cli import (
    cost,
    decide,
    diagnose,
    export,
    gate,
    golden,
    import_,
    mcp,
    page,
    prices,
    readers,
    router,
    score,
    sql,
    store,
    ui,
)
from core.cli.context import Context, complain
from core.cli.runs import indexes, measure, plan
from core.cli.runs import run as run_command
from core.errors import ClqError, refusal

# One line per command: its name and its function.
COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("ui", ui.run),
    ("import", import_.run),
    ("formats", import_.formats),
    ("list", store.list_),
    ("score", score.run),
    ("measures", score.listed),
    ("decide", decide.run),
    ("gate", gate.run),
    ("next", decide.evaluate_next),
    ("record", decide.record),
    ("snapshot", decide.snapshot),
    ("page", page.run),
    ("router", router.run),
    ("cost", cost.run),
    ("delete", store.delete),
    ("restore", store.restore),
    ("export", export.run),
    ("demo", run_command.demo),
    ("plan", plan.run),
    ("run", run_command.run),
    ("measure", measure.measure),
    ("resume", run_command.resume),
    ("search", run_command.search),
    ("manifest", plan.manifest),
    ("doctor", store.doctor),
    ("sql", sql.run),
    ("mcp", mcp.run),
)


class _Group(TyperGroup):
    """Turns the errors that a user can meet into a line on standard error and exit code 1."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except ClqError as error:
            complain(f"error: {error}")
            raise typer.Exit(1) from None
        except (OSError, sqlite3.Error) as error:
            said = refusal(error)
            if said is None:
                raise
            complain(f"error: {said}")
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Group,
    help="CLQ Explorer: which retrieval stack to ship, for this latency target and this budget.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def main(
    ctx: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder of the store; by default CLQ_STORE, else data/store.", readable=False),
    ] = None,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="First compare every file of the store with its checksum.")
    ] = False,
) -> None:
    """CLQ Explorer: which retrieval stack to ship, for this latency target and this budget."""
    ctx.obj = Context(store)
    if verify:
        ctx.obj.verify()


for _name, _command in COMMANDS:
    app.command(_name)(_command)
app.add_typer(prices.app, name="prices")
app.add_typer(golden.judging, name="judges")
app.add_typer(golden.app, name="golden")
app.add_typer(diagnose.app, name="diagnose")
app.add_typer(readers.app, name="readers")
app.add_typer(indexes.app, name="indexes")
store.app.command("views")(sql.views)
app.add_typer(store.app, name="store")
