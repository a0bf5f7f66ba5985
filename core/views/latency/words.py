"""What the Latency page says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from core.stats.latency import Fit
from core.views import text
from core.views.workspace.scope import Latency, Quality

SHAPES = "ECDF: share of the queries answered within so many ms. box: quartiles, whiskers, outliers."
MEDIANS = "Medians of the stages over queries; they need not add up to the median of the whole."
REPEATS = "Repeats of a query count once, by their median. Grey: too close to the first stack's median."
NO_STAGES = "No times of single stages are known for these stacks."
NO_SAMPLES = "No times per query are known for these stacks: there is no distribution to draw."
LINES = (
    "A line per reranker and embedder, fitted to the depths that agree; dimensions together. Ringed: further "
    "from the line than the jitter and 10 % (CLQ paper §5.4)."
)
NO_LINES = "No stack here has a timed reranker."
NO_GENERATOR = (
    "First token and generation are unknown here. Choose the latency end-to-end in the settings to give the "
    "generator's speed, or import timings of the stages first_token and generate."
)
MODELLED = "Dashed: modelled, without the spread of single answers. Dotted: prompts of the stacks shown."


def answer(row: Mapping[str, Any], stages: pl.DataFrame, quality: Quality, score: float | None) -> str:
    """Which stage takes the most of a stack's time.

    Args:
        row: Of the stack in `page.percentile_table`.
        stages: Of `page.path_stages`.
    """
    named = f"{row['name']} ({quality.name} {text.score(score)})"
    own = stages.filter(pl.col("name") == row["name"]).sort("p50", descending=True)
    if own.height < 2 or not own["p50"].sum():
        return f"{named} answers half of its queries within {text.ms(row['p50'])}."
    share = 100 * own["p50"][0] / own["p50"].sum()
    return f"{named} spends about {share:.0f} % of its time in stage {own['stage'][0]}."


def unknown(rows: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """That no latency is known, and why."""
    reasons = rows["p50_note"].drop_nulls().value_counts(sort=True)
    why = f": {reasons['p50_note'][0]}" if reasons.height else ""
    return (
        f"None of {text.count(rows.height, 'stack')} has a known latency, whatever its {quality.name}{why}.",
        "Timings come with runs that are made here, or with imported files that have them.",
    )


def cards(row: Mapping[str, Any], latency: Latency) -> tuple[tuple[str, str, str], ...]:
    """The three percentiles of a stack: label, number, what it rests on."""
    return tuple(
        (
            latency.name.replace(latency.percentile, each).removesuffix(" (ms)"),
            _tail(row[each], row[f"{each}_note"]),
            f"{_span(row[f'{each}_low'], row[f'{each}_high'])}{text.sample(row['n'])} · {row['basis']}",
        )
        for each in ("p50", "p95", "p99")
    )


def _tail(value: float | None, note: str | None) -> str:
    return text.ms(value) if value is not None or "too few" not in (note or "") else "withheld"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{text.ms(low)}, {text.ms(high)}] "


def caveats(rows: pl.DataFrame, depths: pl.DataFrame, jitter_ms: float) -> dict[str, str]:
    """What else there is to know: ties within the jitter, withheld tails, departures from the line.

    Args:
        rows: Of `page.percentile_table`.
        depths: Of `core.views.what_if.deeper.latency_by_depth`.
        jitter_ms: Differences below it are not told apart.
    """
    known = rows.filter(pl.col("p50").is_not_null())
    first = known.row(0, named=True)
    alike = known.filter(pl.col("p50") - first["p50"] < jitter_ms).height - 1
    ties = f"{text.count(alike, 'stack is', 'stacks are')} within the jitter of {text.ms(jitter_ms)}."
    silent = rows.height - known.height
    unknown = f"{text.count(silent, 'stack has', 'stacks have')} no known latency." if silent else ""
    return {
        "fastest": f"{first['name']} with {text.ms(first['p50'])}. {ties if alike else ''}".strip(),
        "some unknown": unknown,
        "high percentiles": " ".join(_withheld(known)),
        "jumps with K": " ".join(_breaks(depths)),
    }


def _withheld(known: pl.DataFrame) -> list[str]:
    """Say how many stacks lack a p95 and a p99, and the most frequent reason; once where they agree."""
    told = {}
    for percentile in ("p95", "p99"):
        held = known.filter(pl.col(percentile).is_null())
        why = held[f"{percentile}_note"].drop_nulls().value_counts(sort=True)
        reason = f" ({why[f'{percentile}_note'][0]})" if why.height else ""
        if held.height:
            told[percentile] = f"unknown for {held.height} of {text.count(known.height, 'stack')}{reason}."
    if len(set(told.values())) < len(told):
        return [f"p95 and p99 are {told['p95']}"]
    return [f"{percentile} is {words}" for percentile, words in told.items()]


def _breaks(depths: pl.DataFrame) -> list[str]:
    """Return a sentence per reranker and embedder whose latency leaves its line for good."""
    groups = depths.filter(pl.col("breaks_at").is_not_null() & pl.col("departs")).group_by(
        "reranker", "embedder", "breaks_at", maintain_order=True
    )
    return [
        f"{reranker}{f' over {embedder}' if embedder else ''} leaves its line from K = {at} on, by up to "
        f"{text.ms(over)}."
        for reranker, embedder, at, over in groups.agg(pl.col("over_ms").max()).iter_rows()
    ]


def speed(found: Fit) -> str:
    """A fitted speed as a sentence, or why there is none."""
    own = found.speed
    if own is None:
        return f"No speed can be fitted: {found.reason}."
    sure = f"R² {found.r2:.2f}, " if found.r2 == found.r2 else ""
    parts = [text.ms(ms) for ms in (own.base_ms, own.ms_per_1k_prompt, own.ms_per_output)]
    return (
        f"Fitted to the timings of all stacks: {parts[0]} + {parts[1]} per 1,000 prompt tokens + {parts[2]} "
        f"per output token ({sure}n = {found.n})."
    )
