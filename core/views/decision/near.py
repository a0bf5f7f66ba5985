"""Near misses as data and in words: what a limit costs, and the limit that would let a stack in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from core.decide.axes import LIMITS
from core.decide.near import NearMiss
from core.records import Origin
from core.store import Snapshot
from core.views import text
from core.views.workspace.latencies import latencies
from core.views.workspace.scope import Latency

Data = Mapping[str, Any]
HEADING = "Just outside the limits"
_SHOWN = ("quality", "latency_ms", "cost", "cost_least", "cost_missing")


def near_rows(table: pl.DataFrame, misses: Sequence[NearMiss]) -> list[dict[str, object]]:
    """Near misses as plain data.

    Args:
        misses: Of `core.decide.near.near_misses` on it.

    Returns:
        For each stack, run_id, limit (of `core.decide.axes.LIMITS`), value, over, unit, gain (of quality over
        the chosen stack; null where none is chosen), set_to (the limit that lets it in), edge (whether it is
        at the edge of the SLA), quality, latency_ms and cost with least and missing.
    """
    return [
        {
            "stack": table["name"][miss.row],
            "run_id": table["run_id"][miss.row],
            "limit": miss.limit,
            "value": miss.value,
            "over": miss.over,
            "unit": miss.unit,
            "gain": miss.gain,
            "set_to": miss.set_to,
            "edge": miss.edge,
            **{name: table[name][miss.row] for name in _SHOWN},
        }
        for miss in misses
    ]


def sentence(row: Data, quality: str) -> str:
    """What a near miss gives and by how little it is out; takes a row of `near_rows`."""
    gain = "" if row["gain"] is None else f" ({text.signed(row['gain'])})"
    numbers = f"{quality} {text.score(row['quality'])}{gain}; {text.ms(row['latency_ms'])}"
    return f"{row['stack']}: {numbers}; {text.cost_of(row)}; {broken(row)}."


def broken(row: Data) -> str:
    """By how much a near miss breaks its limit: ``6.60 ms over the SLA, at the edge``."""
    edge = ", at the edge: less than the jitter" if row["edge"] else ""
    axis = LIMITS[row["limit"]]
    return f"{axis.written(row['over'])} {axis.beyond}{edge}"


def way_in(row: Data) -> str:
    """The limit that lets a near miss in: ``SLA 510 ms``."""
    axis = LIMITS[row["limit"]]
    number = f"{row['set_to']:,.10g}"
    return f"{axis.limit_word} {axis.pattern.format(number)}"


def own_scope(snapshot: Snapshot, table: pl.DataFrame, latency: Latency) -> str:
    """Why published stacks had better be compared by their reranker's latency; empty where they had not.

    Returns:
        A sentence where the latency of the whole path, which is asked for, is unknown of some published
        stacks, while that of the reranker was reported.
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
