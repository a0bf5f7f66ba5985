"""One query: each stack's ranking, what it scores, what its pool would allow and what the pool lacks.

It also shows one query of a stack with typing noise: the effect of each perturbation on its ranking.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.query_sets import asked_in
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence
from core.diagnostics.noise import CLEAN, kin, perturbed_runs
from core.metrics import Measure, Weighting, ideal_gain, weights
from core.metrics.access import FORBIDDEN, UNKNOWN
from core.pipeline.query.perturb import NAMES, perturbed
from core.stats.correlation import agreement
from core.store import Snapshot
from core.store.read.access import Access
from core.views import text

ROWS = 20  # Minimum ranks shown; down to K if that is deeper
LONGEST = 1_200  # Characters of a passage shown at once; the rest is folded
RELEVANT = 4
OUTSIDE = {FORBIDDEN: "forbidden by the asker's filter", UNKNOWN: "not known whether the asker may see it"}
TYPED = pl.Schema(
    {
        **dict.fromkeys(("run_id", "perturb", "typed"), pl.String),
        **dict.fromkeys(("score", "change", "overlap"), pl.Float64),
    }
)
"""Columns of `typed`."""
AT_ZERO = "This query scores 0 as it is: no perturbation can lower it."


@dataclass(frozen=True)
class Side:
    """Ranking of one stack for the query, and its scores.

    Every table ends with passage_id, passage (its title, or the id), source and text.
    """

    name: str  # the stack
    # The measure of the workspace at its cutoff; None if not applicable or unknown
    score: float | None
    best: float | None  # its PROC: the same for the best ordering of the candidate pool
    gain: float  # G_obs, the weights collected by the Top-K
    reachable: float  # the weights that the best ordering of the pool collects
    ranked: int  # length of the ranking
    # Whether the stack was asked the query: it has a ranking, candidates or a time for it
    asked: bool
    # rank, grade (null = unjudged), weight (within the Top-K), points (score of the ranking), before (its
    # rank in the other stack), change (from there; null if that one searched differently cut passages), and
    # if a reranker gave reasons for its ratings, reason
    ranking: pl.DataFrame
    # The best ordering of the pool at K down to the last non-zero weight: place, grade, weight, now (its rank
    # in the ranking, null = left out)
    oracle: pl.DataFrame
    missed: pl.DataFrame  # relevant passages (grade 4 or 5) that the pool lacks: grade, weight
    judged: JudgedPassages  # the judgements on the passages that the stack searched


@dataclass(frozen=True)
class JudgedPassages:
    """The judged passages of the query."""

    golden_set_id: str | None  # whose judgements; a part if the stack's passages were cut by a chunker
    passages: pl.DataFrame  # passage_id, grade, weight
    grades: pl.DataFrame  # grade, passages (number judged with it), weight; best grade first
    ideal: float  # G_ideal at K; 0 if no judged passage has a weight


@dataclass(frozen=True)
class OneQuery:
    """The query with one or two sides."""

    weigher: Measure  # RA-nWG at the cutoff, with the parameters of the workspace if it is its measure
    sides: tuple[Side, ...]  # one per stack
    filter: str = ""  # which passages the asker may see, as JSON; "" = all

    @property
    def judged(self) -> tuple[JudgedPassages, ...]:
        """The judgements, once if all sides share them."""
        return tuple({side.judged.golden_set_id: side.judged for side in self.sides}.values())


def one_query(
    snapshot: Snapshot, scope: Scope, quality: Quality, query_id: str, runs: Mapping[str, str]
) -> OneQuery:
    """Read one query.

    Args:
        runs: One or two runs with rankings: run_id to name.

    Returns:
        The query; a run's candidates are the pool that its ceiling is computed from.

    Raises:
        UnknownNameError: If the collection, the golden set or a run does not exist.
    """
    measure, golden, ids = quality.measure, scope.golden_set_id, list(runs)
    weigher = measure if measure and measure.name == "RA-nWG" else Measure("RA-nWG", quality.k)
    judges = snapshot.judging(ids, golden) if golden is not None else dict.fromkeys(ids)
    judged = {name: _judged(snapshot, name, query_id, weigher) for name in set(judges.values())}
    ranked = snapshot.rankings(ids, query_id=query_id)
    searched = snapshot.searched(ids)
    sides = []
    for run_id, name in runs.items():
        same = [other for other in ids if searched[other] == searched[run_id]]
        comparable = ranked.filter(pl.col("run_id").is_in(same))
        pool = _pool(snapshot, run_id, golden, query_id)
        side = _side((comparable, pool), run_id, name, judged[judges[run_id]], quality)
        asked = side.asked or query_id in snapshot.timings([run_id])["query_id"]
        score, best = _scores(snapshot, run_id, golden, query_id, quality) if asked else (None, None)
        side = replace(side, score=score, best=best, asked=asked)
        side = _with_reasons(snapshot, run_id, query_id, side)
        side = _with_states(snapshot.access(searched[run_id]), query_id, side)
        sides.append(_with_texts(snapshot, searched[run_id], side))
    access = snapshot.access(scope.collection_id)
    own = None if access is None else access.filters.get(query_id)
    return OneQuery(weigher, tuple(sides), "" if own is None else own.text)


def _judged(snapshot: Snapshot, golden_set_id: str | None, query_id: str, weigher: Measure) -> JudgedPassages:
    passages = pl.DataFrame(schema={"passage_id": pl.String, "grade": pl.Int8})
    if golden_set_id is not None:
        rows = snapshot.within(golden_set_id).filter(pl.col("query_id") == query_id)
        passages = rows.select("passage_id", "grade")
    grades = passages["grade"].to_numpy()
    counts = np.bincount(grades, minlength=6)[1:]
    weight_of = weights(counts, Weighting.from_values(weigher.values))
    return JudgedPassages(
        golden_set_id=golden_set_id,
        passages=passages.with_columns(pl.Series("weight", weight_of[grades - 1], dtype=pl.Float64)),
        grades=pl.DataFrame({"grade": range(5, 0, -1), "passages": counts[::-1], "weight": weight_of[::-1]}),
        ideal=float(ideal_gain(counts[None], weight_of[None], weigher.k or 1)[0, -1]) if len(grades) else 0.0,
    )


def _pool(snapshot: Snapshot, run_id: str, golden_set_id: str | None, query_id: str) -> pl.DataFrame:
    if golden_set_id is not None:
        (run_id,) = evidence(snapshot, [run_id], golden_set_id, [Measure("PROC[RA-nWG]")]).pool_runs
    ranked = snapshot.rankings([run_id], query_id=query_id)
    pool, final = (ranked.filter(pl.col("stage") == stage) for stage in ("pool", "final"))
    return final if pool.is_empty() else pool


def _side(
    rows: tuple[pl.DataFrame, pl.DataFrame], run_id: str, name: str, judged: JudgedPassages, quality: Quality
) -> Side:
    weighed = judged.passages
    ranked, pool = (part.join(weighed, on="passage_id", how="left", maintain_order="left") for part in rows)
    final = ranked.filter(pl.col("run_id") == run_id, pl.col("stage") == "final")
    others = ranked.filter((pl.col("run_id") != run_id) & (pl.col("stage") == "final"))
    oracle = _oracle(final, pool, quality.k)
    return Side(
        name=name,
        score=None,
        best=None,
        gain=float(final.filter(pl.col("rank") <= quality.k)["weight"].sum()),
        reachable=float(oracle["weight"].sum()),
        ranked=final.height,
        asked=pool.height > 0,
        ranking=_ranking(final, others, quality.k, judged=weighed.height > 0),
        oracle=oracle,
        missed=weighed.filter(pl.col("grade") >= RELEVANT)
        .join(pool, on="passage_id", how="anti")
        .sort("grade", "passage_id", descending=[True, False])
        .select("grade", "weight", "passage_id"),
        judged=judged,
    )


def _scores(
    snapshot: Snapshot, run_id: str, golden_set_id: str | None, query_id: str, quality: Quality
) -> tuple[float | None, float | None]:
    """Compute measure and ceiling for this query; None if it is not applicable or nothing is judged."""
    wanted = quality.measure, quality.ceiling
    if golden_set_id is None or quality.measure is None:
        return None, None
    graded = evidence(snapshot, [run_id], golden_set_id, wanted)
    if query_id not in graded.query_ids:
        return None, None
    position = graded.query_ids.index(query_id)
    values = [
        float("nan") if wanted_measure is None else float(at_cutoff(graded, wanted_measure)[0, position])
        for wanted_measure in wanted
    ]
    score, best = (None if np.isnan(value) else value for value in values)
    return score, best


def _ranking(final: pl.DataFrame, others: pl.DataFrame, k: int, *, judged: bool) -> pl.DataFrame:
    """Return the ranking in display form; weights count down to K only."""
    up = pl.col("before").cast(pl.Int64) - pl.col("rank")
    change = (
        pl.when(up.is_null()).then(pl.lit("new"))
        .when(up > 0).then(pl.format("▲ {}", up))
        .when(up < 0).then(pl.format("▼ {}", up.abs()))
        .otherwise(pl.lit("="))
    )  # fmt: skip
    before = others.select("passage_id", pl.col("rank").alias("before"))
    return (
        final.filter(pl.col("rank") <= max(k, ROWS))
        .join(before, on="passage_id", how="left", maintain_order="left")
        .select(
            "rank",
            "grade",
            pl.when((pl.col("rank") <= k) & judged).then(pl.col("weight").fill_null(0)).alias("weight"),
            pl.col("score").alias("points"),
            "before",
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


def _with_reasons(snapshot: Snapshot, run_id: str, query_id: str, side: Side) -> Side:
    """Return the side with the reasons for a reranker's ratings, if there are any."""
    rows = snapshot.ratings([run_id], query_id=query_id).drop_nulls("reason")
    if rows.is_empty():
        return side
    why = rows.select("passage_id", "reason")
    return replace(side, ranking=side.ranking.join(why, on="passage_id", how="left", maintain_order="left"))


