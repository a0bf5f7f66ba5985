"""What the routing simulator says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from core.decide.jitter import JITTER_MS
from core.views import text
from core.views.what_if.routing.data import Routable
from core.views.what_if.routing.signals import Signal
from core.views.workspace.scope import Quality

_NOBODY = 0.005
"""A rule that sends fewer than this share of the queries deeper is said to send none."""


def sentence(found: Routable, rows: pl.DataFrame, signal: Signal, quality: Quality) -> str:
    """The answer: what routing gives instead of one depth for all, and whether it is worth it.

    Args:
        found: The queries and depths.
        rows: As in `core.views.what_if.routing.policies.Simulation`.
        signal: What the rule looks at.
        quality: What is scored.
    """
    labels = [option.label for option in found.options]
    n = text.count(len(found.query_ids), "query", "queries")
    if found.depths.same:
        return (
            f"There is nothing to route: each of {n} has the same {quality.name} at "
            f"{', '.join(labels[:-1])} and {labels[-1]}."
        )
    routed, top = _row(rows, "routed"), best_single(rows, quality)
    if routed["deeper"] < _NOBODY:
        stays = rows.row(0, named=True)
        return (
            f"Not worth it: learnt from other queries, the rule by {signal.label} leaves every query at "
            f"{labels[0]}, {quality.name} {text.score(stays['quality'])}"
            f"{text.interval(stays['low'], stays['high'])}, n = {stays['n']}."
        )
    target = f"to {labels[-1]}" if len(labels) == 2 else "deeper"
    return (
        f"Routing {100 * routed['deeper']:.0f} % of the queries {target} by {signal.label} gives "
        f"{quality.name} {text.score(routed['quality'])}{text.interval(routed['low'], routed['high'])}, "
        f"n = {routed['n']}, instead of {text.score(top['quality'])} with {top['way']}: "
        f"{_verdict(routed, top)}."
    )


def best_single(rows: pl.DataFrame, quality: Quality) -> dict[str, Any]:
    """The depth for all with the best quality, ties to the shallower."""
    return (
        rows.filter(pl.col("kind") == "always")
        .sort("quality", descending=quality.higher_is_better, maintain_order=True)
        .row(0, named=True)
    )


def _row(rows: pl.DataFrame, kind: str) -> dict[str, Any]:
    return rows.row(by_predicate=pl.col("kind") == kind, named=True)


def _verdict(routed: Mapping[str, Any], top: Mapping[str, Any]) -> str:
    """Worth it: the signal tells more than chance, and routing gains quality or loses none and costs less."""
    chance = _span(routed, "gain", "chance at the same rate")
    if routed["gain_low"] is None or routed["gain_low"] <= 0:
        shown = "does worse than chance" if (routed["gain_high"] or 0) < 0 else "is not shown to help"
        return f"not worth it, the signal {shown} ({chance})"
    single = _span(routed, "over", top["way"])
    if routed["over_low"] > 0:
        return f"worth it ({single}; {chance})"
    saved = _saved(routed, top)
    if routed["over_high"] >= 0 and saved:
        return f"worth it for what it saves, {saved}, with no loss shown ({single}; {chance})"
    return f"not worth it, though better than chance: {top['way']} is as good or better ({single})"


def _span(routed: Mapping[str, Any], stem: str, over: str) -> str:
    low, high = routed[f"{stem}_low"], routed[f"{stem}_high"]
    span = "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
    return f"{routed[stem]:+.3f}{span} over {over}"


def _saved(routed: Mapping[str, Any], top: Mapping[str, Any]) -> str:
    """What routing saves over a depth for all; empty where it saves nothing that is known."""
    if routed["cost"] is not None and top["cost"] and routed["cost"] < 0.98 * top["cost"]:
        return f"{100 * (1 - routed['cost'] / top['cost']):.0f} % of the cost"
    if routed["mean_ms"] is not None and top["mean_ms"] and routed["mean_ms"] < 0.98 * top["mean_ms"]:
        return f"{100 * (1 - routed['mean_ms'] / top['mean_ms']):.0f} % of the mean latency"
    return ""


def details(
    found: Routable,
    rows: pl.DataFrame,
    signal: Signal,
    learnt: Any,  # noqa: ANN401 - thresholds or tags
    jitter_ms: float = JITTER_MS,
) -> str:
    """The oracle, the rule to use with its optimistic figure, and the limits of what is shown.

    Args:
        found: The queries and depths.
        rows: As in `core.views.what_if.routing.policies.Simulation`.
        signal: What the rule looks at.
        learnt: What the rule learnt from all queries.
        jitter_ms: Latencies that differ by less are not told apart.
    """
    best, told = _row(rows, "oracle"), _row(rows, "optimistic")
    sentences = []
    if not found.depths.same:
        sentences += [
            f"No router can do better than the oracle's {text.score(best['quality'])}, which sends "
            f"{100 * best['deeper']:.0f} % deeper.",
            f"The rule learnt from all queries: {_rule(found, signal, learnt)}; judged on the same queries "
            f"it scores {text.score(told['quality'])}, which is optimistic.",
        ]
    else:
        sentences.append(
            "A deeper pool adds passages below the cutoff only, and nothing brings them up. Choose a larger "
            "cutoff in the sidebar, stacks with a reranker, or stacks of your own choice."
        )
    sentences += found.notes
    waits = rows.filter(pl.col("kind") == "always")["p50"].drop_nulls()
    if len(waits) == len(found.options) and _spread(waits) < jitter_ms:
        sentences.append(
            f"Their medians differ by less than the jitter of {jitter_ms:g} ms, so latency "
            "is no reason to route."
        )
    if found.left_out:
        queries = text.count(found.left_out, "judged query is", "judged queries are")
        sentences.append(f"{queries} left out: a depth cannot score them.")
    return " ".join(sentences)


def _spread(values: pl.Series) -> float:
    array = values.to_numpy()
    return float(array.max() - array.min())


def _rule(found: Routable, signal: Signal, learnt: Any) -> str:  # noqa: ANN401
    labels = [option.label for option in found.options]
    if isinstance(learnt, dict):
        named = [f"“{tag}” to {labels[depth]}" for tag, depth in sorted(learnt.items())]
        return ", ".join(named) or f"every query stays at {labels[0]}"
    side = "above" if signal.hard_is_high else "below"
    parts = []
    for label, value, urgent in zip(labels[1:], own_unit(learnt, signal), learnt, strict=True):
        if np.isfinite(value):
            parts.append(f"{label} where the signal is {side} {value:.4g}")
        elif urgent < 0:
            parts.append(f"{label} always")
    return ", ".join(parts) or f"every query stays at {labels[0]}"


def own_unit(learnt: Sequence[float], signal: Signal) -> tuple[float, ...]:
    """Thresholds of urgency in the signal's own unit."""
    return tuple(each if signal.hard_is_high else -each for each in learnt)
