"""``measure MODULE:CALLABLE | URL``: a custom pipeline as a stack, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import polars as pl
import typer

from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import Latency, Scope
from core.cli import runs
from core.cli.base import Context, complain, require_collection
from core.cli.context import BudgetOption, DryRunOption, Format, FormatOption, YesOption, emit
from core.cli.runs import plan as planning
from core.errors import InputError, ProviderError
from core.number_format import ms
from core.pipeline.own.config import MatchBy
from core.store import Snapshot
from core.views.text import count
from core.work.sweep.own import OwnForm, read_params, specification
from core.work.sweep.words import size_of


@runs.coded
def measure(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="MODULE:CALLABLE of your code, or the address of an endpoint.", show_default=False
        ),
    ],
    collection: Annotated[str, typer.Option(help="The stored collection whose questions are asked.")],
    *,
    golden_set: Annotated[str | None, typer.Option(help="Its golden set, where it has several.")] = None,
    preset: Annotated[str, typer.Option(help="Engine behind the endpoint: elasticsearch, solr, plain…")] = "",
    path: Annotated[
        Path | None,
        typer.Option(help="Folder of the module; by default the current one.", show_default=False),
    ] = None,
    python: Annotated[
        str, typer.Option(help="Interpreter that has its packages; by default this one.", show_default=False)
    ] = "",
    name: Annotated[str, typer.Option(help="What it is called.", show_default=False)] = "",
    param: Annotated[
        list[str] | None,
        typer.Option(help="Keyword argument, as alpha=0.3,0.5; several values are several stacks."),
    ] = None,
    match: Annotated[
        MatchBy,
        typer.Option(
            help="What its passages are known by: ids (or whole texts); places: also source and characters, "
            "or their words; headings: also source and heading."
        ),
    ] = "places",
    candidates: Annotated[int, typer.Option("-k", min=1, help="How many passages are asked for.")] = 50,
    version: Annotated[str, typer.Option(help="Tells this state from others.", show_default=False)] = "",
    version_cmd: Annotated[
        str, typer.Option(help="Command that prints the version.", show_default=False)
    ] = "",
    entry: Annotated[
        str, typer.Option("--input", help="Input of a Haystack pipeline, COMPONENT.NAME.", show_default=False)
    ] = "",
    output: Annotated[
        str, typer.Option(help="Component of it whose documents count.", show_default=False)
    ] = "",
    key_env: Annotated[
        str, typer.Option(help="Variable with the endpoint's key; see CLQ_ALLOW_KEYS.", show_default=False)
    ] = "",
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds until a query is given up.")
    ] = None,
    usd_per_query: Annotated[float | None, typer.Option(min=0, help="What a query costs.")] = None,
    usd_per_hour: Annotated[float | None, typer.Option(min=0, help="What its machine costs.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many questions; by default all.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each question is asked.")] = 3,
    query: Annotated[
        str,
        typer.Option(
            "--try", help="Ask this one query, show how its passages are known, and stop.", show_default=False
        ),
    ] = "",
    incumbent: Annotated[
        bool, typer.Option("--incumbent", help="Mark it as the stack that runs today.")
    ] = False,
    show_spec: Annotated[
        bool, typer.Option("--spec", help="Print the specification that says the same, and stop.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    budget: BudgetOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Measure a pipeline that you have: its rankings, its times and what it costs, beside every other stack.

    MODULE:CALLABLE is a function, a class's method, or an object with retrieve, invoke, run or search; with
    "()" at the end it is called once with the parameters and returns one. It runs in a process of its own.
    """
    from core.pipeline.sweep import parse  # noqa: PLC0415 - the engines take a second to load
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415

    context: Context = ctx.obj
    snapshot = context.store().read()
    require_collection(snapshot, collection)
    asked = OwnForm(
        target=target,
        collection=collection,
        golden_set=golden_set_of(snapshot, collection, golden_set) or "",
        name=name,
        preset=preset,
        python=python,
        path=str(path) if path else "",
        entry=entry,
        output=output,
        key_env=key_env,
        params=_params(param or []),
        match=match,
        candidates=candidates,
        version=version,
        version_cmd=version_cmd,
        timeout_s=timeout,
        usd_per_query=usd_per_query,
        usd_per_hour=usd_per_hour,
        limit=limit,
        repeats=repeats,
        incumbent=incumbent,
        budget=budget,
    )
    text = specification(asked)
    if show_spec:
        typer.echo(text)
        return
    if query:
        _try(snapshot, asked, query, form)
        return
    job, problems = planning.read(context, parse(text, "toml", name="measure"), to_run=not dry_run)
    made = plan(job, problems=problems)
    if dry_run:
        planning.show(made, form)
        if made.unpriced:
            complain("What a query costs is said by --usd-per-query, or --usd-per-hour of its machine.")
        return
    runs.warn(made.problems)
    complain(size_of(made))
    if not runs.agreed(made.usd, yes=yes):
        raise typer.Exit(1)
    outcome = runs.execute(context, job, form, "")
    _scores(context, asked, [*(run.run_id for run in outcome.runs), *outcome.held])