def _with_states(access: Access | None, query_id: str, side: Side) -> Side:
    """Return the side with what its ranking shows that the asker's filter forbids: column outside."""
    if access is None or query_id not in access.filters:
        return side
    ids = side.ranking["passage_id"]
    states = access.states(pl.Series([query_id] * ids.len(), dtype=pl.String), ids)
    outside = pl.Series("outside", [OUTSIDE.get(state) for state in states.tolist()], dtype=pl.String)
    return replace(side, ranking=side.ranking.with_columns(outside))


def _with_texts(snapshot: Snapshot, collection_id: str, side: Side) -> Side:
    """Return the side with passage, source and text in its tables; passages not stored have no text."""
    wanted = pl.concat([table["passage_id"] for table in (side.ranking, side.oracle, side.missed)])
    passages = snapshot.passages(collection_id, wanted.unique().to_list())
    title = pl.col("title").replace("", None).alias("passage")
    texts = passages.select("passage_id", title, "source", "text")
    ranking, oracle, missed = (
        table.join(texts, on="passage_id", how="left", maintain_order="left").with_columns(
            pl.col("passage").fill_null(pl.col("passage_id"))
        )
        for table in (side.ranking, side.oracle, side.missed)
    )
    return replace(side, ranking=ranking, oracle=oracle, missed=missed)


