"""``plan SPEC``: what a sweep will run, call, cost and take; it spends nothing and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit

if TYPE_CHECKING:
    from core.pipeline.sweep.plan import Plan
    from core.pipeline.sweep.rates import Rates
    from core.store import Snapshot

_STACKS_SHOWN = 20
_REMEMBERED = 60
"""Earlier runs whose times are looked at."""


def run(
    ctx: typer.Context,
    spec: Annotated[
        Path | None, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of specifications instead.")
    ] = False,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="All stacks; of CSV the stacks instead of the stages.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the stacks of a specification with calls, tokens, dollars by stage, time and memory expected."""
    # Here because the engines take a second to load, which no other command should wait for.
    from core.pipeline.evaluate.artifacts import Artifacts  # noqa: PLC0415
    from core.pipeline.evaluate.folder import ARTIFACTS, EVALUATIONS  # noqa: PLC0415
    from core.pipeline.sweep import json_schema, load  # noqa: PLC0415
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.pipeline.sweep.read import read_job  # noqa: PLC0415
    from core.views.shelf import StoreShelf  # noqa: PLC0415

    if schema:
        typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))
        return
    if spec is None:
        raise typer.BadParameter("Name a specification, or ask for the --schema.", param_hint="SPEC")
    context: Context = ctx.obj
    snapshot = context.store().read()
    job, problems = read_job(load(spec), shelf=StoreShelf(snapshot), books=context.books(), to_run=False)
    artifacts = Artifacts(context.store().path.parent / EVALUATIONS / ARTIFACTS)
    made = plan(
        job,
        rates=_rates(snapshot),
        built=lambda step: artifacts.find(step) is not None,
        problems=problems,
    )
    show(made, form, stacks=stacks)


def show(made: Plan, form: Format, *, stacks: bool = False) -> None:
    """Print a plan, and its problems on standard error.

    Args:
        made: The plan.
        form: Tables with a few sentences, one JSON object, or CSV.
        stacks: All stacks; of CSV the stacks instead of the stages.
    """
    for problem in made.problems:
        complain(f"{problem.severity}: {problem}")
    if form is Format.JSON:
        typer.echo(json.dumps(as_json(made), ensure_ascii=False, indent=2, allow_nan=False))
    elif form is Format.CSV:
        emit(stack_rows(made) if stacks else line_rows(made), form)
    else:
        _print(made, len(made.stacks) if stacks else _STACKS_SHOWN)


def line_rows(made: Plan) -> pl.DataFrame:
    """What is paid for, one row per stage, model and unit."""
    schema = {
        "stage": pl.String,
        "model": pl.String,
        "calls": pl.Int64,
        "unit": pl.String,
        "amount": pl.Float64,
        "counted": pl.String,
        "usd": pl.Float64,
        "unknown": pl.String,
    }
    rows = [
        (
            line.stage,
            line.model,
            line.calls,
            line.unit,
            line.amount,
            "; ".join(("exact" if line.exact else "estimated", *line.notes)),
            line.usd,
            line.reason,
        )
        for line in made.lines
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def stack_rows(made: Plan) -> pl.DataFrame:
    """The stacks, with what 1,000 queries cost in production."""
    schema = {
        "stack_id": pl.String,
        "label": pl.String,
        "pool": pl.String,
        "usd_per_1k": pl.Float64,
        "unknown": pl.String,
    }
    rows = [
        (each.stack.stack_id, each.label, each.pool, each.usd_per_1k, each.reason) for each in made.stacks
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def as_json(made: Plan) -> dict[str, Any]:
    """Everything about a plan."""
    taken = made.resources
    return {
        "name": made.name,
        "queries": made.queries,
        "asked": made.asked,
        "passages": [{"chunking": name, "passages": count} for name, count in made.passages.items()],
        "steps": dict(made.steps),
        "stages": line_rows(made).to_dicts(),
        "stacks": [
            {**row, "spec": dict(each.stack.spec)}
            for row, each in zip(stack_rows(made).to_dicts(), made.stacks, strict=True)
        ],
        "calls": made.calls,
        "usd": made.usd,
        "usd_known": made.usd_known,
        "exact": made.exact,
        "budget_usd": made.limit,
        "over_budget": made.over_budget,
        "seconds": {**taken.seconds, "pauses": taken.pause_s, "total": taken.total_s},
        "time_basis": list(taken.basis),
        "bytes": {
            "vectors": taken.vector_bytes,
            "indexes": taken.index_bytes,
            "largest_index": taken.largest_bytes,
        },
        "problems": [{"severity": str(each.severity), "message": str(each)} for each in made.problems],
    }


def _print(made: Plan, shown: int) -> None:
    passages = ", ".join(
        f"{count:,} passages" + (f" ({name})" if name else "") for name, count in made.passages.items()
    )
    typer.echo(
        f"{len(made.stacks):,} stacks, {made.queries:,} questions asked {made.asked} times, {passages}"
    )
    emit(line_rows(made), Format.TABLE, empty="Nothing is paid for: everything runs on this machine.")
    typer.echo(_dollars(made))
    taken = made.resources
    parts = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in taken.seconds.items() if seconds)
    typer.echo(f"Time: about {duration(taken.total_s)} ({parts}; {', '.join(taken.basis)})")
    typer.echo(
        f"Memory: {size(taken.index_bytes)} with all indexes open, the largest {size(taken.largest_bytes)};"
        f" on disk {size(taken.vector_bytes)} of vectors"
    )
    rows = stack_rows(made)
    emit(rows.head(shown), Format.TABLE)
    if rows.height > shown:
        typer.echo(f"… and {rows.height - shown:,} more (--stacks)")


def _dollars(made: Plan) -> str:
    how = "exact" if made.exact else "estimated"
    if made.usd is None:
        total = f"Dollars: unknown, at least ${made.usd_known:,.4f} ({how})"
    else:
        total = f"Dollars: ${made.usd:,.4f}" + (f" ({how})" if made.lines else "")
    if made.limit is None:
        return f"{total}, no budget"
    left = "it stops before its end" if made.over_budget else "enough as far as is known"
    return f"{total} of a budget of ${made.limit:,.2f}: {left}"


def duration(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h, 2.1 d."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36)):
        if seconds < most * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} d"


def size(count: int) -> str:
    """A number of bytes as people say it."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def _rates(snapshot: Snapshot) -> Rates:
    """Times that were measured in the latest runs."""
    from core.pipeline.sweep.rates import Rates, measured  # noqa: PLC0415

    runs = snapshot.runs().filter(pl.col("origin") == "run").tail(_REMEMBERED)
    return Rates(measured(runs, snapshot.timings(runs["run_id"].to_list())))
