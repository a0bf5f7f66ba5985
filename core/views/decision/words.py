"""The wording of page Decision: which stack to ship, its quality, latency, cost and confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.workspace.figures.beside import limit_words
from core.analysis.workspace.scope import MEAN, Latency, Quality
from core.analysis.workspace.sure import good_enough
from core.analysis.workspace.view import View
from core.decide.axes import QUALITY, Axis
from core.decide.rules import Decision
from core.decide.selection import ALONE, SHOWN, Alternative
from core.decide.ties import CHEAPER
from core.stats.intervals import CLUSTERS
from core.stats.means import share_interval
from core.views import text
from core.views.words.advice import NOTHING, advice, first_step, objection, second_row
from core.views.words.bills import SAME_BILL, same_bill
from core.views.words.choice import (
    ALL_AXES,
    all_unknown,
    kind_of_search,
    limits,
    quality_notes,
    undecided,
)
from core.views.words.judging import IF_THEY_HOLD, UNPROVEN, check_first
from core.views.words.late import by_p95, slow
from core.views.words.lead import Lead, lead
from core.views.words.near import gain_words
from core.views.words.trade import difference, trade
from core.views.words.verdict import SHIP, doubt, level, verdict

THIN = 0.01
"""Share of the latency below which a jitter band is not drawn: faster stacks made it."""

SHORT = 72
"""Letters of a name if several share a line."""

FORMS = ("usual", "weak (the paper's)")
"""Forms of the frontier; see `core.decide.pareto.undominated`."""

FORMS_HELP = (
    "usual: a stack is off the frontier if another is at least as good in cost, latency and quality, and "
    "better in one beyond noise. weak: only if another is better in all three (CLQ paper §3.3)."
)

_NO_QUALITY = (
    "It is computed from rankings and judgements, or was reported at this cutoff: import what is missing, or "
    "choose another measure or cutoff."
)


@dataclass(frozen=True)
class Answer:
    """The answer of the decision pages."""

    sentence: str  # the chosen stack with its numbers, or why there is none
    reason: str  # how a tie was broken, and which other stacks would do
    # Evidence that could overturn it, the subject of a harm cap, and what the choice couldn't consider;
    # empty if there is nothing to say
    warning: str = ""


def numbers(row: Mapping[str, Any], quality: Quality, latency: Latency) -> str:
    """Return a stack's three numbers: ``RA-nWG@10 0.805 [0.750, 0.850], n = 50; 337 ms; $1.25 / 1k``."""
    took = text.ms(row["latency_ms"])
    took += " (mean)" if latency.percentile == MEAN and row["latency_ms"] is not None else ""
    interval = text.interval(row["quality_low"], row["quality_high"])
    return (
        f"{quality.name} {text.score(row['quality'])}{interval}, {text.sample(row)}; "
        f"{text.told('latency', took)}; {text.told('cost', text.cost_of(row))}"
    )


def answer(asked: View) -> Answer:
    """Return the stack that the limits select: the sentence to head a page, and the reasons."""
    table, decision, quality = asked.table, asked.decision, asked.quality
    within = limits(asked.constraints, asked.latency)
    heading = title(asked, within)
    if axis := unknown(decision):
        return Answer(f"{heading}.", _lacked(decision, axis))
    if decision.chosen is None and (unscored := undecided(table) or _unscored(table)):
        return Answer(f"{heading}.", unscored)
    doubts = [objection(asked), *limit_words(table, asked.constraints, decision.chosen).values()]
    warning = " ".join(filter(None, doubts))
    if decision.chosen is None:
        return Answer(f"No stack{within} is left.", _nearest(table, decision), warning)
    row = table.row(decision.chosen, named=True)
    feasible = int(decision.feasible.sum())
    ends = ":" if verdict(asked) == SHIP else "."
    if asked.once(first_step).rather:
        ends += f" {row['name']}:"
    sentence = f"{heading}{ends} {numbers(row, quality, asked.latency)}."
    meet = f"{feasible:,} of {text.count(table.height, 'stack')} within the limits."
    parts = [lacking(table, decision) or meet, sure_words(asked), took(table, decision)]
    traded = asked.once(trade)
    parts += [*lead_words(asked), *((traded.sentence, traded.settles) if traded else ()), decision.note]
    check = check_first(asked)
    parts += [offer_words(asked), check and f"{check}."]
    return Answer(sentence, " ".join(filter(None, parts)), warning)


