"""Judge noise of a workspace: who audited its golden set, and the stacks' means on the auditor's grades."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import Evidence, evidence
from core.analysis.workspace.stacks import runs_in
from core.arrays import Floats, Grades
from core.decide.joint import JointSample
from core.decide.rules import Decision
from core.errors import UnknownNameError
from core.metrics import Measure
from core.number_format import count, interval, percent, score, shorten
from core.stats.intervals import SEED, query_weights
from core.stats.judge_noise import JudgedSample, audited, places, replicates
from core.store import Snapshot

LEAST = 50  # Passages of the current golden set that another judge must have graded to draw from
MOST_STACKS = 200
RESAMPLES = 500  # Resamples with drawn grades; fewer than without, because each scores every stack again
OFF = "off"
_FAIR = {"at random", "stratified"}  # by the judge's grade, which indexes the rows of the confusion
PAIR = ("query_id", "passage_id")
_JUDGE = 90  # Letters of a judge's description
_RAISED = " It is higher than measured because wrong grades hide how good the best stacks are."
_ENDS = ("quality", "quality_low", "quality_high")


@dataclass(frozen=True, eq=False)
class Noise:
    """The means of stacks with judge noise, resample by resample."""

    golden_set_id: str  # the golden set whose grades count as the truth
    passages: int  # number of passages that both judged
    run_ids: tuple[str, ...]  # the stacks
    means: Floats  # [S, R]; NaN = not applicable
    seed: int = SEED  # of the draw
    fair: bool = True  # whether the passages that both judged were drawn at random, whatever their rank
    judge: str = ""  # who graded them the second time, in the golden set's words
    lower: int = 0  # how many of them the second judge graded lower
    higher: int = 0

    @cached_property
    def spread(self) -> pl.DataFrame:
        """The mean of each stack's draws with its central 95 %: run_id, noisy, noisy_low, noisy_high."""
        enough = (~np.isnan(self.means)).sum(axis=1) > 1
        means = self.means[enough]
        low, high = np.nanquantile(means, (0.025, 0.975), axis=1)
        ids = pl.Series(self.run_ids, dtype=pl.String).filter(pl.Series(enough))
        noisy = np.nanmean(means, axis=1)
        return pl.DataFrame({"run_id": ids, "noisy": noisy, "noisy_low": low, "noisy_high": high})


@cached(entries=64)
def auditors(snapshot: Snapshot, scope: Scope, least: int = LEAST) -> dict[str, int]:
    """List golden sets of the collection by another judge that share at least `least` passages.

    Returns:
        By id the number of passages that both judge, the most first. A set made from the current one, or that
        the current one was made from, is excluded: it would agree with itself.
    """
    own = scope.golden_set_id
    if own is None:
        return {}
    sets = snapshot.golden_sets(scope.collection_id).filter(pl.col("judgements") >= least)
    mine = sets.filter(pl.col("golden_set_id") == own)
    if mine.is_empty() or sets.height < 2:
        return {}
    judge, parents = mine["judge"][0], list(mine["parents"][0])
    others = sets.filter(
        (pl.col("golden_set_id") != own)
        & ~pl.col("golden_set_id").is_in(parents)
        & ~pl.col("parents").list.contains(own)
        & (pl.col("judge").ne_missing(judge) | pl.lit(not judge))
    )
    judged = snapshot.within(own).select(PAIR)
    common = {
        name: judged.join(snapshot.within(name).select(PAIR), on=PAIR, how="semi").height
        for name in others["golden_set_id"]
    }
    return {name: n for name, n in sorted(common.items(), key=lambda item: (-item[1], item[0])) if n >= least}


@cached(entries=64)
def usual_auditor(snapshot: Snapshot, scope: Scope) -> str | None:
    """Return the default golden set to draw from: the first of `auditors` that is a mere sample.

    If both golden sets are complete, neither is the truth for the other unless somebody says so.
    """
    sizes = dict(snapshot.golden_sets(scope.collection_id).select("golden_set_id", "judgements").rows())
    others = auditors(snapshot, scope)
    return next((name for name in others if sizes[name] < sizes[str(scope.golden_set_id)]), None)


def auditor(snapshot: Snapshot, scope: Scope, asked: str | None) -> str | None:
    """Return the golden set to draw from: the requested one, none for `OFF`, the default one for None.

    Raises:
        UnknownNameError: If that set does not audit the current one.
    """
    if asked is None or asked == OFF:
        return None if asked else usual_auditor(snapshot, scope)
    known = auditors(snapshot, scope)
    if asked not in known:
        raise UnknownNameError("golden set that audits this one", asked, [*known, OFF])
    return asked


