"""Words of the compare page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import polars as pl

from core.analysis.paired import LEVEL, LOSSES, OPEN, UNDECIDED, WINS, alike_means
from core.analysis.sides import AVERAGES, SAME, Closer
from core.analysis.stack_cost import cost_basis
from core.analysis.workspace.scope import Quality
from core.decide.axes import COST, LATENCY, QUALITY, Axis
from core.stats.intervals import CLUSTERS
from core.stats.significance import TESTS, Setup
from core.tables import Row
from core.views import text
from core.views.charts.queries import BARS
from core.views.theme import as_today

_WORDS = {LATENCY.key: ("faster", "slower", "as fast"), COST.key: ("cheaper", "dearer", "same cost")}

BRING = "Bring rankings with their judgements, or run stacks here, to compare them query by query."
NO_TAG = "No tag sets some of the scored queries apart from the others."
NO_CEILING = "This measure has no PROC to split the difference with."
NO_CHANGE = (
    "No two stacks with per-query data differ in exactly one part of their specification. Imported runs that "
    "are known by their name only cannot be matched."
)
CHANGE = "Found by comparing the specifications of the stacks: everything else in them is the same."
NO_PAIR = "Nothing to compare: this workspace has fewer than two stacks."


def legend(quality: Quality) -> str:
    """Explain how to read a chart of differences."""
    return (
        f"{'Right' if quality.higher_is_better else 'Left'} of 0 the stack is better. Whisker: 95 % interval "
        "of that comparison by itself. Light bar: true differences that these queries are too few to show "
        f"with 80 % power. Real: its adjusted p is below {LEVEL}."
    )


def answer(gaps: pl.DataFrame, quality: Quality, cost: Axis = COST, *, same: bool = False) -> str:
    """Summarise in one sentence how the first stack differs from others in quality, latency and cost.

    Args:
        gaps: From `core.analysis.sides.sides`; for several other stacks only quality is covered.
        cost: The cost axis in the page's unit.
        same: Whether the two rank the same passages in the same order on every query.
    """
    rows = {axis: gaps.filter(axis=axis.key).to_dicts() for axis in (QUALITY, LATENCY, cost)}
    heads = [_quality(row, quality) for row in rows[QUALITY]]
    name, row = rows[QUALITY][0]["stack"], rows[QUALITY][0]
    if same:
        heads = [f"ranks the same passages in the same order as {row['against']}: equal {quality.name}"]
    n = {row["n"] for row in rows[QUALITY] if row["n"] is not None}
    of = text.sample(row) if len(n) == 1 else f"n = {min(n)} to {max(n)}" if n else AVERAGES
    sample = f" ({of})"
    said = f"{name} {'; it '.join(heads)}{sample}"
    if len(heads) > 1:
        return f"{said}."
    latency, dearer = (_beside(rows[axis][0], axis) for axis in (LATENCY, cost))
    return f"{', '.join(filter(None, (said, latency, dearer)))}."


def _quality(row: Row, quality: Quality) -> str:
    other, difference = row["against"], row["difference"]
    if row["n"] == 0 or difference is None:
        known = "applies to no query of" if row["n"] == 0 else "is not known of"
        return f"cannot be told from {other}: {quality.name} {known} both"
    if row["clusters"] is not None and row["clusters"] < CLUSTERS:
        few = f"fewer than {CLUSTERS} {row['cluster_kind']}s"
        return f"averages {gap(row)} {quality.name} beside {other}; {few} tell no more"
    if row["verdict"] == OPEN:
        return f"shows no significant difference from {other}: {gap(row)} {quality.name}"
    if row["verdict"] in (WINS, LOSSES):
        return f"is {row['verdict']} than {other} by {gap(row, sign=False)} {quality.name}"
    if row["verdict"] == SAME or text.score(abs(difference)) == text.score(0.0):
        return f"scores the same {quality.name} as {other}"
    more = "more" if difference > 0 else "less"
    return f"averages {text.score(abs(difference))} {more} {quality.name} than {other}"


def _beside(row: Row, axis: Axis) -> str:
    """Describe the difference in latency or cost, if known for both."""
    better, worse, same = _WORDS[axis.key]
    if row["verdict"] is None:
        return ""
    if row["verdict"] in (SAME, *UNDECIDED):
        return same
    return f"{_told(row, axis)(abs(row['difference']))} {better if row['difference'] < 0 else worse}"


def _told(row: Row, axis: Axis) -> Callable[[float | None], str]:
    """Return what writes a difference to the last digit of the numbers that it is of, and no finer."""
    of = max((abs(row[name]) for name in ("value", "value_against") if row[name] is not None), default=0.0)
    shown = re.search(r"[\d,]+(\.\d+)?", axis.written(of))
    number = float(shown[0].replace(",", "")) if shown else 0.0
    if shown is None or not of or not number:
        return axis.written
    unit: float = 10.0 ** round(math.log10(number / of))  # seconds of ms, or a million of a thousand queries
    places = len(shown[1] or ".") - 1
    return lambda value: axis.written(None if value is None else round(value * unit, places) / unit)


def shown(axis: Axis, row: Row, paid: str) -> tuple[str, str]:
    """Return a stack's number on an axis, and the small text below it; `paid` is from `priced_by`."""
    if axis.key == COST.key:
        lacks = row["cost_note"] or row["cost_missing"]
        written, *_ = text.cost(row["cost"], row["cost_least"], lacks, axis.written).split(", ")
        return written, " · ".join(filter(None, (cost_basis(row["cost_basis"], paid), lacks)))
    name = axis.column.removesuffix("_ms")
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    bounds = "" if low is None else f"[{axis.written(low)}, {axis.written(high)}]"
    n = row["n" if axis is QUALITY else "latency_n"]
    known = (bounds, text.sample(n), row[f"{name}_basis"]) if row[axis.column] is not None else ()
    return axis.written(row[axis.column]), " · ".join(filter(None, (*known, row[f"{name}_note"])))