def sure_words(asked: View) -> str:
    """State the confidence in the choice: its chance of being good enough, and its expected new score."""
    decision, sure = asked.decision, asked.sure
    if decision.chosen is None:
        return ""
    ends = text.interval(sure.expected_low, sure.expected_high)
    new = "" if sure.expected is None else f"; {text.score(sure.expected)}{ends} expected on new queries"
    if new and sure.expected_next[0] is not None and asked.once(first_step).rather is None:
        new += ", as" if _level(asked) else f", {text.score(sure.expected_next[0])}"
        new += " of the runner-up"
    if sure.pgs is None and sure.unknown == ALONE and sure.p_feasible not in (None, 1.0):
        meets = f"Meets the limits in {text.percent(sure.p_feasible)} of resamples{new}"
        return f"{meets}; {sure.unknown}."
    if sure.pgs is None:
        return f"How sure this is, is unknown: {sure.unknown}."
    ahead = " Surely ahead of all others." if sure.ahead else ""
    good, rather = good_enough(decision), asked.once(first_step).rather
    sharing = f"{'Both are' if new else 'It is'} corrected for choosing among {asked.table.height:,} stacks."
    firm = f"{resampled(sure.resamples, sure.pgs)}{_counting(sure.resamples, sure.pgs)}"
    if rather is not None and rather.pgs[1] is not None:
        good = f"{rather.called[0]} {good}"
        firm += f", {rather.called[1]} in {text.percent(rather.pgs[1])}"
    return f"{text.capital(good)} in {firm}{new}. {sharing}{ahead}"


def resampled(resamples: int | None, share: float) -> str:
    """State a share of resamples: ``90.4 % of 500 resamples``."""
    return f"{text.percent(share)} of {f'{resamples:,} ' if resamples else ''}resamples"


def _counting(resamples: int | None, share: float) -> str:
    """State the 95 % margin that the number of resamples alone leaves; it is no doubt of the data."""
    if not resamples:
        return ""
    low, high = share_interval(share, resamples)
    return f" (± {50 * (high - low):.1f} points from their number alone)"


def took(table: pl.DataFrame, decision: Decision) -> str:
    """Say which stack a person replaced with this one, or return "" if the rule chose it."""
    if decision.instead_of is None:
        return ""
    return f"Taken by hand in place of {table['name'][decision.instead_of]}."


def offer_words(asked: View) -> str:
    """Name the first alternatives, and a taken stack that no longer meets the limits."""
    said = [dropped_words(asked.dropped)]
    if asked.sure.alternatives:
        offered = "; ".join(
            f"{asked.table['name'][other.row]}{also(twins)}: {price_words(other, asked)}"
            for other, twins in asked.sure.offered[:SHOWN]
        )
        said.append(f"Cheaper or faster, by {asked.quality.name}: {offered}.")
    return " ".join(filter(None, said))


def dropped_words(dropped: str | None) -> str:
    """Say which stack a person took that no longer meets the limits, or return "" if there is none."""
    return "" if dropped is None else f"{dropped} was taken, but does not meet these limits."


def note_words(asked: View) -> str:
    """Say what the choice lacks, how a tie was broken, and which taken stack was dropped; "" if nothing."""
    lacks = lacking(asked.table, asked.decision)
    return " ".join(filter(None, (lacks, asked.decision.note, dropped_words(asked.dropped))))


def also(twins: int) -> str:
    """Say how many stacks are like one but for noise: `` (+1 alike)``; "" if none is."""
    return f" (+{twins} alike)" if twins else ""


def price_words(other: Alternative, asked: View) -> str:
    """Say what an alternative costs in quality, and saves: ``−0.087 [−0.178, +0.006], saves $0.002 / 1M``."""
    return f"{difference(other)}, {savings(other, asked)}"


