"""Compare: what separates a few stacks, query by query, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from core.decide.rules import Decision
from core.errors import InputError
from core.stats.significance import Sample, Setup, compare
from core.views import text
from core.views.queries.page import signed
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Evidence, Floats, at_cutoff

LEVEL = 0.05
"""A difference counts as real when its adjusted p-value is below this."""
MOST = 5
"""Stacks that are compared at most."""
Against = Literal["the first", "every pair"]
WINS, TIES, LOSSES = "better", "tie", "worse"
OPEN = "not told apart"

LEGEND = (
    "{} of 0 the stack is better. Whisker: 95 % interval of that comparison by itself. Light bar: true "
    "differences that these queries are too few to show with 80 % power. A difference is called real when "
    f"its Holm-adjusted p is below {LEVEL}. Click a mark to look closer at its pair."
)


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

    def row(self, name: str) -> int:
        """The place of a stack."""
        return self.names.index(name)


def scored(found: Evidence, names: dict[str, str], quality: Quality) -> Scored:
    """Score stacks.

    Args:
        found: Their rankings with grades.
        names: run_id to name.
        quality: Measure and cutoff.

    Raises:
        InputError: If the measure is known from aggregates only.
    """
    measure = quality.measure
    if measure is None:
        raise InputError(f"{quality.name} is known from aggregates only.", do="Choose another measure.")
    return Scored(
        names=tuple(names[run_id] for run_id in found.run_ids),
        run_ids=found.run_ids,
        query_ids=found.query_ids,
        values=at_cutoff(found, measure),
    )


def pairs_of(names: Sequence[str], against: Against) -> tuple[list[int], list[int]]:
    """Which stacks are compared: each with the first, or each with every earlier one."""
    bases = range(1 if against == "the first" else len(names) - 1)
    pairs = [(base, row) for base in bases for row in range(base + 1, len(names))]
    return [base for base, _ in pairs], [row for _, row in pairs]


def differences(stacks: Scored, first: Sequence[int], second: Sequence[int], setup: Setup) -> pl.DataFrame:
    """Compare pairs of stacks, one family.

    Returns:
        `core.stats.significance.compare` with the names of the stacks in first and second, and verdict: what
        the second is: better, worse or not told apart.
    """
    made = compare(Sample.means(stacks.values), first, second, setup)
    return with_verdict(
        made.with_columns(
            pl.Series(column, [stacks.names[row] for row in made[column]], dtype=pl.String)
            for column in ("first", "second")
        ),
        higher_is_better=setup.higher_is_better,
    )


def legend(quality: Quality) -> str:
    """How to read the chart of differences."""
    return LEGEND.format("Right" if quality.higher_is_better else "Left")


def with_verdict(rows: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Comparisons with what each shows: better, worse or not told apart."""
    real = pl.col("p_holm") < LEVEL
    gain = pl.col("difference") if higher_is_better else -pl.col("difference")
    side = pl.when(gain > 0).then(pl.lit(WINS)).otherwise(pl.lit(LOSSES))
    return rows.with_columns(pl.when(real).then(side).otherwise(pl.lit(OPEN)).alias("verdict"))


@dataclass(frozen=True)
class Answer:
    """The head of the page.

    Attributes:
        sentence: Who is better, by how much, how sure.
        details: How that was found, and what it cannot show.
    """

    sentence: str
    details: str


def answer(rows: pl.DataFrame, quality: Quality, setup: Setup) -> Answer:
    """Say what the comparisons show.

    Args:
        rows: From `differences`, at least one row.
        quality: Measure and cutoff.
        setup: How they were compared.
    """
    if rows["n"].max() == 0:
        return Answer(
            f"{quality.name} applies to no query of these stacks.", "Choose another measure or cutoff."
        )
    if rows.height == 1:
        return Answer(_duel(rows.row(0, named=True), quality), how(rows, setup))
    told = rows.filter(pl.col("verdict") != OPEN).sort(pl.col("difference").abs(), descending=True)
    shows = "shows" if told.height < 2 else "show"
    head = (
        f"{told.height or 'None'} of {rows.height} comparisons {shows} a real difference in {quality.name} "
        f"({_samples(rows)})"
    )
    said = [
        f"{row['second']} is {row['verdict']} than {row['first']} by {_gap(row, sign=False)}, "
        f"{p_value(row['p_holm'])}"
        for row in told.head(2).iter_rows(named=True)
    ]
    return Answer(f"{': '.join([head, '; '.join(said)]) if said else head}.", how(rows, setup))


