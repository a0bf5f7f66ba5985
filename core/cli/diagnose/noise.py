"""``diagnose noise`` and ``diagnose robust``: what perturbed queries cost stacks and embedders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from core.cli.answers.deciding import quality_of, workspace
from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit
from core.cli.runs.evaluating import work_of
from core.errors import InputError
from core.importers.read.text import quoted
from core.metrics import Measure
from core.metrics.robust import PERTURBATIONS
from core.prices import DEFAULT_BOOK
from core.views.workspace.scope import Quality

CollectionOption = Annotated[
    str | None, typer.Option(help="The collection; may be left out where there is one.")
]
GoldenOption = Annotated[
    str | None, typer.Option(help="The judgements; by default the only ones of the collection.")
]
MeasureOption = Annotated[str, typer.Option(help="The measure with its cutoff.")]


def noise(
    ctx: typer.Context,
    *,
    collection: CollectionOption = None,
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
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Agree to pay for the embedder; else its costs are only said."),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print what perturbing the queries costs each stack, and what each rewrite wins back."""
    # Here because they take a second to load, which no other command should wait for.
    from core.views.diagnostics.noise import effect_table, gather  # noqa: PLC0415

    context: Context = ctx.obj
    snapshot = context.store().read()
    if embedder is not None:
        found = workspace(snapshot, collection, golden_set, ())
        asked = snapshot.queries(found.collection_id).select("query_id", "text").drop_nulls()
        emit(_near(context, asked, (embedder, dim), language, references, yes=yes), form)
        return
    quality = quality_of(measure)
    scope = workspace(snapshot, collection, golden_set, ())
    gathered = gather(snapshot, scope, quality)
    if not gathered:
        complain(
            f"{scope.collection_id} has no runs of perturbed queries; run a sweep with noise = [0, 2, 4]."
        )
    emit(effect_table(snapshot, gathered, quality).drop("family"), form)


def robust(
    ctx: typer.Context,
    *,
    collection: CollectionOption = None,
    golden_set: GoldenOption = None,
    measure: MeasureOption = "RA-nWG@10",
    perturb: Annotated[
        str, typer.Option(help="What must be endured, for example noise=4,typo=1.", show_default=True)
    ] = "noise=4",
    form: FormatOption = Format.TABLE,
) -> None:
    """Print each stack's quality under the worst of the clean and the perturbed queries, query by query."""
    from core.views.diagnostics.noise import gather, robust_table  # noqa: PLC0415

    snapshot = ctx.obj.store().read()
    endured = _endured(quality_of(measure), perturb)
    scope = workspace(snapshot, collection, golden_set, ())
    clean = Quality(str(endured.unwrapped.at(None)), endured.k or 1)
    gathered = gather(snapshot, scope, clean)
    emit(robust_table(snapshot, scope, gathered, endured), form)


def _endured(quality: Quality, perturb: str) -> Measure:
    """Robust[X] of a measure X; one that is Robust already says itself what must be endured."""
    if quality.measure is None:
        raise InputError(f"{quality.name} came as a figure, without rankings.", do="Name a measure.")
    if quality.measure.name.startswith("Robust["):
        return quality.measure
    ways = {way.name: way for way in PERTURBATIONS}
    told = dict(quality.measure.params) | {way.name: way.default for way in PERTURBATIONS}
    for part in filter(None, (each.strip() for each in perturb.split(","))):
        way, _, level = (each.strip() for each in part.partition("="))
        if way not in ways or not level:
            do = f"Write noise=4,typo=1; there are {', '.join(ways)}."
            raise InputError(f"{part!r} is no perturbation.", do=do)
        told[way] = ways[way].read(level)
    return Measure(f"Robust[{quality.measure.name}]", quality.k, tuple(told.items()))


def _near(
    context: Context,
    asked: pl.DataFrame,
    model: tuple[str, int | None],
    language: str,
    references: Path | None,
    *,
    yes: bool,
) -> pl.DataFrame:
    """Similarities by level, with the paper's figures of its two models in the language behind them."""
    from core.diagnostics.noise import measured, published  # noqa: PLC0415
    from core.pipeline.evaluate.turn import REPLIES  # noqa: PLC0415
    from core.pipeline.query.perturb import check_perturb  # noqa: PLC0415
    from core.providers.calls import Journal  # noqa: PLC0415
    from core.providers.embed import make_embedder  # noqa: PLC0415

    check_perturb({"noise": 1, "language": language})
    restated = None
    if references is not None:
        told = _restatements(references)
        both = asked.join(told, on="query_id", maintain_order="left")
        if both.height < asked.height:
            complain(f"{asked.height - both.height} queries have no restatement and are left out.")
        asked, restated = both, both["restated"].to_list()
    if asked.is_empty():
        raise InputError("There are no queries with text.", do="Import queries, or name another collection.")
    texts = asked["text"].to_list()
    if not yes:
        _refuse_paid(context, model[0], texts, language, restated)
    journal = Journal(work_of(context) / REPLIES)
    try:
        own = measured(texts, make_embedder(*model, journal=journal), language, restated)
    finally:
        journal.close()
    paper = published().filter(language=own["language"][0])
    return pl.concat([own, paper], how="diagonal")


def _restatements(path: Path) -> pl.DataFrame:
    """Read query_id and restated, one row a query."""
    try:
        rows = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"It is no table: {error}", where=str(path)) from error
    for name in ("query_id", "text"):
        if name not in rows.columns:
            raise InputError(f"No column {name!r}.", where=str(path), do=f"Found: {', '.join(rows.columns)}.")
    told = rows.select("query_id", restated="text").drop_nulls()
    twice = told.filter(pl.col("query_id").is_duplicated())["query_id"]
    if twice.len():
        raise InputError(
            f"{quoted(twice[0])} is restated twice.", where=str(path), do="Keep one restatement of a query."
        )
    return told


def _refuse_paid(
    context: Context, model: str, texts: Sequence[str], language: str, restated: Sequence[str] | None
) -> None:
    """Refuse an embedder that is paid for, with what it takes; what was paid before is counted as well."""
    from core.diagnostics.noise import by_level  # noqa: PLC0415
    from core.pipeline.sweep.paid import count_texts, embedding  # noqa: PLC0415
    from core.pipeline.sweep.plan import dollars  # noqa: PLC0415
    from core.providers.base import Purpose  # noqa: PLC0415
    from core.providers.config import place_of  # noqa: PLC0415
    from core.providers.embed import embedder_config  # noqa: PLC0415

    config = embedder_config(model)
    if place_of(config) is None:
        return
    every = [*(restated or ()), *chain.from_iterable(by_level(texts, language).values())]
    counted = count_texts(every, config.tokenizer, config.prefixes.get(Purpose.QUERY, ""))
    usd, reason = dollars(embedding(config, counted.tokens), context.books()[DEFAULT_BOOK])
    costs = f"an unknown sum ({reason})" if usd is None else f"about ${usd:,.4f}"
    raise InputError(
        f"{model} is paid for: {counted.texts:,} texts to embed cost {costs}.", do="Agree with --yes."
    )
