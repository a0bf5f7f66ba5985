"""Compare: what separates a few stacks, query by query, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from core.errors import InputError
from core.stats.agreement import agreement
from core.stats.significance import Sample, Setup, compare
from core.store import Snapshot
from core.views.compare.holes import if_judged
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Floats, at_cutoff, evidence

LEVEL = 0.05
"""A difference counts as real when its adjusted p-value is below this."""
MOST = 5
"""Stacks that are compared at most."""
Against = Literal["the first", "every pair"]
WINS, TIES, LOSSES = "better", "tie", "worse"
OPEN = "not told apart"


@dataclass(frozen=True)
class Scored:
    """Scores of some stacks on the same queries.

    Attributes:
        names: The stacks, in the order in which they were chosen.
        run_ids: Their runs.
        query_ids: The judged queries, sorted.
        values: [stacks, queries]; NaN where the measure is not applicable.
    """

    names: tuple[str, ...]
    run_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: Floats


def scored(snapshot: Snapshot, scope: Scope, quality: Quality, names: Mapping[str, str]) -> Scored:
    """Score stacks, run_id to name, on the queries of the workspace."""
    if quality.measure is None:
        raise InputError(f"{quality.name} is known from aggregates only.", do="Choose another measure.")
    found = evidence(
        snapshot, list(names), scope.golden_set_id or "", (quality.measure,), only=among(snapshot, scope)
    )
    values = at_cutoff(found, quality.measure)
    return Scored(tuple(names[run_id] for run_id in found.run_ids), found.run_ids, found.query_ids, values)


def pairs_of(names: Sequence[str], against: Against) -> tuple[list[int], list[int]]:
    """Return places of what is compared with, and of what is compared."""
    bases = range(1 if against == "the first" else len(names) - 1)
    pairs = [(row, base) for base in bases for row in range(base + 1, len(names))]
    return [row for row, _ in pairs], [base for _, base in pairs]


def compared(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    against: Against,
    setup: Setup,
) -> pl.DataFrame:
    """Compare stacks query by query, one family.

    Args:
        names: Two stacks or more with rankings.

    Returns:
        The columns of `differences`, second − first, then if_judged (`core.views.compare.holes.if_judged`),
        overlap and tau (means over the queries, null where the passages were cut differently).
    """
    ids = dict(table.filter(pl.col("name").is_in(names)).select("name", "run_id").iter_rows())
    stacks = scored(snapshot, scope, quality, {ids[name]: name for name in names})
    rows = differences(stacks, *pairs_of(stacks.names, against), setup)
    ends = if_judged(rows, snapshot, scope, quality, ids)
    pairs = [(ids[first], ids[second]) for first, second in rows.select("first", "second").iter_rows()]
    means = [alike_means(alike(snapshot, table, quality.k, *pair)) for pair in pairs]
    overlap, tau = (pl.Series(values, dtype=pl.Float64) for values in zip(*means, strict=True))
    return rows.with_columns(ends, overlap=overlap, tau=tau)


def differences(stacks: Scored, first: Sequence[int], second: Sequence[int], setup: Setup) -> pl.DataFrame:
    """Return `core.stats.significance.compare` with names in first and second, and `with_verdict`."""
    made = compare(Sample.means(stacks.values), first, second, setup)
    named = (
        pl.Series(column, [stacks.names[row] for row in made[column]], dtype=pl.String)
        for column in ("first", "second")
    )
    return with_verdict(made.with_columns(named), higher_is_better=setup.higher_is_better)


def with_verdict(rows: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Add what each comparison shows of the second: better, worse or not told apart."""
    real = pl.col("p_holm") < LEVEL
    gain = pl.col("difference") if higher_is_better else -pl.col("difference")
    side = pl.when(gain > 0).then(pl.lit(WINS)).otherwise(pl.lit(LOSSES))
    return rows.with_columns(pl.when(real).then(side).otherwise(pl.lit(OPEN)).alias("verdict"))


def alike(snapshot: Snapshot, runs: pl.DataFrame, k: int, first: str, second: str) -> pl.DataFrame | None:
    """Return overlap and tau of two rankings per query; None where they rank differently cut passages."""
    pair = runs.filter(pl.col("run_id").is_in([first, second]))
    if pair["chunking"].n_unique() > 1:
        return None
    ranked = snapshot.rankings([first, second], stage="final").filter(pl.col("rank") <= k)
    return agreement(ranked.filter(run_id=first), ranked.filter(run_id=second), k)


def alike_means(rows: pl.DataFrame | None) -> tuple[float | None, float | None]:
    """Return mean overlap and mean tau over the queries that have them."""
    if rows is None or rows.is_empty():
        return None, None
    overlap, tau = rows["overlap"].drop_nulls().to_numpy(), rows["tau"].drop_nulls().to_numpy()
    return float(overlap.mean()), float(tau.mean()) if len(tau) else None
