"""Words of page What if: for scenarios, targets, steps in K, and routing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from core.analysis.families import Signal
from core.analysis.workspace.gaps import ALIKE
from core.analysis.workspace.scope import Quality
from core.views import text
from core.views.what_if.routing import Routable
from core.views.what_if.scenarios import SAVED

WORTH = "Worth it"
"""Beginning of routing's answer if routing is worth it."""
BEYOND = "Beyond your limits"
AT_MOST = "At most to the slower (%)"
"""Beginning of routing's answer if routing breaks a limit."""
_SHORT = 12  # Maximum letters of a depth named in the answer; a stack's name is too long for it
_NOBODY = 0.005  # A rule that sends fewer than this share of the queries deeper is said to send none


def sentence(routable: Routable, rows: pl.DataFrame, quality: Quality) -> str:
    """Return the answer: what routing gains over one depth for all, and whether it is worth it."""
    labels = [option.label for option in routable.options]
    n = text.count(len(routable.query_ids), "query")
    if routable.depths.same:
        return (
            f"Nothing to route: all {n} have the same {quality.name} at "
            f"{', '.join(labels[:-1])} and {labels[-1]}."
        )
    routed, top = _row(rows, "routed"), best_single(rows, quality)
    if routed["deeper"] < _NOBODY:
        return f"Not worth it: the learnt rule keeps 100 % of queries at {labels[0]}."
    share = f"{100 * routed['deeper']:.0f} %"
    short = len(labels) == 2 and len(labels[-1]) <= _SHORT
    target = f"to {candidates(labels[-1])}" if short else "to the slower stack"
    if routed["beyond"]:
        return f"{BEYOND}: sending {share} {target} is {routed['beyond']}."
    if routed["over_high"] is not None and routed["over_high"] < 0:
        ours, best = text.score(routed["quality"]), text.score(top["quality"])
        return f"Not worth it: the router ({ours}) loses to one stack for all ({best})."
    verdict, why = _verdict(routed, top)
    return f"{verdict}: sending {share} {target} {why}."


def candidates(label: str) -> str:
    """Say an option in words: "50 candidates" for "K = 50"; others are named as they are."""
    return f"{label.removeprefix('K = ')} candidates" if label.startswith("K = ") else label


def cards(rows: pl.DataFrame, quality: Quality) -> list[tuple[str, str, str]]:
    """Return quality as routed, over the best depth for all, over chance, and with the oracle."""
    routed, top, best = _row(rows, "routed"), best_single(rows, quality), _row(rows, "oracle")
    interval = text.interval(routed["low"], routed["high"]).strip()
    return [
        (f"{quality.name} routed", text.score(routed["quality"]), f"{interval} n = {routed['n']}".strip()),
        (
            "Against one stack for all",
            *_span(routed, "over", f"{top['way']}, {text.score(top['quality'])}"),
        ),
        ("Against a random choice", *_span(routed, "gain", "as many, picked at random")),
        (
            "With a perfect router",
            text.score(best["quality"]),
            f"the most that routing can reach; {100 * best['deeper']:.0f} % to the slower",
        ),
    ]


def best_single(rows: pl.DataFrame, quality: Quality) -> dict[str, Any]:
    """Return the depth for all with the best quality within the limits; ties go to the shallower.

    If none is within the limits, it is the best of all.
    """
    return (
        rows.filter(pl.col("kind") == "always")
        .sort(
            pl.col("beyond").is_not_null(), "quality",
            descending=[False, quality.higher_is_better], maintain_order=True,
        )
        .row(0, named=True)
    )  # fmt: skip


def _row(rows: pl.DataFrame, kind: str) -> dict[str, Any]:
    return rows.row(by_predicate=pl.col("kind") == kind, named=True)


def _verdict(routed: Mapping[str, Any], top: Mapping[str, Any]) -> tuple[str, str]:
    """Judge whether routing is worth it: better than chance, with a gain, or equal at a lower cost."""
    if routed["gain_low"] is None or routed["gain_low"] <= 0:
        worse = (routed["gain_high"] or 0) < 0
        return (
            "Not worth it",
            "does worse than by chance" if worse else "gains no more than by chance",
        )
    if routed["over_low"] > 0:
        return WORTH, f"is better than {top['way']}"
    saved = _saved(routed, top)
    if routed["over_high"] >= 0 and saved:
        return f"{WORTH} for what it saves, {saved}", "shows no loss"
    return "Not worth it", f"is no better than {top['way']}"


def _span(routed: Mapping[str, Any], stem: str, over: str) -> tuple[str, str]:
    low, high = routed[f"{stem}_low"], routed[f"{stem}_high"]
    span = "" if low is None else f"[{text.signed(low)}, {text.signed(high)}] "
    return text.signed(routed[stem]), span + over


def _saved(routed: Mapping[str, Any], top: Mapping[str, Any]) -> str:
    """Say what routing saves over a depth for all, or return "" if nothing is known to be saved."""
    for name, what in (("cost", "cost"), ("mean_ms", "mean latency")):
        if routed[name] is not None and top[name] and routed[name] < 0.98 * top[name]:
            return f"{100 * (1 - routed[name] / top[name]):.0f} % of the {what}"
    return ""


