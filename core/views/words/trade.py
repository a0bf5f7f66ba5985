"""What one would give up, and save, by taking the first alternative: two stacks side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.workspace.view import View
from core.arrays import Floats
from core.decide.selection import Alternative, Assessment
from core.decide.ties import CHEAPER, ROUNDING
from core.golden.by_hand import QUESTIONS
from core.stats.intervals import CLUSTERS
from core.stats.significance import detectable, queries_needed
from core.tables import Row
from core.views import columns as cols
from core.views import text
from core.views.blocks import Table
from core.views.words.judging import most_passages

_RATIO = 10.0
"""Ratio from which a share of the time is written as ``1/57``; a smaller one is in percent."""
_LONGEST = 30  # Letters of the part that two names differ in, above which it names neither
PAIR = "95 % interval of this pair alone"
"""What the interval of a difference holds for; `core.views.words.lead` counts all pairs together."""


@dataclass(frozen=True)
class Trade:
    """The first alternative beside the chosen stack."""

    run_id: str  # of the alternative
    sentence: str  # what taking it gives up and saves
    sides: tuple[Row, Row]  # rows of the stack table: the chosen stack's, the alternative's
    expected: tuple[Row, Row]  # expected_quality on new queries of each, expected_low and expected_high
    tenth: str  # the first share of time or cost that is a tenth or less: "1/57 of the time"; "" if none is
    pgs: tuple[float | None, float | None]  # probability of good selection of each; None = unknown
    apart: str  # the difference in quality, with its measure
    loss: float  # what its quality may be lower by: the end of the 95 % interval; 0 or more
    gain: float  # what it may be higher by: the other end; 0 if none is known
    delta: float = 0.0  # the difference that matters
    settled_by: int | None = None  # queries that would show it; None = unknown, or these do

    @property
    def stack(self) -> str:
        """The name of the alternative."""
        return str(self.sides[1]["name"])

    @property
    def apart_in(self) -> str:
        """The part that the chosen stack has and the alternative has not, if they differ in nothing else."""
        own, its = (str(row["name"]).split() for row in self.sides)
        pairs = enumerate(zip(own, its, strict=False))
        before = next((at for at, (one, other) in pairs if one != other), len(its))
        after = len(own) - len(its) + before
        part = " ".join(own[before:after]).lstrip("+⊕· ").partition(",")[0]
        return part if own[:before] + own[after:] == its and len(part) <= _LONGEST else ""

    @property
    def called(self) -> tuple[str, str]:
        """Both in a sentence: ``with late interaction``, ``without late interaction``."""
        if part := self.apart_in:
            return f"with {part}", f"without {part}"
        return "with the first", "with the second"

    @property
    def title(self) -> str:
        """Both in a heading: ``Y, or X for 1/74 of the time``."""
        if self.apart_in:
            return f"{self.stack} {self.called[0]}, or {self.far} without"
        return f"{self.sides[0]['name']}, or {self.stack} for {self.tenth}"

    @property
    def far(self) -> str:
        """The first share as a factor: ``74 times faster``; "" if none is a tenth."""
        ratio, _, of = self.tenth.removeprefix("1/").partition(" of the ")
        return f"{ratio} times {'faster' if of == 'time' else 'cheaper'}" if of else ""

    @property
    def beside(self) -> str:
        """The alternative's difference, where the heading names both."""
        return f"{text.capital(self.called[1])}: {self.apart}, {PAIR}."

    @property
    def now(self) -> str:
        """What to ship until the two are told apart."""
        gain = f"; it may gain {text.score(self.gain)}" if self.gain else ""
        return f"Go {self.called[1]} unless losing up to {text.score(self.loss)} matters{gain}."

    @property
    def settles(self) -> str:
        """How many queries would show a difference that matters, or "" if that is unknown."""
        if self.settled_by is None:
            return ""
        number = float(f"{self.settled_by:.2g}")
        return f"About {number:,.0f} judged queries would show a difference of {self.delta:g} (80 % power)."


