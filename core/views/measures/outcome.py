"""Answers with grades, and which retrieval measure predicts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from core.analysis.workspace.query_sets import asked_in
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.scores import Evidence, evidence
from core.analysis.workspace.stacks import runs_in
from core.arrays import Floats
from core.metrics import Measure
from core.stats.correlation import BestAlpha, CorrelationKind, best_alpha, correlate
from core.store import Snapshot

REFERENCE = "F"
MEASURES = ("F", "F_e", "T", "T_u", "nDCG-found", "nDCG", "P", "R", "RR", "RA-nWG")
"""Measures that are correlated; the paper's own first (its nDCG takes its ideal from what was found)."""
RELEVANT_FROM = 4  # Minimum grade of a relevant passage; the measures' default
ALL = "all answers"
ALPHAS = tuple(round(step / 20, 2) for step in range(21))
CURVES = ("F", "T")
SEGMENT_SIZE = 300  # Minimum samples in a segment of K / Np (Schwartz et al., §3.1)
LEVELS = 7  # Maximum distinct grades shown one by one; more are put into five ranges


@dataclass(frozen=True)
class Samples:
    """Graded answers of a workspace."""

    # run_id, name, query_id, tags, k, grade, relevant (Np), ratio (K / Np, one decimal), width ("narrow"
    # if K < Np, otherwise "wide"), and a column per measure (null = not applicable)
    rows: pl.DataFrame
    scale: str  # the scale of the grades; if several occur, only the most frequent one is kept
    left_out: Mapping[str, int]  # reason → number of answers
    found: Evidence  # the grades behind it, for scoring other parameters
    # Position of each row in `found`: int64 [n, 3] run, query, K − 1
    places: np.ndarray[tuple[int, int], np.dtype[np.int64]]

    def values(self, measure: Measure) -> Floats:
        """Return a measure at each answer's own K: float64 [n], NaN if not applicable."""
        scored = self.found.score([measure])[measure]
        run, query, k = self.places.T
        values: Floats = scored[run, query, k]
        return values

    def curve(self, name: str, alphas: Sequence[float]) -> Floats:
        """Return a measure at every value of its parameter alpha: float64 [alphas, n]."""
        return np.array([self.values(Measure(name, None, (("alpha", alpha),))) for alpha in alphas])


def samples(snapshot: Snapshot, scope: Scope) -> Samples | None:
    """Read the graded answers of a workspace and score the passages they were written from.

    Args:
        scope: The workspace; needs a golden set.

    Returns:
        The samples, or None if no run with rankings has graded answers to judged queries.
    """
    runs = runs_in(snapshot, scope).filter("has_rankings")
    if scope.golden_set_id is None or runs.is_empty():
        return None
    found_answers = snapshot.graded_answers(runs["run_id"].to_list())
    answers = found_answers.with_columns(pl.col("scale").fill_null("unknown"))
    graded = answers.filter(pl.col("grade").is_not_null() & (pl.col("k") >= 1))
    if graded.is_empty():
        return None
    ids = [run_id for run_id in runs["run_id"] if run_id in set(graded["run_id"])]
    graded_runs = evidence(snapshot, ids, scope.golden_set_id)
    scale = str(graded["scale"].value_counts().sort("count", "scale", descending=True)["scale"][0])
    placed = _placed(graded.filter(pl.col("scale") == scale), graded_runs)
    judged = placed.filter(pl.col("query").is_not_null() & (pl.col("k") <= graded_runs.depth))
    asked = asked_in(graded_runs, snapshot.timings)
    known = judged.filter(asked[tuple(judged.select("run", "query").to_numpy().astype(np.int64).T)])
    if known.is_empty():
        return None
    left_out = {
        "no grade, or no K": answers.height - graded.height,
        "graded on another scale": graded.height - placed.height,
        "query without judgements, or K deeper than the ranking": placed.height - judged.height,
        "query that the run does not rank": judged.height - known.height,
    }
    places = known.select("run", "query", (pl.col("k") - 1).cast(pl.Int64)).to_numpy().astype(np.int64)
    samples_of = Samples(
        rows=_rows(snapshot, scope, runs, known, graded_runs),
        scale=scale,
        left_out={reason: count for reason, count in left_out.items() if count},
        found=graded_runs,
        places=places,
    )
    scored = [pl.Series(name, samples_of.values(Measure(name)), nan_to_null=True) for name in MEASURES]
    return replace(samples_of, rows=samples_of.rows.with_columns(scored))


