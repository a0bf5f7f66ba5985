"""Which harm a cap is about: what was judged harmful, or its upper bound where much is unjudged."""

from __future__ import annotations

import polars as pl

from core.decide.rules import Constraints
from core.metrics import Measure
from core.metrics.rates import HOLES
from core.tables import remembered
from core.views import text

_TINY = 1e-9


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
def harm_measure(table: pl.DataFrame) -> str | None:
    """The harm that a stack table goes by; None where none is known."""
    found = table["harm_of"].drop_nulls() if "harm_of" in table.columns else pl.Series(dtype=pl.String)
    return None if found.is_empty() else str(found[0])


def cap_words(table: pl.DataFrame, limits: Constraints) -> str:
    """What a harm cap is about and why, in a sentence; empty without a cap, or any harm."""
    name = harm_measure(table)
    if limits.max_harm is None or name is None:
        return ""
    head = f"The harm cap of {text.score(limits.max_harm)} is about {name}"
    if name.startswith("HarmUpper"):
        return f"{head} (Harm + Hole): more than {HOLES:.0%} of a Top-K is unjudged.".replace("%", " %")
    return f"{head}: at most {HOLES:.0%} of any Top-K is unjudged.".replace("%", " %")