def apart(row: Row, axis: Axis) -> tuple[str, str]:
    """Return the difference of two stacks on an axis, and a note on it."""
    if row["difference"] is None:
        return text.UNKNOWN, row["note"] or ""
    n = None if row["n"] is None else text.sample(row)
    p = None if row["p_adjusted"] is None else p_value(row["p_adjusted"])
    return gap(row, _told(row, axis)), " · ".join(filter(None, (row["verdict"], n, p, row["note"])))


def in_units(row: Row, cost: Axis = COST) -> dict[str, str]:
    """Return the numbers of a row of `SIDES` in the unit of their axis, as costs can be tiny."""
    axis = next(axis for axis in (QUALITY, LATENCY, cost) if axis.key == row["axis"])
    values = {name: axis.written(row[name]) for name in ("value", "value_against")}
    apart = {name: row[name] for name in ("difference", "low", "high") if row[name] is not None}
    return values | {name: text.signed(value, _told(row, axis)) for name, value in apart.items()}


def gap(row: Row, written: Callable[[float], str] = text.score, *, sign: bool = True) -> str:
    """Return a difference with its interval: ``+0.031 [+0.010, +0.052]``."""
    apart, ends = row["difference"], [row["low"], row["high"]]
    if not sign and apart < 0:
        apart, ends = -apart, [None if end is None else -end for end in reversed(ends)]
    values = [text.signed(end, written) for end in (apart, *ends) if end is not None]
    value, *bounds = values if sign else [value_text.removeprefix("+") for value_text in values]
    return f"{value} [{', '.join(bounds)}]" if bounds else value


def p_value(p: float | None) -> str:
    """Format a p-value for people: ``p = 0.041``, ``p < 0.001``."""
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def how(rows: pl.DataFrame, setup: Setup) -> str:
    """Explain the method and its limits."""
    by = "Student's t" if setup.method == "Student" else f"{setup.method} of {setup.resamples:,} resamples"
    family = f"; p-values are {setup.correction}-adjusted over these {rows.height}, intervals are not"
    exact = "exact" if rows["exact"].all() else f"{setup.permutations:,} random swaps"
    if exact != "exact" and rows["exact"].any():
        exact += ", exact for few queries"
    tested = f"paired randomisation test ({exact})" if setup.test == TESTS[0] else f"test: {setup.test}"
    likely, most = (rows[name].drop_nulls().to_numpy() for name in ("detectable", "detectable_high"))
    shown = f"{text.score(float(np.median(most)))} up" if len(most) else ""
    if shown:
        shown += f" ({text.score(float(np.median(likely)))} if their spread is as seen)"
    row = rows.row(0, named=True)
    more = text.more_questions(row["needed_low"], row["needed"], row["needed_high"])
    power = f" With 80 % power these queries show true differences from about {shown}. {more}" * bool(shown)
    return (
        f"Every stack on the same queries: {100 * setup.level:g} % interval by {by}, "
        f"{tested}, seed {setup.seed}"
        f"{family if rows.height > 1 else ''}."
        f"{power}"
    )


