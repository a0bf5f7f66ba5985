"""Stacks whose numbers are the same, shown as one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.decide.axes import BESIDE, COST, LATENCY, MOVING, QUALITY
from core.tables import remembered

ALIKE = (
    "latency_ms",
    "cost",
    "cost_least",
    "quality",
    *(axis.column for axis in (*BESIDE, *MOVING)),
    "reranker",
)
"""Columns that identical stacks share, so that they are one mark and one row: limits treat them alike."""


def kept(*rows: int | None) -> pl.Expr:
    """Return whether a row of `marked` is among some rows of the stack table, which must stay."""
    return pl.col("row").is_in([row for row in rows if row is not None])


@remembered
def identical(rows: pl.DataFrame, among: Sequence[str] = ALIKE) -> NDArray[np.intp]:
    """Return which stacks are equal in every number.

    Args:
        rows: A stack table.
        among: Columns that identical stacks share, as far as present.

    Returns:
        A number per row [n], the same for identical stacks.
    """
    known = pl.all_horizontal(pl.col(axis.column).is_not_null() for axis in (LATENCY, COST, QUALITY))
    own = pl.when(~known).then("run_id").alias("own")  # unknown values are not known to be equal
    same = [name for name in among if name in rows.columns]
    first = rows.select(*same, own).with_row_index("at").select(pl.col("at").min().over(*same, "own"))
    return first["at"].to_numpy().astype(np.intp)


def merged(rows: pl.DataFrame, first: pl.Expr, group: NDArray[np.intp]) -> pl.DataFrame:
    """Return one row per group of identical stacks: the first that must stay, otherwise the first.

    Args:
        rows: With the name of the stack.
        first: Whether a row must stay.
        group: Of each row, from `identical` [n].

    Returns:
        `rows` in their order with alike (how many more stacks a row stands for) and stack (its name, and how
        many equal it).
    """
    order = np.argsort(~rows.select(first).to_series().to_numpy(), kind="stable")
    _, place, count = np.unique(group[order], return_index=True, return_counts=True)
    in_order = order[place].argsort()
    stays = rows if len(place) == rows.height else rows[order[place][in_order]]
    alike = count[in_order] - 1
    names = stays["name"].to_list()
    for at in np.flatnonzero(alike):
        names[at] = f"{names[at]} (+{alike[at]} equal)"
    return stays.hstack([pl.Series("alike", alike), pl.Series("stack", names, dtype=pl.String)])
