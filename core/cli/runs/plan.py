"""``plan SPEC``: what a sweep will run, call, cost and take; it spends nothing and writes nothing.

``manifest show|diff``: what is needed to repeat an evaluation or a run, and how two of them differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from core.analysis.workspace.scope import resolve_runs
from core.cli.base import Context
from core.cli.context import Format, FormatOption, MaybeSpec, emit
from core.cli.runs import warn, work_of
from core.errors import InputError, UnknownNameError
from core.records import JsonMap, Stack, now
from core.work.paid import bill, line_rows
from core.work.sweep.words import dollars, scale_rows, services, size_of, stack_rows, time_and_memory

if TYPE_CHECKING:
    from core.pipeline.evaluate import Job
    from core.pipeline.sweep.model import SweepSpec
    from core.pipeline.sweep.plan import Plan
    from core.pipeline.sweep.problems import Problem


SplitOption = Annotated[
    str | None, typer.Option(help="Which split of a BEIR collection judges, instead of the specification's.")
]
_STACKS_SHOWN = 20
_REMEMBERED = 60  # Maximum earlier runs used for time estimates
_SEARCHED, _GRADED = ("corpus", "queries"), ("golden_set",)
"""Inputs that must be unchanged: to continue measuring; to repeat a result."""


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
    # Imported here as the engines take a second to load, and no other command should wait for them.
    from core.pipeline.evaluate.artifacts import Artifacts  # noqa: PLC0415
    from core.pipeline.evaluate.folder import ARTIFACTS  # noqa: PLC0415
    from core.pipeline.sweep import json_schema, load  # noqa: PLC0415
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.pipeline.sweep.resources import Rates, measured, probe  # noqa: PLC0415
    from core.work.readers.plan import with_readers  # noqa: PLC0415

    if schema:
        typer.echo(json.dumps(json_schema(), ensure_ascii=False, indent=2))
        return
    if spec is None:
        raise typer.BadParameter("Name a specification, or ask for the --schema.", param_hint="SPEC")
    context: Context = ctx.obj
    snapshot = context.store().read()
    job, problems = read(context, load(spec, split=split), to_run=False)
    artifacts = Artifacts(work_of(context) / ARTIFACTS)
    latest = snapshot.runs().filter(pl.col("origin") == "run").tail(_REMEMBERED)
    times = measured(latest, snapshot.timings(latest["run_id"].to_list()))
    planned = plan(
        job,
        rates=Rates(times, probe(job) if ask else {}),
        built=lambda step: artifacts.find(step) is not None,
        problems=problems,
    )
    scale = None if passages is None else scale_rows(planned, passages, job.book)
    show(with_readers(planned, job), form, stacks=stacks, scale=scale)


def show(plan: Plan, form: Format, *, stacks: bool = False, scale: pl.DataFrame | None = None) -> None:
    """Print a plan, and its problems on standard error."""
    warn(plan.problems)
    if form is Format.JSON:
        data = as_json(plan) | ({} if scale is None else {"at_scale": scale.to_dicts()})
        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
    elif form is Format.CSV:
        emit(stack_rows(plan) if stacks else line_rows(plan), form)
    else:
        _print(plan, len(plan.stacks) if stacks else _STACKS_SHOWN)
        if scale is not None:
            emit(scale, Format.TABLE)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return everything about a plan."""
    taken = plan.resources
    return {
        "name": plan.name,
        "begun": plan.begun,
        "queries": plan.queries,
        "asked": plan.asked,
        "passages": [{"chunking": name, "passages": count} for name, count in plan.passages.items()],
        "steps": dict(plan.steps),
        "services": [asdict(service) for service in plan.services],
        "stacks": [
            {**row, "spec": dict(stack.stack.spec)}
            for row, stack in zip(stack_rows(plan).to_dicts(), plan.stacks, strict=True)
        ],
        **bill(plan),
        "exact": plan.exact,
        "seconds": {**taken.seconds, "pauses": taken.pause_s, "total": taken.total_s},
        "time_basis": list(taken.basis),
        "bytes": {
            "vectors": taken.vector_bytes,
            "indexes": taken.index_bytes,
            "largest_index": taken.largest_bytes,
        },
    }


def _print(plan: Plan, shown: int) -> None:
    typer.echo(size_of(plan))
    if plan.lines:
        emit(line_rows(plan), Format.TABLE)
    typer.echo(dollars(plan))
    for sentence in (*services(plan), *time_and_memory(plan)):
        typer.echo(sentence)
    rows = stack_rows(plan)
    emit(rows.head(shown), Format.TABLE)
    if rows.height > shown:
        typer.echo(f"… and {rows.height - shown:,} more (--stacks)")


class Action(StrEnum):
    """The action on manifests."""

    SHOW = "show"
    DIFF = "diff"