def about_grades(quality: Quality) -> bool:
    """Return whether a measure depends on grades and ranks alone."""
    measure = quality.measure
    return measure is not None and not measure.info.needs and not measure.info.needs_pool


def refusal(snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality) -> str:
    """Explain why no judge noise can be drawn, or return "" if it can."""
    measure, ranked = quality.measure, table.filter("has_rankings")["run_id"].to_list()
    if measure is None or scope.golden_set_id is None or not ranked:
        return "there are no results per query"
    if not about_grades(quality):
        return f"{quality.name} looks at more than grades and ranks"
    if len(ranked) > MOST_STACKS:
        return f"{count(len(ranked), 'stack')} are too many to score anew ({MOST_STACKS} at most)"
    if set(snapshot.judging(ranked, scope.golden_set_id).values()) != {scope.golden_set_id}:
        return "the grades are anchored to documents"
    return ""


def noise(
    snapshot: Snapshot,
    table: pl.DataFrame,
    scope: Scope,
    quality: Quality,
    reference: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    queries: Sequence[str] = (),
) -> Noise | None:
    """Draw the grades of a reference judge in the bootstrap of a workspace's queries.

    Args:
        table: The stack table, or some of its rows.
        reference: The golden set whose grades count as the truth, one of `auditors`.
        queries: The queries to resample, including unjudged ones; empty = the judged ones.

    Returns:
        None if it cannot be drawn (`refusal`), or nothing was judged by both.
    """
    measure, golden = quality.measure, scope.golden_set_id
    if refusal(snapshot, table, scope, quality) or measure is None or golden is None:
        return None
    ranked = table.filter("has_rankings")["run_id"].to_list()
    graded = evidence(snapshot, ranked, golden, [measure], only=among(snapshot, scope))
    rows = snapshot.within(golden).join(
        snapshot.within(reference).select(*PAIR, known="grade"), on=PAIR, how="left"
    )
    grade, known = (rows[name].fill_null(0).to_numpy().astype(np.int8) for name in ("grade", "known"))
    rankings = snapshot.rankings(ranked, stage="final")
    fair = at_random(snapshot, scope, reference)
    counts = audited(grade, known, None if fair else _best_places(snapshot, scope, rows))
    if not known.any() or not graded.query_ids:
        return None
    asked = pl.Series(list(queries or graded.query_ids), dtype=pl.String)
    drawn = query_weights(len(asked), resamples, seed, groups(snapshot, scope).labels(asked.to_list()))
    columns = [asked.index_of(name) for name in graded.query_ids]
    never = np.zeros(resamples)  # queries to which the measure applies on no stack are not resampled
    drawn = np.column_stack([never if at is None else drawn[:, at] for at in columns])
    judged = of_rows(graded, rows, rankings, measure)

    def scoring(grades: np.ndarray, pools: np.ndarray) -> Floats:
        return graded.rescored(measure, grades, pools)

    means = replicates(judged, counts, scoring, drawn, seed=seed)
    sets = snapshot.golden_sets(scope.collection_id)
    judge = sets.row(by_predicate=pl.col("golden_set_id") == reference, named=True)["judge"] or ""
    both = known > 0
    apart = (int((both & (known < grade)).sum()), int((known > grade).sum()))
    return Noise(reference, int(both.sum()), graded.run_ids, means, seed, fair, judge, *apart)


def samplings(snapshot: Snapshot, scope: Scope, reference: str) -> list[str]:
    """Return how the passages of a golden set by people were drawn, or [] if it does not say."""
    rows = snapshot.golden_sets(scope.collection_id).filter(golden_set_id=reference)
    queues = [
        queue for manifest in rows["manifest"] for queue in json.loads(manifest or "{}").get("queues") or ()
    ]
    return sorted({str(queue.get("sampling") or "unknown") for queue in queues})


def at_random(snapshot: Snapshot, scope: Scope, reference: str) -> bool:
    """Return whether passages were drawn at random within a grade, as far as the golden set says."""
    drawn = samplings(snapshot, scope, reference)
    return bool(drawn) and set(drawn) <= _FAIR