def shown_text(passage: str) -> tuple[str, str]:
    """Return the part of a passage shown at once, up to the end of a line or a word, and the rest."""
    if len(passage) <= LONGEST:
        return passage, ""
    ends = [passage.rfind(blank, LONGEST // 2, LONGEST) for blank in ("\n", " ")]
    end = next((place for place in ends if place > 0), LONGEST)
    return passage[:end], passage[end:].lstrip()


def typed(snapshot: Snapshot, scope: Scope, quality: Quality, run_id: str, query_id: str) -> pl.DataFrame:
    """Read how a run's siblings with perturbed queries rank a query.

    Returns:
        `TYPED`, the most harmful first: run, perturbation, the typed query (null if only the run knows it),
        the score, its difference from the original query's, and the share of the Top-K kept; empty
        if there are no such runs. Null if a run was not asked it or the measure doesn't apply.
    """
    siblings = _siblings(snapshot, scope.collection_id, run_id)
    if not siblings or scope.golden_set_id is None or quality.measure is None:
        return pl.DataFrame(schema=TYPED)
    ids = [run_id, *siblings]
    graded = evidence(snapshot, ids, scope.golden_set_id, [quality.measure], only={query_id})
    if not graded.query_ids:
        return pl.DataFrame(schema=TYPED)
    values = np.where(asked_in(graded, snapshot.timings), at_cutoff(graded, quality.measure), np.nan)[:, 0]
    scores = dict(zip(graded.run_ids, values.tolist(), strict=True))
    ranked = snapshot.rankings(ids, query_id=query_id).filter(
        pl.col("stage") == "final", pl.col("rank") <= quality.k
    )
    own = ranked.filter(run_id=run_id)
    said = snapshot.queries(scope.collection_id).filter(query_id=query_id)["text"].to_list()
    rows = []
    for other, (name, perturb) in siblings.items():
        same = agreement(own, ranked.filter(run_id=other), quality.k)["overlap"].to_list()
        known = bool(said and said[0]) and NAMES not in perturb
        rows.append(
            {
                "run_id": other,
                "perturb": name,
                "typed": perturbed(said[0], perturb) if known else None,
                "score": scores[other],
                "change": scores[other] - scores[run_id],
                "overlap": same[0] if same else None,
            }
        )
    worst_last = not quality.higher_is_better
    table = pl.DataFrame(rows, schema=TYPED).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.sort("change", "perturb", descending=[worst_last, False], nulls_last=True)


def _siblings(
    snapshot: Snapshot, collection_id: str, run_id: str
) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return the newest run of this run's stack on each kind of perturbed queries, with the perturbation."""
    runs = snapshot.runs(collection_id).filter("has_rankings")
    own = kin(runs.filter(run_id=run_id)).get(run_id)
    if own is None or own.perturb != CLEAN:
        return {}
    newest = {}
    noisy = perturbed_runs(runs)
    for (name, key), spec in zip(kin(noisy).items(), noisy["spec"], strict=True):
        if key._replace(perturb=CLEAN) == own:
            newest[key.perturb] = (name, json.loads(spec)["perturb"])
    return {name: (way, perturb) for way, (name, perturb) in newest.items()}


def answer(rows: pl.DataFrame, quality: Quality) -> str:
    """Say which perturbation of the query hurts most."""
    worst = rows.drop_nulls("change").head(1).to_dicts()
    sign = 1 if quality.higher_is_better else -1
    if worst and sign > 0 and worst[0]["score"] == worst[0]["change"]:
        return AT_ZERO
    if not worst or sign * worst[0]["change"] >= 0:
        return f"None of {text.count(rows.height, 'perturbation')} that were run makes this query worse."
    of = f"{text.signed(worst[0]['change'])} {quality.name}"
    return f"{worst[0]['perturb'].capitalize()} hurts this query most: {of}."


def mark(row: Mapping[str, Any], k: int, *, clean: bool) -> str:
    """Describe how a passage's rank differs between the original and the perturbed query, or return "".

    Args:
        clean: Whether it is in the ranking of the original query.
    """
    there = row["before"]
    if there == row["rank"]:
        return ""
    at = "" if there is None else f", now #{there}" if clean else f", was #{there}"
    if row["rank"] <= k and (there is None or there > k):
        return f"{'lost' if clean else 'new'}{at}"
    return "" if clean or there is None else f"{row['change']}{at}"
