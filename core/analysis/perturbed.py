"""Perturbed runs of a workspace beside their clean siblings, and what perturbed queries cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.paired import alike, alike_means
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among, asked_in, chosen_runs
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence, mean, unperturbed
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.diagnostics.noise import CLEAN, EFFECTS, NONE, effects, kin, siblings
from core.errors import InputError
from core.metrics import Measure
from core.stats.intervals import Labels
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import Row

TYPED = ~pl.col("perturb").str.contains("names ", literal=True)
"""Perturbations that people type; other names are masked by a program."""
QUICK = ("wordllama",)  # Embedders fast enough for a page to call while drawing
ROBUST = pl.Schema(
    [
        *((name, pl.String) for name in ("run_id", "stack", "rewrite")),
        ("n", pl.Int32),
        *((name, pl.Float64) for name in ("clean", "robust", "low", "high", "lost")),
        ("reason", pl.String),
    ]
)
"""Columns of `robust_table`."""


@dataclass(frozen=True)
class Gathered:
    """The perturbed stacks of a workspace and their clean siblings, on the queries common to all."""

    rows: pl.DataFrame  # from `core.diagnostics.noise.siblings`
    query_ids: tuple[str, ...]  # judged queries that every run was asked
    values: Mapping[str, Floats]  # quality per query by run
    clusters: Labels | None = None  # per query, equal within a group; None = each is independent

    def __bool__(self) -> bool:
        return not self.rows.is_empty()


def rewritten(stack: str, rewrite: str) -> str:
    """Return a stack with its rewrite, if any, in human-readable form."""
    return stack if rewrite == NONE else f"{stack} · {rewrite}"


def gather(snapshot: Snapshot, scope: Scope, quality: Quality) -> Gathered:
    """Read the effect of noise on the stacks of a workspace; empty if none was asked perturbed queries.

    A stack is included with all its rewrites and perturbations if any of its runs is chosen, on the queries
    the workspace is scored on.
    """
    runs = snapshot.runs(scope.collection_id).filter("has_rankings")
    rows = siblings(runs.filter(~pl.col("run_id").is_in(list(scope.apart.ids))))
    chosen = (
        {relative.family for relative in kin(chosen_runs(snapshot, scope)).values()} if rows.height else set()
    )
    rows = _named(rows.filter(pl.col("family").is_in(list(chosen))), runs_in(snapshot, scope))
    if rows.is_empty() or scope.golden_set_id is None or quality.measure is None:
        return Gathered(rows.clear(), (), {})
    ids, only = rows["run_id"].to_list(), among(snapshot, scope)
    graded = evidence(snapshot, ids, scope.golden_set_id, [quality.measure], only=only)
    asked = asked_in(graded, snapshot.timings).all(axis=0)
    graded = graded.among({graded.query_ids[place] for place in np.flatnonzero(asked).tolist()})
    if not graded.query_ids:
        return Gathered(rows.clear(), (), {})
    scored = at_cutoff(graded, quality.measure)
    labels = groups(snapshot, scope).labels(graded.query_ids)
    return Gathered(rows, graded.query_ids, dict(zip(graded.run_ids, scored, strict=True)), labels)


def _named(rows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Use the workspace's stack names if the clean run without a rewrite is among its runs."""
    clean = rows.filter(perturb=CLEAN, rewrite=NONE).join(runs.select("run_id", "name"), on="run_id")
    of = dict(clean.select("family", "name").iter_rows())
    return rows.with_columns(stack=pl.col("family").replace_strict(of, default=pl.col("stack")))


def effect_table(snapshot: Snapshot, gathered: Gathered, quality: Quality) -> pl.DataFrame:
    """Measure the cost of perturbing and the recovery by rewriting: `EFFECTS` and the median rewrite time.

    Returns:
        `EFFECTS` with rewrite_ms (p50 over queries; null without a rewrite or if nothing was timed).
    """
    if not gathered:
        return pl.DataFrame(schema=EFFECTS).with_columns(rewrite_ms=pl.lit(None, pl.Float64))
    ids = gathered.rows["run_id"].to_list()
    runs = snapshot.runs().filter(pl.col("run_id").is_in(ids))

    def both(first: str, second: str) -> tuple[float | None, float | None]:
        return alike_means(alike(snapshot, runs, quality.k, first, second))

    timed = snapshot.timings(ids).filter(pl.col("stage") == "rewrite")
    took = timed.group_by("run_id").agg(rewrite_ms=pl.col("ms").median())
    changes = effects(gathered.rows, gathered.values, both, gathered.clusters)
    return changes.join(took, on="run_id", how="left", maintain_order="left")


@cached("Comparing perturbed queries…")
def noise_effects(view: View) -> tuple[Gathered, pl.DataFrame]:
    """Return the runs with perturbed queries, and what the perturbations cost, the best stack first."""
    runs = gather(view.snapshot, view.scope, view.quality)
    return runs, better_first(effect_table(view.snapshot, runs, view.quality), view.quality)


