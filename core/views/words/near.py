"""Near misses of a limit, stacks that lack a number, and what unjudged passages could overturn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import polars as pl

from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.lacks import bound
from core.analysis.workspace.scope import Latency, Quality
from core.decide.axes import COST, LIMITS, Axis, cost_axis
from core.decide.near import NearMiss, near_misses
from core.decide.rules import Constraints, Decision, Rule
from core.decide.ties import Paired
from core.records import Origin
from core.store import Snapshot
from core.tables import Row
from core.views import columns as cols
from core.views import text
from core.views.blocks import Table

HEADING = "Near misses, and the next better stacks"
NEAR = 0.1  # Share of a limit within which a violation is a near miss (metrics.md §9)
_MANY = 10  # A violation this many times the limit is stated as a multiple instead of a percentage
_NEAR = cols.Rows("near_misses", "stack kind quality gain_of latency_ms cost out_by let_in_by")
_LACKING = cols.Rows(
    "promising", "stack quality gain_of", cols.text("missing", "lacks"), cols.text("measure", "so"), "why"
)
_OF_A_MISS = ("limit", "value", "over", "unit", "gain", "set_to", "edge")
_SHOWN = ("quality", "latency_ms", "cost", "cost_least", "cost_missing")
PROMISING = "Promising, not measured"
_NOTES = {"latency": "latency_note", "cost": "cost_note"}
OVERTURNED = "Judging more passages could overturn the choice"


def near_rows(
    table: pl.DataFrame,
    decision: Decision,
    constraints: Constraints,
    rule: Rule = "quality",
    *,
    paired: Paired | None = None,
) -> list[dict[str, object]]:
    """Return the near misses of a decision as plain data; if nothing is chosen, the closest first.

    Args:
        table: The table decided on; see `core.decide.near.near_misses`.

    Returns:
        For each stack, run_id, limit (of `core.decide.axes.LIMITS`), value, over, unit, gain (of quality over
        the chosen stack; null if none is chosen), gain_low and gain_high (the 95 % interval of that by query,
        null if only averages are known), set_to (the limit with which it ships), then (the stack that then
        ships: this one), edge (whether it is at the edge of the SLA), near (whether it is within a tenth of
        the limit, or at the edge), quality, latency_ms and cost with least and missing.
    """
    misses = near_misses(table, decision, constraints, rule, paired=paired)
    if decision.chosen is None:
        misses.sort(key=lambda miss: miss.over / (abs(_limit(miss)) or 1.0))
    return [
        {
            "stack": table["name"][miss.row],
            "run_id": table["run_id"][miss.row],
            **{name: getattr(miss, name) for name in _OF_A_MISS},
            **_gain_ends(table, decision, paired, miss),
            "then": table["name"][miss.row],
            "near": miss.edge or miss.over <= NEAR * _limit(miss),
            **{name: table[name][miss.row] for name in _SHOWN},
            "cost_per": table["cost_per"][miss.row] if "cost_per" in table.columns else None,
            **dict(zip(text.UNIT, constraints.costs_said.said, strict=True)),
        }
        for miss in misses
    ]


def _gain_ends(
    table: pl.DataFrame, decision: Decision, paired: Paired | None, miss: NearMiss
) -> dict[str, float | None]:
    """Return the interval of a stack's gain over the chosen one."""
    low = high = None
    if paired is not None and decision.chosen is not None:
        other, chosen = paired.places(table["run_id"])[[miss.row, decision.chosen]].tolist()
        if min(other, chosen) >= 0:
            _, *ends = paired.differences(np.array([other]), chosen)
            turned = [float(decision.quality.merit(end)[0]) for end in ends]
            low, high = (None, None) if np.isnan(turned).any() else (min(turned), max(turned))
    return {"gain_low": low, "gain_high": high}


def least_first(rows: Sequence[Row], delta: float) -> list[Row]:
    """Return rows of `near_rows` for display: gains of at least δ first, by how far the limit must move."""

    def far(row: Row) -> tuple[bool, float]:
        over = row["over"] if _axis(row).higher_is_better else -row["over"]
        limit = row["value"] + over
        return (row["gain"] or 0.0) < delta, abs(row["over"]) / (abs(limit) or 1.0)

    return sorted(rows, key=far)


def _limit(miss: NearMiss) -> float:
    """Return the limit that a stack breaks."""
    return miss.value + miss.over if miss.axis.higher_is_better else miss.value - miss.over