def _best_places(snapshot: Snapshot, scope: Scope, rows: pl.DataFrame) -> Grades:
    """Return the best rank of every passage over all stacks of the workspace."""
    ranked = runs_in(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    best = snapshot.rankings(ranked, stage="final").group_by(PAIR).agg(pl.col("rank").min())
    rank = rows.select(PAIR).join(best, on=PAIR, how="left", maintain_order="left")["rank"].fill_null(0)
    return places(rank.to_numpy().astype(np.int64))


def of_rows(graded: Evidence, rows: pl.DataFrame, rankings: pl.DataFrame, measure: Measure) -> JudgedSample:
    """Return judged passages and their positions in the stacks."""
    queries = {name: place for place, name in enumerate(graded.query_ids)}
    rows = (
        rows.filter(pl.col("query_id").is_in(list(queries)))
        .with_columns(query=pl.col("query_id").replace_strict(queries, return_dtype=pl.Int64))
        .sort("query", maintain_order=True)
        .with_row_index("row")
    )
    runs = {name: place for place, name in enumerate(graded.run_ids)}
    met = rankings.join(rows.select(*PAIR, "row", "query"), on=PAIR).select(
        "row", "query", "rank", run=pl.col("run_id").replace_strict(runs, return_dtype=pl.Int64)
    )
    run, query, row, rank = (met[name].to_numpy() for name in ("run", "query", "row", "rank"))
    rank_of = np.zeros((len(runs), rows.height), dtype=np.int64)
    rank_of[run, row] = rank
    top = graded.grades[:, :, : measure.k]
    slots = np.where(top < 0, rows.height + 1, rows.height).astype(np.intp)
    shown = rank <= slots.shape[2]
    slots[run[shown], query[shown], rank[shown] - 1] = row[shown]
    return JudgedSample(
        query=rows["query"].to_numpy().astype(np.intp),
        grade=rows["grade"].to_numpy().astype(np.int8),
        known=rows["known"].fill_null(0).to_numpy().astype(np.int8),
        place=places(rank_of),
        slots=slots,
    )


def with_noise(table: pl.DataFrame, sample: JointSample | None, drawn: Noise | None) -> JointSample | None:
    """Return results per query with the judge noise of their stacks; unchanged if none was drawn."""
    if sample is None or drawn is None:
        return sample
    rows = pl.DataFrame({"run_id": drawn.run_ids, "place": range(len(drawn.run_ids))})
    places = table.select("run_id").join(rows, on="run_id", how="left", maintain_order="left")["place"]
    means = np.vstack([drawn.means, np.full(drawn.means.shape[1], np.nan)])
    return replace(sample, noisy=means[places.fill_null(-1).to_numpy()])


def noisy_rows(table: pl.DataFrame, drawn: Noise | None) -> pl.DataFrame:
    """Return quality with its 95 % interval on the reference's grades, row by row of a table.

    The uncertainty from the queries stays: the interval is never narrower than the one without judge noise
    (metrics.md §7), although the drawn grades are smoother than real ones.

    Args:
        table: run_id, with quality, quality_low and quality_high.

    Returns:
        run_id, noisy, noisy_low, noisy_high; null if nothing was drawn.
    """
    names = ("noisy", "noisy_low", "noisy_high")
    none = {"run_id": pl.String, **dict.fromkeys(names, pl.Float64)}
    rows = pl.DataFrame(schema=none) if drawn is None else drawn.spread
    held = table.select("run_id", *_ENDS).join(rows, on="run_id", how="left", maintain_order="left")
    quality, low, high = map(pl.col, _ENDS)
    return held.select(
        "run_id",
        "noisy",
        noisy_low=pl.min_horizontal("noisy_low", pl.col("noisy") - (quality - low)),
        noisy_high=pl.max_horizontal("noisy_high", pl.col("noisy") + (high - quality)),
    )


def as_written(row: Mapping[str, Any]) -> str:
    """Format the quality of a row of `noisy_rows` with its interval."""
    return f"{score(row['noisy'])}{interval(row['noisy_low'], row['noisy_high'])}"


def noise_effect(table: pl.DataFrame, decision: Decision, noisy: Noise, quality: Quality) -> str:
    """Describe another judge, how often it graded alike, and its effect on the choice."""
    apart, by = noisy.lower + noisy.higher, noisy.judge or "one not on record"
    alike = f"{percent(1 - apart / noisy.passages)} of {count(noisy.passages, 'passage')}"
    more = f", {noisy.lower:,} lower and {noisy.higher:,} higher" if apart else ""
    said = f"A second judge ({shorten(by, _JUDGE)}) graded {alike} like the first{more}."
    if decision.chosen is None:
        return f"{said} The percentages hold such doubts."
    held = noisy_rows(table.slice(decision.chosen, 1), noisy).row(0, named=True)
    return f"{said} The percentages hold such doubts; {quality.name} with them is {as_written(held)}."


def noise_words(table: pl.DataFrame, decision: Decision, noisy: Noise, quality: Quality) -> str:
    """Describe the effect of another judge's grades on the choice, and how to read it."""
    said, chosen = noise_effect(table, decision, noisy, quality), decision.chosen
    raised = chosen is not None and bool((noisy_rows(table, noisy)["noisy"] > table["quality"])[chosen])
    doubt = "" if noisy.fair else " These passages may not be typical."
    return f"{said}{_RAISED if raised and quality.higher_is_better else ''}{doubt}"
