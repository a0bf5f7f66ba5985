"""What stands beside the quality that was asked for and may be limited: harm, and robust quality.

An axis of `core.decide.axes.BESIDE` has a column of the stack table, and another with `OF` behind its name for
the measure that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from core.decide.axes import BESIDE, HARM, ROBUST, Axis
from core.decide.rules import Constraints
from core.metrics import Measure
from core.metrics.rates import HOLES
from core.store import Snapshot
from core.tables import remembered
from core.views import text
from core.views.workspace.query_sets import among, scores_by_query
from core.views.workspace.reported import QueryScores
from core.views.workspace.robust import endured
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import at_cutoff, evidence, mean

OF = "_of"
_TINY = 1e-9
_SOURCES: Mapping[str, Callable[[Snapshot, Scope, Quality], Measure | None]] = {
    ROBUST.column: lambda snapshot, scope, quality: endured(snapshot, scope, quality.measure),
}
"""By the column of an axis, which measure it is in a workspace; None where it is none there. Harm comes along with
the quality, see `with_harm`."""


def beside(snapshot: Snapshot, runs: pl.DataFrame, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Return what stands beside the quality of every run, as far as it is known.

    Returns:
        run_id and, of every axis but harm, its column and that with `OF`; null = unknown.
    """
    table = runs.select("run_id")
    ranked, golden = runs.filter("has_rankings")["run_id"].to_list(), scope.golden_set_id
    for key, source in _SOURCES.items():
        measure = source(snapshot, scope, quality)
        columns = {"run_id": pl.String, key: pl.Float64, key + OF: pl.String}
        known = pl.DataFrame(schema=columns)
        if measure is not None and golden is not None and ranked:
            judged = evidence(snapshot, ranked, golden, (measure,), only=among(snapshot, scope))
            values = {"run_id": judged.run_ids, key: mean(at_cutoff(judged, measure))[0]}
            known = pl.DataFrame(values).with_columns(pl.col(key).fill_nan(None)).drop_nulls(key)
            known = known.with_columns(pl.lit(str(measure)).alias(key + OF))
        table = table.join(known, on="run_id", how="left", maintain_order="left")
    return table


def with_harm(table: pl.DataFrame, k: int) -> pl.DataFrame:
    """Decide which harm a workspace goes by.

    The same for all stacks, since Harm of one does not compare with an upper bound of another.
    """
    holes = table.select((pl.col("harm_upper") - pl.col("harm")).max()).item()
    upper = holes is not None and holes > HOLES + _TINY
    measure = Measure("HarmUpper" if upper else "Harm", k)
    known = table["harm_upper" if upper else "harm"]
    name = None if known.is_null().all() else str(measure)
    return table.with_columns(known.alias("harm"), pl.lit(name, pl.String).alias("harm_of")).drop(
        "harm_upper"
    )


@remembered
def measure_of(table: pl.DataFrame, axis: Axis) -> str | None:
    """Return the measure that an axis is in a stack table; None where nothing is known of it."""
    names = table.get_column(axis.column + OF, default=pl.Series(dtype=pl.String)).drop_nulls()
    return None if names.is_empty() else str(names[0])


def by_query(
    snapshot: Snapshot, table: pl.DataFrame, scope: Scope, quality: Quality, axis: Axis
) -> QueryScores | None:
    """Return its values per query of the stacks of a table; None where nothing is known of it."""
    name = measure_of(table, axis)
    if name is None:
        return None
    return scores_by_query(snapshot, table, scope, Quality(str(Measure.parse(name).at(None)), quality.k))


def limit_words(table: pl.DataFrame, limits: Constraints) -> dict[str, str]:
    """Say what each limit beside the quality is about, by its word; nothing of what is unknown."""
    said = {}
    for axis in BESIDE:
        limit, name = limits.of(axis), measure_of(table, axis)
        if limit is not None and name is not None:
            more = _why_harm(name) if axis == HARM else ""
            said[axis.limit_word] = f"The {axis.limit_word} of {text.score(limit)} is about {name}{more}."
    return said


def _why_harm(name: str) -> str:
    few = f"{HOLES:.0%}".replace("%", " %")
    if name.startswith("HarmUpper"):
        return f" (Harm + Hole): more than {few} of a Top-K is unjudged"
    return f": at most {few} of any Top-K is unjudged"
