"""Whether to keep or replace the running stack, and what a move needs and costs (docs/switch.md).

The candidate is the rule's choice among the others. It was selected by its estimate, so the tests
hold for the whole family of candidates (Holm 1979), at 2.5 % on one side. Unknown amounts stay
unknown: a sum that includes one is unknown, never smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from core.arrays import Floats
from core.axes import KEYS, AxisSpec, AxisStep
from core.choices import Choice, declared
from core.decide.axes import STEPS
from core.errors import InputError, UnknownNameError
from core.stats.intervals import CLUSTERS, Labels, Sample, quotient
from core.stats.means import less_skewed, skewness, student_error
from core.stats.significance import holm

_Answer = Literal["stay", "switch", "unknown"]
LEVEL = 0.025
"""The one-sided chance that a family without any better candidate leads to a move."""
WEEKS_PER_MONTH = 365.25 / 12 / 7
_DENSE, _SPARSE = ("dense", "hybrid"), ("sparse", "hybrid")
_LEGS = {"embedder": _DENSE, "dim": _DENSE, "index": _DENSE, "index_params": _DENSE, "metric": _DENSE} | {
    "sparse": _SPARSE,
    "bm25": _SPARSE,
}
"""Keys that only one of the two searches has, with the modes that use it."""
TOO_FEW = f"quality is known on too few queries, and it takes {CLUSTERS}"
_UNKNOWN: tuple[_Answer, str] = ("unknown", "not surely better, and what it saves is not known")


def needed(now: AxisSpec, then: AxisSpec, *, shortens: bool = False) -> dict[str, AxisStep] | None:
    """Return the steps needed to move from one stack to another, by the key that differs.

    Args:
        now: Specification of the stack that runs.
        then: Specification of the stack that would replace it.
        shortens: Whether the model's vectors can be cut, so that fewer dimensions need no new embedding.

    Returns:
        The step for every key that must change; None if a specification does not describe its search,
        like that of a custom pipeline or an import.
    """
    if not all(spec.get("mode") in {*_DENSE, *_SPARSE} for spec in (now, then)):
        return None
    found: dict[str, AxisStep] = {}
    for name, key in KEYS.items():
        if name in ("mode", "name") or name not in then or not key.read(then):
            continue
        if name in _LEGS and then["mode"] not in _LEGS[name]:
            continue  # nothing is left to build for it
        if now.get(name) != then[name] or (name in _LEGS and now["mode"] not in _LEGS[name]):
            found[name] = key.step
    shorter = now.get("embedder") == then.get("embedder") and (now.get("dim") or 0) > (then.get("dim") or 0)
    if shortens and shorter and found.get("dim") == "embed":
        found["dim"] = "rebuild"
    return found


def built(needs: Mapping[str, AxisStep], then: AxisSpec) -> dict[str, bool]:
    """Return which searches of the new stack need a new index: by the name of their part, if it has them."""
    changed = {name for name, step in needs.items() if step != "none"}
    parts = {"vectors": _DENSE, "words": _SPARSE}
    of = {part: {key for key, modes in _LEGS.items() if modes == parts[part]} for part in parts}
    return {
        part: bool(changed & {*of[part], "chunker", "filtering"})
        for part, modes in parts.items()
        if then["mode"] in modes
    }


def largest(needs: Mapping[str, AxisStep] | None) -> AxisStep | None:
    """Return the largest step of a move, or None if its steps are unknown."""
    return None if needs is None else max(needs.values(), key=STEPS.index, default="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Criteria for a move, besides the measured stacks; None = not known."""

    queries_per_month: Annotated[
        float | None, Choice("qpm", "queries a month", "How many are asked in a month.", low=0)
    ] = None
    passages: Annotated[
        int | None,
        Choice(
            "corp", "passages of the corpus", "By default those of the collection.", low=1, title="Passages",
            whole=True,
        ),
    ] = None  # fmt: skip
    tokens_per_passage: Annotated[
        float | None,
        Choice(
            "ctok", "tokens of a passage that is embedded", "What embedding is paid by.", low=0,
            title="Tokens per passage",
        ),
    ] = None  # fmt: skip
    passages_per_month: Annotated[
        float,
        Choice(
            "added", "passages added a month", "Each is embedded by whichever stack runs.", low=0,
        ),
    ] = 0.0  # fmt: skip
    batch_usd: Annotated[
        float | None,
        Choice(
            "bulk", "price of embedding in a batch",
            "What a million tokens cost when the corpus is embedded in a batch; by default the list price.",
            low=0, title="$ per million tokens in a batch", step=0.01,
        ),
    ] = None  # fmt: skip
    tokens_per_minute: Annotated[
        float | None,
        Choice(
            "tpm", "tokens a minute that the vendor takes", "By default the limit of its basic tier.", low=1,
            title="Tokens a minute",
        ),
    ] = None  # fmt: skip
    weeks_both: Annotated[
        float,
        Choice("both", "weeks in which both run", "Beside one another, before the old one ends.", low=0),
    ] = 2.0
    engineering_days: Annotated[
        float, Choice("days", "days of engineering", "Days of work for the move.", low=0)
    ] = 0.0
    usd_per_day: Annotated[
        float | None, Choice("rate", "price of a day", "What a day costs.", low=0, title="$ per day")
    ] = None
    evaluation_usd: Annotated[
        float,
        Choice(
            "once", "cost of the evaluation", "Of measuring and judging before the move.", low=0,
            title="$ of evaluation",
        ),
    ] = 0.0  # fmt: skip
    margin: Annotated[
        float,
        Choice(
            "marg", "margin of a move", "What a move must surely bring, in quality.", low=0,
            title="Better by at least", step=0.01,
        ),
    ] = 0.0  # fmt: skip
    months: Annotated[
        float,
        Choice(
            "mths", "months to pay back", "Within which a move for money or time must have paid back.", low=0,
            title="Paid back within months",
        ),
    ] = 24.0  # fmt: skip
    value_usd: Annotated[
        float | None,
        Choice(
            "worth", "value of one unit of quality",
            "What a whole point of the measure is worth per query; then quality has to pay back too.", low=0,
            title="$ per point of quality", step=0.01,
        ),
    ] = None  # fmt: skip

    @classmethod
    def of(cls, said: Iterable[str]) -> Terms:
        """Read terms as texts: ``queries_per_month=1e6``.

        Raises:
            UnknownNameError: If there is no such term.
            InputError: If it is no number, or out of range.
        """
        values: dict[str, Any] = dict(_term(text) for text in said)
        return cls(**values)

    def said(self) -> list[str]:
        """Return the terms that differ from the usual ones, as texts."""
        return [f"{name}={value:.10g}" for name, value in self._own().items()]

    def in_address(self) -> dict[str, float]:
        """Return the terms that differ from the usual ones, by their key in an address."""
        return {declared(Terms)[name].choice.key: value for name, value in self._own().items()}

    def _own(self) -> dict[str, float]:
        usual = {name: field.usual for name, field in declared(Terms).items()}
        values = {name: getattr(self, name) for name in usual}
        return {name: value for name, value in values.items() if value is not None and value != usual[name]}