def kind(row: Row) -> str:
    """Return the kind of a row of `near_rows`: near, or only the next better stack if it surely is one."""
    if row["near"]:
        return "near miss"
    if row["gain"] is None:
        return "out of the limits"
    low = row.get("gain_low")
    return "next better stack" if low is None or low > 0 else "not surely better"


def sentence(row: Row, quality: str) -> str:
    """Say what a near miss gains and by how little it is excluded; takes a row of `near_rows`."""
    gained = gain_words(row)
    gain = gained and f" ({gained})"
    numbers = f"{quality} {text.score(row['quality'])}{gain}; {text.ms(row['latency_ms'])}"
    return f"{row['stack']}: {numbers}; {text.cost_of(row)}; {broken(row)}."


def gain_words(row: Row) -> str:
    """Format a stack's gain over the chosen one: ``+0.200 [+0.100, +0.300]``; "" without a chosen one."""
    if row["gain"] is None:
        return ""
    low, high = row.get("gain_low"), row.get("gain_high")
    ends = "" if low is None or high is None else f" [{text.signed(low)}, {text.signed(high)}]"
    return f"{text.signed(row['gain'])}{ends}"


def _axis(row: Row) -> Axis:
    """Return the axis of the limit that a near miss breaks."""
    axis = LIMITS[row["limit"]]
    if axis.key != COST.key:
        return axis
    return cost_axis(text.CostUnit.of(row), per_correct=row.get("cost_per") == "correct answer")


def broken(row: Row) -> str:
    """Return by how much a near miss breaks its limit: ``6.60 ms over the SLA, at the edge``."""
    edge = ", at the edge: less than the jitter" if row["edge"] else ""
    axis = _axis(row)
    if axis.levels:
        return f"needs {axis.written(row['value'])}"
    limit = row["value"] + row["over"] if axis.higher_is_better else row["value"] - row["over"]
    far = "" if row["near"] or limit <= 0 else f" ({_beyond(row['over'] / limit)})"
    return f"{axis.written(row['over'])} {axis.beyond}{far}{edge}"


def _beyond(share: float) -> str:
    return f"{text.percent(share)} beyond" if share < _MANY else f"{share + 1:,.0f} times the limit"


def way_in(row: Row) -> str:
    """Return the limit that would admit a near miss: ``SLA 510 ms``."""
    axis = _axis(row)
    if axis.levels:
        return f"{axis.limit_word} {axis.said(row['set_to'])}"
    number = f"{axis.factor * row['set_to']:,.10g}"
    return f"{axis.limit_word} {axis.pattern.format(number)}"


def near_table(misses: Sequence[Row]) -> Table:
    """Return rows of `near_rows` as a table."""
    said = [
        {
            **miss,
            "kind": kind(miss),
            "gain_of": miss["gain"],
            "out_by": broken(miss),
            "let_in_by": way_in(miss),
        }
        for miss in misses
    ]
    least = [
        {"cost": text.cost_of(miss, bare=True)} if miss["cost"] is None and miss["cost_least"] else {}
        for miss in misses
    ]
    for cells, miss in zip(least, misses, strict=True):
        if miss.get("gain_low") is not None:
            cells["gain_of"] = gain_words(miss)
    return Table(pl.DataFrame(said, infer_schema_length=None), _NEAR, cells=least if any(least) else ())


def lacking_table(lacking: pl.DataFrame) -> Table:
    """Return rows of `promising_rows` as a table."""
    return Table(lacking.with_columns(gain_of="gain"), _LACKING)


def own_scope(snapshot: Snapshot, table: pl.DataFrame, latency: Latency) -> str:
    """Say why published stacks are better compared by their reranker's latency; "" if they aren't.

    Returns:
        A sentence if the latency of the whole path, which is asked for, is unknown for some published
        stacks, while their reranker's latency was reported.
    """
    published = table.filter(pl.col("origin") == Origin.PUBLISHED.value)
    unknown = published.filter(pl.col("latency_ms").is_null()).height
    if latency.scope != "path" or not unknown:
        return ""
    known = latencies(snapshot, published, Latency(latency.percentile, "rerank"))["latency_ms"].count()
    if not known:
        return ""
    return (
        f"Published without the whole path: the latency of {text.count(unknown, 'stack')} is unknown. "
        f"The source's own figure is that of the reranker call, known of {text.count(known, 'stack')}."
    )


