"""The parts shared by ``run`` and ``resume``: progress, the store as the sink, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from core.cli.base import Context, complain, waiting
from core.cli.context import Format, emit
from core.errors import BudgetError
from core.jobs import State, asked_to_stop
from core.work.bar import progressing

if TYPE_CHECKING:
    from core.pipeline.evaluate import Job, Outcome, Status
    from core.pipeline.evaluate.session import Result, Site
    from core.pipeline.sweep.problems import Problem

C = TypeVar("C", bound=Callable[..., Any])
R = TypeVar("R", bound="Result")
BUDGET, INTERRUPTED = 3, 130
CODES = """Exit codes: 0 done; 1 refused or failed, what has finished is kept; 2 wrong usage; 3 stopped by the
budget; 130 interrupted or cancelled. After 1, 3 and 130 `resume`, or the same command again, goes on and pays
for nothing twice."""


def coded(command: C) -> C:
    """Append the exit codes to a command's help."""
    command.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{CODES}"
    return command


def work_of(context: Context) -> Path:
    """Return the folder of all evaluations that write to the store."""
    from core.pipeline.evaluate.folder import EVALUATIONS  # noqa: PLC0415 - with the engines, a second

    return context.store().path.absolute().parent / EVALUATIONS


def warn(problems: Sequence[Problem]) -> None:
    """Print notes for the owner of a specification on standard error."""
    for problem in problems:
        complain(f"{problem.severity}: {problem}")


def execute(context: Context, job: Job, form: Format, on: str) -> Outcome:
    """Run an evaluation, or the rest of it, into the store, print its runs and return the outcome."""
    from core.work.sweep.kind import EVALUATION as WORK  # noqa: PLC0415 - with the engines, a second

    outcome = carried_out(context, WORK.folder, WORK.kept, partial(WORK.run, context.store(), job), on)
    _report(outcome, job, form)
    leave_if_cancelled(outcome)
    return outcome


def carried_out(context: Context, folder: str, kept: str, do: Callable[[Site], R], on: str = "") -> R:
    """Do paid work with a progress bar; exit with the code of its cause if it ends early.

    Args:
        folder: Folder of all such work, beside the store.
        kept: What is kept if it is interrupted.
        on: The cluster to use; "" = this machine.
    """
    from core.pipeline.evaluate.session import Site  # noqa: PLC0415

    store = context.store().path.absolute()
    work = store.parent / folder
    with working(kept) as (tell, cancelled):
        shared = work_of(context)
        return do(
            Site(
                work=work,
                shared=shared,
                progress=tell,
                cancelled=cancelled,
                on=on,
                on_wait=waiting,
                store=store.name,
            )
        )


def leave_if_cancelled(result: Result) -> None:
    """Exit with the code of cancelled work."""
    if result.status.state is State.CANCELLED:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def working(kept: str) -> Iterator[tuple[Callable[[Status], None], Callable[[], bool]]]:
    """Run the body with an interruptible progress bar; a failure becomes an exit code."""
    try:
        with progressing() as tell, asked_to_stop() as asked:
            yield tell, asked.is_set
    except BudgetError as error:
        complain(f"stopped: {error}")
        raise typer.Exit(BUDGET) from None
    except KeyboardInterrupt:
        complain(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None


def _report(outcome: Outcome, job: Job, form: Format) -> None:
    from core.work.sweep import into  # noqa: PLC0415

    for words in into.sentences(outcome, job):
        complain(words)
    emit(into.rows(outcome), form)


def agreed(dollars: float | None, *, yes: bool) -> bool:
    """Return whether to continue: asked at a terminal if it costs something or may do so."""
    if yes or dollars == 0 or not sys.stdin.isatty():
        return True
    words = "an unknown sum" if dollars is None else f"about ${dollars:,.4f}"
    return typer.confirm(f"This costs {words}. Go on?", err=True)
