"""The measures that runs came with, whether or not this product can compute them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import UnknownNameError
from core.metrics import REGISTRY, Measure
from core.store import Snapshot
from core.views import text
from core.views.workspace.scope import Quality

_NOT_QUALITY = ("latency_", "usd_", "PROC[", "%PROC[")


def reported(snapshot: Snapshot, run_ids: Sequence[str]) -> pl.DataFrame:
    """What can be chosen as quality of the figures that runs came with."""
    return (
        snapshot.aggregates(run_ids)
        .filter(pl.col("k").is_not_null())
        .filter(~pl.any_horizontal(pl.col("measure").str.starts_with(prefix) for prefix in _NOT_QUALITY))
        .group_by("measure")
        .agg(
            pl.col("k").unique().sort().alias("cutoffs"),
            pl.col("run_id").n_unique().alias("runs"),
            pl.col("value").min().alias("lowest"),
            pl.col("value").max().alias("highest"),
        )
        .sort("measure")
    )


def only_reported(snapshot: Snapshot) -> pl.DataFrame:
    """The measures that runs came with and this product cannot compute: `reported`, and says (in words)."""
    rows = reported(snapshot, snapshot.runs()["run_id"].to_list())
    says = pl.format(
        "Not computed here: {} came with it, at K = {}.",
        pl.col("runs").map_elements(lambda runs: text.count(runs, "run"), pl.String),
        pl.col("cutoffs").cast(pl.List(pl.String)).list.join(", "),
    ).alias("says")
    return rows.filter(~pl.col("measure").is_in(list(REGISTRY))).with_columns(says)


def as_reported(known: pl.DataFrame) -> pl.DataFrame:
    """A row of `only_reported` as an explanation: item, text."""
    row = known.row(0, named=True)
    items = [
        ("measure", row["measure"]),
        ("says", row["says"]),
        ("values", f"{row['lowest']:.4g} to {row['highest']:.4g}"),
        ("defined in", "The tool that the runs come from."),
    ]
    return pl.DataFrame(items, schema=["item", "text"], orient="row")


def wanted(
    asked: Sequence[Quality], snapshot: Snapshot, run_ids: Sequence[str]
) -> tuple[list[Measure], list[Quality]]:
    """The measures that are computed, and those that runs can only have come with.

    Raises:
        UnknownNameError: One is neither computed nor among the figures of any of the runs.
    """
    computed = [each.measure for each in asked if each.measure]
    told = [each for each in asked if not each.measure]
    known = reported(snapshot, run_ids)["measure"].to_list() if told else []
    for each in told:
        if each.bare not in known:
            raise _unknown(each, known)
    return computed, told


def _unknown(asked: Quality, known: Sequence[str]) -> UnknownNameError:
    """What there is instead: measures of the store, and those that are computed and called alike."""
    try:
        Measure.parse(asked.bare)
    except UnknownNameError as error:
        same = error.kind == "measure"
        return UnknownNameError(error.kind, error.name, [*known, *error.known] if same else error.known)
    return UnknownNameError("measure", asked.name, known)