def _placed(graded: pl.DataFrame, evidence: Evidence) -> pl.DataFrame:
    runs = {run_id: place for place, run_id in enumerate(evidence.run_ids)}
    queries = {query_id: place for place, query_id in enumerate(evidence.query_ids)}
    return graded.with_columns(
        run=pl.col("run_id").replace_strict(runs, return_dtype=pl.Int64),
        query=pl.col("query_id").replace_strict(queries, default=None, return_dtype=pl.Int64),
    ).sort("run", "query", "k")


def _rows(
    snapshot: Snapshot, scope: Scope, runs: pl.DataFrame, known: pl.DataFrame, evidence: Evidence
) -> pl.DataFrame:
    run, query = known["run"].to_numpy(), known["query"].to_numpy()
    counts = np.broadcast_to(evidence.pool_counts, (len(evidence.run_ids), len(evidence.query_ids), 5))
    relevant = counts[run, query, RELEVANT_FROM - 1 :].sum(axis=-1)
    tags = snapshot.queries(scope.collection_id).select("query_id", "tags")
    k, total = pl.col("k"), pl.col("relevant")
    return (
        known.select("run_id", "query_id", "k", "grade")
        .with_columns(pl.Series("relevant", relevant))
        .join(runs.select("run_id", "name"), on="run_id", how="left", maintain_order="left")
        .join(tags, on="query_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(total > 0).then((k / total).round(1)).alias("ratio"),
            pl.when(k < total).then(pl.lit("narrow")).otherwise(pl.lit("wide")).alias("width"),
        )
    )


@dataclass(frozen=True)
class Curve:
    """The alpha curve of one measure."""

    name: str  # "F" or "T"
    best: BestAlpha  # the curve with its best alpha, in sample and cross-validated


