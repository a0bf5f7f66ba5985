"""With and without a change: what it does to every pair of stacks that differ in nothing else."""

from __future__ import annotations

import numpy as np
import polars as pl

from core.stats.significance import Sample, Setup, compare
from core.views import text
from core.views.compare.page import LOSSES, OPEN, WINS, Scored, p_value, with_verdict
from core.views.queries.page import signed
from core.views.workspace.scope import Quality
from core.views.workspace.scores import Floats


def effects(stacks: Scored, pairs: pl.DataFrame, setup: Setup) -> pl.DataFrame:
    """Compare every pair of a change; the pairs are one family.

    Args:
        stacks: Scores of all stacks of the pairs.
        pairs: Rows of `core.views.compare.changes.changes`, of one change.
        setup: How to compare.

    Returns:
        before, after, run_before, run_after, then the columns of `page.differences` from n on;
        in the order of `pairs`.
    """
    first, second = _rows(stacks, pairs)
    made = compare(Sample.means(stacks.values), first, second, setup).drop("first", "second")
    made = with_verdict(made, higher_is_better=setup.higher_is_better)
    return pairs.select("before", "after", "run_before", "run_after").hstack(made)


def pooled(stacks: Scored, pairs: pl.DataFrame, setup: Setup) -> pl.DataFrame:
    """The change on average over its pairs, query by query: one row with the columns of `effects` from n on.

    The queries stay the sample, so the interval says how far the change carries over to other queries with
    these stacks, not to other stacks.
    """
    first, second = _rows(stacks, pairs)
    means = np.stack([_mean(stacks.values[first]), _mean(stacks.values[second])])
    made = compare(Sample.means(means), [0], [1], setup).drop("first", "second")
    return with_verdict(made, higher_is_better=setup.higher_is_better)


def _rows(stacks: Scored, pairs: pl.DataFrame) -> tuple[list[int], list[int]]:
    places = {run_id: place for place, run_id in enumerate(stacks.run_ids)}
    return [places[run] for run in pairs["run_before"]], [places[run] for run in pairs["run_after"]]


def _mean(values: Floats) -> Floats:
    """Mean over stacks; NaN where one of them has no value, so that both sides average the same stacks."""
    return np.asarray(values.mean(axis=0))


def answer(kind: str, rows: pl.DataFrame, whole: pl.DataFrame, quality: Quality) -> str:
    """What a change does, in one sentence.

    Args:
        kind: The change, such as ``index: flat → int8``.
        rows: From `effects`.
        whole: From `pooled`.
        quality: Measure and cutoff.
    """
    row = whole.row(0, named=True)
    if row["difference"] is None:
        return f"{quality.name} applies to no query of these stacks."
    bounds = "" if row["low"] is None else f" [{signed(row['low'])}, {signed(row['high'])}]"
    counts = {verdict: rows.filter(verdict=verdict).height for verdict in (WINS, LOSSES, OPEN)}
    alone = "" if rows.height < 2 else (
        f" Pair by pair: {counts[WINS]} better, {counts[LOSSES]} worse, {counts[OPEN]} not told apart "
        f"(Holm over {rows.height})."
    )  # fmt: skip
    return (
        f"{kind} moves {quality.name} by {signed(row['difference'])}{bounds} on average over "
        f"{text.count(rows.height, 'pair')} of stacks, {p_value(row['p'])}, {text.sample(row['n'])}.{alone}"
    )
