"""Costs and gains of a deeper K: the line of reranker latency, and the steps between consecutive K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.families import without_depth
from core.analysis.workspace.latencies import latencies
from core.analysis.workspace.pools import stack_of
from core.analysis.workspace.samples import joint_sample
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import runs_in
from core.decide.axes import quality_axis
from core.decide.marginal import GAIN, marginal, reranker_scaling
from core.decide.ties import JITTER_MS
from core.number_format import PER_1K, CostUnit
from core.stats.intervals import Sample, paired_rows
from core.stats.significance import Setup, bounds
from core.store import Snapshot
from core.views import text, theme

Per = Literal["100 ms", "$1"]
PER: dict[Per, str] = {"100 ms": "per_100_ms", "$1": "per_usd"}
SHOWN = 8  # Families of stacks in the chart; the table has all
_DEPTH = r",? K = \d+"


def latency_by_depth(snapshot: Snapshot, scope: Scope, *, jitter_ms: float = JITTER_MS) -> pl.DataFrame:
    """Give reranker medians against K, fitted per reranker and embedder, with the depths that leave the line.

    Returns:
        As `core.decide.marginal.reranker_scaling`.
    """
    runs = runs_in(snapshot, scope)
    took = latencies(snapshot, runs, Latency("p50", "rerank")).select("run_id", "latency_ms")
    return reranker_scaling(runs.join(took, on="run_id"), jitter_ms=jitter_ms)


def steps(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, *, quality: Quality, latency: Latency
) -> pl.DataFrame:
    """Compute what each step to the next K of the same stack buys, by the table's quality, latency and cost.

    Returns:
        As `core.decide.marginal.marginal`; series is the specification without K. A K that nothing reads has
        no steps.
    """
    axis = quality_axis(higher_is_better=quality.higher_is_better)
    series = [None if stack_of(spec) else without_depth(spec) for spec in table["spec"]]
    rows = table.with_columns(pl.Series("series", series, dtype=pl.String))
    rows = rows.with_row_index("row").drop_nulls("series").sort("series", "candidates", "cost", "run_id")
    rows = rows.unique(["series", "candidates"], keep="first", maintain_order=True)
    rows = rows.with_columns(pl.col("row").cast(pl.Int64).shift(1).over("series").alias("before"))
    sample = joint_sample(snapshot, table, scope, quality=quality, latency=latency)
    pairs = rows.filter(pl.col("before").is_not_null()).select("run_id", "row", "before")
    if sample is None or pairs.is_empty():
        return marginal(rows, quality=axis)
    one, other = paired_rows(Sample.means(sample.quality, sample.clusters), pairs["row"], pairs["before"])
    ends = np.sort(axis.merit(np.column_stack(bounds(other, one, Setup()))), axis=1)
    gains = pairs.select("run_id").with_columns(
        pl.Series(name, ends[:, end]).fill_nan(None) for end, name in enumerate(GAIN)
    )
    return marginal(rows.join(gains, on="run_id", how="left", maintain_order="left"), quality=axis)


def step_rows(steps: pl.DataFrame, table: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Name the families of `steps`, those of the best quality first, as the column family (without K)."""
    names = table.select("run_id", "name", "quality")
    best = pl.col("quality").max() if higher_is_better else pl.col("quality").min()
    return (
        steps.join(names, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.col("name").fill_null("").str.replace_all(_DEPTH, "").alias("family"),
            best.over("series").alias("best"),
        )
        .sort(["best", "series", "to_k"], descending=[higher_is_better, False, False], maintain_order=True)
    )


def within_limits(rows: pl.DataFrame, reasons: Mapping[str, str]) -> pl.DataFrame:
    """Let no step pay that ends in a stack which breaks a limit; takes `step_rows`.

    Args:
        reasons: What limits stacks break, by name; see `core.views.within.beyond`.
    """
    broken = pl.Series([reasons.get(name) for name in rows["name"]], dtype=pl.String)
    return rows.with_columns(
        pays=pl.col("pays") & broken.is_null(),
        reason=pl.when(pl.col("pays") & broken.is_not_null()).then(broken).otherwise("reason"),
    )


def step_chart(
    rows: pl.DataFrame, per: Per, chosen: str | None = None, said: CostUnit = PER_1K
) -> go.Figure | None:
    """Draw quality bought per 100 ms or per dollar, at each step of each family.

    Hollow where it does not pay.

    Args:
        rows: From `step_rows`.
        chosen: Specification without K of the chosen stack (`without_depth`), which is always drawn.
        said: How the page says costs.

    Returns:
        The chart; None where no step has a price in that currency, or none moves quality.
    """
    column = PER[per]
    known = rows.filter(pl.col(column).is_not_null())
    if not (known["d_quality"] != 0).any():
        return None
    unit, scale = (f"{per} / {said.per}", 1 / said.factor) if column == "per_usd" else (per, 1.0)
    layout = theme.layout(x="step to K", y=f"quality per {unit} more", height=380)
    depths = known["to_k"].unique().sort()
    layout["xaxis"] |= {"tickvals": list(range(len(depths))), "ticktext": depths.cast(pl.String).to_list()}
    layout["yaxis"] |= {"zeroline": True}
    kept = known["series"].unique(maintain_order=True).to_list()
    kept = sorted(kept, key=lambda series: series != chosen)[:SHOWN]
    steps_of = {series: known.filter(pl.col("series") == series) for series in kept}
    colours = theme.colours_for(part["family"][0] for part in steps_of.values())
    traces = []
    for series, part in steps_of.items():
        own, title = series == chosen, part["family"][0]
        colour = theme.ACCENT if own else colours[title]
        symbols = ["circle" if pays else "circle-open" for pays in part["pays"]]
        traces.append(
            theme.scatter(
                text.escape(text.shorten(title, 40)) + (" · chosen" if own else ""),
                part["to_k"].replace_strict(depths, range(len(depths))).to_list(),
                scale * part[column].to_numpy(),
                hover=[_hover(row, said) for row in part.iter_rows(named=True)],
                mode="lines+markers",
                line={"color": colour, "width": 3 if own else 1.5},
                marker={"size": 10, "color": colour, "symbol": symbols},
            )
        )
    return theme.finished(traces, layout)


def _hover(row: Mapping[str, Any], said: CostUnit) -> str:
    ms = "ms unknown" if row["d_ms"] is None else f"{row['d_ms']:+.3g} ms"
    usd = "$ unknown" if row["d_usd"] is None else text.signed(row["d_usd"], said.usd)
    why = f"<br>{text.escape(row['reason'])}" if row["reason"] else ""
    step = f"K {row['from_k']} → {row['to_k']}: {text.signed(row['d_quality'])}, {ms}, {usd}"
    return f"{text.escape(row['family'])}<br>{step}{why}"