def promising_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Return the stacks that break no limit but aren't shipped, since a required number is unknown.

    Returns:
        The best quality first: run_id, stack, quality, gain (over the chosen stack's, positive if better;
        null without one), unknown (words of the axes), missing ("not timed", …), measure (what to do) and why
        (what is on record about it, or null).
    """
    rows = np.flatnonzero(decision.promising)
    if not len(rows):
        return _none_promising()
    quality = decision.quality
    merit = quality.merit(quality.read(table))
    rows = rows[np.argsort(-merit[rows], kind="stable")]
    best = np.nan if decision.chosen is None else merit[decision.chosen]
    promising = []
    for row in rows.tolist():
        gone = [axis for axis, lacks in zip(decision.required, decision.unknown[row], strict=True) if lacks]
        columns = [_NOTES[axis.key] for axis in gone if _NOTES.get(axis.key) in table.columns]
        stack = {
            "run_id": table["run_id"][row],
            "stack": table["name"][row],
            "quality": table["quality"][row],
        }
        lacking = {
            "unknown": [axis.word for axis in gone],
            "missing": ", ".join(axis.missing for axis in gone),
            "measure": "; ".join(axis.remedy for axis in gone),
            "why": "; ".join(str(note) for column in columns if (note := table[column][row])) or None,
        }
        gain = float(merit[row] - best)
        promising.append({**stack, "gain": None if np.isnan(gain) else gain, **lacking})
    return _lacking(promising)


def _lacking(promising: Sequence[Row]) -> pl.DataFrame:
    return _LACKING.frame(promising, "run_id gain:float unknown:texts").drop("gain_of")


@cache
def _none_promising() -> pl.DataFrame:
    return _lacking(())


def promising_words(rows: pl.DataFrame, decision: Decision) -> str:
    """State how many promising stacks there are, and the best of them; "" if there are none."""
    if rows.is_empty():
        return ""
    first = rows.row(0, named=True)
    better = rows.filter(pl.col("gain") > 0).height if decision.chosen is not None else rows.height
    head = f"{text.count(rows.height, 'stack')} promising, not shipped for want of a number"
    ahead = f", {better:,} of better quality than the chosen one" if decision.chosen is not None else ""
    return (
        f"{head}{ahead}. The best: {first['stack']}, {text.score(first['quality'])}, {first['missing']} "
        f"({first['measure']})."
    )


def overturned(table: pl.DataFrame, decision: Decision, quality: Quality) -> str | None:
    """Say when unjudged passages could overturn a decision."""
    if decision.chosen is None:
        return None
    rivals, reach = _rivals(table, decision, "hole")
    if rivals.is_empty():
        return None
    nearest, up = rivals.row(0, named=True), decision.quality.higher_is_better
    others = text.count(rivals.height, "other stack")
    return (
        f"{OVERTURNED}: {others} within the limits could overtake it if every unjudged passage "
        f"in the Top-{quality.k} were of grade 5 (reaching at {'most' if up else 'least'} "
        f"{text.score(nearest[reach])}: {nearest['name']}, {text.percent(nearest['hole'])} unjudged)."
    )


def _rivals(table: pl.DataFrame, decision: Decision, of: str) -> tuple[pl.DataFrame, str]:
    """Return feasible stacks whose best bound beats the chosen one's worst, and the column of that bound.

    Args:
        of: The bounded quantity: columns of this name with ``_low`` and ``_high``.
    """
    up, ends = decision.quality.higher_is_better, (f"{of}_low", f"{of}_high")
    worst, reach = ends if up else reversed(ends)
    own = table.row(decision.chosen or 0, named=True)
    if own[worst] is None or own["quality"] is None:
        return table.clear(), reach
    sign = 1 if up else -1
    rivals = table.filter(
        pl.Series(decision.feasible)
        & (pl.col("run_id") != own["run_id"])
        & (sign * pl.col("quality") < sign * own["quality"])
        & (sign * pl.col(reach) > sign * own[worst])
    )
    return rivals.sort(reach, descending=up), reach


def scores_missing(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Say how many queries the chosen stack lacks, and which stack could be better because of them."""
    if decision.chosen is None or "lacks" not in table.columns:
        return ""
    own = bound(table.row(decision.chosen, named=True), quality)
    rivals, _ = _rivals(table, decision, "lacks")
    if rivals.is_empty():
        return own
    first = rivals.row(0, named=True)
    other = bound(first, quality)
    return " ".join(
        filter(None, (own, other, f"By what is missing {first['name']} could be the better one."))
    )
