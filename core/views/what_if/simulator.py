"""The routing simulator: a depth per query by a signal, beside one depth for all, chance and the oracle.

Its chart shows quality against latency or cost, over the workspace's stacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.families import Signal
from core.analysis.workspace.scope import Quality
from core.arrays import Floats, Mask
from core.decide.learning import MIN_QUERIES, ByTag, ByThreshold, LearnedRule, cross_validated, in_sample
from core.decide.routing import Depths, RoutingOutcome, always, at_random, estimates, one_hot, oracle, outcome
from core.decide.ties import JITTER_MS
from core.number_format import PER_1K, CostUnit
from core.records import Basis
from core.views import columns as cols
from core.views import text, theme
from core.views.what_if.routing import Bounds, Routable
from core.views.what_if.words import candidates, details, own_unit, sentence
from core.views.words.choice import axis as axis_title

NAMES = {
    "routed": "routed by the learnt rule",
    "optimistic": "routed, judged on the queries it learnt from",
    "own": "routed by your threshold",
    "random": "as many, picked at random",
    "oracle": "perfect router",
}
"""Names of the ways, by kind; a way of one depth for all is named after it."""

NEEDS = (
    "Routing needs results per query: rankings of two depths or stacks, or one deep run of a pointwise "
    "reranker that smaller depths can be replayed from."
)

NO_SIGNAL = (
    "A signal is a score margin, gap or entropy of the shallowest depth, recorded by a run or computed from "
    "the scores of its rankings, or a tag of the queries such as type=narrow."
)

FREE = Bounds()  # Without limits

_NUMBERS = ("deeper", "quality", "p50", "p95", "mean_ms", "cost")

_WEAKEST_LAST = (Basis.MEASURED, Basis.IMPORTED, Basis.PUBLISHED, Basis.MODELLED)
WAYS = cols.Rows(
    "router",
    cols.text("way", "queries are answered at", width=250),
    "deeper quality low high p50 p95 cost beyond",
    more=(
        "n mean_ms latency_basis cost_basis",
        cols.score("gain", "over chance", "Against the same share of queries sent deeper at random."),
        "gain_low gain_high over over_low over_high note",
    ),
    ends="95 % interval, paired by query.",
)
Ways = dict[str, tuple[RoutingOutcome, str, Floats]]
AXES: Mapping[str, str] = {
    "p50": "latency p50 (ms)",
    "p95": "latency p95 (ms)",
    "mean_ms": "mean latency (ms)",
    "cost": "cost",
}
"""Columns available for the x axis, with their titles."""
_MARKS: Mapping[str, tuple[str, str, int]] = {
    "always": ("circle", theme.FRONTIER, 12),
    "routed": ("star", theme.ACCENT, 17),
    "own": ("square", theme.OKABE_ITO[3], 12),
    "oracle": ("diamond", theme.OKABE_ITO[2], 12),
}
"""Symbol, colour and size of each kind of way that is drawn; chance is a line."""
_LINES: Mapping[str, tuple[str, str, str]] = {
    "random": ("any share, picked at random", theme.NEUTRAL, "dot"),
}


@dataclass(frozen=True, eq=False)
class Simulation:
    """Outcome of a simulated routing."""

    # way, kind ("always", "routed", "optimistic", "own", "random", "oracle"), deeper (share of the queries
    # beyond the shallowest depth), quality with low, high and n, p50, p95, mean_ms (ms), cost ($ per 1,000
    # queries), latency_basis, cost_basis, note, beyond (limits that it breaks); for routed ways gain (over
    # chance at the same rate) and over (over the best single depth), each with _low and _high
    rows: pl.DataFrame
    sentence: str  # the answer
    details: Mapping[str, str]  # the comparison, the rule to use, and the limits of the figures
    # kind ("random"), deeper, quality, p50, p95, mean_ms, cost along all rates
    path: pl.DataFrame
    # the rule learnt from all queries, in the signal's own unit; empty for a tag
    thresholds: tuple[float, ...]


def nothing(routable: Routable | None) -> str | None:
    """Return why there is nothing to simulate, in words, or None if there is."""
    if routable is None:
        return "No query has a score at every one of these depths."
    if len(routable.query_ids) < MIN_QUERIES:
        n = text.count(len(routable.query_ids), "query")
        return f"Too few to learn a rule from: {n} scored at every depth; {MIN_QUERIES} are needed."
    return None


def simulate(
    routable: Routable,
    signal: Signal,
    quality: Quality,
    *,
    most: float = 0.5,
    own: Sequence[float] | None = None,
    jitter_ms: float = JITTER_MS,
    bounds: Bounds = FREE,
) -> Simulation:
    """Route the queries and return the outcome; folds and resampling have a fixed seed.

    Args:
        routable: Quality, latency and cost of every query at every depth; see `nothing`.
        most: Maximum share of the queries that may leave the shallowest depth, 0..1.
        own: Further thresholds to try, in the signal's unit, one per deeper depth; None = none.
        jitter_ms: Latency difference up to which two latencies are equal; ms.
        bounds: The limits on a way.

    Returns:
        The figures and the answer.
    """
    depths = routable.depths
    rule: ByTag | ByThreshold = (
        ByTag([signal.tags.get(query_id, "") for query_id in routable.query_ids], most)
        if signal.tags
        else ByThreshold(signal.urgency(routable.query_ids), most)
    )
    learner: LearnedRule[Any] = rule
    learnt, chosen = in_sample(learner, depths.merit)
    tried = {"routed": cross_validated(learner, depths.merit), "optimistic": one_hot(chosen, depths.count)}
    if own is not None and isinstance(rule, ByThreshold):
        rising = tuple(sorted(own_unit(own, signal)))
        tried["own"] = one_hot(rule.choose(rising, depths.count), depths.count)
    every = ways(routable, tried)
    rows = judged(routable, every, list(tried), bounds)
    return Simulation(
        rows=rows,
        sentence=sentence(routable, rows, quality),
        details=details(routable, rows, signal, learnt, jitter_ms),
        path=between(depths),
        thresholds=() if isinstance(rule, ByTag) else own_unit(learnt, signal),
    )


def ways(routable: Routable, tried: dict[str, Floats]) -> Ways:
    """Return every way of answering the queries: its outcome, its kind and its shares [D, Q]."""
    depths = routable.depths
    every: Ways = {}
    for which, option in enumerate(routable.options):
        shares = always(depths, which)
        every[f"always {candidates(option.label)}"] = (
            outcome(depths, shares, probed=False),
            "always",
            shares,
        )
    for kind, shares in tried.items():
        every[NAMES[kind]] = (outcome(depths, shares), kind, shares)
    chance, best = at_random(depths, tried["routed"].mean(axis=1)), oracle(depths)
    for kind, shares in (("random", chance), ("oracle", best)):
        every[NAMES[kind]] = (outcome(depths, shares, probed=False), kind, shares)
    return every


def judged(routable: Routable, every: Ways, kinds: Sequence[str], bounds: Bounds) -> pl.DataFrame:
    """Return every way with the limits that it breaks, and the gains of ways of some kinds."""
    rows = as_rows(routable, every, bounds)
    within = rows.filter(kind="always")["beyond"].is_null().to_numpy()
    gained = gains(routable, {NAMES[kind]: every[NAMES[kind]][0] for kind in kinds}, within)
    return rows.join(gained, on="way", how="left", maintain_order="left")


def gains(routable: Routable, routed: dict[str, RoutingOutcome], within: Mask) -> pl.DataFrame:
    """Estimate each routed way's gain over chance at its own rate, and over the best single depth.

    Args:
        within: [D], which depths for all meet the limits; if none does, all count.
    """
    depths = routable.depths
    merit = np.where(within | ~within.any(), depths.merit.mean(axis=1), -np.inf)
    best = depths.quality[int(merit.argmax())]
    sign = 1 if depths.higher_is_better else -1
    apart = []
    for way in routed.values():
        chance = outcome(depths, at_random(depths, way.rates), probed=False)
        apart += [sign * (way.scores - chance.scores), sign * (way.scores - best)]
    estimated = estimates(*apart, of="differences", clusters=routable.clusters)
    ends = {
        f"{stem}{end}": [getattr(estimate, name) for estimate in estimated[at::2]]
        for at, stem in enumerate(("gain", "over"))
        for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    return pl.DataFrame({"way": list(routed), **ends}, schema_overrides=dict.fromkeys(ends, pl.Float64))


def as_rows(routable: Routable, every: Ways, bounds: Bounds = FREE) -> pl.DataFrame:
    """Return every way as a row of `Simulation.rows`, without its gains."""
    rows = []
    of_ways = (way.scores for way, _, _ in every.values())
    scored = estimates(*of_ways, of="shares", clusters=routable.clusters)
    for (name, (way, kind, shares)), estimate in zip(every.items(), scored, strict=True):
        used = np.flatnonzero(shares.sum(axis=1) > 0)
        numbers = {**_point(kind, way), "quality": estimate.value}
        rows.append(
            {
                "way": name,
                **numbers,
                "beyond": bounds.broken(numbers, used.tolist()),
                "low": estimate.low,
                "high": estimate.high,
                "n": len(routable.query_ids),
                "latency_basis": _weakest([routable.latency_basis[at] for at in used]),
                "cost_basis": _weakest([routable.cost_basis[at] for at in used]),
                "note": way.p95_reason,
            }
        )
    words = dict.fromkeys(("beyond", "latency_basis", "cost_basis", "note"), pl.String)
    floats = dict.fromkeys((*_NUMBERS, "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides={**floats, **words, "n": pl.Int32})


def _weakest(bases: Sequence[str | None]) -> str | None:
    order: list[str | None] = [str(basis) for basis in _WEAKEST_LAST]
    return max(bases, key=order.index) if bases and all(basis in order for basis in bases) else None


def between(depths: Depths) -> pl.DataFrame:
    """Return chance at every rate between neighbouring depths."""
    parts = []
    for which in range(depths.count - 1):
        for rate in np.linspace(0, 1, 11):
            rates = np.zeros(depths.count)
            rates[which], rates[which + 1] = 1 - rate, rate
            parts.append(_point("random", outcome(depths, at_random(depths, rates), probed=False)))
    return pl.DataFrame(parts, schema={"kind": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64)})


def _point(kind: str, way: RoutingOutcome) -> dict[str, object]:
    return {"kind": kind, **{name: getattr(way, name) for name in _NUMBERS}}


def drawable(rows: pl.DataFrame) -> list[str]:
    """Return the keys of `AXES` with known values for every way of one depth for all."""
    single = rows.filter(pl.col("kind") == "always")
    return [axis for axis in AXES if single[axis].null_count() == 0]


def chart(
    rows: pl.DataFrame,
    path: pl.DataFrame,
    stacks: pl.DataFrame,
    quality: Quality,
    axis: str,
    *,
    said: CostUnit = PER_1K,
) -> go.Figure:
    """Draw the ways of answering the queries.

    Args:
        rows: In the form of `Simulation.rows`.
        stacks: The stack table, dimmed behind; its latency is shown if `axis` is its percentile.
        axis: A key of `AXES` returned by `drawable`.
        said: The page's cost unit.

    Returns:
        The chart; it opens on the ways, and other stacks may lie outside until it is zoomed out.
    """
    rows, path, stacks = (
        part.with_columns(cost=said.factor * pl.col("cost")) for part in (rows, path, stacks)
    )
    shown = rows.filter(pl.col(axis).is_not_null(), pl.col("kind").is_in([*_MARKS]))
    title = f"$ per {said.many} queries" if axis == "cost" else AXES[axis]
    layout = theme.layout(x=title, y=axis_title(quality), height=480)
    traces = [*_stacks(stacks, axis), *(_line(path, kind, axis) for kind in _LINES)]
    traces += [_mark(row, axis) for row in shown.iter_rows(named=True)]
    layout["annotations"] = [theme.better(higher=quality.higher_is_better)]
    if not shown.is_empty():
        drawn = pl.concat([path.select(axis, "quality"), shown.select(axis, "quality")])
        layout["xaxis"]["range"] = theme.span(drawn[axis].drop_nulls(), 0.12)
        whole = pl.concat([drawn["quality"], shown["low"], shown["high"]]).drop_nulls()
        layout["yaxis"]["range"] = theme.span(whole, 0.08)
    return theme.finished([trace for trace in traces if len(trace["x"])], layout)


def _stacks(stacks: pl.DataFrame, axis: str) -> list[theme.Spec]:
    """Return the workspace's stacks, if they are known on this axis."""
    column = "cost" if axis == "cost" else "latency_ms"
    known = stacks.drop_nulls([column, "quality"])
    if axis == "mean_ms":
        return []
    return [
        theme.scatter(
            "other stacks",
            known[column].to_numpy(),
            known["quality"].to_numpy(),
            marker={"size": 7, "color": theme.NEUTRAL, "opacity": theme.DIMMED},
            text=[text.escape(name) for name in known["name"]],
            hovertemplate="%{text}<br>%{y:.3f} at %{x:.4g}<extra></extra>",
        )
    ]