def segments(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return the segments offered, by name: all, narrow (K < Np), wide, and one per tag."""
    tags = rows["tags"].explode(empty_as_null=True).drop_nulls().unique().sort()
    return {
        ALL: pl.lit(True),
        "narrow (K < Np)": pl.col("width") == "narrow",
        "wide (K ≥ Np)": pl.col("width") == "wide",
        **{str(tag): pl.col("tags").list.contains(tag).fill_null(False) for tag in tags},
    }


def correlations(
    samples: Samples, kind: CorrelationKind, keep: pl.Expr, tuned: Sequence[Curve] = ()
) -> pl.DataFrame:
    """Return the coefficient of every measure with the answer's grade.

    Args:
        tuned: Measures with a tuned alpha; each is a row beside the one with alpha = 0.5, with its
            coefficient on queries not used for tuning.

    Returns:
        measure, value, low, high (95 %, over queries), n (answers), queries, note; the best first.
    """
    rows = samples.rows.filter(keep)
    rows_of: list[tuple[object, ...]] = []
    for name in MEASURES:
        values = rows[name].to_numpy()
        coefficient = correlate(values, rows["grade"].to_numpy(), rows["query_id"].to_numpy(), kind=kind)
        queries = rows.filter(pl.col(name).is_not_null())["query_id"].n_unique()
        rows_of.append(
            (
                name,
                coefficient.value,
                coefficient.low,
                coefficient.high,
                coefficient.n,
                queries,
                coefficient.reason or None,
            )
        )
    for name, best in ((curve.name, curve.best) for curve in tuned):
        known, note = rows.filter(pl.col(name).is_not_null()), None
        if best.best is not None and best.in_sample is not None:
            note = (
                f"alpha = {best.best:g}; across folds, {best.in_sample:.3f} on the same answers (optimistic)"
            )
        counts = (known.height, known["query_id"].n_unique())
        rows_of.append((f"{name}, alpha chosen", best.cross_validated, None, None, *counts, note))
    columns = {
        "measure": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64,
        "queries": pl.Int64, "note": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows_of, schema=columns, orient="row").sort("value", descending=True, nulls_last=True)


def curves(samples: Samples, kind: CorrelationKind, keep: pl.Expr) -> list[Curve]:
    """Return how the coefficients of F and T depend on alpha."""
    kept = samples.rows.select("k", keep.alias("kept"))["kept"].to_numpy()
    rows = samples.rows.filter(kept)
    return [
        Curve(
            name,
            best_alpha(
                samples.curve(name, ALPHAS)[:, kept],
                ALPHAS,
                rows["grade"].to_numpy(),
                rows["query_id"].to_numpy(),
                kind=kind,
            ),
        )
        for name in CURVES
    ]


def ranked_samples(samples: Samples, keep: pl.Expr) -> pl.DataFrame:
    """Count ranked queries by run, candidates and relevant passages (recall_t_measure, Table 1).

    Returns:
        name, candidates (passages that the run ranked for the query, Nc), relevant (Np), k_from and k_to (of
        the answers), ranked (queries, nr) and n (answers, ng); sorted.
    """
    ranked = (samples.found.grades >= 0).sum(axis=2)
    run, query, _ = samples.places.T
    rows = samples.rows.with_columns(pl.Series("candidates", ranked[run, query]))
    return (
        rows.filter(keep)
        .group_by("name", "candidates", "relevant")
        .agg(
            k_from=pl.col("k").min(), k_to=pl.col("k").max(), ranked=pl.col("query_id").n_unique(), n=pl.len()
        )
        .sort("name", "candidates", "relevant")
    )


def graded_samples(samples: Samples, keep: pl.Expr) -> pl.DataFrame:
    """Count ranked queries and graded answers of every run, narrow and wide (recall_t_measure, Table 2).

    Returns:
        name, ranked (queries, nr), n (answers, ng), narrow (those with K < Np) and wide; sorted by name.
    """
    return (
        samples.rows.filter(keep)
        .group_by("name")
        .agg(
            ranked=pl.col("query_id").n_unique(), n=pl.len(),
            narrow=(pl.col("width") == "narrow").sum(), wide=(pl.col("width") == "wide").sum(),
        )
        .sort("name")
    )  # fmt: skip


def differences(
    samples: Samples, kind: CorrelationKind, keep: pl.Expr, measures: tuple[str, str], least: int
) -> pl.DataFrame:
    """Return a measure's coefficient minus another's, by run and K / Np.

    Args:
        measures: Two of `MEASURES`: the measure and its reference.

    Returns:
        name, ratio, n, value, reference, difference (null if one of the two is not defined), sorted.
    """
    known = pl.all_horizontal(pl.col("ratio", *set(measures)).is_not_null())
    gaps = []
    for (name, ratio), rows in samples.rows.filter(keep & known).group_by("name", "ratio"):
        if rows.height >= least:
            grade = rows["grade"].to_numpy()
            value, reference = (
                correlate(rows[column].to_numpy(), grade, kind=kind, resamples=0).value for column in measures
            )
            gaps.append((name, ratio, rows.height, value, reference))
    columns = {"name": pl.String, "ratio": pl.Float64, "n": pl.Int64, "value": pl.Float64}
    return (
        pl.DataFrame(gaps, schema={**columns, "reference": pl.Float64}, orient="row")
        .with_columns((pl.col("value") - pl.col("reference")).alias("difference"))
        .sort("name", "ratio")
    )


def curve_table(curves: Sequence[Curve]) -> pl.DataFrame:
    """Return the curves as a table: alpha and a column per measure, null if not defined."""
    columns = {"alpha": ALPHAS} | {curve.name: curve.best.values for curve in curves}
    return pl.DataFrame(columns).fill_nan(None)


def distribution(samples: Samples, keep: pl.Expr, least: int) -> pl.DataFrame:
    """Return the distribution of the answers' grades, by run and K / Np (Schwartz et al., Figures 2 to 4).

    Returns:
        name, ratio, grade (a level in words), place (of the level, lowest first), n and share of the answers
        of the run at that ratio; sorted.
    """
    rows = samples.rows.filter(keep & pl.col("ratio").is_not_null())
    place, words = _levels(rows["grade"].to_numpy())
    return (
        rows.with_columns(pl.Series("place", place, dtype=pl.Int64))
        .group_by("name", "ratio", "place")
        .agg(pl.len().alias("n"))
        .with_columns((pl.col("n") / pl.col("n").sum().over("name", "ratio")).alias("share"))
        .filter(pl.col("n").sum().over("name", "ratio") >= least)
        .with_columns(
            pl.col("place").replace_strict(dict(enumerate(words)), return_dtype=pl.String).alias("grade")
        )
        .select("name", "ratio", "grade", "place", "n", "share")
        .sort("name", "ratio", "place")
    )


def _levels(grades: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[np.ndarray, list[str]]:
    """Return the level of every grade, and the levels in words: its values, or five ranges if many."""
    values = np.unique(grades)
    if len(values) <= LEVELS:
        return np.searchsorted(values, grades), [f"{value:g}" for value in values]
    edges = np.linspace(values[0], values[-1], 6)
    words = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    return np.clip(np.searchsorted(edges, grades, side="right") - 1, 0, 4), words