def _term(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    known = declared(Terms)
    if name not in known:
        raise UnknownNameError("term of a move", name, known)
    choice = known[name].choice
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < (choice.low or 0):
        problem = f"{name}={number} is not a number of {choice.low:g} or more."
        raise InputError(problem, do=f"Write {name}=10.")
    return name, int(value) if choice.whole else value


@dataclass(frozen=True, slots=True)
class SwitchItem:
    """One line of the one-time cost of a move."""

    name: str  # embed again, build the index, both run, second index, engineering, evaluation
    usd: float | None  # None = not known
    basis: str  # how it is computed, or what is missing


def total(amounts: Iterable[float | None]) -> float | None:
    """Add amounts up; an unknown one makes the sum unknown."""
    known = [*amounts]
    return None if any(each is None for each in known) else math.fsum(each or 0.0 for each in known)


def payback(once_usd: float | None, saved_usd: float | None) -> float | None:
    """Return the months until a move has paid for itself; infinite = never, None = unknown."""
    if once_usd is not None and once_usd <= 0:
        return 0.0
    if saved_usd is not None and saved_usd <= 0:
        return math.inf  # whatever it costs
    return None if once_usd is None or saved_usd is None else once_usd / saved_usd


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much a candidate is better than the running stack, in merit: more is always better."""

    difference: float  # mean over queries; NaN = unknown
    low: float
    high: float  # ends of the 95 % interval by Student's t
    p_better: float  # chance that it is better at all
    better: float  # p-value that it is better by no more than the margin, adjusted for the family
    no_worse: float  # p-value that it is more than the indifference zone worse, adjusted in the same way
    n: int  # queries on which both have a value


def gains(
    values: Floats, now: int, margin: float, delta: float, clusters: Labels | None = None
) -> dict[int, Gain]:
    """Compare every candidate with the running stack, as one family.

    Args:
        values: [stacks, queries], in merit; NaN = not applicable.
        now: Row of the stack that runs.
        margin: The least improvement required of a move.
        delta: The indifference zone.
        clusters: [queries], labels of the groups that queries belong to.

    Returns:
        A gain per other row that has any value; on fewer than `CLUSTERS` queries, or groups of them, only the
        difference is known.
    """
    rows = [row for row in range(len(values)) if row != now and not np.isnan(values[row]).all()]
    if not rows:
        return {}
    sample = Sample.means(values[rows] - values[now], clusters)
    parts, counts = sample.parts(), sample.units.astype(np.float64)
    middle, error, freedom = student_error(parts, sample.bottom)
    reach, lean = error * stdtrit(freedom, 1 - LEVEL), skewness(parts)
    above, within = (
        holm(1 - stdtr(freedom, less_skewed(_errors(middle - bound, error), lean, counts)))
        for bound in (margin, -delta)
    )
    chances, few = stdtr(freedom, _errors(middle, error)), counts < CLUSTERS
    ends = (middle - reach, middle + reach)
    told = (np.where(few, np.nan, each) for each in (*ends, chances, above, within))
    columns = [each.tolist() for each in (middle, *told, sample.n)]
    return {row: Gain(*each) for row, each in zip(rows, zip(*columns, strict=True), strict=True)}


def _errors(middle: Floats, error: Floats) -> Floats:
    """Return means in standard errors; infinite if they do not vary, 0 if they are 0."""
    apart = quotient(middle, error)
    return np.where(error > 0, apart, np.where(middle == 0, 0.0, np.copysign(np.inf, middle)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Gains and costs of a move to the candidate; None = unknown."""

    gain: Gain | None
    saves_usd: float | None  # per month
    saves_ms: float | None
    alike_ms: float = 0.0  # difference below which latencies are the same
    items: Sequence[SwitchItem] = ()  # its one-time cost

    @property
    def once_usd(self) -> float | None:
        """The one-time cost."""
        return total(item.usd for item in self.items)


@dataclass(frozen=True, slots=True)
class SwitchVerdict:
    """Whether to stay or to switch, and why."""

    answer: _Answer
    why: str  # the condition that decided, or what is unknown
    payback_months: float | None  # infinite = never


def stay_or_switch(move: Move, terms: Terms) -> SwitchVerdict:
    """Apply the rule: surely better by the margin, or cheaper or faster and surely no more than δ worse.

    A move for money or time must have paid for itself within the months; with a value of quality, so must a
    move for the quality. If a deciding number is unknown, so is the answer.
    """
    gain, saved = move.gain, move.saves_usd
    if gain is None or math.isnan(gain.better):
        few = gain is not None and gain.n > 0
        return SwitchVerdict(
            "unknown", TOO_FEW if few else "quality is not known query by query for both", None
        )
    if terms.value_usd is not None and saved is not None and terms.queries_per_month is not None:
        saved += terms.value_usd * gain.difference * terms.queries_per_month
    months, better = payback(move.once_usd, saved), gain.better < LEVEL
    if better and terms.value_usd is None:
        return SwitchVerdict("switch", "surely better", months)
    if not better and gain.no_worse >= LEVEL:
        return SwitchVerdict("stay", "neither surely better nor surely as good", months)
    if not better and not (saved or 0.0) > 0 and not (move.saves_ms or 0.0) > move.alike_ms:
        known = saved is not None and move.saves_ms is not None
        return SwitchVerdict(*(("stay", "neither better, cheaper nor faster") if known else _UNKNOWN), months)
    if months is None:
        return SwitchVerdict("unknown", "what the move costs once, or saves, is not known", None)
    why: tuple[_Answer, str] = ("switch", "surely better" if better else "surely as good, and saves")
    return SwitchVerdict(*(("stay", "not paid back in time") if months > terms.months else why), months)
