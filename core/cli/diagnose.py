"""``diagnose``: the effect of names and of noise on an embedder.

``diagnose names`` measures how much of a match comes from the name, and which forms of it survive;
``diagnose questions`` measures the effect of other names in a collection's questions on D_name and quality.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.analysis.workspace.resolve import quality_of, scope_of
from core.cli.base import Context, complain
from core.cli.context import Format, FormatOption, YesOption, emit
from core.cli.noise import GoldenOption, MeasureOption, NoiseCollection, noise, robust
from core.cli.runs import agreed, coded, work_of
from core.cli.runs.paid import add_resume, execute
from core.errors import InputError
from core.prices import DEFAULT_BOOK, PriceBook
from core.records import JsonMap
from core.work.names import stored, words
from core.work.paid import line_rows

if TYPE_CHECKING:
    from core.diagnostics.names.margins import NamedQuestion
    from core.pipeline.evaluate.session import Result
    from core.work.names.job import NamesJob, NamesPlan
    from core.work.work import Work


app = typer.Typer(
    help="Find out what an embedder makes of names and of noise.", no_args_is_help=True, rich_markup_mode=None
)
_RESUME = "Go on with a diagnosis of names where it stopped; nothing is paid twice."


@app.command("names")
@coded
def run(
    ctx: typer.Context,
    *,
    embedder: Annotated[list[str] | None, typer.Option(help="Of the catalogue; may be repeated.")] = None,
    dim: Annotated[list[int] | None, typer.Option(help="Dimensions; may be repeated.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="en or fr; may be repeated.")] = None,
    entities: Annotated[
        Path | None, typer.Option(help="A table of your own: entity, topic, title.", exists=True)
    ] = None,
    collection: Annotated[
        str | None, typer.Option(help="A stored collection instead: sources as names, titles as topics.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often bundles are drawn anew.")] = 15,
    queries: Annotated[int, typer.Option(min=1, help="Bundles of a run.")] = 100,
    seed: Annotated[str, typer.Option(help="Of all that is drawn.")] = "names",
    spec: Annotated[
        Path | None, typer.Option(help="A specification instead, with models of your own.", exists=True)
    ] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="The most dollars in all.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend nothing.")] = False,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Measure how embedders tell names apart; the same command goes on where it was stopped."""
    # Imported here as the engines take a second to load, and no other command should wait for them.
    from core.pipeline.sweep import load_as  # noqa: PLC0415
    from core.work.names.job import NamesSpec  # noqa: PLC0415

    context: Context = ctx.obj
    if spec is None:
        unknown = [name for name in language or () if name not in ("en", "fr")]
        if unknown:
            problem = f"There are no phrases in {unknown[0]!r}."
            raise InputError(problem, where="--language", do="Name en or fr.")
        if entities is not None and collection is not None:
            raise InputError("Names come from one place.", do="Give one of --entities and --collection.")
        own = {} if entities is None else {"entities": str(entities.absolute())}
        sizes = {"collection": collection, "runs": runs, "queries": queries, "seed": seed, **own}
        embedders = [{"name": name, "dim": dim or []} for name in embedder or ["wordllama"]]
        asked = NamesSpec.model_validate({"embedder": embedders, "language": language or ["en"], **sizes})
    elif embedder or dim or language or entities or collection:
        raise InputError("A specification says that already.", where="--spec", do="Give one or the other.")
    else:
        asked = load_as(NamesSpec, spec)
    asked = asked if budget is None else asked.model_copy(update={"budget_usd": budget})
    work = _work()
    job, _ = work.read(context.store().read(), asked, context.books(), to_run=not dry_run)
    if dry_run:
        _show_plan(work.plan(job, ()), form)
        return
    if not yes and not agreed(work.plan(job, ()).usd, yes=yes):
        raise typer.Exit(1)
    execute(work, context, job, _measured, form)


def _show_plan(plan: NamesPlan, form: Format) -> None:
    if form is Format.JSON:
        data = {
            "texts": plan.texts,
            "usd": plan.usd,
            "limit": plan.limit,
            "lines": line_rows(plan).to_dicts(),
        }
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
        return
    if plan.lines:
        emit(line_rows(plan), form)
    complain(words.size_of(plan))


