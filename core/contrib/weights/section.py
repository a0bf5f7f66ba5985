"""Page What if: other weights of the criteria that a reranker rated passages on, replayed free of charge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.telling import rated
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.contrib.weights import criteria
from core.contrib.weights.weighable import Weighable, rated_runs, weighable
from core.decide.weighing import offered, tuned
from core.providers.rerank.criteria import AUTHORITY, THRESHOLD
from core.stats.means import mean_interval
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask, run_of
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, section
from core.views.text import score

USED, EQUAL, ALONE, CHOSEN = "as it ran", "equal weights", "relevance alone", "as chosen here"
TUNED, BEST, RETRIEVED = "tuned on other queries", "best on these very queries", "order of retrieval"
SAFETY = {
    "safety: verifiable": {"Precision": 0.5, AUTHORITY: 0.5},
    "safety: balanced views": {"Range of views": 1.0},
    "safety: credible sources": {AUTHORITY: 1.0},
}
"""Weights of the five fixed criteria for safety, from REBEL §7.1; others have no weight."""
MOST = 8  # maximum criteria with a slider
ABOUT_WEIGHT = "What a point of this rating, 0 to 5, adds to the relevance, 0 to 10. The paper's is 0.5."
ABOUT_THRESHOLD = "Passages of less relevance are discarded; what was discarded in the run has no ratings."
NOTHING = "No stack here was reranked by several criteria."
NEEDS = 'Rerank with "rebel-one-turn:MODEL", "rebel-two-turn:MODEL", or "rebel-rules", which needs no model.'
HOW = (
    "Ratings are stored by passage, so other weights cost no call. Tuned: a fifth of the queries at a "
    "time gets the weights that are best for the other four fifths, of some 500. Best on these very queries "
    "flatters itself. Gains are over equal weights, with 95 % intervals paired by query."
)
WAYS = {
    "weighed": pl.String(),
    "weights": pl.String(),
    **dict.fromkeys(("quality", "low", "high", "gain", "gain_low", "gain_high"), pl.Float64()),
    "n": pl.Int64(),
}
_LEVELS = np.round(np.linspace(0, 1, 11), 2)
_WEIGHT = cols.number("weight", help="What a point of the rating adds to the relevance.")
SHOWN = cols.Rows(
    "criteria_weights",
    cols.text("weighed", "weights"),
    "quality",
    "low high",
    cols.signed("gain", "over equal", "Over equal weights, on the same queries."),
    "gain_low gain_high",
    "n",
    cols.text("weights", "which", width=420),
    ends="95 % interval, paired by query.",
)
RESPONSE = cols.Rows("criteria_response", "criterion", _WEIGHT, "quality low high n")
TRAIL = cols.Rows(
    "criteria",
    "criterion",
    cols.text("meaning", "5 and 0 mean", width=420),
    _WEIGHT,
    cols.number("least", help="Lowest weight of any query."),
    cols.number("most", help="Highest weight of any query."),
    cols.text("of", "queries"),
    cols.text(
        "origin",
        "from",
        "The paper, your specification, or the query; fallback: nothing usable was inferred.",
    ),
)
RATED = cols.Rows(
    "ratings",
    "query_id rank passage_id",
    "criterion",
    cols.points("rating", help="Relevance 0 to 10, criteria 0 to 5."),
    _WEIGHT,
    cols.count("grade", help="In the golden set; empty = unjudged."),
)


@section("criteria weights", "Would other weights of its criteria make the reranker better?", rated)
def criteria_weights(view: View, ask: Ask) -> Blocks:
    """Yield the rankings under other weights: tuned ones beside equal and custom ones."""
    names = dict(view.table.select("run_id", "name").iter_rows())
    rated = [names[run] for run in rated_runs(view.snapshot, tuple(names))]
    if not rated:
        yield Answer(NOTHING, NEEDS)
        return
    run_id = run_of(view.table, ask.listed("Stack", rated, "rated", width=290))
    read = weighable(view, run_id)
    if isinstance(read, str):
        yield Answer(read)
        return
    own = [
        ask.slide(name, f"rw{place}", (float(weight),), 0.0, 1.0, step=0.05, about=ABOUT_WEIGHT)[0]
        for place, (name, weight) in enumerate(zip(read.names[:MOST], read.used, strict=False), 1)
    ]
    least = float(THRESHOLD)
    with ask.aside("Least relevance"):
        (threshold,) = ask.slide(
            "Relevance at least", "rwt", (least,), least, 10.0, step=0.5, about=ABOUT_THRESHOLD
        )
    chosen = np.array([*own, *read.used[MOST:]])
    rows = ways(read, view.seed, view.quality.higher_is_better, threshold, chosen)
    said = answer(rows, view.quality.name, higher_is_better=view.quality.higher_is_better)
    yield Answer(said, f"The stack is {names[run_id]}.", caveats={"how to read": HOW})
    yield Cards(cards(rows, view.quality.name))
    yield Table(rows, SHOWN)
    by_weight = response(read, threshold, chosen)
    drawn = chart(by_weight, read.names, view.quality.name)
    yield Chart(drawn, "criteria_response", "Quality by the weight of one criterion, the others as chosen.")
    yield Fold("The line behind each criterion", [Table(by_weight, RESPONSE)])
    yield from criteria.beside(view, read, *_offered(read, view.seed, threshold), threshold)
    yield Fold("What was rated, and how it was weighed", [Table(trail(read), TRAIL, whole=read.trail)])
    every = read.rows.sort("query_id", "rank", "position").with_columns(
        pl.col("criterion").fill_null("Relevance")
    )
    shown = every.filter(pl.col("query_id") == every["query_id"].first()) if every.height else every
    yield Fold("Ratings of the first query; all are downloaded", [Table(shown, RATED, whole=every)])


@cached("Weighing the ratings anew…", entries=32)
def _offered(read: Weighable, seed: int, threshold: float) -> tuple[Floats, Floats]:
    """Return weight vectors [W, C] and the measure of each query under them [W, Q]."""
    weights = offered(len(read.names), read.equal, seed)
    return weights, read.scored(weights, threshold)


def ways(
    read: Weighable, seed: int, higher_is_better: bool, threshold: float, chosen: Floats
) -> pl.DataFrame:
    """Compare weightings: `WAYS`, equal weights first."""
    weights, values = _offered(read, seed, threshold)
    picked = tuned(values, seed, higher_is_better=higher_is_better)
    means = np.nanmean(values, axis=1)
    best = int(np.nanargmax(means if higher_is_better else -means))
    fixed = {EQUAL: read.equal, ALONE: np.zeros(len(read.names)), USED: read.used, CHOSEN: chosen}
    fixed |= {
        name: np.array([preset.get(criterion, 0.0) for criterion in read.names])
        for name, preset in SAFETY.items()
        if preset.keys() <= set(read.names)
    }
    of = dict(zip(fixed, read.scored(np.stack(list(fixed.values())), threshold), strict=True))
    of[USED] = read.scored(read.used)[0]
    of |= {
        TUNED: values[picked, np.arange(values.shape[1])],
        BEST: values[best],
        RETRIEVED: read.unranked()[0],
    }
    said = {name: worded(read.names, vector) for name, vector in {**fixed, BEST: weights[best]}.items()}
    said[TUNED] = folds_worded(read.names, weights[np.unique(picked)])
    every = np.stack(list(of.values()))
    gains = every - of[EQUAL]
    low, high = mean_interval(every, "shares", clusters=read.clusters)
    gain_low, gain_high = mean_interval(gains, "differences", clusters=read.clusters)
    columns = {
        "weighed": list(of),
        "weights": [said.get(name, "") for name in of],
        "quality": np.nanmean(every, axis=1),
        "low": low,
        "high": high,
        "gain": np.nanmean(gains, axis=1),
        "gain_low": gain_low,
        "gain_high": gain_high,
        "n": (~np.isnan(every)).sum(axis=1),
    }
    return pl.DataFrame(columns, schema_overrides=WAYS).fill_nan(None)


def worded(names: Sequence[str], weights: Floats) -> str:
    """Format weights beside their criteria."""
    return ", ".join(f"{name} {weight:g}" for name, weight in zip(names, weights.tolist(), strict=True))


def folds_worded(names: Sequence[str], weights: Floats) -> str:
    """Format the range of the weights chosen by the folds."""
    spans = zip(names, weights.min(axis=0).tolist(), weights.max(axis=0).tolist(), strict=True)
    return ", ".join(
        f"{name} {low:g}" if low == high else f"{name} {low:g}–{high:g}" for name, low, high in spans
    )


def answer(rows: pl.DataFrame, quality: str, *, higher_is_better: bool = True) -> str:
    """Say whether tuned weights beat equal ones on held-out queries."""
    of = {row["weighed"]: row for row in rows.iter_rows(named=True)}
    made, equal = of[TUNED], of[EQUAL]
    sign = 1 if higher_is_better else -1
    low, high = made["gain_low"], made["gain_high"]
    if low is None or low <= 0 <= high:
        verdict = "do not measurably beat"
    else:
        verdict = "beat" if sign * low > 0 else "lose to"
    return (
        f"Tuned weights {verdict} equal ones: {quality} {score(made['quality'])} to "
        f"{score(equal['quality'])} ({text.sample(made['n'])})."
    )


def cards(rows: pl.DataFrame, quality: str) -> list[tuple[str, str, str]]:
    """Return the cards of the answer."""
    of = {row["weighed"]: row for row in rows.iter_rows(named=True)}
    return [
        (
            name.capitalize(),
            score(of[name]["quality"]),
            f"{quality}{text.interval(of[name]['low'], of[name]['high'])}",
        )
        for name in (EQUAL, TUNED, ALONE, CHOSEN)
    ]


def response(read: Weighable, threshold: float, chosen: Floats) -> pl.DataFrame:
    """Return quality by the weight of each criterion, with the others as chosen."""
    weights = np.repeat(chosen[None], len(read.names) * len(_LEVELS), axis=0)
    at = np.repeat(np.arange(len(read.names)), len(_LEVELS))
    weights[np.arange(len(at)), at] = np.tile(_LEVELS, len(read.names))
    values = read.scored(weights, threshold)
    low, high = mean_interval(values, "shares", clusters=read.clusters)
    return pl.DataFrame(
        {
            "criterion": [read.names[place] for place in at],
            "weight": np.tile(_LEVELS, len(read.names)),
            "quality": np.nanmean(values, axis=1),
            "low": low,
            "high": high,
            "n": (~np.isnan(values)).sum(axis=1),
        }
    ).fill_nan(None)


def chart(rows: pl.DataFrame, names: Sequence[str], quality: str) -> go.Figure:
    """Draw a line per criterion."""
    traces = []
    for place, name in enumerate(names):
        part = rows.filter(pl.col("criterion") == name)
        colour = theme.OKABE_ITO[place % len(theme.OKABE_ITO)]
        hover = [
            f"{text.escape(name)}, weight {row['weight']:g}<br>{score(row['quality'])}"
            f"{text.interval(row['low'], row['high'])}, {text.sample(row['n'])}"
            for row in part.iter_rows(named=True)
        ]
        marker = {"symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)], "color": colour, "size": 8}
        x, y = part["weight"].to_numpy(), part["quality"].to_numpy()
        look = {"mode": "lines+markers", "line": {"color": colour}, "marker": marker}
        traces.append(theme.scatter(text.escape(text.shorten(name)), x, y, hover=hover, **look))
    return theme.figure(traces, x="weight of the criterion", y=quality, height=360)


def trail(read: Weighable) -> pl.DataFrame:
    """Return each criterion with its meaning, origin, weight (mean, least, most) and queries."""
    grouped = read.trail.group_by("criterion", "origin", maintain_order=True).agg(
        pl.col("meaning").first(),
        pl.col("weight").mean(),
        pl.col("weight").min().alias("least"),
        pl.col("weight").max().alias("most"),
        pl.col("query_id").n_unique().alias("queries"),
    )
    return grouped.with_columns(
        of=pl.when(pl.lit(read.inferred)).then(pl.col("queries").cast(pl.String)).otherwise(pl.lit("all"))
    )
