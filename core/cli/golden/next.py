"""``golden next``: the passages whose grades could change the choice."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer

from core.bidi import escaped
from core.cli.answers.deciding import Question, deciding
from core.cli.output import Format, FormatOption, complain, emit
from core.errors import InputError
from core.importers.read.text import shown

_LINE = 600


@deciding
def run(
    ctx: typer.Context,
    question: Question,
    *,
    n: Annotated[int, typer.Option("--n", min=1, help="How many passages.")] = 20,
    target: Annotated[float, typer.Option(min=0, max=1, help="P(best) from which nothing is needed.")] = 0.9,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Write them down as a queue that a judge can take in the dashboard."),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say which unjudged passages to judge next: those whose grades could change the choice."""
    from core.golden.judging.book import Book  # noqa: PLC0415
    from core.views.golden.judging import book_path, propose  # noqa: PLC0415
    from core.views.golden.value import next_words, what_next  # noqa: PLC0415

    case = question.on_store(ctx.obj)
    quality = case.asked.quality
    made = replace(case, asked=replace(case.asked, noise=None)).decided()
    found = what_next(case.snapshot, made.table, made.decision, case.scope, quality, seed=case.seed)
    if found is None:
        raise InputError(
            f"No two stacks are told apart by grades of passages ({quality.name}).",
            do="Choose another measure, or import rankings and judgements.",
        )
    stack, share = found.likeliest
    rows = found.worth.rows.head(0 if share >= target else n)
    name = None
    if queue and rows.height:
        book = Book(book_path(ctx.obj.store()))
        name = propose(book, case.scope.collection_id, rows, case.scope.golden_set_id or "").queue_id
    if form is Format.JSON:
        whole = {"stack": stack, "p_best": share, "target": target, "reached": share >= target}
        whole |= {"waiting": found.worth.rows.height, "queue": name, "next": rows.to_dicts()}
        typer.echo(escaped(json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False)))
        return
    complain(shown(next_words(found, quality, target), _LINE))
    emit(rows, form, empty="Nothing to judge.")
    if name is not None:
        complain(f"Queue {name}: open Golden sets, section judge, to take it.")
