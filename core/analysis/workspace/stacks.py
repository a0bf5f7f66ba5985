"""The stack table: one row per run of the workspace with its quality, latency, cost and axes.

Every page reads this table, so that a stack has the same numbers everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.answers import MADE_UP, TRIAL, made_up
from core.analysis.workspace.clusters import Groups, groups
from core.analysis.workspace.comparable import at_machine, other_texts
from core.analysis.workspace.figures.beside import beside, with_harm
from core.analysis.workspace.figures.costs import assumed_prices, basis, costs
from core.analysis.workspace.figures.latencies import jitters, latencies, prompt_tokens, with_noise
from core.analysis.workspace.figures.reported import as_reported, scored_here
from core.analysis.workspace.lacks import lacks
from core.analysis.workspace.pools import DEPTH, deeper, stack_of
from core.analysis.workspace.query_sets import among, chosen_runs
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.scores import (
    Evidence,
    applies_to_none,
    at_cutoff,
    bounds,
    evidence,
    mean,
    unperturbed,
)
from core.analysis.workspace.units import WHOLE, searched_whole
from core.axes import SAID_K, SAID_REST, completed, params_words
from core.bidi import CONTROLS
from core.metrics import Measure, ratio_of_means
from core.metrics.engine import to_depth
from core.number_format import ASSUMED_DIGITS, UNIT, cost_unit, percent
from core.prices import PriceBook
from core.records import Origin
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import remembered, schema

LEAST_JUDGED = 0.1
"""Judged share of what could be judged in a Top-K that some stack needs for a decision (metrics.md §9)."""
UNPROVEN = "has no evidence: "
"""Beginning of the note for a quality that is withheld because no evidence supports it."""
NO_JUDGEMENTS = f"{UNPROVEN}no judgements yet; generate them with an LLM, judge by hand, or import qrels"
AXES: Mapping[str, pl.DataType] = schema("mode sparse embedder dim:int32 index reranker candidates:int32")
"""The axes of a stack specification that pages colour, filter and sort by."""
CALLS = "pipeline_calls"
"""The signal with the number of retrievals that a custom pipeline made for a query."""
_QUALITY = schema(
    "quality:float quality_low:float quality_high:float n:int32 clusters:int32 cluster_kind quality_basis "
    "proc:float pct_proc:float proc_pool hole:float hole_low:float hole_high:float harm:float "
    "harm_upper:float unjudged_queries:int32 quality_note"
)
_WITHOUT_K = pl.col("name").str.replace(r"(, )?K = \d+", "")
_FIGURES = ("quality", "quality_low", "quality_high", "proc", "pct_proc", "hole_low", "hole_high")


def prompts(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    """Count the tokens that every run sends to the generator."""
    read = prompt_tokens(snapshot, runs["run_id"].to_list())
    specs = [json.loads(spec) for spec in runs["spec"]]
    sent = [_passages(*row) for row in zip(specs, runs["origin"], runs["candidates"], strict=True)]
    sizes = [_chunk(spec) for spec in specs]
    prompted = runs.select("run_id").with_columns(
        pl.Series("passages_sent", sent, dtype=pl.Float64), pl.Series("chunk", sizes, dtype=pl.Float64)
    )
    return prompted.join(read, on="run_id", how="left", maintain_order="left").select(
        "run_id",
        pl.coalesce("amount", pl.col("passages_sent") * pl.col("chunk")).alias("tokens_sent"),
        "passages_sent",
    )


def _calls(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    rows = snapshot.signals(runs["run_id"].to_list(), signal=CALLS)
    return rows.group_by("run_id").agg(pl.col("value").mean().alias("calls"))


def _passages(spec: Mapping[str, Any], origin: str, candidates: int | None) -> float | None:
    sent = spec.get("chunks_sent")
    if isinstance(sent, int):
        return float(sent)
    whole = origin == Origin.RUN.value and not spec.get("cut")
    return float(candidates) if whole and candidates is not None else None


def _chunk(spec: Mapping[str, Any]) -> float | None:
    """Return the tokens of a chunk, if the specification gives them."""
    chunker = spec.get("chunker")
    size = chunker.get("size") if isinstance(chunker, Mapping) else None
    return float(size) if isinstance(size, int | float) and not isinstance(size, bool) else None


def runs_in(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Return the runs of a workspace with their axes and a name that is unique among them.

    Returns:
        The columns of `Snapshot.runs`, `AXES`, params (of a custom pipeline, in words) and `name`,
        ordered by name, those that differ in K alone by K.

    Raises:
        UnknownNameError: If a chosen run does not exist in the collection.
    """
    runs = chosen_runs(snapshot, scope)
    specs = [json.loads(text) for text in runs["spec"]]
    axes = [
        pl.Series(axis, [spec.get(axis) for spec in specs], dtype=dtype, strict=False)
        for axis, dtype in AXES.items()
    ]
    axes.append(pl.Series("params", [params_words(spec) or None for spec in specs], dtype=pl.String))
    said = {"other texts": list(other_texts(runs)[0]), WHOLE: searched_whole(snapshot, scope.collection_id)}
    runs = runs.with_columns(*axes, _shallowest(runs))
    runs = runs.join(_said_labels(snapshot.runs(scope.collection_id)), on="run_id", maintain_order="left")
    runs = runs.with_columns(_unique_names(said)).drop("shallowest", "said_label")
    return runs.sort(_WITHOUT_K, "candidates", "name")


