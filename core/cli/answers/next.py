"""``next``: the stacks to evaluate next."""

from __future__ import annotations

import typer

from core.cli.answers.deciding import Question, deciding
from core.cli.output import Format, FormatOption, complain, emit
from core.importers.read.text import shown

_LINE = 600


@deciding
def run(ctx: typer.Context, question: Question, *, form: FormatOption = Format.TABLE) -> None:
    """Say which stacks that nobody has evaluated to evaluate next: modelled from those in the store."""
    from core.views.confidence.words import next_stack_words  # noqa: PLC0415
    from core.views.confidence.worth import missing_model, next_rows  # noqa: PLC0415

    case = question.on_store(ctx.obj)
    made = case.decided()
    rows = next_rows(made.table, made.decision, case.asked.constraints)
    complain(shown(next_stack_words(rows), _LINE))
    missing = missing_model()
    if missing is not None:
        complain(missing)
    emit(rows, form, empty="No stack to add.")
