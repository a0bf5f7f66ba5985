"""A decision as data: the choice, the candidates, the rule, the confidence, and what could overturn it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from core.analysis.judging import waiting
from core.analysis.status import CHANCES
from core.analysis.workspace.clusters import made_up, one_known
from core.analysis.workspace.comparable import MANY_HOLES
from core.analysis.workspace.figures.beside import ENDS, limit_words, measure_of
from core.analysis.workspace.figures.latencies import jitter_words
from core.analysis.workspace.lacks import COLUMNS as LACKS
from core.analysis.workspace.people import unused
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.unanswerable import without_answer
from core.analysis.workspace.view import View
from core.decide.axes import BESIDE, MOVING, NEEDED, SWITCHING
from core.decide.near import Turn, turns
from core.decide.pareto import frontier_rows
from core.decide.rules import Decision
from core.decide.selection import Alternative, Assessment, LimitPrice
from core.decide.ties import Paired
from core.metrics import Measure
from core.metrics.rates import CORRECTED
from core.stats.intervals import CLUSTERS
from core.stats.latency import P95_MIN_QUERIES
from core.views import text
from core.views.words.bills import same_bill
from core.views.words.judging import ASK_REAL
from core.views.words.late import late_chip, slow
from core.views.words.lead import lead, lead_over
from core.views.words.near import near_rows, promising_rows, promising_words, scores_missing
from core.views.words.trade import Trade, trade

FEW_QUERIES = 30
"""With fewer queries, a typical difference between stacks is undetectable, which a warning says."""

PROTOCOL_QUERIES = 50  # The minimum of the CLQ paper's own protocol (§3.1)

SURE = 0.9
"""Share of the resamples in which the chosen stack must meet the limits to need no caveat."""

AVERAGES = "no interval"

ONE_PLACE = "One place is known per question: others that answer it count as misses."

MADE_UP = "The questions were made from the places that answer them: confirm the choice with real ones."

NUMBERS = (
    "quality",
    "quality_low",
    "quality_high",
    "n",
    "clusters",
    "cluster_kind",
    *LACKS,
    "quality_basis",
    *(axis.column + end for axis in BESIDE for end in ("", *ENDS)),
    NEEDED,
    SWITCHING.column,
    "latency_ms",
    "latency_low",
    "latency_high",
    "latency_n",
    "latency_basis",
    "latency_note",
    "cost",
    "cost_least",
    "cost_missing",
    "cost_basis",
    "cost_note",
    "cost_per",
    "correct",
)


@dataclass(frozen=True)
class Finding:
    """One statement about the numbers of the chosen stack."""

    good: bool  # whether it supports trusting them
    sentence: str  # the finding, with its number


def soundness(
    row: dict[str, Any], rival: dict[str, Any] | None, quality: Quality, paired: Paired | None = None
) -> list[Finding]:
    """Return how far a row of the stack table can be trusted: n, interval, latency, holes, unjudged."""
    n, low, high = row["n"], row["quality_low"], row["quality_high"]
    many = n is not None and n >= PROTOCOL_QUERIES
    counted = "" if n is None else f"The mean is over {text.count(n, 'query', 'queries')}"
    said = f"{counted}{'' if many else f'; the paper used {PROTOCOL_QUERIES}'}."
    findings = [Finding(many, said if counted else "The number of queries is unknown.")]
    if low is None or high is None:
        findings.append(Finding(False, f"No interval: {_no_interval(row)}."))
    else:
        ends = text.interval(low, high)
        findings.append(Finding(True, f"95 % interval of {quality.name} by itself:{ends}."))
        findings += _lead(row, rival, quality, paired)
    if row["latency_ms"] is None:
        findings.append(Finding(False, f"Latency unknown: {row['latency_note']}."))
    else:
        timed = f", n = {row['latency_n']}" if row["latency_n"] is not None else ""
        note = f" ({row['latency_note']})" if row["latency_note"] else ""
        words = f"Latency is {row['latency_basis']}{timed}{note}."
        timed_singly = row["latency_basis"] == "imported" and row["latency_low"] is not None
        findings.append(Finding(timed_singly or row["latency_basis"] == "measured", words))
    if row["hole"] is not None:
        words = f"{text.percent(row['hole'])} of the Top-{quality.k} is unjudged, which counts as useless."
        words = words if row["hole"] else f"Every passage of the Top-{quality.k} is judged."
        findings.append(Finding(row["hole"] <= MANY_HOLES, words))
    if row["unjudged_queries"]:
        left_out = text.count(row["unjudged_queries"], "ranked query", "ranked queries")
        findings.append(Finding(False, f"{left_out} without judgements left out."))
    return findings


def _no_interval(row: dict[str, Any]) -> str:
    """Say why a quality has no interval."""
    if row.get("clusters") is None:
        return "these figures came without per-query data"
    few = text.count(row["clusters"], row["cluster_kind"])
    return f"these figures rest on {few}, and an interval takes {CLUSTERS}"


def _lead(
    row: dict[str, Any], rival: dict[str, Any] | None, quality: Quality, paired: Paired | None
) -> list[Finding]:
    """Say by how much a stack leads its nearest rival, query by query; empty if unknown."""
    if paired is None or rival is None:
        return []
    pair = (str(row["run_id"]), str(rival["run_id"]))
    by, low, high = lead_over(paired, pair, higher_is_better=quality.higher_is_better)
    if by is None or low is None or high is None:
        return []
    surely = low > 0
    interval = f"[{text.signed(low)}, {text.signed(high)}]"
    doubt = "" if surely else "; it may be behind"
    return [
        Finding(surely, f"{text.signed(by)} {interval} ahead of the nearest rival, {rival['name']}{doubt}.")
    ]


def caveats(table: pl.DataFrame, decision: Decision, asked: View) -> dict[str, str]:
    """Return the evidence to know before shipping the choice; `table` may include the probabilities.

    Returns:
        Sentences, keyed by their subject in two or three words.
    """
    snapshot, scope = asked.snapshot, asked.scope
    chips = worth_judging(asked)
    if decision.chosen is not None:
        row, sla = table.row(decision.chosen, named=True), asked.constraints.sla_ms
        chips |= {**late_chip(slow(asked, row["run_id"]), sla), **_about_chosen(row, sla)}
    chips["scores missing"] = scores_missing(table, decision, asked.quality)
    unscored = int((decision.violated == 0).sum())  # an unknown quality is the first reason
    chips |= {
        **limit_words(table, asked.constraints, decision.chosen),
        f"{unscored} not scored": f"{text.count(unscored, 'stack')} left out: unknown quality."
        if unscored
        else None,
        ASK_REAL: MADE_UP if made_up(snapshot, scope) else None,
        "one place per question": ONE_PLACE if one_known(snapshot, scope.golden_set_id) else None,
        **unanswerable(asked),
        "people graded too": _beside(table, asked),
    }
    return {label: words for label, words in chips.items() if words}


def if_judged(asked: View) -> float | None:
    """Return the PGS if unjudged passages were graded like judged ones; None if there are none or unknown."""
    told = waiting(asked)
    return None if told is None or told.worth.rows.is_empty() else told.filled


def worth_judging(asked: View) -> dict[str, str | None]:
    """Return the effect that judging more could have on the confidence; empty if it could have none."""
    told = waiting(asked)
    if told is None or not told.matters:
        return {}
    chance = text.percent(told.filled)
    said = f"With unjudged passages graded like the judged, confidence is {chance}."
    return {f"judging could make it {chance}": said}


def unanswerable(asked: View) -> dict[str, str]:
    """Return how many judged questions have no answer in the texts, and whether the measure counts them."""
    if asked.scope.golden_set_id is None:
        return {}
    count = len(without_answer(asked.snapshot, asked.scope))
    if not count:
        return {}
    some = text.count(count, "query has", "queries have")
    measure = asked.quality.measure
    role = "counts these where it has a value"
    if measure is not None and "answers" in measure.info.needs:
        role = "counts these where their answers are scored"
    elif measure is not None and measure.info.na:
        role = "has no value on these, so they are not in n"
    return {
        f"{count} without an answer": f"{some} no answer in the texts (tagged, or nothing of use judged); "
        f"{asked.quality.name} {role}. Readers → refusing shows them."
    }


def _beside(table: pl.DataFrame, asked: View) -> str:
    """Say that people graded answers, but that the scores used for the decision are uncorrected."""
    measure = asked.quality.measure
    count = unused(asked.snapshot, table["run_id"].to_list(), measure)
    if not count or measure is None:
        return ""
    params = {**dict(measure.params), "people": CORRECTED}
    wanted = Measure(measure.name, measure.k, tuple(params.items()))
    grades = text.count(count, "grade")
    return f"{grades} of answers by people stand beside; {wanted} sets the scores right by them."


def _about_chosen(row: dict[str, Any], sla: float | None) -> dict[str, str]:
    n, timed, high, share = row["n"], row["latency_n"], row["latency_high"], row.get("p_feasible")
    chips = {}
    if row["quality_low"] is None and row["quality"] is not None:
        why = _no_interval(row)
        chips[AVERAGES] = f"{why[:1].upper()}{why[1:]}, so how far chance moves them is not known."
    if n is None:
        chips["n unknown"] = "How many queries the chosen stack was scored on is not known."
    elif n < FEW_QUERIES:
        chips[text.count(n, "query")] = f"Few queries: the chosen stack was scored on {n}."
    if sla is not None and high is not None and high > sla:
        chips["latency near the SLA"] = (
            f"The SLA of {text.ms(sla)} lies within the interval of its latency (up to {text.ms(high)})."
        )
    if n is not None and timed is not None and timed < min(n, P95_MIN_QUERIES):
        chips[f"{text.count(timed, 'query')} timed"] = (
            f"Its latency rests on {text.count(timed, 'query')} only, its quality on {n}."
        )
    if share is not None and share < SURE:
        chips["may break the limits"] = (
            f"In {text.percent(share)} of the resamples of the queries only does it meet the limits."
        )
    return chips


def warnings(table: pl.DataFrame, decision: Decision, asked: View) -> list[str]:
    """Return the sentences of `caveats`, and on promising stacks."""
    promising = promising_words(promising_rows(table, decision), decision)
    chips = caveats(table, decision, asked)
    sentences = [words for label, words in chips.items() if label != AVERAGES]
    return [*sentences, promising] if promising else sentences


def record(table: pl.DataFrame, asked: View, *, chances: pl.DataFrame | None = None) -> dict[str, object]:
    """Return everything about a decision as plain data.

    Args:
        table: The stack table that was decided on.
        chances: From `core.views.confidence.hold.shares` for the same rows, if wanted.

    Returns:
        asked, chosen and runner_up (each a stack or null; the chosen one with its pgs and expected_quality),
        lead (how surely the chosen stack is better than the others, or null), delta, ties (the other stacks
        that tie), alternatives, trade (the chosen stack and the first other one side by side, or null),
        price_of_quality, taken, decided_by, note, near_misses (see `near.near_rows`), frontier (stacks),
        excluded (run_id, stack, constraint, by, unit, reason), promising (see `core.views.words.near`),
        would_turn (what would have to be true) and warnings.
    """
    decision, sure, paired, traded = asked.decision, asked.sure, asked.paired, asked.once(trade)
    ahead = asked.once(lead)
    rows = table if chances is None else table.join(chances, on="run_id", how="left", maintain_order="left")

    def stack(at: int | None) -> dict[str, object] | None:
        """Return a stack with its numbers as plain data: null where unknown, with the note that says why."""
        if at is None:
            return None
        row = rows.row(at, named=True)
        named = {"run_id": row["run_id"], "stack": row["name"]}
        return named | {name: row[name] for name in (*NUMBERS, *CHANCES) if name in row}

    names = table.select("run_id", pl.col("name").alias("stack"))
    excluded = decision.excluded().join(names, on="run_id", how="left", maintain_order="left")
    return {
        "asked": {**_asked(table, asked), "jitter": jitter_words(table, decision, asked.constraints)},
        "chosen": _sure(stack(decision.chosen), sure),
        "runner_up": _expecting(stack(decision.runner_up), sure),
        "lead": ahead and ahead.data,
        "delta": decision.delta,
        "ties": [stack(at) for at in decision.tied],
        "alternatives": [_alternative(table, other, asked) for other in sure.alternatives],
        "trade": traded and _traded(traded),
        "price_of_quality": {
            key: [_step(table, step) for step in steps] for key, steps in sure.prices.items()
        },
        "taken": _taken(table, decision),
        "dropped": asked.dropped,
        "decided_by": sure.decided_by,
        "note": decision.note,
        "near_misses": near_rows(table, decision, asked.constraints, asked.rule, paired=paired),
        "frontier": [stack(at) for at in frontier_rows(table, decision, weak=asked.weak)],
        "excluded": excluded.select("run_id", "stack", "constraint", "by", "unit", "reason").to_dicts(),
        "promising": promising_rows(table, decision).to_dicts(),
        "would_turn": [
            _turn(table, turn)
            for turn in turns(table, asked.constraints, asked.rule, decision=decision, paired=paired)
        ],
        "warnings": warnings(rows, decision, asked),
    }


def _expecting(runner_up: dict[str, object] | None, sure: Assessment) -> dict[str, object] | None:
    """Return the runner-up with its expected quality on new queries."""
    names = ("expected_quality", "expected_low", "expected_high")
    return runner_up and {**runner_up, **dict(zip(names, sure.expected_next, strict=True))}


def _sure(chosen: dict[str, object] | None, sure: Assessment) -> dict[str, object] | None:
    """Return the chosen stack with the confidence in it, and the number of queries or groups behind that."""
    if chosen is None:
        return None
    return {
        **chosen,
        "p_feasible": sure.p_feasible,
        "pgs": sure.pgs,
        "pgs_unknown": sure.unknown or None,
        "p_better_found": sure.p_better_found,
        "expected_quality": sure.expected,
        "expected_low": sure.expected_low,
        "expected_high": sure.expected_high,
        "ahead": sure.ahead,
        "effective_n": chosen["n"] if chosen["clusters"] is None else chosen["clusters"],
    }


def _traded(trade: Trade) -> dict[str, object]:
    """Return what one gives up and saves by taking the first alternative, with the numbers of both stacks."""
    chosen, other = (
        {"stack": row["name"], **{name: row[name] for name in NUMBERS if name in row}, **new} | {"pgs": good}
        for row, new, good in zip(trade.sides, trade.expected, trade.pgs, strict=True)
    )
    said = {"sentence": trade.sentence, "beside": trade.beside, "now": trade.now}
    said["settles"] = trade.settles
    return {"run_id": trade.run_id, **said, "called": list(trade.called), "chosen": chosen, "other": other}


def _alternative(table: pl.DataFrame, other: Alternative, asked: View) -> dict[str, object]:
    return {
        "run_id": table["run_id"][other.row],
        "stack": table["name"][other.row],
        "difference": other.difference,
        "low": other.low,
        "high": other.high,
        "saves_usd_per_1k": other.saves_usd,
        "same_bill": same_bill(asked, other.row),
        "saves_ms": other.saves_ms,
        "latency_told_apart": other.told_apart,
        "p_within_delta": other.p_within_delta,
        "alike_to": None if other.twin_of is None else table["name"][other.twin_of],
        "expected_quality": other.expected,
        "expected_low": other.expected_low,
        "expected_high": other.expected_high,
        "pgs": other.pgs,
    }


def _step(table: pl.DataFrame, step: LimitPrice) -> dict[str, object]:
    return {
        "stack": table["name"][step.row],
        "from": table["name"][step.than],
        "gain": step.gain,
        "more": step.more,
        "per_0.01": step.per_step,
    }


def _taken(table: pl.DataFrame, decision: Decision) -> dict[str, object] | None:
    """Return the stack that a person took, and the one it replaced; None if the rule chose."""
    if decision.chosen is None or decision.instead_of is None:
        return None
    merit = decision.quality.merit(decision.quality.read(table))
    return {
        "run_id": table["run_id"][decision.chosen],
        "stack": table["name"][decision.chosen],
        "instead_of": table["name"][decision.instead_of],
        "given_up": float(merit[decision.instead_of] - merit[decision.chosen]),
    }


def _asked(table: pl.DataFrame, asked: View) -> dict[str, object]:
    limits = asked.constraints
    return {
        "measure": asked.quality.name,
        "latency": asked.latency.name,
        "better": "higher" if limits.higher_is_better else "lower",
        "rule": asked.rule,
        "sla_ms": limits.sla_ms,
        "budget_usd_per_1k": limits.budget,
        "min_quality": limits.min_quality,
        **{
            name: value
            for axis in BESIDE
            for name, value in ((axis.limit, limits.of(axis)), (axis.key, measure_of(table, axis)))
        },
        **{axis.limit: limits.said(axis) for axis in MOVING},
        "jitter_ms": limits.jitter_ms,
        "frontier": "weak" if asked.weak else "usual",
        **dict(zip(text.UNIT, limits.costs_said.said, strict=True)),
    }


def _turn(table: pl.DataFrame, turn: Turn) -> dict[str, object]:
    return {
        "stack": table["name"][turn.of],
        "of": turn.axis.key,
        "now": turn.now,
        "then": _digits(turn.then),
        "by": _digits(turn.change),
        "unit": turn.axis.unit,
        "winner": None if turn.winner is None else table["name"][turn.winner],
        "reason": turn.reason or None,
    }


def _digits(value: float | None) -> float | None:
    """Return six significant digits: the turning point of a choice is searched for, not solved exactly."""
    return None if value is None else float(f"{value:.6g}")
