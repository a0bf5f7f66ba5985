"""``indexes bench``, ``show`` and ``tune``: recall and speed of indexes, and which setting is safe."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer

from core.arrays import Vectors
from core.cli import runs
from core.cli.base import Context, complain
from core.cli.context import DryRunOption, Format, FormatOption, YesOption, emit
from core.cli.deciding import QuestionOptions, deciding
from core.cli.runs import plan as planning
from core.errors import InputError
from core.importers.read.text import shown
from core.records import Batch, Collection, JsonMap, Stack, canonical_json, now
from core.views.latency.indexes import dollars, figures, measured
from core.work.sweep.words import size_of

if TYPE_CHECKING:
    from core.analysis.workspace.view import View
    from core.pipeline.evaluate import Job
    from core.pipeline.sweep.known import KnownNames

app = typer.Typer(
    help="Indexes: recall, latency and queries per second of kinds of index.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_BETWEEN = re.compile(r",(?![^(]*\))")
_KIND = re.compile(r"([\w-]+)(?:\((.*)\))?")
_QUERIES, _SEED = 200, 0
PriceOption = Annotated[
    float | None, typer.Option(min=0, help="Dollars an hour of the machine; adds $ per 1,000 queries.")
]
BusyOption = Annotated[float, typer.Option(min=0.01, max=1, help="Share of the hour that it is busy.")]


class _Searched(NamedTuple):
    """The vectors and texts to build and query indexes with."""

    source: str
    vectors: Vectors
    queries: Vectors
    kinds: Sequence[tuple[str, JsonMap]]
    metric: str = "cosine"
    ids: Sequence[str] = ()


@app.command("bench")
def bench(
    ctx: typer.Context,
    spec: Annotated[
        Path | None,
        typer.Argument(
            help="A specification: its first embedder that runs here, and its indexes.", show_default=False
        ),
    ] = None,
    *,
    kinds: Annotated[
        str | None,
        typer.Option(help="Kinds of index instead: flat,hnsw-f32,pgvector(method=ivfflat,lists=100)."),
    ] = None,
    k: Annotated[str, typer.Option(help="How many neighbours.")] = "10,100",
    ef: Annotated[str, typer.Option(help="What a search looks at: ef, or probes.")] = "16,64,256",
    clients: Annotated[str, typer.Option(help="How many ask at once.")] = "1,4,16",
    passages: Annotated[int, typer.Option(min=1, help="Random vectors where there is no SPEC.")] = 20_000,
    dim: Annotated[int, typer.Option(min=1, help="Their dimensions.")] = 64,
    seconds: Annotated[float, typer.Option(min=0, help="How long clients ask at least, per point.")] = 1.0,
    usd_per_hour: PriceOption = None,
    utilisation: BusyOption = 0.5,
    form: FormatOption = Format.TABLE,
) -> None:
    """Measure recall, latency, throughput, build time and size of indexes, and keep them in the store."""
    # Imported here as the engines take a second to load, and no other command should wait for them.
    from core.pipeline.environment import describe  # noqa: PLC0415
    from core.pipeline.index.bench import BenchGrid, BenchPoint, frame_of  # noqa: PLC0415
    from core.pipeline.index.bench import bench as measure  # noqa: PLC0415

    context: Context = ctx.obj
    listed = {"--k": k, "--ef": ef, "--clients": clients}
    ks, efforts, counts = (_numbers(text, option) for option, text in listed.items())
    asked = _kinds(kinds) if kinds else None
    searched = _random(passages, dim, asked) if spec is None else _of_spec(context, spec, asked)
    grid = BenchGrid(ks=ks, efforts=efforts, clients=counts, seconds=seconds)
    points: list[BenchPoint] = []
    ended: BaseException | None = None
    with TemporaryDirectory(prefix="clq-indexes-") as folder:
        measuring = measure(
            searched.kinds,
            searched.vectors,
            searched.queries,
            grid=grid,
            folder=Path(folder),
            metric=searched.metric,
            ids=searched.ids,
            doing=complain,
        )
        try:
            points.extend(measuring)
        except (Exception, KeyboardInterrupt) as error:
            if not points:
                raise
            ended = error
    machine, size = describe(), searched.vectors.shape
    made_at = now()
    name = f"indexes-{made_at:%Y%m%d-%H%M%S}"
    collection = Collection(
        collection_id=name,
        name=f"Indexes {made_at:%Y-%m-%d %H:%M:%S}: {searched.source} {size[1]} d, {size[0]:,} passages",
        source="Measured",
        notes=f"{machine['cpu']}, {machine['cores']} cores; {searched.metric}; clients on the same machine.",
    )
    rows = frame_of(points, collection_id=name, source=searched.source, dim=size[1])
    with context.write("indexes", collection.name) as writer:
        writer.add(Batch(collections=(collection,), frames={"diagnostics": rows}))
    emit(dollars(measured(rows, {name: collection.name}), usd_per_hour, utilisation), form)
    if ended is not None:
        complain(f"Ended early; the {len(points)} points measured until then are kept.")
        raise ended


@app.command("show")
def show(
    ctx: typer.Context,
    *,
    usd_per_hour: PriceOption = None,
    utilisation: BusyOption = 0.5,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print what was measured of indexes, and imported of VectorDBBench and ann-benchmarks."""
    context: Context = ctx.obj
    rows = dollars(figures(context.store().read()), usd_per_hour, utilisation)
    emit(rows, form, empty="No stand-alone index benchmark yet: `python -m core indexes bench`.")


