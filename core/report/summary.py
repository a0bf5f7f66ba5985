"""The beginning of a record, for a reader without background: three sentences, and the terms of the field.

What to ship and its quality; its cost and speed; how certain that is, and what would change it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from core.analysis.stack_cost import ASSUMED_PRICE
from core.analysis.workspace.comparable import clock
from core.analysis.workspace.scope import MEAN, Quality
from core.analysis.workspace.sure import good_enough
from core.axes import AxisSpec
from core.decide.axes import LIMITS, QUALITY
from core.report.tables import STACKS, WORDS, Data, costs, counted, priced, said_in, waiting, written_as
from core.views import text
from core.views.decision.words import resampled
from core.views.words.advice import JUDGE
from core.views.words.facts import SURE
from core.views.words.near import gain_words, least_first, way_in
from core.views.words.parts import explained

if TYPE_CHECKING:
    from core.analysis.workspace.view import View

MEASURED: Mapping[str, str] = {
    "RA-nWG": "its first {k} results hold {share} of the best possible evidence",
    "Novelty-RA-nWG": "its first {k} results hold {share} of the best possible new evidence",
    "N-Recall4+": "its first {k} results hold {share} of the good passages that fit",
    "N-Recall5": "its first {k} results hold {share} of the best passages that fit",
    "N-Recall": "its first {k} results hold {share} of the relevant passages that fit",
    "R": "its first {k} results hold {share} of all relevant passages",
    "P": "{share} of its first {k} results are relevant",
    "Precision4+": "{share} of its first {k} results are good",
    "Harm": "{share} of its first {k} results could mislead",
    "HarmUpper": "at most {share} of its first {k} results could mislead",
    "Hole": "{share} of its first {k} results are not judged",
    "Hit": "for {share} of the queries its first {k} results hold everything good",
    "Success": "for {share} of the queries its first {k} results hold something relevant",
    "nDCG": "its first {k} results are worth {share} of the best possible order",
    "RR": "its first relevant result scores {score}, where 1 is always on top",
    "Answer": "answers from its first {k} results score {score}, where 1 is best",
}
"""Meaning of a measure's mean for a stack, by the measure's name; others are described by their name."""
_TYPICAL = {
    "p50": "half take this long or less",
    "p95": "95 of 100 take this long or less",
    "p99": "99 of 100 take this long or less",
    "mean": "all times added up, over their number; a few slow ones raise it",
}
_TIMED = {
    "path": ("search", "searches"),
    "rerank": ("reranker call", "reranker calls"),
    "end-to-end": ("answer", "answers"),
}
GRADES = "The grades: if they fail the check by hand, the choice is open."
CHANGES = 4  # Maximum things named that would change the choice
_MORE = "judging more passages"
_PLAIN = {"SLA": "time limit"}
"""Plain names of limits whose usual name is a technical term."""


def summary(data: Data, view: View) -> list[str]:
    """Return the three sentences that open a record, or the reason if nothing was chosen.

    Args:
        data: The record, insofar as it is complete.
    """
    if data["chosen"] is None:
        first = next(_changes(data), None)
        change = f"{text.capital(first.what)} could change it." if first else ""
        return [words for words in (data["answer"]["sentence"], data["answer"]["reason"], change) if words]
    if not data.get("no_clear_winner"):
        own = data["chosen"]
        return [_what(data, view.quality), _price(data, own, data["slow"]), _sure(data, view)]
    heading = f"{data['answer']['title']}. {data['trade']['now']}"
    return [heading, f"{_both_good(data, view.quality)} {_both_paid(data)}", _both_sure(data, view)]


def _both_good(data: Data, quality: Quality) -> str:
    """Say how good both are, the advised one first."""
    own, other = (_worth(data["trade"][side], quality) for side in ("chosen", "other"))
    first, second = data["trade"]["called"]
    if own == other:
        return f"Either way {own}."
    return f"{text.capital(second)}, {other}. {text.capital(first)}, {own}."


def _both_paid(data: Data) -> str:
    """Say how fast both are and what they cost, the advised one first."""
    row, (first, second) = data["trade"]["chosen"], data["trade"]["called"]
    paid = f"costs {said_in(data).bare(row['cost'])}" if row["cost"] is not None else "is of unknown cost"
    timed = f"takes {text.ms(row['latency_ms'])}" if row["latency_ms"] is not None else ""
    own = f"{text.capital(first)} it {' and '.join(filter(None, (timed, paid)))}."
    said = f"{text.capital(second)}, {_lower(_price(data, data['trade']['other'], data['slow_second']))}"
    return " ".join(filter(None, (said, own, data["savings_in_words"])))


def _both_sure(data: Data, view: View) -> str:
    """State the confidence in both."""
    own, other = (data["trade"][side]["pgs"] for side in ("chosen", "other"))
    if own is None or other is None:
        return "How sure this is, is unknown."
    first, second = data["trade"]["called"]
    said = f"{text.capital(first)} it is {good_enough(view.decision)} in {resampled(data['resamples'], own)}"
    return f"{said}, {second} in {text.percent(other)}. Both are {_corrected(data)}"


def _corrected(data: Data) -> str:
    return f"corrected for choosing among {text.count(len(data['stacks']), 'stack')}."


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


def _what(data: Data, quality: Quality) -> str:
    """Say what to ship, how good it is, and what kind of search it is."""
    taken, is_worth = data["taken"], _worth(data["chosen"], quality)
    kind = f" It is {_lower(data['answer']['kind'])}." if data["answer"]["kind"] else ""
    by = f", which a person took instead of {taken['instead_of']}" if taken and not data["doubt"] else ""
    return f"{data['answer']['title']}{by}. {text.capital(is_worth)}.{kind}"


def _worth(row: Data, quality: Quality) -> str:
    """Describe the quality of a stack, and what is expected of it on new queries."""
    said, expected = measured(row["quality"], quality), row.get("expected_quality")
    if expected is None or row["quality"] is None:
        return said
    measure = quality.measure
    share = measure is not None and "{share}" in MEASURED.get(measure.name, "")
    return f"{said} (new queries: {_percent(expected) if share else text.score(expected)})"


def measured(value: float | None, quality: Quality) -> str:
    """Describe the mean of a measure: ``its first 10 results hold 62 % of the best possible evidence``."""
    if value is None:
        return f"its {quality.name} is unknown"
    measure = quality.measure
    pattern = MEASURED.get(measure.name) if measure else None
    if pattern is None:
        best = f", where {int(quality.higher_is_better)} is best" if measure and quality.is_share else ""
        return f"its {quality.name} is {text.score(value)}{best}"
    return pattern.format(k=quality.k, share=_percent(value), score=text.score(value))


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _price(data: Data, row: Data, late: Data | None) -> str:
    """Say how fast a stack is and what it costs.

    Args:
        late: The duration of its slow searches; None = not asked for.
    """
    asked, on = data["asked"], data["question"]["on"]
    one, many = _TIMED[data["question"]["latency"]]
    timed = clock(data["stack"]["environment"].get("reported"))
    of = f" of {timed}" if timed else ""
    time, limit = text.ms(row["latency_ms"]), _limit(asked["sla_ms"], text.ms)
    kinds = {
        "p50": f"A typical {one} takes {time}{of}{limit}",
        MEAN: f"One {one} takes {time}{of} on average (mean){limit}",
    }
    fast = kinds.get(on) or f"{on[1:]} of 100 {many} take at most {time}{of}{limit}"
    slow, sla = row["latency_ms"] is None, asked["sla_ms"]
    if late and late["ms"] is not None and sla is not None and late["ms"] > sla:
        fast += f"; 5 of 100 take over {text.ms(late['ms'])}"
    if row["cost"] is None and row["cost_least"] is None:
        unpriced = _limit(asked["budget_usd_per_1k"], said_in(data).usd)
        return (
            "How fast it is and what it costs is unknown."
            if slow
            else f"{fast}; its cost is unknown{unpriced}."
        )
    cost = _cost(data, row)
    return f"{f'How fast it is, is unknown{limit}' if slow else fast}. {text.capital(cost)}."


def _cost(data: Data, row: Data) -> str:
    """State its cost: ``a million searches cost $0.15``."""
    said, what = said_in(data), counted(data)
    amount = costs(row, said).replace("≥", "at least")
    if priced(data) == ASSUMED_PRICE and row["cost"] is not None:
        amount = f"about {amount}"
    limit = _limit(data["asked"]["budget_usd_per_1k"], said.bare)
    size, counts = "a million" if said.million else said.many, what.replace("queries", "searches")
    left_out = waiting(data)
    return f"{size} {counts} cost {amount}{limit}{f', {left_out}' if left_out else ''}"


def _limit(value: float | None, written: Callable[[float], str]) -> str:
    return "" if value is None else f" (limit {written(value)})"


def _sure(data: Data, view: View) -> str:
    """State the confidence in the choice, and what would change it first."""
    first, chance = next(_changes(data), None), data["chosen"]["pgs"]
    if chance is None:
        return f"How sure this is, is unknown; {first.what if first else 'nothing close by'} could change it."
    sure = f"It is {good_enough(view.decision)} in {resampled(data['resamples'], chance)}"
    turned = text.capital(first.what if first else "nothing close by")
    said = data["objection"] or data["answer"]["either"] or f"{turned} could change it."
    return f"{sure}. That is {_corrected(data)} {said}"


@dataclass(frozen=True)
class _Change:
    """Something that would change the choice."""

    what: str  # in a few words: "more judging"
    sentence: str


def changes(data: Data) -> list[str]:
    """Return sentences on the things that would change the choice, the nearest first."""
    grades = [GRADES] if data.get("check_grades") else []
    return [*grades, *(one.sentence for one in islice(_changes(data), CHANGES))]


def _changes(data: Data) -> Iterator[_Change]:
    if data.get("no_clear_winner"):
        yield from _advised(data)
    misses = least_first(data["near_misses"], data["delta"] or 0.0)
    yield from map(_looser, (miss for miss in misses if miss["near"]))
    yield from _more_known(data)
    yield from map(_looser, (miss for miss in misses if not miss["near"]))
    yield from _numbers(data)


def _advised(data: Data) -> Iterator[_Change]:
    """Yield what would change the advice to ship the second of two stacks."""
    trade, delta, most = data["trade"], data["delta"] or 0.0, data["one_machine_queries"]
    (first, second), own = trade["called"], trade["chosen"]
    better = f"{delta:g} better" if delta else "better"
    shown = f"proof that going {first} is {better}"
    yield _Change(shown, f"{text.capital(shown)}. {trade['settles']}".strip())
    if most:
        more = f"more than {most:,.0f} queries a month"
        yield _Change(more, f"{text.capital(more)}: going {second} then also saves a machine.")
    if own["latency_ms"] is not None and data["asked"]["sla_ms"] is not None:
        limit = f"a time limit below {text.ms(own['latency_ms'])}"
        yield _Change(limit, f"{text.capital(limit)}: only going {second} meets it.")
    apart = abs(own["quality"] - trade["other"]["quality"])
    rule = f"a difference of {text.score(apart)} in quality"
    yield _Change(rule, f"{text.capital(rule)} turns the rule, which goes {first}; the advice stays.")


def _looser(miss: Data) -> _Change:
    """Return the limit that, if relaxed, would let another stack ship."""
    word = LIMITS[miss["limit"]].limit_word
    limit = f"a {_PLAIN.get(word, word)} of {way_in(miss).removeprefix(word).strip()}"
    gain = gain_words(miss)
    gains = f", {gain}" if gain else ""
    return _Change(limit, f"{text.capital(limit)}: then {miss['then']} is chosen{gains}.")


def _more_known(data: Data) -> Iterator[_Change]:
    """Yield unknowns that may turn out better."""
    better = sum((one["gain"] or 0) > 0 for one in data["promising"])
    if better:
        some = text.count(better, "stack looks", "stacks look")
        yield _Change("measuring more", f"Measuring more: {some} better, but time or cost is unknown.")
    if _judging(data):
        chance = text.percent(data["pgs_if_judged"])
        like = f"With unjudged passages graded like the judged, it is good in {chance} of resamples."
        yield _Change(_MORE, f"Judging more passages. {like}")


def _judging(data: Data) -> bool:
    """Return whether unjudged passages could remove the confidence."""
    return str(data["advice"] or "").startswith(JUDGE) and data["pgs_if_judged"] is not None


def _numbers(data: Data) -> Iterator[_Change]:
    """Yield the nearest number that would change the choice, and the nearest that changes to a worse stack.

    A change to a stack that is as good comes first if it is nearer, and says so: nobody need fear it.
    """
    turns = [turn for turn in data["would_turn"] if turn["winner"] and turn["then"] is not None]
    good = {row["stack"]: row.get("quality") for row in data["stacks"]}
    best, delta = data["chosen"]["quality"] if data["chosen"] else None, data["delta"] or 0.0

    def harmless(turn: Data) -> bool:
        other = good.get(turn["winner"])
        return best is not None and other is not None and abs(best - other) <= delta

    both, said = bool(data.get("no_clear_winner")), set[tuple[str, str]]()
    for turn in sorted(turns, key=lambda turn: abs(turn["by"]) / (abs(turn["now"]) or 1.0)):
        word, written = WORDS[turn["of"]], written_as(data)[turn["of"]]
        now, then = written(turn["now"]), written(turn["then"])
        again = harmless(turn) and (both or (word, turn["winner"]) in said)  # as seen from the other one
        said.add((word, turn["winner"]))
        if now != then and not again:
            winner = "it is" if turn["winner"] == turn["stack"] else f"{turn['winner']} is"
            chosen = f"{winner} chosen{_within(data, turn['winner'])}"
            alike = f", within {delta:g} of it today" if harmless(turn) else ""
            own = bool(data["chosen"]) and turn["stack"] == data["chosen"]["stack"]
            moved = f"a {word} of {then} instead of {now}"
            if alike and turn["of"] == QUALITY.key:
                first = moved = f"a difference of {text.score(abs(turn['by']))} in quality"
                chosen = f"{turn['winner']} is chosen"
            elif own:
                side = "above" if turn["then"] > turn["now"] else "below"
                first = f"{'The rule’s own' if both else 'Its'} {word} {side} {then} instead of {now}"
            else:
                moved += f" for {turn['stack']}"
                first = moved
            yield _Change(moved, f"{text.capital(first)}: then {chosen}{alike}.")
            if not alike:
                return


def _within(data: Data, name: str) -> str:
    """Say how often a stack meets the limits, if that is in doubt."""
    share = next((row.get("p_feasible") for row in data["stacks"] if row["stack"] == name), None)
    return f", which meets the limits in {_percent(share)}" if share is not None and share < SURE else ""


def terms(data: Data, view: View) -> dict[str, str]:
    """Explain the terms of the field, in order of first appearance in a record."""
    row = data["chosen"]
    if row is None:
        return {}
    on, good = data["question"]["on"], good_enough(view.decision)
    known = {
        "95 % interval": row["quality_low"] is not None,
        "n": row["n"] is not None,
        "surely": data["lead_in_words"] is not None,
        "expected": row["expected_quality"] is not None,
        on: row["latency_ms"] is not None,
        "PGS": row["pgs"] is not None,
        "judging": _judging(data),
        "pool": "(pool " in str(data["limiting"]),
        "%PROC": "%PROC" in str(data["limiting"]),
        "frontier": any(stack["status"] == "frontier" for stack in data["stacks"]),
    }
    means = {
        "stack": "one way to search: its parts, and the settings that set it apart",
        **explained(_named(data, view)),
        **_measure(view.quality),
        "n": "how many queries the figure is a mean of",
        "95 % interval": "95 of 100 such intervals hold the figure of all such queries",
        "surely": "at 95 %, for all pairs of stacks within the limits together",
        "expected": "estimate for new queries, shrunk towards what the stacks score together",
        on: _TYPICAL[on],
        "PGS": f"probability of good selection: {good}, scores shrunk towards the mean of all stacks",
        "judging": "grading how useful a result is; what nobody graded counts as useless",
        "pool": "the passages found before the last ordering; @50: how many",
        "%PROC": "the quality, as a share of that of the best ordering of the pool",
        "frontier": "no other stack is as good in cost, latency and quality, and better in one beyond noise",
    }
    return {term: words for term, words in means.items() if known.get(term, True)}


def _named(data: Data, view: View) -> Iterator[tuple[str, AxisSpec]]:
    """Yield the stacks named in the record, the chosen one first, each with its specification."""
    specs = dict(view.table.select("run_id", "spec").iter_rows())
    for row in data["stacks"][:STACKS]:
        yield row["stack"], json.loads(specs.get(row["run_id"]) or "{}")


def _measure(quality: Quality) -> dict[str, str]:
    """Explain a measure and its cutoff."""
    if quality.measure is None:
        return {quality.name: "a measure of quality, as it was reported"}
    words = re.sub(r"\bK\b", str(quality.k), quality.measure.info.text).rstrip(".")
    return {quality.name: f"the quality: {words[:1].lower()}{words[1:]}"}
