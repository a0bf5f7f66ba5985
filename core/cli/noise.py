"""``diagnose noise`` and ``diagnose robust``: the cost of perturbed queries for stacks and embedders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.analysis.workspace.resolve import quality_of, scope_of
from core.analysis.workspace.scope import Quality
from core.cli.base import Context, complain
from core.cli.context import Format, FormatOption, emit
from core.cli.runs import carried_out, coded, leave_if_cancelled
from core.errors import InputError
from core.importers.read.text import quoted
from core.metrics import Measure
from core.metrics.robust import PERTURBATIONS
from core.prices import DEFAULT_BOOK

if TYPE_CHECKING:  # the engines take a second to load
    from core.diagnostics.vectors import VectorJob
    from core.pipeline.evaluate.session import Result, Site

NoiseCollection = Annotated[
    str | None, typer.Option(help="The collection; may be left out where there is one.")
]
GoldenOption = Annotated[
    str | None, typer.Option(help="The judgements; by default the only ones of the collection.")
]
MeasureOption = Annotated[str, typer.Option(help="The measure with its cutoff.")]


@coded
def noise(
    ctx: typer.Context,
    *,
    collection: NoiseCollection = None,
    golden_set: GoldenOption = None,
    measure: MeasureOption = "RA-nWG@10",
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Instead of a measure: how near an embedder keeps perturbed queries to clean ones."
        ),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Of the embedder; by default its own.")] = None,
    language: Annotated[str, typer.Option(help="That small talk is in: english or french.")] = "english",
    references: Annotated[
        Path | None,
        typer.Option(help="CSV with query_id and text: an ideal restatement of each query; else the query."),
    ] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="The most dollars for the embedder.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the embedder costs; spend nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree to pay for the embedder; else its costs are only said.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print what perturbing the queries costs each stack, and what each rewrite recovers."""
    # Imported here as they take a second to load, and no other command should wait for them.
    from core.analysis.perturbed import effect_table, gather  # noqa: PLC0415

    context: Context = ctx.obj
    snapshot = context.store().read()
    if embedder is not None:
        compared = scope_of(snapshot, collection, golden_set, ())
        asked = snapshot.queries(compared.collection_id).select("query_id", "text").drop_nulls()
        agree = None if dry_run else yes
        model = (embedder, dim)
        emit(_near(context, asked, model, language, references, budget=budget, agree=agree), form)
        return
    quality = quality_of(measure)
    scope = scope_of(snapshot, collection, golden_set, ())
    gathered = gather(snapshot, scope, quality)
    if not gathered:
        complain(
            f"{scope.collection_id} has no runs of perturbed queries; run a sweep with noise = [0, 2, 4]."
        )
    emit(effect_table(snapshot, gathered, quality).drop("family"), form)


def robust(
    ctx: typer.Context,
    *,
    collection: NoiseCollection = None,
    golden_set: GoldenOption = None,
    measure: MeasureOption = "RA-nWG@10",
    perturb: Annotated[
        str, typer.Option(help="What must be endured, for example noise=4,typo=1.", show_default=True)
    ] = "noise=4",
    form: FormatOption = Format.TABLE,
) -> None:
    """Print each stack's quality under the worst of the clean and the perturbed queries, query by query."""
    from core.analysis.perturbed import gather, robust_table  # noqa: PLC0415

    snapshot = ctx.obj.store().read()
    endured = _endured(quality_of(measure), perturb)
    scope = scope_of(snapshot, collection, golden_set, ())
    clean = Quality(str(endured.unwrapped.at(None)), endured.k or 1)
    gathered = gather(snapshot, scope, clean)
    emit(robust_table(snapshot, scope, gathered, endured), form)


def _endured(quality: Quality, perturb: str) -> Measure:
    """Return Robust[X] of a measure X; one that is already Robust defines its own perturbations."""
    if quality.measure is None:
        raise InputError(f"{quality.name} came as a figure, without rankings.", do="Name a measure.")
    if quality.measure.name.startswith("Robust["):
        return quality.measure
    ways = {way.name: way for way in PERTURBATIONS}
    params = dict(quality.measure.params) | {way.name: way.default for way in PERTURBATIONS}
    for part in filter(None, (text.strip() for text in perturb.split(","))):
        way, _, level = (text.strip() for text in part.partition("="))
        if way not in ways or not level:
            do = f"Write noise=4,typo=1; there are {', '.join(ways)}."
            raise InputError(f"{part!r} is not a perturbation.", do=do)
        params[way] = ways[way].read(level)
    return Measure(f"Robust[{quality.measure.name}]", quality.k, tuple(params.items()))


def _near(
    context: Context,
    asked: pl.DataFrame,
    model: tuple[str, int | None],
    language: str,
    references: Path | None,
    *,
    budget: float | None,
    agree: bool | None,
) -> pl.DataFrame:
    """Return similarities by level, followed by the paper's figures for its two models in the language."""
    from core.diagnostics.vectors import VectorJob, published, run_job  # noqa: PLC0415
    from core.pipeline.query.perturb import check_perturb  # noqa: PLC0415

    check_perturb({"noise": 1, "language": language})
    restated = None
    if references is not None:
        restatements = _restatements(references)
        both = asked.join(restatements, on="query_id", maintain_order="left")
        if both.height < asked.height:
            complain(f"{asked.height - both.height} queries have no restatement and are left out.")
        asked, restated = both, both["restated"].to_list()
    if asked.is_empty():
        raise InputError("There are no queries with text.", do="Import queries, or name another collection.")
    job = VectorJob(
        texts=asked["text"].to_list(), model=model[0], dim=model[1], language=language, references=restated,
        book=context.books()[DEFAULT_BOOK], budget_usd=budget,
    )  # fmt: skip
    if not agree:
        said = _costs(job)
        if agree is None:
            complain(said or "Nothing is paid for.")
            raise typer.Exit
        if said:
            raise InputError(said, do="Agree with --yes.")
    frames: list[pl.DataFrame] = []

    def do(site: Site) -> Result:
        own, result = run_job(job, site)
        frames.append(own)
        return result

    kept = "what was embedded is kept, and the same command goes on"
    leave_if_cancelled(carried_out(context, "vectors", kept, do))
    return pl.concat([frames[0], published().filter(language=frames[0]["language"][0])], how="diagonal")


def _costs(job: VectorJob) -> str:
    from core.diagnostics.vectors import bill  # noqa: PLC0415

    foreseen = bill(job)
    if not foreseen.lines:
        return ""
    reason = foreseen.lines[0].reason
    costs = f"an unknown sum ({reason})" if foreseen.usd is None else f"about ${foreseen.usd:,.4f}"
    return f"{job.model} is paid for: {len(job.every_text()):,} texts to embed cost {costs}."


def _restatements(path: Path) -> pl.DataFrame:
    """Read query_id and restated, one row per query."""
    from core.diagnostics.names.bundles import read_columns  # noqa: PLC0415 - with the engines, a second

    rows = read_columns(path, ("query_id", "text")).rename({"text": "restated"})
    twice = rows.filter(pl.col("query_id").is_duplicated())["query_id"]
    if twice.len():
        raise InputError(
            f"{quoted(twice[0])} is restated twice.", where=str(path), do="Keep one restatement of a query."
        )
    return rows
