"""Commands of work that a specification asks for and a budget limits: plan, begin, resume, status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import polars as pl
import typer

from core.cli.context import (
    BudgetOption,
    Context,
    DryRunOption,
    Format,
    FormatOption,
    SpecArgument,
    YesOption,
    complain,
    emit,
)
from core.cli.runs.evaluating import CODES, INTERRUPTED, agreed, work_of, working
from core.views.run.paid import dollars, line_rows

if TYPE_CHECKING:  # the engines take a second to load, which no other command should wait for
    from core.golden.plan import GoldenPlan
    from core.pipeline.evaluate import Status
    from core.pipeline.evaluate.launch import Launcher
    from core.pipeline.evaluate.turn import Result, Site
    from core.pipeline.sweep import Problem
    from core.prices import PriceBook
    from core.readers.plan import ReaderPlan
    from core.store import Snapshot

J = TypeVar("J")
P = TypeVar("P", bound="GoldenPlan | ReaderPlan")
P_contra = TypeVar("P_contra", contravariant=True)
J_co = TypeVar("J_co", covariant=True)


class Words(Protocol[P_contra]):
    """The sentences of a kind of work."""

    def size_of(self, made: P_contra, /) -> str:
        """Say what will be done."""

    def as_json(self, made: P_contra, /) -> dict[str, Any]:
        """Tell everything about a plan."""

    def ended(self, status: Status, /) -> str:
        """Say how it ended."""

    def table(self, known: Sequence[tuple[str, Status]], /) -> pl.DataFrame:
        """List all that were begun."""


class Read(Protocol[J_co]):
    """Reads what a specification names."""

    def __call__(
        self,
        snapshot: Snapshot,
        spec: Any,  # noqa: ANN401 - of the launcher's model
        books: Mapping[str, PriceBook],
        *,
        to_run: bool,
    ) -> tuple[J_co, list[Problem]]:
        """Return the job, and what its owner should know."""


@dataclass(frozen=True, slots=True)
class Work(Generic[J, P]):
    """A kind of paid work; its functions load the engines."""

    noun: str
    kept: str  # what becomes of one that is interrupted
    helps: Mapping[str, str]  # of each command: plan, the one that begins, resume, status
    empty: str  # said where none was begun
    launcher: Callable[[], Launcher]
    read: Read[J]
    plan: Callable[[J, Sequence[Problem]], P]
    carry_out: Callable[[Context, J, Site], Result]
    landed: Callable[[Context, J, Result], pl.DataFrame]  # what it made, as a table
    words: Words[P]


def add_commands(app: typer.Typer, work: Work[J, P]) -> None:
    """Add the four commands of a kind of work."""
    first, begins, resumes, last = work.helps.items()

    @app.command(first[0], help=first[1])
    def _plan(ctx: typer.Context, spec: SpecArgument, form: FormatOption = Format.TABLE) -> None:
        job, problems = _read(work, ctx.obj, spec, None, to_run=False)
        _show(work.words, work.plan(job, problems), form)

    @app.command(begins[0], help=f"{begins[1]}\n\n{CODES}")
    def _run(
        ctx: typer.Context,
        spec: SpecArgument,
        *,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
        budget: BudgetOption = None,
        form: FormatOption = Format.TABLE,
    ) -> None:
        job, problems = _read(work, ctx.obj, spec, budget, to_run=not dry_run)
        if dry_run:
            _show(work.words, work.plan(job, problems), form)
            return
        _complain(problems)
        if not yes and not agreed(work.plan(job, ()).usd, yes=yes):
            raise typer.Exit(1)
        _execute(work, ctx.obj, job, form)

    @app.command(resumes[0], help=f"{resumes[1]}\n\n{CODES}")
    def _resume(
        ctx: typer.Context,
        name: Annotated[
            str, typer.Argument(help="Its name or id; see the command `status`.", show_default=False)
        ],
        *,
        budget: BudgetOption = None,
        form: FormatOption = Format.TABLE,
    ) -> None:
        from core.pipeline.evaluate import folder  # noqa: PLC0415

        begun = folder.find(work.launcher().work_of(ctx.obj.store().path), name, work.noun)
        job, problems = _read(work, ctx.obj, begun.spec, budget, to_run=True)
        _complain(problems)
        _execute(work, ctx.obj, job, form)

    @app.command(last[0], help=last[1])
    def _status(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
        known = work.launcher().known(ctx.obj.store().path)
        emit(work.words.table([(one.name, one.status) for one in known]), form, empty=work.empty)


def _read(
    work: Work[J, P], context: Context, path: Path, budget: float | None, *, to_run: bool
) -> tuple[J, list[Problem]]:
    """Read a specification and what it names, with another budget where one is given."""
    from core.pipeline.sweep.load import load_as  # noqa: PLC0415

    spec = load_as(work.launcher().model, path)
    spec = spec if budget is None else spec.model_copy(update={"budget_usd": budget})
    return work.read(context.store().read(), spec, context.books(), to_run=to_run)


def _complain(problems: Sequence[Problem]) -> None:
    for problem in problems:
        complain(f"{problem.severity}: {problem}")


def _show(words: Words[P], plan: P, form: Format) -> None:
    """Print a plan, and its problems on standard error."""
    _complain(plan.problems)
    if form is Format.JSON:
        typer.echo(json.dumps(words.as_json(plan), ensure_ascii=False, indent=2, allow_nan=False))
        return
    if form is Format.TABLE:
        typer.echo(words.size_of(plan))
    if plan.lines or form is Format.CSV:
        emit(line_rows(plan), form)
    if form is Format.TABLE:
        typer.echo(dollars(plan))


def _execute(work: Work[J, P], context: Context, job: J, form: Format) -> None:
    """Do it into the store, and print what it made."""
    outcome = carried_out(
        context, work.launcher().work_of(context.store().path), work.kept,
        lambda site: work.carry_out(context, job, site), work.words.ended,
    )  # fmt: skip
    emit(work.landed(context, job, outcome), form)


def carried_out(
    context: Context,
    folder: Path,
    kept: str,
    do: Callable[[Site], Result],
    ended: Callable[[Status], str] | None = None,
) -> Result:
    """Do paid work with a bar, say how it ended, and leave with the exit code of what ended early."""
    from core.pipeline.evaluate import State  # noqa: PLC0415
    from core.pipeline.evaluate.turn import Site  # noqa: PLC0415

    with working(kept) as (tell, cancelled):
        outcome = do(Site(work=folder, shared=work_of(context), progress=tell, cancelled=cancelled))
    if ended is not None:
        complain(ended(outcome.status))
    if outcome.status.state is State.CANCELLED:
        raise typer.Exit(INTERRUPTED)
    return outcome
