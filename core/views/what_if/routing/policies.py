"""The routing simulator: a depth per query by a signal, beside one depth for all, chance and the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.decide.routing.policies import (
    Depths,
    Estimate,
    Floats,
    Outcome,
    always,
    at_random,
    estimates,
    one_hot,
    oracle,
    outcome,
)
from core.decide.routing.rules import MIN_QUERIES, ByTag, ByThreshold, Rule, cross_validated, in_sample
from core.decide.ties import JITTER_MS
from core.records import Basis
from core.stats.intervals import SEED
from core.views import text
from core.views.what_if.routing.data import Routable
from core.views.what_if.routing.families import Signal
from core.views.what_if.words import details, own_unit, sentence
from core.views.workspace.scope import Quality

NAMES = {
    "routed": "routed, cross-validated",
    "optimistic": "routed, in sample (optimistic)",
    "own": "your threshold (optimistic)",
    "random": "chance at the same rate",
    "oracle": "oracle (knows the judgements)",
}
"""What the ways are called, by kind; those of one depth for all are named by it."""
NEEDS = (
    "Routing needs results per query: rankings of two depths or stacks, or one deep run of a pointwise "
    "reranker that smaller depths can be replayed from."
)
NO_SIGNAL = (
    "A signal is a score margin, gap or entropy of the shallowest depth, recorded by a run or computed from "
    "the scores of its rankings, or a tag of the queries such as type=narrow."
)
_WEAKEST_LAST = (Basis.MEASURED, Basis.IMPORTED, Basis.PUBLISHED, Basis.MODELLED)


@dataclass(frozen=True, eq=False)
class Simulation:
    """What came out."""

    # way, kind ("always", "routed", "optimistic", "own", "random", "oracle"), deeper (share of the queries
    # beyond the shallowest depth), quality with low, high and n, p50, p95, mean_ms (ms), cost ($ per 1,000
    # queries), latency_basis, cost_basis, note; for routed ways gain (over chance at the same rate) and over
    # (over the best single depth), each with _low and _high
    rows: pl.DataFrame
    sentence: str  # the answer
    details: Mapping[str, str]  # what it is compared with, the rule to use, and the limits of the figures
    # kind, deeper, quality, p50, p95, mean_ms, cost along all rates, "random" and "threshold"
    path: pl.DataFrame
    # what the rule learnt from all queries, in the signal's own unit; empty for a tag
    thresholds: tuple[float, ...]


def nothing(found: Routable | None) -> str | None:
    """Why there is nothing to simulate, in words; None where there is."""
    if found is None:
        return "No query has a score at every one of these depths."
    if len(found.query_ids) < MIN_QUERIES:
        n = text.count(len(found.query_ids), "query", "queries")
        return f"Too few to learn a rule from: {n} scored at every depth; {MIN_QUERIES} are needed."
    return None


def rule_of(found: Routable, signal: Signal, most: float) -> ByThreshold | ByTag:
    """The rule that decides by a signal."""
    if signal.tags:
        return ByTag([signal.tags.get(query_id, "") for query_id in found.query_ids], most)
    return ByThreshold(signal.urgency(found.query_ids), most)


def simulate(
    found: Routable,
    signal: Signal,
    quality: Quality,
    *,
    most: float = 0.5,
    own: Sequence[float] | None = None,
    jitter_ms: float = JITTER_MS,
    seed: int = SEED,
) -> Simulation:
    """Route the queries and say what that gives.

    Args:
        found: Quality, latency and cost of every query at every depth; see `nothing`.
        most: Share of the queries that may leave the shallowest depth, 0..1.
        own: Thresholds to try besides, in the signal's unit, one per deeper depth; None = none.
        jitter_ms: Difference of latencies up to which they are the same; ms.
        seed: Of the folds and the resampling.

    Returns:
        The figures and the answer.
    """
    depths, rule = found.depths, rule_of(found, signal, most)
    learner: Rule[Any] = rule
    learnt, chosen = in_sample(learner, depths.merit)
    shares = cross_validated(learner, depths.merit, seed=seed)
    tried = {"routed": shares, "optimistic": one_hot(chosen, depths.count)}
    if own is not None and isinstance(rule, ByThreshold):
        tried["own"] = one_hot(rule.choose(_urgent(own, signal), depths.count), depths.count)
    ways = _ways(found, tried)
    scored = estimates(*(each.scores for each, _, _ in ways.values()), seed=seed)
    rows = _rows(found, ways, scored).join(
        _gains(depths, {NAMES[kind]: ways[NAMES[kind]][0] for kind in tried}, seed), on="way", how="left"
    )
    thresholds = () if isinstance(rule, ByTag) else own_unit(learnt, signal)
    return Simulation(
        rows=rows,
        sentence=sentence(found, rows, signal, quality),
        details=details(found, rows, signal, learnt, jitter_ms),
        path=_path(depths, rule),
        thresholds=thresholds,
    )


def _urgent(own: Sequence[float], signal: Signal) -> tuple[float, ...]:
    """Thresholds of urgency, ascending, from thresholds in the signal's unit."""
    return tuple(sorted(float(each) if signal.hard_is_high else -float(each) for each in own))


