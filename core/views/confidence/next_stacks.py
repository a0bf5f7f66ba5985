"""Which stacks to add to an evaluation: those one step from the frontier, with a guess of their quality."""

from __future__ import annotations

import polars as pl

from core.decide.frontier import frontier_rows
from core.decide.neighbours import neighbours
from core.decide.rules import Decision
from core.views import text
from core.views.workspace.stacks import AXES


def neighbour_rows(table: pl.DataFrame, decision: Decision) -> pl.DataFrame:
    """Stacks that were not evaluated, one step from the frontier, the likeliest to beat the choice first.

    Returns:
        step (in words), of (the frontier stack), guess and spread (of quality), chance (to score above
        today's choice); empty where there is no choice, or too few stacks for a guess.
    """
    schema = dict.fromkeys(("step", "of"), pl.String) | dict.fromkeys(
        ("guess", "spread", "chance"), pl.Float64
    )
    chosen = decision.chosen
    target = None if chosen is None else table["quality"][chosen]
    if target is None:
        return pl.DataFrame(schema=schema)
    axes = [axis for axis in AXES if not table[axis].is_null().all()]
    found = neighbours(table, axes, frontier_rows(table, decision), float(target), decision.quality)
    words = {"candidates": "K", "dim": "dimensions", "sparse": "sparse index"}
    rows = [
        {
            "step": f"{words.get(each.axis, each.axis)} {each.before} → {each.after}",
            "of": table["name"][each.of],
            "guess": each.quality,
            "spread": each.spread,
            "chance": each.chance,
        }
        for each in found
    ]
    return pl.DataFrame(rows, schema=schema)


def neighbour_words(rows: pl.DataFrame) -> str:
    """The best of them, in words."""
    if rows.is_empty():
        return "No stack one step from the frontier is missing, or too few are known for a guess."
    best = rows.row(0, named=True)
    return (
        f"The best guess: {best['of']} with {best['step']}, about {text.score(best['guess'])} "
        f"± {best['spread']:.3f}, beats today's choice with a chance of "
        f"{text.percent(best['chance'])}."
    )