@remembered
def _said_labels(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the label of each run of a collection with the settings that set it apart there: said_label."""
    labels = list(map(completed, runs["label"], map(json.loads, runs["spec"])))
    whole = pl.Series("whole", labels, dtype=pl.String).str.replace_all(f"[{CONTROLS}]", "")
    short = pl.col("whole").str.replace(SAID_REST, "$1")
    others = pl.col("whole").str.replace(SAID_K, "").n_unique().over(short.str.replace(SAID_K, ""))
    said = pl.when(others == 1).then(short).otherwise("whole")
    return runs.select("run_id", whole).select("run_id", said_label=said)


def _shallowest(runs: pl.DataFrame) -> pl.Series:
    """Return which runs have the smallest K of those that differ in it alone, because nothing reads it."""
    alike = pl.Series("alike", [stack_of(spec) for spec in runs["spec"]], dtype=pl.String)
    depths = runs.select("run_id", "chunking", "spec", alike).drop_nulls("alike")
    depth = pl.col("spec").str.json_path_match(f"$.{DEPTH}").cast(pl.Int64, strict=False)
    first = depths.sort(depth, "run_id").unique(["alike", "chunking"], keep="first")
    return runs["run_id"].is_in(first["run_id"].implode()).alias("shallowest")


def _unique_names(said: Mapping[str, list[str]]) -> pl.Expr:
    """Return labels for display, followed by the run's id if they are shared, or empty.

    A K that nothing reads is in no name, unless another run differs in it alone.

    Args:
        said: The suffix for the labels of certain runs.
    """
    label = pl.col("said_label")
    label = pl.when("shallowest").then(label.str.replace(SAID_K, "")).otherwise(label)
    for words, odd in said.items():
        label = pl.when(pl.col("run_id").is_in(odd)).then(label + f" · {words}").otherwise(label)
    shared = (pl.len().over(label) > 1) | (label == "")
    return pl.when(shared).then(pl.format("{} · {}", label, pl.col("run_id"))).otherwise(label).alias("name")


def stack_table(
    snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: PriceBook
) -> pl.DataFrame:
    """Return quality, latency and cost of every run of the workspace.

    Args:
        quality: The measure and cutoff used as quality.
        latency: Percentile and scope of the latency.

    Returns:
        One row per run, ordered by name: the columns of `runs_in`, then quality (0..1, null = not applicable)
        (clusters and cluster_kind: the number and kind of groups of its n queries; null if each is its own)
        with its 95 % interval and n, proc and pct_proc (its ceiling), proc_pool (the pool of that ceiling, by
        `core.analysis.workspace.pools`; null = not stated), hole (share of unjudged passages in the Top-K),
        hole_low and hole_high (quality if every hole were of the worst, or the best, grade), further axes
        (`figures.beside`), latency_ms with interval, n, basis and note, calls (retrievals per
        query of a pipeline that reports them, mean), the columns of `lacks`, `costs`,
        `figures.latencies.jitters` and `core.analysis.workspace.stacks.prompts`, cost_noise
        (see `latencies.with_noise`), and how its costs are written (`core.number_format.UNIT`).
    """
    table = runs = runs_in(snapshot, scope)
    for part in (
        with_harm(_qualities(snapshot, runs, scope, quality), quality.k),
        beside(snapshot, runs, scope, quality),
        latencies(snapshot, runs, latency, groups(snapshot, scope).labels),
        costs(snapshot, runs, book, (scope, quality.k)),
        jitters(snapshot, runs, latency, scope.apart),
        lacks(snapshot, runs, scope, quality),
        prompts(snapshot, runs),
        _calls(snapshot, runs),
    ):
        table = table.join(part, on="run_id", how="left", maintain_order="left")
    assumed = assumed_prices(snapshot, table, book)
    return at_machine(said_alike(with_noise(table), assumed=assumed), latency.machine)


def said_alike(table: pl.DataFrame, *, assumed: bool = False) -> pl.DataFrame:
    """Add the unit and number of digits in which pages write a table's costs, the same for all of them.

    Costs at an assumed price have no more digits than the price is good for.
    """
    unit = cost_unit(table)
    unit = replace(unit, digits=ASSUMED_DIGITS) if assumed else unit
    said = zip(UNIT, unit.said, strict=True)
    return table.with_columns(pl.lit(value, pl.Int32).alias(name) for name, value in said)


def _qualities(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> pl.DataFrame:
    measure, golden, only = quality.measure, scope.golden_set_id, among(snapshot, scope)
    alike = groups(snapshot, scope)
    ranked = scored_here(snapshot, runs, scope, quality)
    parts = [pl.DataFrame(schema={"run_id": pl.String(), **_QUALITY})]
    if measure and golden and not ranked.is_empty():
        judged = evidence(snapshot, ranked["run_id"].to_list(), golden, (measure, quality.ceiling), only=only)
        bases = ranked.select("run_id", quality_basis=basis())
        pools = dict(snapshot.runs(scope.collection_id).select("run_id", "pool").iter_rows())
        computed = _computed(judged, measure, quality.ceiling, pools, alike).join(bases, on="run_id")
        if lacking := _no_evidence(snapshot, judged, golden, measure):
            figures = (pl.lit(None, pl.Float64).alias(name) for name in _FIGURES)
            computed = computed.with_columns(*figures, quality_note=pl.lit(f"{UNPROVEN}{lacking}"))
        parts.append(computed)
    rest = runs.join(ranked, on="run_id", how="anti")
    reported = _reported(snapshot, rest, quality, only, alike)
    if golden is None:
        ids = runs.filter("has_rankings")["run_id"].to_list()
        bare = pl.col("quality").is_null() & pl.col("run_id").is_in(ids)
        reported = reported.with_columns(quality_note=pl.when(bare).then(pl.lit(NO_JUDGEMENTS)))
    if measure and "answers" in measure.info.needs:
        trials = pl.col("run_id").is_in(made_up(snapshot, rest["run_id"].to_list()))
        note = pl.when(trials & pl.col("quality").is_null()).then(pl.lit(f"{UNPROVEN}{MADE_UP}"))
        reported = reported.with_columns(quality_note=note)
    parts.append(reported)
    rows = pl.concat(parts, how="diagonal_relaxed")
    kind = pl.when(pl.col("clusters").is_not_null()).then(pl.lit(alike.kind))
    return rows.with_columns(cluster_kind=kind).select("run_id", *_QUALITY)


def _no_evidence(snapshot: Snapshot, graded: Evidence, golden: str, measure: Measure) -> str:
    """Explain why scores on a golden set are no evidence, or return "" if they are.

    A Top-K can hold no more judged passages than its query has: with one per query, nine of ten results
    are not expected to be judged.
    """
    judge = snapshot.golden_sets().filter(golden_set_id=golden)["judge"].to_list()
    if judge and {part.strip() for part in str(judge[0] or "").split(",")} == {TRIAL}:
        return f"all grades are by the judge {TRIAL}, which makes them up"
    k = measure.k or graded.depth
    if "answers" in measure.info.needs or not graded.query_ids:
        return ""
    top = to_depth(graded.grades, k)
    could = np.minimum(graded.pool_counts.sum(axis=-1), k).sum(axis=-1)
    judged = (top > 0).sum(axis=(1, 2)) / np.maximum(could, 1)
    if not (top == 0).any() or (judged >= LEAST_JUDGED).any():
        return ""
    unjudged = (top == 0).sum() / max(1, (top >= 0).sum())
    return f"{percent(float(unjudged))} of the Top-{k} passages are unjudged"


def _computed(
    graded: Evidence,
    measure: Measure,
    ceiling: Measure | None,
    pools: Mapping[str, str | None],
    alike: Groups,
) -> pl.DataFrame:
    values = at_cutoff(graded, measure)
    if not values.shape[1]:  # the runs have no judged query in common
        nothing = {"run_id": graded.run_ids, "n": [0] * len(graded.run_ids)}
        return pl.DataFrame(nothing, schema={"run_id": pl.String, "n": pl.Int32})
    means, n = mean(values)
    low, high = mean_interval(values, "shares", clusters=alike.labels(graded.query_ids))
    worst, best = bounds(graded, measure)
    usual = None if any(n) else applies_to_none(graded, measure)
    hole, harm = (mean(at_cutoff(graded, Measure(name, measure.k)))[0] for name in ("Hole", "Harm"))
    columns = pl.DataFrame(
        {
            "run_id": graded.run_ids,
            "quality": means,
            "quality_low": low,
            "quality_high": high,
            "n": n,
            "clusters": alike.counts(values, graded.query_ids),
            "hole": hole,
            "hole_low": worst,
            "hole_high": best,
            "harm": harm,
            "harm_upper": harm + hole,
            "unjudged_queries": graded.unjudged_queries,
            "quality_note": [
                None if some else lacking or usual
                for some, lacking in zip(n, unperturbed(graded, measure), strict=True)
            ],
        },
        schema_overrides={"quality_note": pl.String},
    )
    if ceiling is not None:
        highest = at_cutoff(graded, ceiling)
        columns = columns.with_columns(
            pl.Series("proc", mean(highest)[0]),
            pl.Series("proc_pool", [pools[run_id] for run_id in graded.pool_runs], dtype=pl.String),
            pl.Series("pct_proc", ratio_of_means(values[..., None], highest[..., None])[..., 0]),
        )
    return columns.with_columns(pl.col(pl.Float64).fill_nan(None))


def _ceilings(snapshot: Snapshot, runs: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """Return the reported ceilings of some runs: run_id, proc and proc_pool (its convention)."""
    ids, every = runs["run_id"].to_list(), snapshot.runs(runs["collection_id"][0] if runs.height else None)
    measure = pl.col("measure") == f"PROC[{quality.bare}]"
    known = snapshot.aggregates(ids).filter(measure, pl.col("k") == quality.k)
    others = deeper(every) if known.height else {}
    more = [other for run_id in ids for other in others.get(run_id, ())]
    values = dict(
        snapshot.aggregates([*ids, *more]).filter(measure, pl.col("k") == quality.k)
        .unique("run_id", keep="first").select("run_id", "value").iter_rows()
    )  # fmt: skip
    pools = dict(every.select("run_id", "pool").iter_rows())
    found = {
        run_id: next((other for other in (*others.get(run_id, ()), run_id) if other in values), None)
        for run_id in ids
    }
    rows = [(run_id, values[other], pools[other]) for run_id, other in found.items() if other is not None]
    return pl.DataFrame(rows, schema=schema("run_id proc:float proc_pool"), orient="row")


def _reported(
    snapshot: Snapshot, runs: pl.DataFrame, quality: Quality, only: Collection[str] | None, alike: Groups
) -> pl.DataFrame:
    """Return quality of runs whose rankings are not scored here."""
    figures = snapshot.aggregates(runs["run_id"].to_list()).filter(pl.col("k") == quality.k)
    beside = {"harm": "Harm", "hole": "Hole", "harm_upper": "HarmUpper"}
    main = as_reported(snapshot, runs["run_id"].to_list(), quality, only=only, alike=alike)
    main = main.select("run_id", "n", "clusters", quality="value", quality_low="low", quality_high="high")
    rows = runs.select("run_id", quality_basis=basis()).join(main, on="run_id", how="left")
    for name, measure in beside.items():
        values = figures.filter(pl.col("measure") == measure).unique("run_id", keep="first")
        rows = rows.join(values.select("run_id", pl.col("value").alias(name)), on="run_id", how="left")
    rows = rows.join(_ceilings(snapshot, runs, quality), on="run_id", how="left")
    return rows.with_columns(
        harm_upper=pl.coalesce("harm_upper", pl.col("harm") + pl.col("hole")),
        pct_proc=pl.col("quality") / pl.col("proc"),
    ).drop("hole")