def manifest(
    ctx: typer.Context,
    action: Annotated[Action, typer.Argument(help="Show one, or tell two apart.", show_default=False)],
    names: Annotated[
        list[str],
        typer.Argument(
            help="A manifest's file, a run's id or label, or an evaluation's name or id.", show_default=False
        ),
    ],
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what an evaluation or a run was made from, or what differs between two of them."""
    from core.pipeline.evaluate.identity import diff  # noqa: PLC0415 - with the engines, a second

    wanted = 1 if action is Action.SHOW else 2
    if len(names) != wanted:
        raise typer.BadParameter(f"{action} takes {wanted}, {len(names)} given.", param_hint="NAMES")
    manifests = [find(ctx.obj, name) for name in names]
    if action is Action.SHOW and form is Format.JSON:
        typer.echo(json.dumps(manifests[0], ensure_ascii=False, indent=2, allow_nan=False))
        return
    rows = diff(manifests[0], manifests[1] if len(manifests) > 1 else {})
    emit(rows.drop("other") if action is Action.SHOW else rows, form, empty="They are the same.")


def find(context: Context, name: str) -> dict[str, Any]:
    """Return a manifest."""
    from core.files import read_json  # noqa: PLC0415
    from core.pipeline.evaluate import folder  # noqa: PLC0415

    path = Path(name)
    if path.is_file():
        manifest = read_json(path)
        if manifest is None or not {"sweep", "hashes"} <= manifest.keys():
            raise InputError("The file holds no manifest.", where=path.name)
        return manifest
    runs = context.store().read().runs()
    if name in {*runs["run_id"], *runs["label"]}:
        (run_id,) = resolve_runs(runs, [name])
        stored: dict[str, Any] = json.loads(runs.filter(run_id=run_id)["manifest"].item())
        return stored
    try:
        kept = read_json(folder.find(work_of(context), name).manifest)
    except UnknownNameError as error:
        raise UnknownNameError("manifest", name, (*error.known, *runs["run_id"])) from None
    return kept or {}


def read(context: Context, spec: SweepSpec, *, to_run: bool) -> tuple[Job, list[Problem]]:
    """Read a specification's sources; see `core.work.sweep.into.read`."""
    from core.work.sweep import into  # noqa: PLC0415

    return into.read(context.store(), context.books(), spec, to_run=to_run)


def job_of(context: Context, name: str, *, to_run: bool) -> tuple[Job, list[Problem]]:
    """Return the evaluation that repeats the one in a manifest, measured anew; it never runs foreign code."""
    from core.pipeline.own.version import refuse_code  # noqa: PLC0415

    manifest = find(context, name)
    refuse_code(_spec_of(manifest, name).own, "A manifest")
    job, problems = _as_it_was(context, manifest, name, (*_SEARCHED, *_GRADED), to_run=to_run)
    return anew(job), problems


def continued(context: Context, name: str) -> tuple[Job, list[Problem]]:
    """Return the evaluation started under a name."""
    from core.files import read_json  # noqa: PLC0415
    from core.pipeline.evaluate import folder  # noqa: PLC0415
    from core.pipeline.own.version import require_version  # noqa: PLC0415

    place = folder.find(work_of(context), name)
    manifest = read_json(place.manifest) or {}
    if manifest:
        require_version(_spec_of(manifest, place.path.name).own)
    job, problems = _as_it_was(context, manifest, place.path.name, _SEARCHED, to_run=True)
    job = replace(job, nonce=manifest["evaluation"].get("nonce", ""), budget_usd=manifest.get("budget_usd"))
    if job.evaluation_id != place.evaluation_id:
        raise InputError(
            "The evaluation cannot go on: how it measures has changed.",
            where=place.path.name,
            do="Run its specification again.",
        )
    return job, problems


def anew(job: Job) -> Job:
    """Return the same evaluation with separate measurements."""
    return replace(job, nonce=now().isoformat())


def _spec_of(manifest: JsonMap, where: str) -> SweepSpec:
    from core.pipeline.sweep import parse  # noqa: PLC0415

    if not manifest.get("sweep"):
        raise InputError(
            "It was made without a specification, so that it cannot be repeated from its manifest.",
            where=where,
            do="The demo is repeated by `demo`.",
        )
    return parse(json.dumps(manifest["sweep"]), "json", name=where)


def _as_it_was(
    context: Context, manifest: JsonMap, where: str, same: Sequence[str], *, to_run: bool
) -> tuple[Job, list[Problem]]:
    from core.pipeline.evaluate.identity import hashes  # noqa: PLC0415

    job, problems = read(context, _spec_of(manifest, where), to_run=to_run)
    stacks = manifest.get("stacks") or [manifest["spec"]]
    job = replace(job, stacks=[Stack(spec) for spec in stacks])
    today = hashes(job)
    changed = [
        name
        for name, value in manifest["hashes"].items()
        if name.split(" ")[0] in same and today.get(name, value) != value  # chunked corpora included
    ]
    if changed:
        raise InputError(
            f"What it was made from has changed: {', '.join(changed)}.",
            where=where,
            do="Bring the files back as they were, or run the specification as an evaluation of its own.",
        )
    return job, problems