def _work() -> Work[NamesJob, NamesPlan, Result]:
    from core.work.names.kind import NAMES  # noqa: PLC0415

    return NAMES


def _measured(context: Context, job: NamesJob, _: Result, form: Format) -> None:
    from core.views.diagnostics.names import as_json  # noqa: PLC0415
    from core.work.names.job import collection_id  # noqa: PLC0415

    names = [
        collection_id(one.model, one.dim, language, job.spec)
        for one in job.embedders
        for language in job.works
    ]
    data = as_json(context.store().read().diagnostics(names))
    if form is Format.JSON:
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
        return
    for check in data["checks"]:
        who = f"{check['embedder']} {check['dim']} d, {check['language']}"
        state = {True: "passed", False: "FAILED", None: "not applicable"}[check["passed"]]
        complain(f"check {check['name']} of {who}: {state}")
    emit(pl.DataFrame(data["summary"], infer_schema_length=None), form)


add_resume(app, "resume", _RESUME, _work, _measured)


@app.command("questions")
def in_questions(
    ctx: typer.Context,
    *,
    collection: NoiseCollection = None,
    golden_set: GoldenOption = None,
    measure: MeasureOption = "N-Recall4+@10",
    queries: Annotated[int, typer.Option(min=1, help="The most questions that D_name is measured on.")] = 300,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print what other names in questions take of quality and of D_name, stack by stack."""
    # Imported here as they take a second to load, and no other command should wait for them.
    from core.diagnostics.names.margins import questions  # noqa: PLC0415
    from core.pipeline.evaluate.session import REPLIES  # noqa: PLC0415
    from core.providers.calls import Journal  # noqa: PLC0415
    from core.providers.embed import make_embedder  # noqa: PLC0415
    from core.views.diagnostics import asked_names  # noqa: PLC0415
    from core.views.diagnostics.asked_names import NO_RUNS, paper  # noqa: PLC0415

    context: Context = ctx.obj
    store = context.store()
    snapshot, quality = store.read(), quality_of(measure)
    scope = scope_of(snapshot, collection, golden_set, ())
    renamed = asked_names.renamed(snapshot, scope, quality)
    if not renamed:
        complain(NO_RUNS.replace("`", ""))
    wanted = asked_names.embedders(snapshot, renamed)
    asked = questions(renamed.asked, renamed.names, most=queries)
    plan = _asked_plan(asked, wanted, context.books()[DEFAULT_BOOK])
    if dry_run:
        _show_plan(plan, form)
        return
    if not agreed(plan.usd, yes=yes):
        raise typer.Exit(1)
    journal = Journal(work_of(context) / REPLIES)
    try:
        margins = asked_names.margins(
            asked, wanted, lambda name, dim: make_embedder(name, dim, journal=journal)
        )
    finally:
        journal.close()
    if margins.height:
        stored.store_results(store, asked_names.batch_of(scope, margins))
    rows = asked_names.side_by_side(renamed, margins)
    if form is Format.JSON:
        data = {
            "measure": quality.name, "questions": len(renamed.gathered.query_ids), "d_name_on": len(asked),
            "rows": rows.to_dicts(), "paper": paper(),
        }  # fmt: skip
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
        return
    emit(rows.with_columns(pl.col(pl.Float64).round(4)), form)


def _asked_plan(
    asked: Sequence[NamedQuestion], wanted: Mapping[tuple[str, int], Mapping[str, JsonMap]], book: PriceBook
) -> NamesPlan:
    from core.diagnostics.names.margins import texts_of  # noqa: PLC0415
    from core.pipeline.sweep.known import KnownNames  # noqa: PLC0415
    from core.pipeline.sweep.plan import Line, embedded_lines  # noqa: PLC0415
    from core.providers.base import Purpose  # noqa: PLC0415
    from core.work.names.job import NamesPlan  # noqa: PLC0415

    lines: list[Line] = []
    count, known = 0, KnownNames()
    for (name, _), ways in wanted.items():
        for purpose, texts in zip((Purpose.QUERY, Purpose.PASSAGE), texts_of(asked, ways), strict=True):
            lines += embedded_lines(("embed questions", name, purpose), sorted(texts), known, book)
            count += len(texts)
    return NamesPlan(lines=tuple(lines), limit=None, texts=count)


app.command("noise")(noise)
app.command("robust")(robust)
