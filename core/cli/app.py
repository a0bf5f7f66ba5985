"""The command line: global options, commands, and errors as one plain line.

Exit codes: 0 done; 1 refused input or failed run; 2 wrong usage; for evaluations also 3 stopped by the budget
and 130 interrupted; for `decide --gate` also 4, a recorded decision no longer holds; for `gate` 4, 5 and 6 by
cause. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from core import __version__
from core.cli.base import JSON_VERSION, Context, complain
from core.cli.usage import explained
from core.errors import ClqError, DiskError, NothingKnownError, refusal
from core.paths import USUAL_STORE

# One line per command: its name, and its module in this package and function.
COMMANDS: tuple[tuple[str, str], ...] = (
    ("ui", "ui:run"),
    ("import", "import_:run"),
    ("formats", "import_:formats"),
    ("list", "store:list_"),
    ("score", "score:run"),
    ("measures", "score:listed"),
    ("models", "models:run"),
    ("plugins", "plugins:run"),
    ("decide", "deciding.decide:run"),
    ("incumbent", "deciding.switch:incumbent"),
    ("switch", "deciding.switch:run"),
    ("gate", "deciding.gate:run"),
    ("compare", "page:compare"),
    ("next", "deciding.decide:evaluate_next"),
    ("record", "deciding.decide:record"),
    ("snapshot", "deciding.decide:snapshot"),
    ("page", "page:run"),
    ("router", ".contrib.router.command:run"),
    ("cost", "cost:run"),
    ("delete", "store:delete"),
    ("restore", "store:restore"),
    ("export", "export:run"),
    ("demo", "runs.run:demo"),
    ("plan", "runs.plan:run"),
    ("run", "runs.run:run"),
    ("measure", "runs.measure:measure"),
    ("resume", "runs.run:resume"),
    ("search", "runs.run:search"),
    ("manifest", "runs.plan:manifest"),
    ("doctor", "store:doctor"),
    ("sql", "sql:run"),
    ("mcp", "mcp:run"),
)
GROUPS: tuple[tuple[str, str], ...] = (
    ("prices", "prices:app"),
    ("judges", "golden:judging"),
    ("golden", "golden:app"),
    ("diagnose", "diagnose:app"),
    ("readers", "readers:app"),
    ("indexes", "runs.indexes:app"),
    ("store", "store:app"),
)
_JSON = "--json-version"
NOTHING_KNOWN = 7  # Exit code if a limit or the rule needs a number that no stack has


class _Commands(Mapping[str, Any]):
    """Commands by name, each loaded on demand, as loading all takes two seconds."""

    def __init__(self) -> None:
        self._places = dict((*COMMANDS, *GROUPS))
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's own types are private
        if name not in self._made:
            module, _, attribute = self._places[name].partition(":")
            self._made[name] = _made(
                name, getattr(importlib.import_module(f".{module}", __package__), attribute)
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _made(name: str, found: Any) -> Any:  # noqa: ANN401
    if isinstance(found, typer.Typer):
        command: Any = get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(name)(found)
        command = get_command(alone)
    command.name = name
    return command


def _damaged(error: Exception) -> ClqError | None:
    """Return an error about a damaged file of started work beside the store, or None for other errors."""
    if isinstance(error, sqlite3.DatabaseError | IsADirectoryError):
        found = f"A file of an evaluation beside the store is damaged: {error}."
        return DiskError(found, do="Move its folder aside, and begin it again.")
    return None


class _Group(TyperGroup):
    """Turns user-facing errors into a line on standard error and exit code 1."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        return list(self.commands)

    def make_context(self, *given: Any, **options: Any) -> Any:  # noqa: ANN401
        with explained():
            return super().make_context(*given, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        written = [arg.partition("=")[0] for arg in args]
        if _JSON in written:  # which may follow the command, as --format does
            at = written.index(_JSON)
            after = at + 1 + (args[at] == _JSON)
            args = [*args[at:after], *args[:at], *args[after:]]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            with explained():
                return super().invoke(ctx)
        except ClqError as error:
            complain(f"error: {error}")
            raise typer.Exit(NOTHING_KNOWN if isinstance(error, NothingKnownError) else 1) from None
        except (OSError, sqlite3.Error) as error:
            said = refusal(error) or _damaged(error)
            if said is None:
                raise
            complain(f"error: {said}")
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Group,
    help="CLQ Explorer: which retrieval stack to ship, for this latency target and this budget.",
    no_args_is_help=True,
    add_completion=__name__.startswith("clq."),  # a checkout has no command of one word to complete
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    ctx: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(help=f"Folder of the store; by default CLQ_STORE, else {USUAL_STORE}.", readable=False),
    ] = None,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="First compare every file of the store with its checksum.")
    ] = False,
    json_version: Annotated[
        int,
        typer.Option(
            _JSON,
            min=1,
            max=2,
            envvar="CLQ_JSON_VERSION",
            help="Shape of tables as JSON: 2, an object with rows, as the next release prints; 1, a list.",
        ),
    ] = 1,
    version: Annotated[
        bool, typer.Option("--version", help="Say the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """CLQ Explorer: which retrieval stack to ship, for this latency target and this budget."""
    del version
    ctx.obj = Context(store)
    JSON_VERSION.set(json_version)
    if verify:
        ctx.obj.verify()
