"""``diagnose questions``: what other names in a collection's questions take of D_name and of quality."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.cli.answers.deciding import quality_of, workspace
from core.cli.context import Context
from core.cli.diagnose.noise import CollectionOption, GoldenOption, MeasureOption
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs.evaluating import agreed, work_of
from core.prices import DEFAULT_BOOK, PriceBook
from core.records import JsonMap

if TYPE_CHECKING:
    from core.diagnostics.names.asked import Question
    from core.diagnostics.names.job import NamesPlan


def run(
    ctx: typer.Context,
    *,
    collection: CollectionOption = None,
    golden_set: GoldenOption = None,
    measure: MeasureOption = "N-Recall4+@10",
    queries: Annotated[int, typer.Option(min=1, help="The most questions that D_name is measured on.")] = 300,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print what other names in questions take of quality and of D_name, stack by stack."""
    # Here because they take a second to load, which no other command should wait for.
    from core.cli.diagnose.names import show_plan  # noqa: PLC0415
    from core.diagnostics.names.asked import questions  # noqa: PLC0415
    from core.pipeline.evaluate.turn import REPLIES  # noqa: PLC0415
    from core.providers.calls import Journal  # noqa: PLC0415
    from core.providers.embed import make_embedder  # noqa: PLC0415
    from core.views.diagnostics import landing, named_page  # noqa: PLC0415
    from core.views.diagnostics.named_page import NO_RUNS, paper  # noqa: PLC0415

    context: Context = ctx.obj
    store = context.store()
    snapshot, quality = store.read(), quality_of(measure)
    scope = workspace(snapshot, collection, golden_set, ())
    found = named_page.renamed(snapshot, scope, quality)
    if not found:
        complain(NO_RUNS.replace("`", ""))
    wanted = named_page.embedders(snapshot, found)
    asked = questions(found.asked, found.names, most=queries)
    plan = _plan(asked, wanted, context.books()[DEFAULT_BOOK])
    if dry_run:
        show_plan(plan, form)
        return
    if not agreed(plan.usd, yes=yes):
        raise typer.Exit(1)
    journal = Journal(work_of(context) / REPLIES)
    try:
        margins = named_page.margins(
            asked, wanted, lambda name, dim: make_embedder(name, dim, journal=journal)
        )
    finally:
        journal.close()
    if margins.height:
        landing.land(store, named_page.batch_of(scope, margins))
    rows = named_page.side_by_side(found, margins)
    if form is Format.JSON:
        told = {
            "measure": quality.name, "questions": len(found.gathered.query_ids), "d_name_on": len(asked),
            "rows": rows.to_dicts(), "paper": paper(),
        }  # fmt: skip
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2, allow_nan=False))
        return
    emit(rows.with_columns(pl.col(pl.Float64).round(4)), form)


def _plan(
    asked: Sequence[Question], wanted: Mapping[tuple[str, int], Mapping[str, JsonMap]], book: PriceBook
) -> NamesPlan:
    """What embedding the questions in all forms, and the passages, takes."""
    from core.diagnostics.names.asked import texts_of  # noqa: PLC0415
    from core.diagnostics.names.job import NamesPlan  # noqa: PLC0415
    from core.pipeline.sweep.known import Known  # noqa: PLC0415
    from core.pipeline.sweep.plan import Line, embedded_lines  # noqa: PLC0415
    from core.providers.base import Purpose  # noqa: PLC0415

    lines: list[Line] = []
    count, known = 0, Known()
    for (name, _), ways in wanted.items():
        for purpose, texts in zip((Purpose.QUERY, Purpose.PASSAGE), texts_of(asked, ways), strict=True):
            lines += embedded_lines(("embed questions", name, purpose), sorted(texts), known, book)
            count += len(texts)
    return NamesPlan(lines=tuple(lines), limit=None, texts=count)
