"""``switch``: whether to replace the stack that runs today, what that costs, and when it pays back.

``incumbent``: which stack runs today, kept in the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.bidi import escaped
from core.cli.base import Context
from core.cli.context import Format, FormatOption, emit
from core.cli.deciding import QuestionOptions, deciding
from core.cli.options import options
from core.decide.switching import Terms
from core.errors import InputError

if TYPE_CHECKING:
    from core.analysis.moves.replaying import Replay
    from core.analysis.workspace.view import View

ONE_TIME = {"what": pl.String, "usd": pl.Float64, "basis": pl.String}


@options(Terms, "terms", Terms())
@deciding
def run(
    ctx: typer.Context,
    question: QuestionOptions,
    terms: Mapping[str, float],
    *,
    to: Annotated[
        str | None,
        typer.Option(help="The stack to move to, in place of the rule's choice.", show_default=False),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say whether to stay with the stack that runs or to switch, by the rule of docs/switch.md."""
    from core.analysis.moves.replaying import replays  # noqa: PLC0415 - with the engines, a second
    from core.analysis.moves.switching import switch  # noqa: PLC0415
    from core.views.words.moving import answered, replayed, sentences, to_run  # noqa: PLC0415

    said = [*(question.move or ()), *(f"{name}={value:.10g}" for name, value in terms.items())]
    view = replace(question, move=said, take=to or question.take).on_page(ctx.obj)
    move = switch(view)
    if to is not None and (move.to is None or move.to["run_id"] != view.take):
        raise InputError(f"{to} is not within the limits.", do="Loosen them, or leave --to out.")
    if form is Format.JSON:
        typer.echo(escaped(json.dumps(answered(view), ensure_ascii=False, indent=2, allow_nan=False)))
        return
    if form is Format.TABLE:
        typer.echo("\n".join(filter(None, sentences(move, view.quality.name))))
    emit(pl.DataFrame(move.to_dict()["one_time"], schema=ONE_TIME), form)
    if form is Format.TABLE and (words := replayed(found := replays(view))):
        typer.echo("\n".join((words, to_run(found[0]), "", escaped(lines_of(view, found[0])))))


def lines_of(view: View, replay: Replay) -> str:
    """Return the specification that runs a replayed fusion on the workspace."""
    from core.work.sweep.form import stack_lines  # noqa: PLC0415 - loads what runs a stack

    return stack_lines(dict(replay.spec), view.scope.collection_id, view.scope.golden_set_id or "")


def incumbent(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The stack: its name, label or run.", show_default=False)
    ] = None,
    *,
    collection: Annotated[str | None, typer.Option(help="The workspace; by default the only one.")] = None,
    none: Annotated[bool, typer.Option("--none", help="No stack is known to run today.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Mark the stack that runs today, or say which one is marked; it stays marked until another is."""
    from core.work.incumbent import mark, marked, unmark  # noqa: PLC0415

    context: Context = ctx.obj
    store = context.store()
    if name is not None and none:
        raise typer.BadParameter("Give a name or --none, not both.", param_hint="NAME")
    if none:
        unmark(store, collection)
    elif name is not None:
        mark(store, collection, name)
    emit(marked(store.read(), collection), form, empty="No stack is marked as running today.")