_Ways = dict[str, tuple[Outcome, str, Floats]]


def _ways(found: Routable, tried: dict[str, Floats]) -> _Ways:
    """Every way of answering the queries: its outcome, its kind and its shares [D, Q]."""
    depths = found.depths
    ways: _Ways = {}
    for which, option in enumerate(found.options):
        shares = always(depths, which)
        ways[f"always {option.label}"] = (outcome(depths, shares, probed=False), "always", shares)
    for kind, shares in tried.items():
        ways[NAMES[kind]] = (outcome(depths, shares), kind, shares)
    chance, best = at_random(depths, tried["routed"].mean(axis=1)), oracle(depths)
    for kind, shares in (("random", chance), ("oracle", best)):
        ways[NAMES[kind]] = (outcome(depths, shares, probed=False), kind, shares)
    return ways


def _gains(depths: Depths, routed: dict[str, Outcome], seed: int) -> pl.DataFrame:
    """What each routed way gains over chance at its own rate, and over the best single depth."""
    best = depths.quality[int(depths.merit.mean(axis=1).argmax())]
    sign = 1 if depths.higher_is_better else -1
    apart = []
    for each in routed.values():
        chance = outcome(depths, at_random(depths, each.rates), probed=False)
        apart += [sign * (each.scores - chance.scores), sign * (each.scores - best)]
    told = estimates(*apart, seed=seed)
    made = {
        name: [getattr(each, of) for each in told[at::2]]
        for at, stem in enumerate(("gain", "over"))
        for name, of in ((stem, "value"), (f"{stem}_low", "low"), (f"{stem}_high", "high"))
    }
    return pl.DataFrame({"way": list(routed), **made}, schema_overrides=dict.fromkeys(made, pl.Float64))


def _rows(found: Routable, ways: _Ways, scored: Sequence[Estimate]) -> pl.DataFrame:
    made = []
    for (name, (each, kind, shares)), estimate in zip(ways.items(), scored, strict=True):
        used = np.flatnonzero(shares.sum(axis=1) > 0)
        made.append(
            {
                "way": name,
                "kind": kind,
                "deeper": each.deeper,
                "quality": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": len(found.query_ids),
                "p50": each.p50,
                "p95": each.p95,
                "mean_ms": each.mean_ms,
                "cost": each.cost,
                "latency_basis": _weakest([found.latency_basis[at] for at in used]),
                "cost_basis": _weakest([found.cost_basis[at] for at in used]),
                "note": each.p95_reason,
            }
        )
    floats = dict.fromkeys(("low", "high", "p50", "p95", "mean_ms", "cost"), pl.Float64)
    words = dict.fromkeys(("latency_basis", "cost_basis", "note"), pl.String)
    return pl.DataFrame(made, schema_overrides={**floats, **words, "n": pl.Int32})


def _weakest(bases: Sequence[str | None]) -> str | None:
    order = [str(each) for each in _WEAKEST_LAST]
    known = [order.index(each) for each in bases if each in order]
    return order[max(known)] if known and len(known) == len(bases) else None


def _path(depths: Depths, rule: ByThreshold | ByTag) -> pl.DataFrame:
    """Chance at every rate between neighbouring depths, and every threshold between two depths."""
    parts = []
    for which in range(depths.count - 1):
        for rate in np.linspace(0, 1, 11):
            rates = np.zeros(depths.count)
            rates[which], rates[which + 1] = 1 - rate, rate
            parts.append(_point("random", outcome(depths, at_random(depths, rates), probed=False)))
    if isinstance(rule, ByThreshold) and depths.count == 2:
        known = np.sort(rule.urgency[np.isfinite(rule.urgency)])
        cuts = np.unique(known[:: max(1, len(known) // 20)])
        for cut in (*cuts, np.inf):
            shares = one_hot(rule.choose((float(cut),), 2), 2)
            parts.append(_point("threshold", outcome(depths, shares)))
    schema = dict.fromkeys(("deeper", "quality", "p50", "p95", "mean_ms", "cost"), pl.Float64)
    return pl.DataFrame(parts, schema={"kind": pl.String, **schema})


def _point(kind: str, each: Outcome) -> dict[str, object]:
    return {
        "kind": kind,
        "deeper": each.deeper,
        "quality": each.quality,
        **{name: getattr(each, name) for name in ("p50", "p95", "mean_ms", "cost")},
    }
