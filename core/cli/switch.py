"""``switch``: whether to replace the deployed stack, what that costs, and when it pays back."""

from __future__ import annotations

import json
from typing import Annotated

import polars as pl
import typer

from core.bidi import escaped
from core.cli.context import Format, FormatOption, emit
from core.cli.deciding import Question, deciding


@deciding
def run(
    ctx: typer.Context,
    question: Question,
    *,
    incumbent: Annotated[str, typer.Option(help="The stack that runs today: its name, or its run.")],
    queries_per_month: Annotated[float | None, typer.Option(min=0, help="How many are asked.")] = None,
    passages: Annotated[int | None, typer.Option(min=1, help="By default those of the collection.")] = None,
    tokens_per_passage: Annotated[
        float | None, typer.Option(min=0, help="What embedding is paid by.")
    ] = None,
    margin: Annotated[float, typer.Option(min=0, help="What a move must surely bring, in quality.")] = 0.0,
    months: Annotated[float, typer.Option(min=0, help="Within which a move must have paid back.")] = 24.0,
    weeks_both: Annotated[float, typer.Option(min=0, help="Weeks in which both stacks run.")] = 2.0,
    engineering_days: Annotated[float, typer.Option(min=0, help="Days of work.")] = 0.0,
    usd_per_day: Annotated[float | None, typer.Option(min=0, help="What a day costs.")] = None,
    evaluation_usd: Annotated[float, typer.Option(min=0, help="Of measuring and judging.")] = 0.0,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say whether to stay with the stack that runs or to switch, by the rule of docs/switch.md."""
    from core.analysis.switching import Corpus, switch  # noqa: PLC0415 - with the engines, a second
    from core.decide.switching import Terms  # noqa: PLC0415
    from core.views.what_if.moving import sentences  # noqa: PLC0415

    terms = Terms(
        margin=margin,
        months=months,
        queries_per_month=queries_per_month,
        weeks_both=weeks_both,
        engineering_days=engineering_days,
        usd_per_day=usd_per_day,
        evaluation_usd=evaluation_usd,
    )
    view = question.on_page(ctx.obj)
    corpus = Corpus(passages=passages, tokens_per_passage=tokens_per_passage)
    move = switch(view, incumbent, terms, corpus)
    if form is Format.JSON:
        typer.echo(escaped(json.dumps(move.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)))
        return
    if form is Format.TABLE:
        typer.echo("\n".join(filter(None, sentences(move, view.quality.name))))
    emit(pl.DataFrame(move.to_dict()["one_time"], schema=ONE_TIME), form)


ONE_TIME = {"what": pl.String, "usd": pl.Float64, "basis": pl.String}
