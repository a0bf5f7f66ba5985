"""``decide --gate RECORD``: whether a recorded decision still holds, for a job that asks every night."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import typer

from core.bidi import escaped
from core.cli.answers.deciding import Best, Judged, Of, On, Question
from core.cli.output import Format, complain, emit
from core.errors import InputError
from core.importers.read.jsons import parsed
from core.importers.read.text import shown

if TYPE_CHECKING:
    from core.report.gate import Recorded

FAILED = 4
"""Exit code of a decision that no longer holds."""
_LINE = 2000


def hold(ctx: typer.Context, path: Path, question: Question, *, share: float, form: Format) -> None:
    """Compare today with a record; one line where its decision holds, else a table and `FAILED`."""
    from core.report.gate import answer, broken, recorded  # noqa: PLC0415

    was = recorded(parsed(_read(path), path.name), path.name)
    case = _asked_again(ctx, question, was).on_store(ctx.obj)
    if was.command is None:
        complain("warning: the record leaves out what does not compare in a way that no option repeats.")
    found = case.decided()
    findings = broken(was, found, case.asked, share=share)
    holds = findings.is_empty()
    if form is Format.JSON:
        whole = {"holds": holds, "stack": was.chosen.stack, "share": share, "findings": findings.to_dicts()}
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
    elif form is Format.CSV:
        emit(findings, form)
    elif holds:
        typer.echo(shown(answer(was, found, case.asked), _LINE))
    else:
        typer.echo(shown(f"No longer holds: {was.chosen.stack}.", _LINE))
        emit(findings, form)
    if not holds:
        raise typer.Exit(FAILED)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The record cannot be read: {error.strerror}.",
            where=shown(path, 200),
            do="Give the JSON that `record` wrote.",
        ) from None


def _asked_again(ctx: typer.Context, question: Question, was: Recorded) -> Question:
    """The question of the record, with the options that were given instead."""
    asked = was.question
    known = ctx.obj.store().read(question.revision).runs(asked.collection)
    named = known.filter(pl.col("run_id").is_in(asked.run))["run_id"].to_list()
    recorded: dict[str, Any] = {
        **{name: getattr(asked, name) for name in vars(question).keys() & type(asked).model_fields},
        "on": On(asked.on),
        "latency": Of(asked.latency),
        "rule": Best(asked.rule),
        "judged": Judged(asked.judged),
        "runs": () if _given(ctx, "origin") else tuple(named or asked.run),
    }
    return replace(
        question,
        **{name: value for name, value in recorded.items() if not _given(ctx, name.replace("runs", "run"))},
    )


def _given(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name != "DEFAULT"