def _line(path: pl.DataFrame, kind: str, axis: str) -> theme.Spec:
    rows = path.filter((pl.col("kind") == kind) & pl.col(axis).is_not_null())
    title, colour, dash = _LINES[kind]
    return theme.scatter(
        title,
        rows[axis].to_numpy(),
        rows["quality"].to_numpy(),
        mode="lines",
        line={"color": colour, "width": 1.3, "dash": dash},
        opacity=0.7,
        customdata=(100 * rows["deeper"]).to_numpy(),
        hovertemplate=f"{title}<br>%{{customdata:.0f}} % deeper: %{{y:.3f}} at %{{x:.4g}}<extra></extra>",
    )


def _mark(row: Mapping[str, Any], axis: str) -> theme.Spec:
    kind, name, low, high = row["kind"], row["way"], row["low"], row["high"]
    symbol, colour, size = _MARKS[kind]
    trace = theme.scatter(
        text.escape(text.shorten(name, 60)),
        [row[axis]],
        [row["quality"]],
        marker={"symbol": symbol, "size": size, "color": colour},
        hovertext=[text.escape(name)],
        hovertemplate="%{hovertext}<br>%{y:.3f} at %{x:.4g}<extra></extra>",
    )
    if kind in ("routed", "always") and low is not None and high is not None:
        ends = [np.array([end]) for end in (low, row["quality"], high)]
        trace["error_y"] = theme.whiskers(*ends, thickness=1, width=3, color=colour)
    return trace