def _duel(row: dict[str, Any], quality: Quality) -> str:
    n = text.sample(row["n"])
    if row["verdict"] == OPEN:
        return (
            f"{row['second']} and {row['first']} are not told apart: difference {_gap(row)} {quality.name}, "
            f"{p_value(row['p_holm'])}, {n}."
        )
    return (
        f"{row['second']} is {row['verdict']} than {row['first']} by {_gap(row, sign=False)} {quality.name}, "
        f"{p_value(row['p_holm'])}, {n}."
    )


def _gap(row: dict[str, Any], *, sign: bool = True) -> str:
    """A difference with its interval; without its sign both are turned to the side of the better one."""
    gap, low, high = row["difference"], row["low"], row["high"]
    turned = not sign and gap < 0
    bounds = [-high, -low] if turned and low is not None else [low, high]
    values = [signed(each) for each in (abs(gap) if turned else gap, *bounds) if each is not None]
    value, *numbers = values if sign else [each.removeprefix("+") for each in values]
    return f"{value} [{', '.join(numbers)}]" if numbers else value


def p_value(p: float | None) -> str:
    """A p-value as people read it: ``p = 0.041``, ``p < 0.001``."""
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _samples(rows: pl.DataFrame) -> str:
    least, most = (int(each) for each in (rows["n"].to_numpy().min(), rows["n"].to_numpy().max()))
    return f"n = {most}" if least == most else f"n = {least} to {most}"


def how(rows: pl.DataFrame, setup: Setup) -> str:
    """What was done, and what it cannot show."""
    family = (
        "" if rows.height < 2 else f"; p-values are Holm-adjusted over these {rows.height}, intervals are not"
    )
    exact = (
        "exact"
        if rows["exact"].all()
        else f"{setup.permutations:,} random swaps{', exact for few queries' if rows['exact'].any() else ''}"
    )
    least = rows["detectable"].drop_nulls().to_numpy()
    power = ""
    if len(least):
        shown = text.score(float(np.median(least)))
        power = f" With 80 % power these queries show true differences from about {shown} up."
    interval = f"{100 * setup.level:g} % {setup.method} interval"
    return (
        f"Every stack on the same queries: {interval} of {setup.resamples:,} bootstrap resamples, "
        f"paired randomisation test ({exact}), seed {setup.seed}{family}.{power}"
    )


def nothing(table: pl.DataFrame, scope: Scope, quality: Quality) -> tuple[str, str] | None:
    """Why nothing can be compared, and what to do; None where at least two stacks can.

    Args:
        table: The stack table.
        scope: Collection and golden set.
        quality: Measure and cutoff.
    """
    ranked = table.filter(pl.col("has_rankings"))
    if table["collection_id"].n_unique() > 1:
        return (
            "These stacks searched different collections, so their queries cannot be paired.",
            "Choose one workspace.",
        )
    if ranked.is_empty():
        return (
            "The stacks of this workspace came without per-query data: only their averages are known.",
            f"A comparison needs the scores of every query. {_BRING} The averages themselves are on Pareto.",
        )
    if scope.golden_set_id is None:
        return (
            "There are rankings here, but no golden set that could score them.",
            "Import judgements of this collection.",
        )
    if quality.measure is None:
        return (
            f"{quality.bare} is known from aggregates only, so its queries cannot be paired.",
            "Choose another measure in the sidebar.",
        )
    if ranked.height < 2:
        return f"Only {ranked['name'][0]} has per-query data here.", f"It takes two stacks. {_BRING}"
    return None


_BRING = "Import rankings with their judgements, or run stacks here."


def usual(table: pl.DataFrame, decision: Decision) -> list[str]:
    """The stacks that are compared where none were chosen: the decision's two, else the two best."""
    rows = [row for row in (decision.chosen, decision.runner_up) if row is not None]
    names = table[rows].filter("has_rankings")["name"].to_list()
    down = [decision.quality.higher_is_better, False]
    best = table.filter("has_rankings").sort("quality", "name", descending=down, nulls_last=True)
    return list(dict.fromkeys([*names, *best["name"].head(2)]))[:2]