def trade(view: View) -> Trade | None:
    """Return what the first alternative gives up, or None if it is surely worse, or saves less than half."""
    other, chosen = next(iter(view.sure.alternatives), None), view.decision.chosen
    if other is None or chosen is None or not other.much:
        return None
    # if only averages are known, its loss must not matter
    if other.difference < -view.decision.delta - ROUNDING if other.high is None else other.high < 0:
        return None
    own, its = view.table[[chosen, other.row]].to_dicts()
    shares = _paid(own, its, other)
    tenth = next((share for share in shares if share.startswith("1/")), "")
    least = tenth or next((share for share in shares if not share.startswith("the same")), shares[0])
    apart = f"{difference(other)} {view.quality.name}"
    sentence = f"{its['name']} may be as good for {least}: {apart}."
    expected = (_new(view.sure), _new(other))
    pgs, delta = (view.sure.pgs, other.pgs), view.decision.delta
    settled_by = _settled_by(view, [chosen, other.row], delta)
    loss = max(0.0, -(other.difference if other.low is None else other.low))
    gain = max(0.0, other.high or 0.0)
    return Trade(
        its["run_id"], sentence, (own, its), expected, tenth, pgs, apart, loss, gain, delta, settled_by
    )


def _settled_by(view: View, rows: Sequence[int], delta: float) -> int | None:
    """Return how many queries show a difference of delta between two stacks, if more than today's."""
    gaps = _gaps(view, rows)
    if gaps is None or not delta:
        return None
    needed = float(queries_needed(gaps.std(ddof=1), delta))
    return int(needed) if needed > len(gaps) else None


def _gaps(view: View, rows: Sequence[int]) -> Floats | None:
    """Return the differences of two stacks per query [n]; None where queries are few, or come in groups."""
    paired = view.paired
    if paired is None or paired.clusters is not None:
        return None
    own, its = paired.places(view.table["run_id"])[rows].tolist()
    if min(own, its) < 0:
        return None
    gaps = paired.values[own] - paired.values[its]
    gaps = gaps[~np.isnan(gaps)]
    return gaps if len(gaps) >= CLUSTERS else None


def pass_mark(view: View) -> str:
    """Say how much checking the grades takes, what it can show, and when they fail.

    Not failing proves little: the check shows only large differences of the two leading stacks.
    """
    chosen, traded = view.decision.chosen, view.once(trade)
    rival = view.decision.runner_up if traded is None else view.sure.alternatives[0].row
    gaps = None if chosen is None or rival is None else _gaps(view, [chosen, rival])
    least = None if gaps is None else float(detectable(gaps.std(ddof=1), QUESTIONS))
    shows = f"; they show a difference from about {least:.2g} on (80 % power)" if least else ""
    return (
        f"For two stacks that is at most {most_passages(view.quality.k):,} passages{shows}. "
        "The grades fail if the other is then better, by the pair's 95 % interval; "
        "of several, if one surely is."
    )


def difference(other: Alternative) -> str:
    """State an alternative's difference in quality: ``−0.087 [−0.178, +0.006]``."""
    if other.low is None or other.high is None:
        return text.signed(other.difference)
    return f"{text.signed(other.difference)} [{text.signed(other.low)}, {text.signed(other.high)}]"


def _new(of: Assessment | Alternative) -> Row:
    return {
        "expected_quality": of.expected,
        "expected_low": of.expected_low,
        "expected_high": of.expected_high,
    }


def _paid(own: Row, its: Row, other: Alternative) -> list[str]:
    """State the alternative's time and cost as shares: ``1/57 of the time``, ``1/50 of the cost``."""
    shares = [_share(own["latency_ms"], its["latency_ms"], "time")] if other.told_apart else []
    return [share for share in (*shares, _share(own["cost"], its["cost"], "cost")) if share]


def _share(whole: float | None, part: float | None, of: str) -> str:
    if not whole or part is None:
        return ""
    if abs(part / whole - 1) <= CHEAPER:
        return f"the same {of}"
    if part * _RATIO > whole:
        return f"{100 * part / whole:.0f} % of the {of}"
    return f"1/{whole / part:,.0f} of the {of}" if part else f"no {of}"


def side_by_side(view: View, made: Trade) -> Table:
    """Return both stacks with expected quality on new queries, latency, cost and confidence, in words."""
    of = cols.Rows(
        "trade",
        "stack",
        cols.text("expected", f"{view.quality.name} expected on new queries"),
        cols.text("took", view.latency.percentile, view.latency.name),
        cols.text("paid", "cost"),
        cols.text("firm", "confidence"),
    )
    rows = [
        {
            "stack": row["name"],
            "expected": text.score(new["expected_quality"])
            + text.interval(new["expected_low"], new["expected_high"]),
            "took": text.ms(row["latency_ms"]),
            "paid": text.cost_of(row),
            "firm": text.UNKNOWN if good is None else text.percent(good),
        }
        for row, new, good in zip(made.sides, made.expected, made.pgs, strict=True)
    ]
    return Table(of.frame(rows), of)