def savings(other: Alternative, asked: View) -> str:
    """State an alternative's savings: ``saves $0.002 / 1M and 8.9 ms``; noise and no money are left out."""
    same, dollars = asked.once(same_bill, other.row), text.dollars_of(asked.table)
    amounts = [] if same else [(other.saves_usd, dollars)]
    amounts += [(other.saves_ms, text.ms)] if other.told_apart else []
    saved = [written(amount) for amount, written in amounts if amount is not None and amount > 0]
    spent = [written(-amount) for amount, written in amounts if amount is not None and amount < 0]
    parts = [f"saves {' and '.join(saved)}"] if saved else []
    return ", ".join([*parts, *(f"{amount} more" for amount in spent), *([SAME_BILL] * same)])


def unknown(decision: Decision) -> Axis | None:
    """Return the axis that a limit or the rule needs and no stack has values on, except quality itself."""
    first = next(iter(decision.lacking), None)
    return None if first is None or first.key == QUALITY.key else first


def _lacked(decision: Decision, axis: Axis) -> str:
    """Say what to add if nothing is known on an axis that a limit or the rule needs."""
    asks = f"the {axis.limit_word} asks" if axis.key != decision.rule else "the rule asks"
    return f"{text.capital(asks)} for it: {axis.remedy}."


def _unscored(table: pl.DataFrame) -> str:
    """Say why no stack has a quality, or return "" if some have."""
    if not all_unknown(table):
        return ""
    notes = quality_notes(table)
    return f"It {notes[0]}." if len(notes) else _NO_QUALITY


def title(asked: View, within: str = "") -> str:
    """Return the heading: the stack to ship, the best so far with its problem, or that there is none.

    Args:
        within: The limits in words, if they are not shown beside it.
    """
    table, decision, quality = asked.table, asked.decision, asked.quality
    if axis := unknown(decision):
        return f"No stack here has a known {axis.word}"
    if decision.chosen is not None:
        return _chosen(asked, table.row(decision.chosen, named=True), within)
    if undecided(table):
        return "No decision yet"
    if all_unknown(table):
        return f"No stack here has a known {quality.name}"
    return "No stack meets these limits"


def _chosen(asked: View, row: Mapping[str, Any], within: str) -> str:
    """Return the heading for a chosen stack."""
    name = row["name"]
    if few(asked.table, asked.decision):
        return f"Too few queries to decide on {name}{within}"
    if asked.table.height == 1:
        return f"Nothing to compare {name} with{within}"
    check = check_first(asked)
    if against := doubt(asked):
        if rather := asked.once(first_step).rather:
            said = f"No clear winner{within}: {rather.title}"
            return f"{said}; {UNPROVEN}" if check else said
        said = verdict(asked)
        return f"{text.capital(said)}{within}: {name}; {against}"
    if level(asked):
        took = f"take {_least_of(row, asked)}{name}"
        left = _left(asked.decision)
        return f"No difference seen{within}: {left} score {text.score(row['quality'])}; {took}"
    return f"Ship {name}{within}{f', {IF_THEY_HOLD}' if check else ''}"


def _least_of(row: Mapping[str, Any], asked: View) -> str:
    """Say whether the chosen stack is the cheapest or the fastest within the limits, or return ""."""
    within = asked.table.filter(pl.Series(asked.decision.feasible))
    for column, word in (("cost", "cheapest"), ("latency_ms", "fastest")):
        if not within[column].null_count() and row[column] == within[column].min():
            return f"the {word}, "
    return ""


def few(table: pl.DataFrame, decision: Decision) -> bool:
    """Return whether the chosen stack has fewer scored queries, or groups of them, than any test needs."""
    row = None if decision.chosen is None else table.row(decision.chosen, named=True)
    units = None if row is None else row["n"] if row["clusters"] is None else row["clusters"]
    return units is not None and units < CLUSTERS


def lacking(table: pl.DataFrame, decision: Decision) -> str:
    """Say what is missing for a real choice: queries, or another stack; otherwise ""."""
    if decision.chosen is None:
        return ""
    row, lacks = table.row(decision.chosen, named=True), []
    if few(table, decision):
        ahead = "It" if table.height == 1 else f"{row['name']} leads, but it"
        asked = text.count(row["n"], "query", "queries")
        if row["clusters"] is not None:
            asked += f" from {text.count(row['clusters'], row['cluster_kind'])}"
        lacks.append(f"{ahead} was scored on {asked}; it takes at least {CLUSTERS}.")
    if table.height == 1:
        lacks.append("It is the only stack here: add or run another to compare it with.")
    return " ".join(lacks)


