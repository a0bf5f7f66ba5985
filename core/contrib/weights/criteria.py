"""A reranker's criteria compared: whether they interact, and whether kinds of question differ.

REBEL leaves interaction of criteria open (LeVine and Varjavand, appendix G.1). Ratings are stored, so
neither costs a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from core.analysis.kinds import tagged
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.contrib.weights.weighable import Weighable
from core.decide.weighing import FOLDS, tuned
from core.stats.means import mean_interval
from core.views import columns as cols
from core.views import text
from core.views.blocks import Blocks, Fold, Table, Text

LEAST = 4 * FOLDS
"""Queries of a kind from which on weights are tuned for it: at least four per fold."""
HOW_PAIRS = (
    "Both criteria at their equal weight − each alone + relevance alone: above 0 they help one another. "
    "Paired by query; the intervals hold for all pairs together (Bonferroni)."
)
HOW_KINDS = (
    "A fifth of the queries of a kind at a time is weighed by what is best for the other four fifths of it, "
    "or of all queries. The intervals hold for all kinds together (Bonferroni)."
)
_ENDS = ("low", "high")
PAIRS = cols.Rows(
    "criteria_pairs",
    cols.text("pair", "criteria", width=260),
    cols.signed("both", help="Over relevance alone."),
    cols.signed("interaction", help="Beyond the sum of each alone."),
    "low high",
    "n",
    ends="95 % for all pairs together.",
)
KINDS = cols.Rows(
    "criteria_by_kind",
    "tag n",
    cols.score("common", "common weights", "Tuned on other queries of all kinds."),
    cols.score("own", "own weights", "Tuned on other queries of the kind."),
    cols.signed("gain", help="Own over common."),
    "low high",
    cols.text("weights", "own weights, which", width=420),
    ends="95 % for all kinds together.",
)


def _row(names: Sequence[str], figures: Sequence[float]) -> dict[str, float | None]:
    return {
        name: None if np.isnan(value) else float(value) for name, value in zip(names, figures, strict=True)
    }


def pairs(read: Weighable, threshold: float) -> pl.DataFrame:
    """Return the gain of two criteria beyond their sum: pair, both, interaction, low, high, n.

    The strongest comes first; the table is empty if queries have criteria of their own.
    """
    count = len(read.names)
    kinds = {"pair": pl.String, **dict.fromkeys(("both", "interaction", *_ENDS), pl.Float64), "n": pl.Int64}
    couples = [] if read.inferred else list(combinations(range(count), 2))
    if not couples:
        return pl.DataFrame(schema=kinds)
    alone = np.eye(count) * read.equal
    none, single = read.scored(np.zeros(count), threshold)[0], read.scored(alone, threshold)
    both = read.scored(np.stack([alone[one] + alone[two] for one, two in couples]), threshold)
    firsts, seconds = (single[list(places)] for places in zip(*couples, strict=True))
    beyond = both - firsts - seconds + none
    low, high = mean_interval(beyond, "differences", level=1 - 0.05 / len(couples), clusters=read.clusters)
    rows = [
        {"pair": f"{read.names[one]} × {read.names[two]}", "n": int((~np.isnan(beyond[at])).sum())}
        | _row(
            ("both", "interaction", *_ENDS),
            (np.nanmean(both[at] - none), np.nanmean(beyond[at]), low[at], high[at]),
        )
        for at, (one, two) in enumerate(couples)
    ]
    return pl.DataFrame(rows, schema=kinds).sort(
        pl.col("interaction").abs(), "pair", descending=[True, False]
    )


def by_kind(view: View, read: Weighable, weights: Floats, values: Floats) -> pl.DataFrame:
    """Tune weights per kind of question, and compare them with common weights, the largest gain first.

    Args:
        weights: [W, C] to choose from.
        values: [W, Q], the measure under each.

    Returns:
        tag, n, common, own (the measure on held-out queries), gain, low, high, weights (in words).
    """
    kinds = {"tag": pl.String, "n": pl.Int64, **dict.fromkeys(("common", "own", "gain", *_ENDS), pl.Float64)}
    up = view.quality.higher_is_better
    shared = values[tuned(values, view.seed, higher_is_better=up), np.arange(values.shape[1])]
    found = []
    for tag, mask in tagged(view, read.graded.query_ids).items():
        counted = mask & ~np.isnan(values[0])
        part = values[:, counted]
        if part.shape[1] >= LEAST:
            picked = tuned(part, view.seed, higher_is_better=up)
            own = part[picked, np.arange(part.shape[1])]
            alike = None if read.clusters is None else read.clusters[counted]
            found.append((tag, shared[counted], own, weights[np.unique(picked)], alike))
    rows = []
    for tag, common, own, chosen, alike in found:
        level = 1 - 0.05 / len(found)
        low, high = mean_interval(own - common, "differences", level=level, clusters=alike)
        spans = zip(read.names, chosen.min(axis=0), chosen.max(axis=0), strict=True)
        words = ", ".join(f"{name} {a:g}" if a == b else f"{name} {a:g}–{b:g}" for name, a, b in spans)
        figures = (common.mean(), own.mean(), (own - common).mean(), low[0], high[0])
        rows.append(
            {"tag": tag, "n": len(own), "weights": words} | _row(("common", "own", "gain", *_ENDS), figures)
        )
    table = pl.DataFrame(rows, schema={**kinds, "weights": pl.String})
    return table.sort("gain", descending=up)


def beside(view: View, read: Weighable, weights: Floats, values: Floats, threshold: float) -> Blocks:
    """Yield both tables, each with its explanation."""
    rows = pairs(read, threshold)
    if rows.height:
        yield Fold("Do two criteria help one another?", [
            Text(of_pairs(rows)), Table(rows, PAIRS), Text(HOW_PAIRS, "caption"),
        ])  # fmt: skip
    kinds = by_kind(view, read, weights, values)
    if kinds.height:
        yield Fold("Weights by kind of query", [
            Text(of_kinds(kinds)), Table(kinds, KINDS), Text(HOW_KINDS, "caption"),
        ])  # fmt: skip


def _sure(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter((pl.col("low") > 0) | (pl.col("high") < 0))


def of_pairs(rows: pl.DataFrame) -> str:
    """Say which pair is significantly more, or less, than the sum of both."""
    sure = _sure(rows)
    if sure.is_empty():
        return f"No interaction is significant, of {text.count(rows.height, 'pair')}."
    row = sure.row(0, named=True)
    words = "more" if row["interaction"] > 0 else "less"
    ends = text.interval(row["low"], row["high"])
    gain = f"{text.signed(row['interaction'])}{ends}, {text.sample(row['n'])}"
    return f"{row['pair']} is worth {words} than the sum: {gain}."


def of_kinds(rows: pl.DataFrame) -> str:
    """Say whether separate weights significantly help a kind of question."""
    sure = _sure(rows)
    if sure.is_empty():
        return f"No kind of query surely gains by weights of its own ({text.count(rows.height, 'kind')})."
    row = sure.row(0, named=True)
    ends = text.interval(row["low"], row["high"])
    gain = f"{text.signed(row['gain'])}{ends}"
    return f"{row['tag']} changes by {gain} with weights of its own, {text.sample(row['n'])}."