def details(
    routable: Routable,
    rows: pl.DataFrame,
    signal: Signal,
    learnt: Any,  # noqa: ANN401 - thresholds or tags
    jitter_ms: float,
) -> dict[str, str]:
    """Return the rule to use with its optimistic figure, and the figures' limits, keyed by chip words."""
    optimistic = _row(rows, "optimistic")
    waits = rows.filter(pl.col("kind") == "always")["p50"].drop_nulls()
    close = len(waits) == len(routable.options) and np.ptp(waits.to_numpy()) < jitter_ms
    queries = text.count(routable.left_out, "judged query is", "judged queries are")
    return {
        "why": "A deeper pool adds passages below the cutoff only, and nothing brings them up. Choose a "
        "larger cutoff, stacks with a reranker, or stacks of your own choice."
        if routable.depths.same
        else "",
        "the rule": ""
        if routable.depths.same
        else f"Learnt from all queries: {_rule(routable, signal, learnt)}. Judged on the same queries it "
        f"scores {text.score(optimistic['quality'])}, which is optimistic; the answer is judged on others "
        "(5 folds dealt 10 ways, fixed seed).",
        "what is known when": " ".join(routable.notes),
        "latency": f"Their medians differ by less than the jitter of {jitter_ms:.3g} ms, so latency is no "
        "reason to route."
        if close
        else "",
        "left out": f"{queries} left out: a depth cannot score them." if routable.left_out else "",
    }


def _rule(routable: Routable, signal: Signal, learnt: Any) -> str:  # noqa: ANN401
    labels = [option.label for option in routable.options]
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
    """Return thresholds of urgency in the signal's own unit."""
    return tuple(threshold if signal.hard_is_high else -threshold for threshold in learnt)


def answer(rows: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """Summarise the scenarios' choices: the number of stacks, and the spread of their numbers.

    Returns:
        The sentence to head the page, and what no scenario can have.
    """
    chosen = rows.filter(pl.col("name").is_not_null())
    if chosen.is_empty():
        return "No scenario leaves a stack.", ""
    different = chosen["name"].n_unique()
    best = chosen.sort(quality.name, descending=quality.higher_is_better, nulls_last=True).row(0, named=True)
    words = best[f"{quality.name} in words"]
    choose = "chooses" if chosen.height == 1 else "choose"
    several = text.count(rows.height, "scenario")
    several = several if chosen.height == rows.height else f"{chosen.height:,} of {several}"
    stacks = "one stack" if different == 1 else f"{different:,} different stacks"
    sentence = f"{several} {choose} {stacks}"
    beyond = ", beyond your limits" if best.get("beyond") else ""
    known = f"Best {quality.name}: {best['scenario']}, {words}{beyond}." if words else ""
    sentence += "." if known else f"; no {quality.name} is known."
    cheap = chosen.filter(pl.col("cost").is_not_null()).sort("cost")
    details = known
    if not cheap.is_empty():
        low, high = cheap.row(0, named=True), cheap.row(-1, named=True)
        said = text.cost_unit(rows)
        least, most = said.apart(low["cost"], high["cost"])
        span = f"{least} ({low['scenario']}) to {most} ({high['scenario']})"
        details += f"{' ' * bool(known)}Cost per {said.many} queries from {span}."
    empty = rows.filter(pl.col("name").is_null())["scenario"].to_list()
    return sentence, details + (f" No stack meets the limits of {', '.join(empty)}." if empty else "")


def legend(rows: pl.DataFrame) -> str:
    """Say where the scenarios come from."""
    kinds = set(rows["kind"])
    words = []
    if "published" in kinds:
        words.append(
            "The paper's five are the stacks of its Table 8; cost is that of the rerank call at 500 tokens a "
            "candidate."
        )
    if "derived" in kinds:
        words.append(
            "No scenarios are published for this workspace: the names stand for the paper's ideas in its "
            f"own terms (the cost saver keeps {SAVED:.0%} of the best quality; where the quality push would "
            "ship the baseline's stack, they are one).".replace("%", " %")
        )
    return " ".join([*words, "The last ones are your limits and your own list."])


def target_words(rows: pl.DataFrame, quality: Quality, gap: Callable[[str, str], str]) -> tuple[str, str]:
    """Say from which target on a looser one gains nothing significant, by `gap` of two stacks' names."""
    left = rows.filter(pl.col("chosen").is_not_null())
    if left.is_empty():
        return "No stack meets any of these targets.", ""
    first, last = left.row(0, named=True), left.row(-1, named=True)
    span = f"from {text.ms(first['sla_ms'])} to {text.ms(last['sla_ms'])}"
    if first["chosen"] == last["chosen"]:
        known = f"{quality.name} {text.score(first['quality'])} ({text.sample(first['n'])})."
        return f"{first['chosen']} is the choice {span}.", known
    others = left.filter(pl.col("chosen") != last["chosen"])
    told = {name: gap(last["chosen"], name) for name in others["chosen"].unique(maintain_order=True)}
    alike = [row for row in others.iter_rows(named=True) if told[row["chosen"]].startswith(ALIKE)]
    if not alike:
        gain = f"{text.score(first['quality'])} to {text.score(last['quality'])}"
        said = f"F{span[1:]}, {quality.name} goes from {gain} ({text.sample(first['n'])})."
        return said, f"{last['chosen']} against {first['chosen']}: {told[first['chosen']]}."
    enough = alike[0]
    at, more = text.ms(enough["sla_ms"]), text.ms(last["sla_ms"])
    said = f"Allowing {more} instead of {at} gains nothing significant in {quality.name}."
    real = f"{last['chosen']} against {enough['chosen']}: {told[enough['chosen']]}."
    if enough["chosen"] == first["chosen"]:
        return said, real
    less = f"{first['chosen']} at {text.ms(first['sla_ms'])}: {told[first['chosen']]}"
    return said, f"{real} Against {less}."
