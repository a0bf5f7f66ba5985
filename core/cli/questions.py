"""``golden questions``: from documents alone to a set of questions, by rules, by a model, or from a log."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.bidi import escaped
from core.cli.base import Context, complain
from core.cli.context import BudgetOption, DryRunOption, Format, FormatOption, YesOption, emit
from core.cli.runs import agreed, coded, warn
from core.cli.runs.paid import execute
from core.importers.read.text import shown
from core.work.paid import bill, line_rows
from core.work.questions import words as asking

if TYPE_CHECKING:  # the engines take a second to load, and no other command should wait for them
    from core.pipeline.evaluate.session import Result
    from core.work.questions.job import QuestionsJob
    from core.work.questions.plan import QuestionsPlan
    from core.work.questions.spec import QuestionsSpec
    from core.work.work import Work

RESUME = "Go on with a set of questions where it stopped; nothing is paid twice."
STATUS = "List the sets of questions that were begun, newest first."
_CELL = 300


def work() -> Work[QuestionsJob, QuestionsPlan, Result]:
    """Load the engines."""
    from core.work.questions.kind import QUESTIONS  # noqa: PLC0415

    return QUESTIONS


@coded
def run(
    ctx: typer.Context,
    texts: Annotated[
        str | None,
        typer.Argument(
            help="A folder of documents, a table of passages, a BEIR folder, or a stored collection.",
            show_default=False,
        ),
    ] = None,
    *,
    method: Annotated[
        str,
        typer.Option(help="headings, known-item, log, or a chat model that writes them."),
    ] = "headings",
    count: Annotated[int, typer.Option(min=1, help="How many questions.")] = 64,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder that takes them; by default one beside the store.", show_default=False),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help='What a model is asked for: fact, typed, "several passages", comparison, unanswerable; may '
            "be repeated.",
            show_default="fact",
        ),
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="With log: a table of real questions, or a stored collection.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column of that table with the questions.")] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="A list of what is masked in the log besides: a name or address a line.", exists=True
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="A model of spaCy that finds names of people in the log, which are masked."),
    ] = None,
    twins: Annotated[
        bool, typer.Option("--twins", help="Let the model say each in other words, too, as a set beside it.")
    ] = False,
    closed_book: Annotated[
        bool, typer.Option(help="Ask the model without the text, and throw out what it knows.")
    ] = True,
    name: Annotated[str | None, typer.Option(help="Of the set.", show_default="from the texts")] = None,
    language: Annotated[
        str | None, typer.Option(help="Of the texts: english, french…", show_default="by their words")
    ] = None,
    seed: Annotated[str, typer.Option(help="Of all that is drawn.")] = "questions",
    spec: Annotated[
        Path | None, typer.Option(help="A specification instead, with models of your own.", exists=True)
    ] = None,
    budget: BudgetOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Make questions from documents alone, each with the place that answers it.

    The folder that comes out is read by run, golden, import and the dashboard: run FOLDER/evaluation.toml,
    then decide.
    """
    context: Context = ctx.obj
    kind_of_work = work()
    given = {"method": method, "count": count, "seed": seed, "twins": twins, "closed_book": closed_book}
    given |= {"kinds": kind, "language": language, "out": out and str(out.absolute()), "name": name}
    masked = {"mask": mask and str(mask.absolute()), "names": names}
    given["log"] = None if log is None else {**_place(log), "column": column, **masked}
    asked = _asked(texts, spec, given)
    asked = asked if budget is None else asked.model_copy(update={"budget_usd": budget})
    job, problems = kind_of_work.read(context.store().read(), asked, context.books(), to_run=not dry_run)
    plan = kind_of_work.plan(job, problems)
    if dry_run:
        _show_plan(kind_of_work, plan, form)
        return
    warn(problems)
    complain(asking.size_of(plan))
    if not yes and not agreed(plan.usd, yes=yes):
        raise typer.Exit(1)
    execute(kind_of_work, context, job, made, form)


def _asked(texts: str | None, spec: Path | None, given: dict[str, Any]) -> QuestionsSpec:
    from core.pipeline.sweep import load_as, parse_as  # noqa: PLC0415
    from core.work.questions.spec import QuestionsSpec  # noqa: PLC0415

    if spec is not None:
        if texts is not None:
            raise typer.BadParameter("A specification names the texts already.")
        return load_as(QuestionsSpec, spec)
    if texts is None:
        raise typer.BadParameter("Name the texts, or a specification (--spec).")
    known = {key: value for key, value in given.items() if value is not None}
    known.setdefault("name", f"{Path(texts).stem or 'questions'}-{given['method']}")
    whole = {**known, "collection": _place(texts)}
    return parse_as(QuestionsSpec, json.dumps(whole, ensure_ascii=False), "json")


def _place(name: str) -> dict[str, str]:
    """Return a path if it exists, or else the stored collection of that name."""
    path = Path(name).expanduser()
    return {"path": str(path.absolute())} if path.exists() else {"stored": name}


def _show_plan(
    kind_of_work: Work[QuestionsJob, QuestionsPlan, Result], plan: QuestionsPlan, form: Format
) -> None:
    warn(plan.problems)
    if form is Format.JSON:
        names = ("count", "wanted", "stretches", "sources", "language", "shows", "needed")
        own = {name: getattr(plan, name) for name in names} | {"spread": asdict(plan.spread)}
        typer.echo(json.dumps(own | bill(plan), ensure_ascii=False, indent=2, allow_nan=False))
        return
    typer.echo(kind_of_work.size_of(plan))
    if plan.lines:
        emit(line_rows(plan), form)
    typer.echo(kind_of_work.costs(plan))


def made(context: Context, job: QuestionsJob, result: Result, form: Format) -> None:
    """Print the questions, and what to do with them."""
    del context
    from core.work.questions.folder import EVALUATION, read  # noqa: PLC0415

    folder = Path(result.stored)
    rows = asking.rows(read(folder))
    if form is Format.JSON:
        whole = {"folder": str(folder), "facts": result.status.facts, "questions": rows.to_dicts()}
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
        return
    asked = rows.filter(rows["reason"].is_null())
    emit(asked.select("query_id", "question", "type", "source", "overlap"), form)
    complain(asking.OF_LOGS if job.asked is not None else asking.GOOD_FOR)
    complain(f"Next: python -m core run {shown(folder / EVALUATION, _CELL)}")
