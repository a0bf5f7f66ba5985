"""Costs and gains of a deeper K: the line of reranker latency, and the steps between consecutive K."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from core.analysis.families import without_depth
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.gaps import UNTESTED
from core.analysis.workspace.pools import stack_of
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.axes import SAID_K
from core.decide.axes import quality_axis
from core.decide.marginal import GAIN, MAY_BE_CHANCE, NO_GAIN, marginal
from core.stats.intervals import Sample, paired_rows
from core.stats.significance import Setup, bounds
from core.store import Snapshot
from core.views import text

PAYS = (
    "A step pays where quality rises, by more than chance where results per query are known, and the larger "
    "K is within your limits."
)


def steps(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, *, quality: Quality, latency: Latency
) -> pl.DataFrame:
    """Compute the gain of each step to the next K of the same stack in the table's quality, latency and cost.

    Returns:
        The columns of `core.decide.marginal.marginal`; series is the specification without K. A K that
        nothing reads has no steps.
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
    """Name the families of `steps` in the column family (without K), those of the best quality first."""
    names = table.select("run_id", "name", "quality")
    best = pl.col("quality").max() if higher_is_better else pl.col("quality").min()
    return (
        steps.join(names, on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.col("name").fill_null("").str.replace_all(SAID_K, "").alias("family"),
            best.over("series").alias("best"),
        )
        .sort(["best", "series", "to_k"], descending=[higher_is_better, False, False], maintain_order=True)
    )


def within_limits(rows: pl.DataFrame, reasons: Mapping[str, str]) -> pl.DataFrame:
    """Mark steps as not worthwhile if they end in a stack that breaks a limit; takes `step_rows`.

    Args:
        reasons: The limits that stacks break, by name; see `core.views.within.beyond`.
    """
    broken = pl.Series([reasons.get(name) for name in rows["name"]], dtype=pl.String)
    return rows.with_columns(
        pays=pl.col("pays") & broken.is_null(),
        reason=pl.when(pl.col("pays") & broken.is_not_null()).then(broken).otherwise("reason"),
    )


def said(rows: pl.DataFrame, quality: Quality, n: object) -> tuple[str, str]:
    """Say how many of the steps are worth it, and which is worth most; takes `step_rows`."""
    sample = f"({quality.name}, {text.sample(n)})"
    paying = rows.filter("pays")
    if paying.is_empty():
        if not (rows["d_quality"].abs() > 0).any():
            return f"A larger K changes nothing here {sample}.", ""
        if rows["series"].n_unique() > 1:
            return f"None of {rows.height:,} steps to a larger K pays off {sample}.", ""
        more = f"Reranking more than {min(rows['from_k'].to_list())} candidates does not"
        if rows["reason"].is_in([NO_GAIN, MAY_BE_CHANCE]).all():
            return f"{more} measurably improve {quality.name} ({text.sample(n)}).", ""
        return f"{more} pay off within your limits {sample}.", ""
    best = paying.sort("d_quality", descending=quality.higher_is_better).row(0, named=True)
    low, high = best.get("gain_low"), best.get("gain_high")
    sure = UNTESTED
    if low is not None and high is not None:
        sure = f"95 % CI {text.signed(low)} to {text.signed(high)}"
    return (
        f"A larger K pays off in {paying.height} of {text.count(rows.height, 'step')} {sample}.",
        f"Most for {best['family']} from K = {best['from_k']} to {best['to_k']}: "
        f"{text.signed(best['d_quality'])} ({sure}).",
    )