def doubt(rows: pl.DataFrame, quality: Quality) -> str:
    """Name the differences that unjudged passages could reverse, or return "" if there are none.

    If the rows have a verdict, only significant differences count.
    """
    real = ~pl.col("verdict").is_in(UNDECIDED) if "verdict" in rows.columns else pl.lit(value=True)
    turned = rows.filter(real & (pl.col("if_judged") * pl.col("difference") < 0))
    if turned.is_empty():
        return ""
    row = turned.row(0, named=True)
    behind = row["first"] if row["difference"] > 0 else row["second"]
    others = "" if rows.height == 1 else f" {turned.height} of {text.count(rows.height, 'comparison')}"
    lead = f"{text.score(abs(row['if_judged']))} {quality.name}"
    return f"Judging more could overturn{others or ' this'}: at worst {behind} would lead by {lead}."


def flips(queries: int, quality: Quality, name: str) -> str:
    """Explain how to read the charts of single queries."""
    side = "Above" if quality.higher_is_better else "Below"
    few = f" At most {BARS} bars, both ends of the order." if queries > BARS else ""
    return (
        f"{side} the diagonal {name} is better; queries with equal scores share a larger mark. Click a mark "
        f"or tick a row to open the query.{few}"
    )


def summary(queries: pl.DataFrame, pair: Row, tolerance: float) -> str:
    """Summarise how the queries of `sides.flips` divide, and where most is won and lost."""
    extremes = [
        f"the largest {what} is {text.quoted(row['query_id'], row['text'])} ({text.signed(row['delta'])})"
        for what, outcome in (("gain", WINS), ("loss", LOSSES))
        for row in queries.filter(outcome=outcome).head(1).iter_rows(named=True)
    ]
    return "; ".join([
        f"Of {text.count(pair['n'], 'query')} {pair['second']} wins {pair['wins']}, ties "
        f"{pair['ties']} (up to {tolerance:g}) and loses {pair['losses']}",
        *extremes,
    ]) + "."  # fmt: skip


def rankings(closer: Closer, k: int) -> str:
    """Describe whether two stacks rank the same passages in the same order."""
    overlap, tau = alike_means(closer.alike)
    if overlap is None:
        return (
            "The two searched differently cut passages, so there are none that both could rank."
            if closer.alike is None
            else "Neither ranks any query."
        )
    shared = f"On average the two Top-{k} share {text.percent(overlap)} of their passages (overlap@{k})"
    if tau is None:
        return f"{shared}; no query has two shared passages whose order could be compared."
    means = text.count(closer.queries["tau"].count(), "query")
    scale = "1 = the same, 0 = unrelated"
    return f"{shared}. Kendall's tau-b of the order of those: {tau:.2f} ({scale}; mean of {means})."


def pools(closer: Closer) -> str:
    """Return a warning if the ceilings of two candidate pools follow different conventions."""
    if not closer.pools:
        return ""
    return (
        f"The candidate pools follow different conventions ({' and '.join(closer.pools)}): their PROC "
        "differs by design, not only by skill."
    )


def change(
    kind: str, rows: pl.DataFrame, whole: pl.DataFrame, quality: Quality, adjusted: str = "Holm"
) -> str:
    """Describe the effect of a change (``index: flat → int8``); takes both tables of `changes.effects`."""
    row = whole.row(0, named=True)
    if row["difference"] is None:
        return f"{quality.name} applies to no query of these stacks."
    counts = {verdict: rows.filter(verdict=verdict).height for verdict in (WINS, LOSSES, *UNDECIDED)}
    unlike = sum(counts[each] for each in UNDECIDED)
    alone = "" if rows.height < 2 else (
        f" Pair by pair: {counts[WINS]} better, {counts[LOSSES]} worse, {unlike} without "
        f"a significant difference ({adjusted} over {rows.height})."
    )  # fmt: skip
    return (
        f"{kind} moves {quality.name} by {gap(row)} on average over "
        f"{text.count(rows.height, 'pair')} of stacks, {p_value(row['p'])}, {text.sample(row)}.{alone}"
    )


def labels(
    rows: pl.DataFrame, against: str = "first", stack: str = "second", *, today: str | None = None
) -> list[str]:
    """Return labels of comparisons: ``A against B``, with the mark of the stack that runs today."""
    marked = [[as_today(name, runs=name == today) for name in rows[side]] for side in (stack, against)]
    return [f"{one} against {other}" for one, other in zip(*marked, strict=True)]