def why(asked: View) -> str:
    """Return the line below the heading: the reason for the choice, or what would help."""
    table, decision, quality = asked.table, asked.decision, asked.quality
    if axis := unknown(decision):
        return _lacked(decision, axis)
    if decision.chosen is None:
        return undecided(table) or _unscored(table) or _nearest(table, decision)
    if lacks := lacking(table, decision):
        return lacks
    best = _best_of(decision, quality, ahead=asked.sure.ahead)
    first = asked.once(first_step)
    rather = first.rather
    if level(asked):
        each = text.count(table["n"][decision.chosen], "query", "queries")
        best = f"All score alike on each of {each}; only other queries could tell."
    elif not first.do:
        kind = kind_of_search(table.row(decision.chosen, named=True))
        best = " ".join(filter(None, (kind and f"{kind}.", best, level_words(asked))))
    said = [took(table, decision) or (f"{rather.now} {rather.settles}".strip() if rather else best)]
    said += [dropped_words(asked.dropped), NOTHING if advice(asked) == NOTHING else ""]
    return " ".join(filter(None, said))


def _level(asked: View) -> bool:
    """Return whether the runner-up is expected to be as good on new queries, in the digits shown."""
    one, other = asked.sure.expected, asked.sure.expected_next[0]
    return None not in (one, other) and text.score(one) == text.score(other)


def level_words(asked: View) -> str:
    """Say that the runner-up is expected to do as well, and whether either will do; "" if it isn't."""
    decision, table = asked.decision, asked.table
    if not _level(asked) or asked.sure.ahead or decision.chosen is None or decision.runner_up is None:
        return ""
    own, other = (table.row(row, named=True) for row in (decision.chosen, decision.runner_up))
    known = None not in (own["cost"], other["cost"], own["latency_ms"], other["latency_ms"])
    if (
        known
        and abs(own["latency_ms"] - other["latency_ms"]) <= decision.jitter_ms
        and abs(own["cost"] - other["cost"]) <= CHEAPER * own["cost"]
    ):
        return "The runner-up, as fast and cheap, is expected to do as well: take either."
    return "On new queries the runner-up is expected to do as well."


def second_lead(asked: View) -> Lead | None:
    """Return the lead of the second stack that the heading names; None if it names one, or as `lead`."""
    row = second_row(asked)
    return None if row is None else lead(asked, replace(asked.decision, chosen=row))


def lead_words(asked: View) -> list[str]:
    """Say than how many stacks the choice is surely better, and than which it is not; or each of two."""
    ahead, traded, second = asked.once(lead), asked.once(trade), asked.once(second_lead)
    if ahead is None or asked.sure.ahead:
        return []
    if second is not None and traded is not None:
        own, its = traded.called
        said = f"{text.capital(its)}: {second.sentences[0][:1].lower()}{second.sentences[0][1:]}"
        varies = ": its lead varies more from query to query" * (ahead.spread > second.spread)
        many = f"{text.capital(own)}, than {ahead.surely or 'none'}{varies}."
        return [said, second.named, many]
    sure, unsure = ahead.sentences
    return [sure, ahead.named, "" if traded is not None and traded.stack == ahead.rival else unsure]


def late_words(asked: View) -> str:
    """Say that the p95 of the choice is beyond an SLA on the p50, or return "" if it isn't."""
    sla, chosen = asked.constraints.sla_ms, asked.decision.chosen
    late = None if sla is None or chosen is None else slow(asked, str(asked.table["run_id"][chosen]))
    if late is None or late["ms"] is None or sla is None or late["ms"] <= sla:
        return ""
    return f"Its p95 of {text.ms(late['ms'])} is beyond the SLA, which is on the p50. {by_p95(asked)}"


