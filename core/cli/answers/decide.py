"""``decide``: the stack to ship under an SLA, a budget and a quality floor, with what could overturn it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.bidi import escaped
from core.cli.answers.deciding import Question, deciding
from core.cli.answers.gate import hold
from core.cli.output import Format, FormatOption, complain, emit
from core.importers.read.text import shown
from core.stats.significance.bootstrap import RESAMPLES

if TYPE_CHECKING:
    from core.report.data import Case
    from core.views.decision.verdict import Verdict

_SHOWN = 20
"""Rows of a table; JSON and CSV have all."""
_LINE = 2000


@deciding
def run(
    ctx: typer.Context,
    question: Question,
    *,
    gate: Annotated[
        Path | None,
        typer.Option(
            help="A decision record (JSON): ends with exit code 4 if its decision no longer holds. What no "
            "option says is asked as in the record."
        ),
    ] = None,
    gate_share: Annotated[
        float,
        typer.Option(min=0, max=1, help="With --gate: probability above which another stack is chosen."),
    ] = 0.8,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say which stack to ship, the runner-up, the frontier, why the others are out, and how sure this is."""
    if gate is not None:
        hold(ctx, gate, question, share=gate_share, form=form)
        return
    from core.report.data import decision_data  # noqa: PLC0415
    from core.views.decision.facts import status_rows  # noqa: PLC0415

    case = question.on_store(ctx.obj)
    found = case.decided()
    if form is Format.JSON:
        whole = decision_data(case, found)
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
        return
    rows = status_rows(found.sure_table, found.decision)
    if form is Format.CSV:
        emit(rows, form)
    else:
        _print(case, found, rows)


def _print(case: Case, found: Verdict, rows: pl.DataFrame) -> None:
    from core.decide.near import near_misses  # noqa: PLC0415
    from core.views.decision.facts import CHANCES, warnings  # noqa: PLC0415
    from core.views.decision.near import HEADING, near_rows, sentence, way_in  # noqa: PLC0415
    from core.views.decision.words import answer  # noqa: PLC0415
    from core.views.workspace.jitter import jitter_words  # noqa: PLC0415

    asked = case.asked
    said = answer(found.table, found.decision, asked.constraints, asked.quality, asked.latency)
    for words in (said.sentence, said.reason):
        typer.echo(shown(words, _LINE))
    misses = near_misses(found.table, found.decision, asked.constraints, asked.rule)
    for row in near_rows(found.table, misses):
        words = f"{HEADING}: {sentence(row, asked.quality.name)} Let in by: {way_in(row)}."
        typer.echo(shown(words, _LINE))
    jitter = jitter_words(found.table, found.decision, asked.constraints)
    typer.echo(shown(f"Latencies count as alike within {jitter}.", _LINE))
    blank = {
        name for name in (*CHANCES, "cost_missing") if name in rows.columns and rows[name].is_null().all()
    }
    known = [name for name in rows.columns if name not in {*blank, "cost_least"}]
    emit(rows.select(known).head(_SHOWN), Format.TABLE, empty="No stacks.")
    if rows.height > _SHOWN:
        typer.echo(f"{rows.height - _SHOWN:,} more with --format json or csv.")
    if "p_best" not in known:
        typer.echo("How sure this is, is unknown: there are no results per query.")
    else:
        typer.echo(
            f"p_…: shares of {RESAMPLES:,} resamples of the queries, seed {case.seed}; p_best without ties."
        )
    for words in warnings(found.sure_table, found.decision, asked):
        complain(f"warning: {shown(words, _LINE)}")
