"""One query: what each stack ranks, what that earns, what its pool would allow and what the pool lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from core.metrics import Grades, Measure, Weighting, ideal_gain, score_at, weights
from core.store import Snapshot
from core.views.scope import Quality, Scope

ROWS = 20
"""Ranks shown at least; down to K where that is deeper."""
LONGEST = 5_000
"""Characters of a passage that are shown at most."""
RELEVANT = 4
_PREVIEW = 160


@dataclass(frozen=True)
class Side:
    """What one stack makes of the query.

    Every table ends with passage_id, passage (its title, or the id), preview and text.

    Attributes:
        name: The stack.
        score: The measure of the workspace at its cutoff; None where it is not applicable.
        best: Its PROC: the same for the best ordering of the candidate pool.
        gain: G_obs, the weights collected by the Top-K.
        reachable: The weights that the best ordering of the pool collects.
        ranked: Length of the ranking.
        ranking: rank, grade (text; "unjudged"), weight (within the Top-K), points (score of the ranking),
            change (against the other stack).
        oracle: The best ordering of the pool at K as far as it earns anything: place, grade, weight, now
            (its rank in the ranking, null = left out).
        missed: Relevant passages (grade 4 or 5) that the pool lacks: grade, weight.
    """

    name: str
    score: float | None
    best: float | None
    gain: float
    reachable: float
    ranked: int
    ranking: pl.DataFrame
    oracle: pl.DataFrame
    missed: pl.DataFrame


@dataclass(frozen=True)
class OneQuery:
    """The query with its judgements and one or two sides.

    Attributes:
        weigher: RA-nWG at the cutoff, with the parameters of the workspace where it is its measure.
        grades: grade, passages (judged with it), weight; best grade first.
        judged: Number of judged passages.
        ideal: G_ideal at K; 0 when nothing that is judged earns anything.
        sides: One per stack.
    """

    weigher: Measure
    grades: pl.DataFrame
    judged: int
    ideal: float
    sides: tuple[Side, ...]


def one_query(
    snapshot: Snapshot, scope: Scope, quality: Quality, query_id: str, runs: Mapping[str, str]
) -> OneQuery:
    """Read one query.

    Args:
        snapshot: Where to read.
        scope: Collection and golden set.
        quality: Measure and cutoff.
        query_id: The query.
        runs: One or two runs with rankings: run_id to name.

    Returns:
        The query; a run without a stored pool could choose from its final ranking only.

    Raises:
        UnknownNameError: If the collection, the golden set or a run does not exist.
    """
    judged = _judged(snapshot, scope, query_id)
    counts = np.bincount(judged["grade"].to_numpy(), minlength=6)[1:]
    weigher = _weigher(quality)
    each = weights(counts, Weighting.from_values(weigher.values))
    weighed = judged.with_columns(pl.Series("weight", each[judged["grade"].to_numpy() - 1], dtype=pl.Float64))
    ranked = snapshot.rankings(list(runs), query_id=query_id).join(
        weighed, on="passage_id", how="left", maintain_order="left"
    )
    sides = [_side(ranked, run_id, name, weighed, quality) for run_id, name in runs.items()]
    return OneQuery(
        weigher=weigher,
        grades=pl.DataFrame({"grade": range(5, 0, -1), "passages": counts[::-1], "weight": each[::-1]}),
        judged=judged.height,
        ideal=float(ideal_gain(counts[None], each[None], quality.k)[0, -1]) if judged.height else 0.0,
        sides=_with_texts(snapshot, scope, sides),
    )


def _judged(snapshot: Snapshot, scope: Scope, query_id: str) -> pl.DataFrame:
    if scope.golden_set_id is None:
        return pl.DataFrame(schema={"passage_id": pl.String, "grade": pl.Int8})
    judged = snapshot.judgements(scope.golden_set_id)
    return judged.filter(pl.col("query_id") == query_id).select("passage_id", "grade")


def _weigher(quality: Quality) -> Measure:
    measure = quality.measure
    return measure if measure and measure.name == "RA-nWG" else Measure("RA-nWG", quality.k)


def _side(ranked: pl.DataFrame, run_id: str, name: str, judged: pl.DataFrame, quality: Quality) -> Side:
    own = ranked.filter(pl.col("run_id") == run_id)
    final, pool = (own.filter(pl.col("stage") == stage) for stage in ("final", "pool"))
    pool = final if pool.is_empty() else pool
    others = ranked.filter((pl.col("run_id") != run_id) & (pl.col("stage") == "final"))
    oracle = _oracle(final, pool, quality.k)
    score, best = (_value(measure, final, pool, judged) for measure in (quality.measure, quality.ceiling))
    return Side(
        name=name,
        score=score,
        best=best,
        gain=float(final.filter(pl.col("rank") <= quality.k)["weight"].sum()),
        reachable=float(oracle["weight"].sum()),
        ranked=final.height,
        ranking=_ranking(final, others, quality.k, judged=judged.height > 0),
        oracle=oracle,
        missed=judged.filter(pl.col("grade") >= RELEVANT)
        .join(pool, on="passage_id", how="anti")
        .sort("grade", "passage_id", descending=[True, False])
        .select("grade", "weight", "passage_id"),
    )


def _value(
    measure: Measure | None, final: pl.DataFrame, pool: pl.DataFrame, judged: pl.DataFrame
) -> float | None:
    """The measure of this one ranking; None where it is not applicable or nothing is judged."""
    if measure is None or judged.is_empty():
        return None
    counts = np.bincount(judged["grade"].to_numpy(), minlength=6)[None, 1:]
    value = float(score_at(measure, _slots(final), counts, pool_grades=_slots(pool))[0])
    return None if np.isnan(value) else value


def _slots(ranking: pl.DataFrame) -> Grades:
    """A ranking as grades [1, depth]: 0 unjudged, -1 where no passage has the rank."""
    ranks = ranking["rank"].to_numpy()
    slots = np.full((1, ranks.max(initial=0)), -1, dtype=np.int8)
    slots[0, ranks - 1] = ranking["grade"].fill_null(0).to_numpy()
    return slots


def _ranking(final: pl.DataFrame, others: pl.DataFrame, k: int, *, judged: bool) -> pl.DataFrame:
    """The ranking as it is read; a weight counts only down to K, and a change only where there is another."""
    grade = pl.col("grade").cast(pl.String)
    up = pl.col("before").cast(pl.Int64) - pl.col("rank")
    change = (
        pl.when(up.is_null()).then(pl.lit("new"))
        .when(up > 0).then(pl.format("▲ {}", up))
        .when(up < 0).then(pl.format("▼ {}", up.abs()))
        .otherwise(pl.lit("="))
    )  # fmt: skip
    return (
        final.filter(pl.col("rank") <= max(k, ROWS))
        .join(
            others.select("passage_id", pl.col("rank").alias("before")),
            on="passage_id",
            how="left",
            maintain_order="left",
        )
        .select(
            "rank",
            (grade.fill_null("unjudged") if judged else grade).alias("grade"),
            pl.when((pl.col("rank") <= k) & judged).then(pl.col("weight").fill_null(0)).alias("weight"),
            pl.col("score").alias("points"),
            (pl.lit(None, pl.String) if others.is_empty() else change).alias("change"),
            "passage_id",
        )
    )


def _oracle(final: pl.DataFrame, pool: pl.DataFrame, k: int) -> pl.DataFrame:
    now = final.select("passage_id", pl.col("rank").alias("now"))
    return (
        pool.filter(pl.col("weight") > 0)
        .join(now, on="passage_id", how="left")
        .sort("weight", "grade", "rank", descending=[True, True, False])
        .head(k)
        .with_row_index("place", offset=1)
        .select("place", "grade", "weight", "now", "passage_id")
    )


def _with_texts(snapshot: Snapshot, scope: Scope, sides: Sequence[Side]) -> tuple[Side, ...]:
    """The sides with passage, preview and text in their tables; a passage that is not stored has no text."""
    tables = [table for side in sides for table in (side.ranking, side.oracle, side.missed)]
    wanted = pl.concat([table["passage_id"] for table in tables]).unique().to_list() if tables else []
    found = snapshot.passages(scope.collection_id, wanted).select("passage_id", "title", "text")
    flat = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()

    def told(table: pl.DataFrame) -> pl.DataFrame:
        return table.join(found, on="passage_id", how="left", maintain_order="left").select(
            *table.columns,
            pl.coalesce(pl.col("title").replace("", None), "passage_id").alias("passage"),
            flat.str.slice(0, _PREVIEW).alias("preview"),
            "text",
        )

    return tuple(
        replace(side, ranking=told(side.ranking), oracle=told(side.oracle), missed=told(side.missed))
        for side in sides
    )


def shown_text(passage: str) -> tuple[str, str]:
    """A passage as far as it is shown, and a note where it was cut."""
    if len(passage) <= LONGEST:
        return passage, ""
    return passage[:LONGEST], f"The first {LONGEST:,} of {len(passage):,} characters."