def _try(snapshot: Snapshot, asked: OwnForm, query: str, form: Format) -> None:
    """Ask one query, and report the response, how it was interpreted and what it lacks."""
    from core.pipeline.own.trial import try_query  # noqa: PLC0415 - the engines take a second to load
    from core.pipeline.sweep import parse  # noqa: PLC0415
    from core.work.sweep.asked import asked_corpus  # noqa: PLC0415

    own = parse(specification(asked), "toml", name="measure").own[0]
    tried = try_query(own, query, asked_corpus(snapshot, asked.collection))
    emit(tried.rows, form)
    if tried.printed:
        complain(f"It printed: {tried.printed}")
    if tried.fault:
        raise ProviderError(
            tried.fault, kind="server", where=own.name, do="Correct the pipeline, and try again."
        )
    complain(f"{count(tried.rows.height, 'passage')} in {ms(tried.ms)}; understood as {tried.shape}")
    for lack in tried.lacks:
        complain(lack)


def _scores(context: Context, asked: OwnForm, run_ids: Sequence[str]) -> None:
    """Report the scores of the stacks, and their rank among the others."""
    from core.analysis.workspace.choices import choices  # noqa: PLC0415
    from core.analysis.workspace.comparable import timed_elsewhere  # noqa: PLC0415
    from core.analysis.workspace.stacks import stack_table  # noqa: PLC0415
    from core.analysis.workspace.units import other_units  # noqa: PLC0415
    from core.views.decision.words import numbers  # noqa: PLC0415 - with the engines, a second

    snapshot, scope = context.store().read(), Scope(asked.collection, asked.golden_set or None)
    quality = choices(snapshot, scope).quality
    table = stack_table(snapshot, scope, quality, Latency(), context.book("list"))
    new = table.filter(pl.col("run_id").is_in(list(run_ids)))
    for row in new.iter_rows(named=True) if asked.limit is None else ():  # a query not asked counts as 0
        complain(f"{row['name']}: {numbers(row, quality, Latency())}")
    others, _ = other_units(snapshot, table)
    for row in new.filter(pl.col("run_id").is_in(list(others))).iter_rows(named=True):
        complain(f"{row['name']}: {others[row['run_id']]}; it is set apart from them.")
    if said := timed_elsewhere(table, run_ids):
        complain(said)
    address = urlencode({"ws": asked.collection})
    complain(f"Beside the others: `python -m core ui`, then http://localhost:8501/?{address}")


def _params(texts: list[str]) -> dict[str, Any]:
    try:
        return dict(read_params(texts))
    except ValueError as error:
        raise InputError(
            f"{error} is not a parameter.", where="--param", do="Write it as alpha=0.3,0.5."
        ) from None
