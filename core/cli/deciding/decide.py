"""``decide``: the stack to ship under an SLA, a budget and a quality floor, and what could overturn it.

``next``: the stacks to evaluate next.

``record PATH…`` and ``snapshot PATH``: a decision, or a whole workspace, as files for others.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.bidi import escaped
from core.cli.base import complain
from core.cli.context import Format, FormatOption, emit, lay
from core.cli.deciding import QuestionOptions, deciding
from core.cli.deciding.gate import compared
from core.files import write_out
from core.importers.read.text import shown

if TYPE_CHECKING:
    from core.analysis.workspace.view import View
    from core.report.data import Verdict


FAILED = 4  # Exit code if a decision no longer holds
_LINE = 2000
_LONGEST = 600


def hold(ctx: typer.Context, path: Path, question: QuestionOptions, *, share: float, form: Format) -> None:
    """Compare today with a record; print one line if its decision holds, otherwise a table, and exit."""
    held = compared(ctx, path, question, share=share)
    if form is Format.JSON:
        whole = {
            "holds": held.holds,
            "stack": held.was.chosen.stack,
            "share": share,
            "findings": held.findings.to_dicts(),
        }
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
    elif form is Format.CSV:
        emit(held.findings, form)
    else:
        typer.echo(shown(held.sentence, _LINE))
        if not held.holds:
            emit(held.findings, form)
    if not held.holds:
        raise typer.Exit(FAILED)


@deciding
def run(
    ctx: typer.Context,
    question: QuestionOptions,
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
    wide: Annotated[
        bool, typer.Option("--wide", help="Show every column of the table, the probabilities included.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say which stack to ship, the runner-up, the frontier, why the others are out, and how sure this is."""
    if gate is not None:
        hold(ctx, gate, question, share=gate_share, form=form)
        return
    from core.analysis.status import status_rows  # noqa: PLC0415
    from core.report.data import decision_data, verdict  # noqa: PLC0415

    view = question.on_page(ctx.obj)
    outcome = verdict(view)
    if form is Format.JSON:
        whole = decision_data(view, outcome)
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
        return
    if form is Format.CSV:
        emit(status_rows(outcome.sure_table, outcome.decision), form)
    else:
        _print(view, outcome, wide=wide)


def _print(view: View, outcome: Verdict, *, wide: bool) -> None:
    from core.analysis.workspace.figures.latencies import jitter_words  # noqa: PLC0415
    from core.analysis.workspace.noise import refusal  # noqa: PLC0415
    from core.analysis.workspace.sure import draws  # noqa: PLC0415
    from core.report.data import judge_noise  # noqa: PLC0415
    from core.report.plain import pieces  # noqa: PLC0415
    from core.report.words import NO_NOISE  # noqa: PLC0415
    from core.views.confidence.sections import every_stack  # noqa: PLC0415
    from core.views.decision.words import answer  # noqa: PLC0415
    from core.views.words.facts import warnings  # noqa: PLC0415
    from core.views.words.near import HEADING, near_rows, sentence, way_in  # noqa: PLC0415

    asked = view
    said = answer(asked)
    for words in (said.sentence, said.reason):
        typer.echo(shown(words, _LINE))
    for row in near_rows(
        outcome.table, outcome.decision, asked.constraints, asked.rule, paired=outcome.paired
    ):
        words = f"{HEADING}: {sentence(row, asked.quality.name)} Let in by: {way_in(row)}."
        typer.echo(shown(words, _LINE))
    jitter = jitter_words(outcome.table, outcome.decision, asked.constraints)
    typer.echo(shown(f"Latencies count as alike within {jitter}.", _LINE))
    table = every_stack(view, outcome.decision, outcome.sure_table, wide=wide)
    lay(pieces([table], more="; --format json or csv has all"), wide=wide)
    if outcome.chances["p_best"].is_null().all():
        typer.echo("How sure this is, is unknown: there are no results per query.")
    else:
        drawn = judge_noise(view, outcome)
        typer.echo(f"Chances: shares of {draws(view) or 0:,} draws of the queries, seed {view.seed}.")
        typer.echo(shown(f"Judge noise: {(drawn or NO_NOISE)['in_words']}", _LINE))
    if asked.noise is not None and outcome.noise is None:
        why = refusal(view.snapshot, outcome.table, view.scope, asked.quality)
        complain(f"warning: judge noise is left out: {why or 'no passage was judged by both'}.")
    for words in warnings(outcome.sure_table, outcome.decision, asked):
        complain(f"warning: {shown(words, _LINE)}")


@deciding
def evaluate_next(
    ctx: typer.Context, question: QuestionOptions, *, form: FormatOption = Format.TABLE
) -> None:
    """Say which stacks that nobody has evaluated to evaluate next: modelled from those in the store."""
    from core.report.data import verdict  # noqa: PLC0415
    from core.views.confidence.words import next_stack_words  # noqa: PLC0415
    from core.views.confidence.worth import missing_model, next_rows  # noqa: PLC0415

    view = question.on_page(ctx.obj)
    outcome = verdict(view)
    rows = next_rows(outcome.table, outcome.decision, view.constraints)
    complain(shown(next_stack_words(rows), _LONGEST))
    missing = missing_model()
    if missing is not None:
        complain(missing)
    emit(rows, form, empty="No stack to add.")


DashboardOption = Annotated[
    str,
    typer.Option(
        "--dashboard",
        help="Address of the dashboard that the link in the file opens; none is written where others cannot "
        "open it.",
    ),
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace a file that is there.")]


@deciding
def record(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="New files: .html, .md or .json.", show_default=False),
    ],
    question: QuestionOptions,
    *,
    dashboard: DashboardOption = "http://localhost:8501/",
    replace_: ReplaceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write the decision with its evidence as one HTML file that needs no network, as Markdown or as JSON."""
    from core.report.data import verdict  # noqa: PLC0415
    from core.report.files import ENDINGS, destination, write_record  # noqa: PLC0415

    for path in paths:
        destination(path, ENDINGS, overwrite=replace_)
    view = question.on_page(ctx.obj)
    rows = write_record(paths, view, verdict(view), dashboard=dashboard, overwrite=replace_)
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)


@deciding
def snapshot(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="A new file: .html.", show_default=False)],
    question: QuestionOptions,
    *,
    dashboard: DashboardOption = "http://localhost:8501/",
    replace_: ReplaceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write a workspace as one HTML file: the answer, frontier, headroom, K curves, stacks and evidence."""
    from core.report.data import verdict  # noqa: PLC0415
    from core.report.files import destination, pinned_link, snapshot_file  # noqa: PLC0415

    destination(path, (".html",), overwrite=replace_)
    view = question.on_page(ctx.obj)
    address = pinned_link(view, dashboard)
    text = snapshot_file(view, verdict(view), address=address, made_at=datetime.now(UTC))
    rows = [(str(path), write_out(path, text))]
    emit(pl.DataFrame(rows, schema=["written", "bytes"], orient="row"), form)