def better_first(table: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """Sort stacks by their quality on the original queries, the best first; rows of a stack stay together."""
    clean = pl.col("quality").filter(pl.col("perturb") == CLEAN, pl.col("rewrite") == NONE)
    at = clean.first().over("family")
    return table.sort(at, descending=quality.higher_is_better, nulls_last=True, maintain_order=True)


def hardest(table: pl.DataFrame, quality: Quality) -> Row | None:
    """Return the perturbation that costs the best stack most, without a rewrite; None if none is compared.

    Other names are left to section Names: nobody types a mask.
    """
    rows = table.filter(pl.col("rewrite") == NONE, pl.col("change").is_not_null(), TYPED)
    if rows.is_empty():
        return None
    first = rows.filter(family=rows["family"][0])
    return first.sort("change", descending=not quality.higher_is_better).row(0, named=True)


def robust_table(snapshot: Snapshot, scope: Scope, gathered: Gathered, measure: Measure) -> pl.DataFrame:
    """Return quality under the worst of the original queries and chosen perturbations, per query.

    Args:
        measure: Robust[X] with its cutoff and the perturbations; `core.metrics.robust` defines it.

    Returns:
        run_id (the clean run's), stack, rewrite, n, clean, robust, low, high (95 %), lost (robust − clean)
        and reason; the most robust first. A stack without a run for each perturbation has no value.
    """
    rows = gathered.rows.filter(perturb=CLEAN)
    if rows.is_empty() or scope.golden_set_id is None:
        return pl.DataFrame(schema=ROBUST)
    asked = frozenset(gathered.query_ids)
    graded = evidence(snapshot, rows["run_id"].to_list(), scope.golden_set_id, [measure], only=asked)
    lacking = unperturbed(graded, measure)
    robust, clean = at_cutoff(graded, measure), at_cutoff(graded, measure.unwrapped)
    means, n = mean(robust)
    low, high = mean_interval(robust, "shares", clusters=groups(snapshot, scope).labels(graded.query_ids))
    table = rows.select("run_id", "stack", "rewrite").with_columns(
        n=pl.Series(n, dtype=pl.Int32),
        clean=mean(np.where(np.isnan(robust), np.nan, clean))[0],
        robust=means,
        low=low,
        high=high,
        reason=pl.Series([why or None for why in lacking], dtype=pl.String),
    )
    table = table.with_columns(pl.col(pl.Float64).fill_nan(None), lost=pl.col("robust") - pl.col("clean"))
    return table.select(*ROBUST).sort(
        "robust", "stack", descending=[measure.info.higher_is_better, False], nulls_last=True
    )


def per_query(
    gathered: Gathered, family: str, rewrite: str = NONE, *, higher_is_better: bool = True
) -> pl.DataFrame:
    """Return a stack's queries with the quality under each perturbation, the worst affected first.

    Returns:
        query_id, clean, a column per perturbation, hurt_by (the perturbation of the worst value, null if
        none is worse than clean) and lost (that value − clean).
    """
    rows = gathered.rows.filter(family=family, rewrite=rewrite)
    named = {row["perturb"]: gathered.values[row["run_id"]] for row in rows.to_dicts()}
    if CLEAN not in named:
        raise InputError("The stack was not run with the queries as they are.")
    clean = named.pop(CLEAN)
    table = pl.DataFrame({"query_id": gathered.query_ids, "clean": clean, **named}).fill_nan(None)
    worst_of = pl.min_horizontal(*named) if higher_is_better else pl.max_horizontal(*named)
    first = pl.coalesce(pl.when(pl.col(perturb) == worst_of).then(pl.lit(perturb)) for perturb in named)
    lost = worst_of - pl.col("clean")
    worse = lost < 0 if higher_is_better else lost > 0
    return table.with_columns(hurt_by=pl.when(worse).then(first), lost=lost).sort(
        "lost", "query_id", descending=[not higher_is_better, False], nulls_last=True
    )


def drops(snapshot: Snapshot, gathered: Gathered) -> pl.DataFrame:
    """Return how far small talk moves the vectors of a workspace's queries, beside the CLQ paper's Table 12.

    Covers only embedders that have perturbed runs and take milliseconds here; `diagnose noise
    --embedder` covers others.

    Returns:
        model, language, perturb, cosine, drop, share, n and source; empty if there is no such embedder.
    """
    from core.diagnostics.vectors import measured, published  # noqa: PLC0415 - takes long to load
    from core.providers.embed import make_embedder  # noqa: PLC0415

    runs = snapshot.runs().filter(pl.col("run_id").is_in(gathered.rows["run_id"].to_list()))
    asked = dict.fromkeys(
        (spec["embedder"], spec["dim"], spec["perturb"].get("language", "english"))
        for spec in map(json.loads, runs["spec"])
        if isinstance(spec.get("perturb"), dict) and spec.get("embedder") in QUICK and spec.get("dim")
    )
    if not asked:
        return pl.DataFrame()
    queries = snapshot.queries(runs["collection_id"][0])
    texts = queries.filter(pl.col("query_id").is_in(gathered.query_ids))["text"].drop_nulls().to_list()
    if not texts:
        return pl.DataFrame()
    parts = [measured(texts, make_embedder(name, dim), language) for name, dim, language in asked]
    spoken = {part["language"][0] for part in parts}
    return pl.concat([*parts, published().filter(pl.col("language").is_in(spoken))], how="diagonal")
