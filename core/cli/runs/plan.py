"""``plan SPEC``: what a sweep will run, call, cost and take; it spends nothing and writes nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from core.cli.context import Context, MaybeSpec
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs.evaluating import work_of
from core.views.run.paid import bill, line_rows
from core.views.run.plan import dollars, scale_rows, services, size_of, stack_rows, time_and_memory

if TYPE_CHECKING:
    from core.pipeline.sweep.plan import Plan
    from core.pipeline.sweep.resources import Rates
    from core.store import Snapshot

SplitOption = Annotated[
    str | None, typer.Option(help="Which split of a BEIR collection judges, instead of the specification's.")
]
_STACKS_SHOWN = 20
_REMEMBERED = 60
"""Earlier runs whose times are looked at."""


def run(
    ctx: typer.Context,
    spec: MaybeSpec = None,
    *,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of specifications instead.")
    ] = False,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="All stacks; of CSV the stacks instead of the stages.")
    ] = False,
    ask: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Ask servers of your own (not vendors) about a few passages, to tell how long it takes.",
        ),
    ] = False,
    split: SplitOption = None,
    passages: Annotated[
        int | None,
        typer.Option(min=1, help="Also what every kind of index takes of so many passages, as 10_000_000."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the stacks of a specification with calls, tokens, dollars by stage, time and memory expected."""
    # Here because the engines take a second to load, which no other command should wait for.
    from core.pipeline.evaluate.artifacts import Artifacts  # noqa: PLC0415
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415
    from core.pipeline.sweep import json_schema, load  # noqa: PLC0415
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.pipeline.sweep.read import read_job  # noqa: PLC0415
    from core.pipeline.sweep.resources import probe  # noqa: PLC0415
    from core.readers.plan import with_readers  # noqa: PLC0415
    from core.views.run.shelf import StoreShelf  # noqa: PLC0415

    if schema:
        typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))
        return
    if spec is None:
        raise typer.BadParameter("Name a specification, or ask for the --schema.", param_hint="SPEC")
    context: Context = ctx.obj
    snapshot = context.store().read()
    job, problems = read_job(
        load(spec, split=split), shelf=StoreShelf(snapshot), books=context.books(), to_run=False
    )
    artifacts = Artifacts(work_of(context) / ARTIFACTS)
    made = plan(
        job,
        rates=replace(_rates(snapshot), probed=probe(job) if ask else {}),
        built=lambda step: artifacts.find(step) is not None,
        problems=problems,
    )
    scale = None if passages is None else scale_rows(made, passages, job.book)
    show(with_readers(made, job), form, stacks=stacks, scale=scale)


def show(made: Plan, form: Format, *, stacks: bool = False, scale: pl.DataFrame | None = None) -> None:
    """Print a plan, and its problems on standard error."""
    for problem in made.problems:
        complain(f"{problem.severity}: {problem}")
    if form is Format.JSON:
        told = as_json(made) | ({} if scale is None else {"at_scale": scale.to_dicts()})
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2, allow_nan=False))
    elif form is Format.CSV:
        emit(stack_rows(made) if stacks else line_rows(made), form)
    else:
        _print(made, len(made.stacks) if stacks else _STACKS_SHOWN)
        if scale is not None:
            emit(scale, Format.TABLE)


def as_json(made: Plan) -> dict[str, Any]:
    """Everything about a plan."""
    taken = made.resources
    return {
        "name": made.name,
        "begun": made.begun,
        "queries": made.queries,
        "asked": made.asked,
        "passages": [{"chunking": name, "passages": count} for name, count in made.passages.items()],
        "steps": dict(made.steps),
        "services": [asdict(each) for each in made.services],
        "stacks": [
            {**row, "spec": dict(each.stack.spec)}
            for row, each in zip(stack_rows(made).to_dicts(), made.stacks, strict=True)
        ],
        **bill(made),
        "exact": made.exact,
        "seconds": {**taken.seconds, "pauses": taken.pause_s, "total": taken.total_s},
        "time_basis": list(taken.basis),
        "bytes": {
            "vectors": taken.vector_bytes,
            "indexes": taken.index_bytes,
            "largest_index": taken.largest_bytes,
        },
    }


def _print(made: Plan, shown: int) -> None:
    typer.echo(size_of(made))
    if made.lines:
        emit(line_rows(made), Format.TABLE)
    typer.echo(dollars(made))
    for sentence in (*services(made), *time_and_memory(made)):
        typer.echo(sentence)
    rows = stack_rows(made)
    emit(rows.head(shown), Format.TABLE)
    if rows.height > shown:
        typer.echo(f"… and {rows.height - shown:,} more (--stacks)")


def _rates(snapshot: Snapshot) -> Rates:
    """Times that were measured in the latest runs."""
    from core.pipeline.sweep.resources import Rates, measured  # noqa: PLC0415

    runs = snapshot.runs().filter(pl.col("origin") == "run").tail(_REMEMBERED)
    return Rates(measured(runs, snapshot.timings(runs["run_id"].to_list())))