def _best_of(decision: Decision, quality: Quality, *, ahead: bool) -> str:
    """Say how the stack was chosen."""
    feasible, left = int(decision.feasible.sum()), _left(decision)
    if feasible == 1:
        return "The only stack within the limits."
    if decision.rule == "cost":
        return f"The best {quality.name} within 1 % of the cheapest of {left}."
    if decision.rule == "latency":
        return f"The best {quality.name} as fast as the fastest of {left}."
    if len(decision.ties) > 1:  # the note says how they tie, and what broke the tie: "Chosen by lower cost."
        how, by = decision.note.partition(": ")[2].rstrip(".").split(". Chosen by ")
        return f"One of {len(decision.ties):,} {how}; chosen by {by}."
    return f"The best {quality.name} of {left}{', surely ahead of each' if ahead else ''}."


def _left(decision: Decision) -> str:
    """Name the stacks within the limits."""
    feasible = int(decision.feasible.sum())
    if feasible < len(decision.feasible):
        return f"{text.count(feasible, 'stack')} within the limits"
    return "both stacks" if feasible == 2 else f"all {feasible:,} stacks"


def gaining(row: Mapping[str, Any]) -> str:
    """Return a stack with its potential gain; takes a row of `promising_rows`, or of `near_rows`."""
    return f"{text.shorten(str(row['stack']), SHORT)}: {_gained(row)}"


def _gained(row: Mapping[str, Any]) -> str:
    gained = gain_words(row)
    return text.score(row["quality"]) + (gained and f" ({gained})")


def to_measure(row: Mapping[str, Any]) -> str:
    """Say what a stack lacks, and what to do; takes a row of `promising_rows`."""
    noted = f" ({row['why']})" if row["why"] else ""
    return f"{_gained(row)}, {row['missing']}: {row['measure']}{noted}."


def note(rows: pl.DataFrame, across: Axis, selected: str | None) -> str:
    """Describe the status of the clicked stack, or without one what the line of the chart joins.

    Args:
        rows: Rows from `marked`.
        across: The x axis.
        selected: run_id of a stack other than the chosen one.
    """
    clicked = rows.filter(pl.col("run_id") == selected) if selected is not None else rows.clear()
    if clicked.height:
        row = clicked.row(0, named=True)
        became = f"excluded: {row['reason']}" if row["reason"] else _BECAME[row["status"]]
        return f"{row['name']} is {became}."
    return f"The line is the frontier of {across.word} and quality alone." if rows["line"].any() else ""


_BECAME: Mapping[str, str] = {
    "chosen": "recommended",
    "runner-up": "the runner-up",
    "frontier": f"on the frontier of {ALL_AXES}",
    "within the limits": f"within the limits; another beats it in {ALL_AXES}",
}


def band(table: pl.DataFrame, decision: Decision, jitter: str) -> str:
    """Explain the grey band of the chart, with its origin, or return "" if none is drawn.

    Args:
        jitter: From `jitter_words`.
    """
    if not banded(table, decision):
        return ""
    wide, _, source = jitter.partition(" (")
    taken = ", assumed as in the CLQ paper" if source.startswith("the paper") else ""
    known = table["latency_low"][decision.chosen or 0] is not None
    apart = "; the tile's interval is within one run" if known else ""
    return f"Grey band: jitter between runs, ± {wide}{taken}{apart}."


def banded(table: pl.DataFrame, decision: Decision) -> bool:
    """Return whether the chart has a band of jitter: not where it is too thin, or wider than the latency."""
    latency = None if decision.chosen is None else table["latency_ms"][decision.chosen]
    return latency is not None and THIN * latency < decision.jitter_ms <= latency


def ticking(ticked: int) -> str:
    """Explain how to use the table."""
    return "Tick two stacks to compare them." if ticked < 2 else f"{ticked} stacks ticked."


def _nearest(table: pl.DataFrame, decision: Decision) -> str:
    """Name the stacks that break the fewest limits, by the least of each, as a hint at what to relax."""
    missed = decision.excluded().filter(pl.col("by").is_not_null())
    if missed.is_empty():
        return "Every stack has an unknown value that the limits need."
    broken = (decision.over > 0).sum(axis=1) + decision.unknown.sum(axis=1)
    broken = broken[missed["row"].to_numpy()]
    missed = missed.filter(pl.Series(broken == broken.min()))
    nearest = missed.sort("by").unique("constraint", keep="first", maintain_order=True)
    named = [f"{table['name'][row]}, {reason}" for row, reason in nearest.select("row", "reason").iter_rows()]
    return f"Nearest: {'; '.join(named)}."
