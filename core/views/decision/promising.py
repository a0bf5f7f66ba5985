"""What a decision could not look at: stacks that lack a number, and axes on which nobody has one."""

from __future__ import annotations

import numpy as np
import polars as pl

from core.decide.axes import Axis
from core.decide.rules import Decision
from core.views import text

PROMISING = "Promising, not measured"
COLUMNS = ("run_id", "stack", "quality", "gain", "unknown", "missing", "measure", "why")
_NOTES = {"latency": "latency_note", "cost": "cost_note"}


def promising_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """The stacks that break no limit but are not shipped, since a number that is required is unknown.

    Returns:
        `COLUMNS`, the best quality first: quality, gain (over the chosen stack's, positive where better; null
        without one), unknown (words of the axes), missing ("not timed", …), measure (what to do) and why
        (what is on record about it, or null).
    """
    rows = np.flatnonzero(decision.promising)
    quality = decision.quality
    merit = quality.merit(quality.read(table))
    rows = rows[np.argsort(-merit[rows], kind="stable")]
    best = np.nan if decision.chosen is None else merit[decision.chosen]
    lacking = [
        [axis for axis, gone in zip(decision.required, decision.unknown[row], strict=True) if gone]
        for row in rows
    ]
    notes = [
        "; ".join(str(note) for axis in gone if (note := _note(table, int(row), axis.key)))
        for row, gone in zip(rows, lacking, strict=True)
    ]
    part = table[rows]
    return pl.DataFrame(
        {
            "run_id": part["run_id"],
            "stack": part["name"],
            "quality": part["quality"],
            "gain": pl.Series(merit[rows] - best, dtype=pl.Float64).fill_nan(None),
            "unknown": pl.Series(
                [[axis.word for axis in gone] for gone in lacking], dtype=pl.List(pl.String)
            ),
            "missing": pl.Series(
                [", ".join(axis.missing for axis in gone) for gone in lacking], dtype=pl.String
            ),
            "measure": pl.Series(
                ["; ".join(axis.remedy for axis in gone) for gone in lacking], dtype=pl.String
            ),
            "why": pl.Series([words or None for words in notes], dtype=pl.String),
        }
    )


def _note(table: pl.DataFrame, row: int, key: str) -> object:
    name = _NOTES.get(key)
    return table[name][row] if name in table.columns else None


def promising_words(rows: pl.DataFrame, decision: Decision) -> str:
    """How many there are, and the best of them, in a sentence; empty without any."""
    if rows.is_empty():
        return ""
    first = rows.row(0, named=True)
    better = rows.filter(pl.col("gain") > 0).height if decision.chosen is not None else rows.height
    head = f"{text.count(rows.height, 'stack')} promising, not shipped for want of a number"
    ahead = f", {better:,} of better quality than the chosen one" if decision.chosen is not None else ""
    return (
        f"{head}{ahead}. The best: {first['stack']}, {text.score(first['quality'])}, {first['missing']} "
        f"({first['measure']})."
    )


def unasked_words(decision: Decision) -> dict[Axis, str]:
    """A sentence per axis on which nothing is known, so that the choice does not look at it."""
    return {
        axis: f"No stack here has a known {axis.word}, so the choice does not look at it, nor at any "
        f"{axis.limit_word}: {axis.remedy}."
        for axis in decision.unasked
    }