@app.command("tune")
@runs.coded
@deciding
def tune(
    ctx: typer.Context,
    question: QuestionOptions,
    *,
    bearable: Annotated[
        float, typer.Option(min=0, max=50, help="Percent of a flat index's quality that may be lost.")
    ] = 2.0,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Run these kinds of index around one stack first: hnsw-f32,ivf-flat(lists=32).",
            show_default=False,
        ),
    ] = None,
    ef: Annotated[
        str | None,
        typer.Option(
            help="What a search looks at, 50,100,200; by default doubling steps.", show_default=False
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(help="That stack, by id or name; by default the best with vectors.", show_default=False),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Name, per stack, the index setting that looks at least and surely loses little against flat.

    At the cutoff of the measure, and at 10 and 30.

    With --kinds it first runs what is missing, with the texts, vectors and indexes that are there, and names
    the setting per kind.
    """
    from core.views.latency.index_loss import TUNED, everywhere, losses, passing  # noqa: PLC0415 - draws charts, too
    from core.views.within import beyond  # noqa: PLC0415 - as above

    view = question.on_page(ctx.obj)
    if kinds is None:
        if dry_run or ef or stack:
            raise typer.BadParameter("They are about a sweep: name its --kinds.", param_hint="--ef, --stack")
        higher = view.quality.higher_is_better
        marked = passing(losses(view), bearable, higher_is_better=higher, reasons=beyond(view))
        none = marked.filter(~pl.col("taken").any().over("family"))["family"].unique(maintain_order=True)
        for family in none:
            own = marked.filter(family=family)
            limits, held = " and your limits" * bool(own["beyond"].count()), everywhere(own, view.quality.k)
            complain(f"No setting is surely within {bearable:g} % of {shown(family, 200)} {held}{limits}.")
        empty = "No setting passes." if marked.height else "No stack has a flat twin."
        emit(marked.filter("taken").select(TUNED), form, empty=empty)
        return
    asked, efforts = _kinds(kinds), _numbers(ef, "--ef") if ef else ()
    tried = _sweep(ctx.obj, view, asked, efforts, stack=stack, dry_run=dry_run, yes=yes, form=form)
    if not dry_run:
        _answer(question.on_page(ctx.obj), tried, bearable, form)


def _sweep(
    context: Context,
    view: View,
    kinds: Sequence[tuple[str, JsonMap]],
    efforts: Sequence[int],
    *,
    stack: str | None,
    dry_run: bool,
    yes: bool,
    form: Format,
) -> list[Stack]:
    """Run the missing stacks, or plan them; return all, the flat one first."""
    from core.pipeline.sweep import parse  # noqa: PLC0415 - as above
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.views.run import tuning  # noqa: PLC0415
    from core.work.sweep import into  # noqa: PLC0415
    from core.work.sweep.kind import EVALUATION as WORK  # noqa: PLC0415

    base = tuning.around(view, stack)
    tried = tuning.settings(base, kinds, efforts, tuning.passages(base, view))
    missing = tuning.missing(tried, view)
    there = f", {len(tried) - len(missing)} of them there already" if len(missing) < len(tried) else ""
    complain(f"around {shown(Stack(base.spec).label, 200)}: {len(tried)} settings{there}")
    if not missing:
        return tried
    spec = parse(json.dumps(tuning.specification(base, missing, view)), "json", name="indexes tune")
    job, problems = planning.read(context, spec, to_run=not dry_run)
    made = plan(job, problems=problems)
    complain(f"{len(made.stacks) * made.queries * made.asked:,} searches: {size_of(made)}")
    if dry_run:
        planning.show(made, form)
        return tried
    runs.warn(made.problems)
    if not runs.agreed(made.usd, yes=yes):
        raise typer.Exit(1)
    work = partial(WORK.run, context.store(), job)
    outcome = runs.carried_out(context, WORK.folder, WORK.kept, work)
    for words in into.sentences(outcome, job):
        complain(words)
    runs.leave_if_cancelled(outcome)
    return tried


def _answer(view: View, tried: Sequence[Stack], bearable: float, form: Format) -> None:
    """Name the setting to choose per kind, and print the loss of every one."""
    from core.views.latency.index_loss import TUNED, losses, passing, taken_words  # noqa: PLC0415 - as above
    from core.views.within import beyond  # noqa: PLC0415 - as above

    ids = {stack.stack_id for stack in tried}
    names = view.table.filter(pl.col("stack_id").is_in(ids))["name"].to_list()
    rows = losses(view).filter(pl.col("name").is_in(names)).sort("index", "effort", nulls_last=True)
    by_kind = rows.with_columns(family="index")
    higher = view.quality.higher_is_better
    marked = passing(by_kind, bearable, higher_is_better=higher, reasons=beyond(view))
    for words in taken_words(marked, bearable, view.quality.k):
        complain(shown(words, 400))
    emit(marked.select(*TUNED[1:], "passes", "taken"), form, empty="No stack has a flat twin.")


def _numbers(text: str, option: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise InputError(f"{text!r} is not a list of whole numbers.", where=option, do="Write 10,100.")
    return sorted({int(part) for part in parts})


def _kinds(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read kinds with options in the notation of measures: name(key=value,…)."""
    kinds = []
    for part in _BETWEEN.split(text):
        written = _KIND.fullmatch(part.strip())
        if written is None:
            problem = f"{part!r} is not a kind of index."
            raise InputError(problem, where="--kinds", do="Write name(key=value).")
        pairs = [pair.partition("=") for pair in (written[2] or "").split(",") if pair]
        options = {
            key.strip(): int(value) if value.strip().isdigit() else value.strip() for key, _, value in pairs
        }
        kinds.append((written[1], options))
    return kinds


def _random(passages: int, dim: int, kinds: Sequence[tuple[str, JsonMap]] | None) -> _Searched:
    vectors = np.random.default_rng(_SEED).standard_normal((passages + _QUERIES, dim), dtype=np.float32)
    usual: list[tuple[str, JsonMap]] = [(name, {}) for name in ("flat", "int8", "hnsw-f32", "hnsw-int8")]
    return _Searched("random", vectors[:passages], vectors[passages:], kinds or usual)


def _of_spec(context: Context, path: Path, kinds: Sequence[tuple[str, JsonMap]] | None) -> _Searched:
    """Embed a specification's passages and queries, with its first embedder that runs here."""
    from core.analysis.export import StoreShelf  # noqa: PLC0415
    from core.pipeline.sweep import load  # noqa: PLC0415 - as above
    from core.pipeline.sweep.expand import expand  # noqa: PLC0415
    from core.pipeline.sweep.known import KnownNames  # noqa: PLC0415
    from core.pipeline.sweep.read import read_job  # noqa: PLC0415
    from core.providers.base import Purpose  # noqa: PLC0415
    from core.providers.embed import embedder_config, make_embedder  # noqa: PLC0415

    sweep = load(path)
    known = KnownNames(sweep.models)
    spec = _first_local([stack.spec for stack in expand(sweep, known)], known, path)
    shelf = StoreShelf(context.store().read())
    job, _ = read_job(sweep, shelf=shelf, known=known, books=context.books(), judged=False, to_run=False)
    config = embedder_config(job.models.get(spec["embedder"], spec["embedder"]))
    corpus = next(iter(job.corpora.values()))
    with make_embedder(config, spec["dim"]) as embedder:
        complain(f"embed {len(corpus):,} passages: {spec['embedder']} {spec['dim']} d")
        vectors = embedder.embed(corpus.texts.to_list())
        queries = embedder.embed(job.queries["text"].to_list(), Purpose.QUERY)
    own = _own_kinds(job, spec)
    ids = corpus.passage_ids.to_list()
    return _Searched(spec["embedder"], vectors, queries, kinds or own, spec.get("metric", "cosine"), ids)


def _first_local(specs: Sequence[JsonMap], known: KnownNames, path: Path) -> JsonMap:
    """Return the first stack with vectors of a model that runs here, before anything is read or embedded."""
    dense = [spec for spec in specs if spec["mode"] != "sparse"]
    if not dense:
        raise InputError("No stack has vectors.", where=str(path), do="Name a dense or hybrid stack.")
    for spec in dense:
        if known.is_local("embedder", spec["embedder"]):
            return spec
    asked = ", ".join(dict.fromkeys(spec["embedder"] for spec in dense))
    raise InputError(
        f"This command has no budget, and none of the embedders runs here ({asked}).",
        where=str(path),
        do=f"Add one that does, or leave SPEC out: random vectors of that size are --dim {dense[0]['dim']}.",
    )


def _own_kinds(job: Job, first: JsonMap) -> list[tuple[str, JsonMap]]:
    """Return the indexes of the stacks that search the same vectors, each once."""
    from core.pipeline.index import index_options  # noqa: PLC0415 - as above
    from core.pipeline.index.bench import effort_of  # noqa: PLC0415

    same = [
        stack.spec
        for stack in job.stacks
        if all(stack.spec.get(key) == first.get(key) for key in ("embedder", "dim", "metric", "chunker"))
        and stack.spec["mode"] != "sparse"
    ]
    kinds: dict[str, tuple[str, JsonMap]] = {}
    for spec in same:
        name, params = spec["index"], dict(spec.get("index_params", {}))
        params.pop(effort_of(name, index_options(name, params)), None)  # the grid sets it
        kinds.setdefault(f"{name} {canonical_json(params)}", (name, params))
    return list(kinds.values())
