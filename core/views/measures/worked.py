"""Worked examples: one query on which every measure can be computed by hand, step by step.

The numbers in the steps come from the same functions that score runs; a test works the last step out again
and compares it with what the engine says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.metrics import Extra, Measure, na_reason, score_at
from core.metrics.facets import sets_of
from core.params import show
from core.views.measures.worked_terms import (
    ANSWERS,
    DEEPEST,
    GRADES,
    JUDGED,
    PASSAGES,
    RANKING,
    SOURCES,
    Ranked,
    best_first,
    counts_of,
    expression,
)


@dataclass(frozen=True)
class Worked:
    """One measure on the example."""

    measure: Measure  # with its cutoff
    steps: tuple[str, ...]  # what the numbers stand for, in words
    expression: str  # the last step, with numbers only; empty where the measure does not apply
    value: float | None  # what it comes to; None where the measure does not apply
    reason: str | None  # why it does not apply


def cutoff_of(measure: Measure) -> int:
    """The cutoff at which a measure shows most: 5 where all good counts or the pool lacks something."""
    return 5 if "Hit" in measure.name or measure.inner else 4


def example() -> pl.DataFrame:
    """The example as a table: rank (null = not ranked), passage, grade (null = unjudged), source; by rank."""
    ranks = {name: rank for rank, name in enumerate(RANKING, 1)}
    rows = [(ranks.get(name), name, grade or None, source) for name, grade, source in PASSAGES]
    schema = {"rank": pl.Int64, "passage": pl.String, "grade": pl.Int64, "source": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("rank", "passage", nulls_last=True)


def worked(measure: Measure) -> Worked:
    """Work a measure out on the example.

    Args:
        measure: Any of the registry, with or without a cutoff (then `cutoff_of`), at most `DEEPEST`.
    """
    measure = measure.at(min(measure.k or cutoff_of(measure), DEEPEST))
    value = _value(measure)
    ranked = Ranked(measure, RANKING)
    steps = (ranked.top_in_words(), ranked.golden_in_words(), *_notes(ranked))
    if value is None:
        return Worked(measure, steps, "", None, na_reason(measure, counts_of(JUDGED)) or measure.info.na)
    if measure.name.startswith("%"):
        best = best_first(ranked)
        steps = (*steps, best.best_in_words())
        step = f"({expression(ranked)}) / ({expression(best)})"
    elif measure.inner:
        best = best_first(ranked)
        steps, step = (best.best_in_words(), *steps[1:]), expression(best)
    else:
        step = expression(ranked)
    return Worked(measure, steps, step, value, None)


def _value(measure: Measure) -> float | None:
    """What the engine says."""
    grades = np.array([[GRADES[name] for name in RANKING]], dtype=np.int8)
    codes = {source: code for code, source in enumerate(sorted(set(SOURCES.values())))}

    def sources(names: Sequence[str]) -> np.ndarray:
        return np.array([[codes[SOURCES[name]] for name in names]], dtype=np.int32)

    judged = np.array([[GRADES[name] for name in JUDGED]], dtype=np.int8)
    extra = Extra(
        sources=sources(RANKING),
        pool_sources=sources(RANKING),
        facets=sets_of(judged, sources(JUDGED)),
        answers=np.array([ANSWERS]),
    )
    found = score_at(measure, grades, counts_of(JUDGED)[None], pool_grades=grades, extra=extra)[0]
    return None if np.isnan(found) else float(found)


def _notes(ranked: Ranked) -> list[str]:
    """Numbers that the last step takes for granted."""
    name = ranked.name
    if name.endswith("RA-nWG"):
        return [_weights_in_words(ranked)] + ([_sources_in_words()] if name.startswith("Novelty") else [])
    if name in ("Harm", "HarmUpper", "Hole", "nDCG"):
        return []
    if name == "Acc|Hit":
        return [f"The answer from the first {ranked.k} passages is {show(ANSWERS[ranked.k - 1])} correct."]
    words = "has" if ranked.found == 1 else "have"
    return [
        f"Of these, {ranked.found} {words} grade {ranked.rel} or more; in the golden set {ranked.present}."
    ]


def _weights_in_words(ranked: Ranked) -> str:
    n3, n4, n5 = counts_of(JUDGED)[2:]
    alpha, cap4, cap3, b4, b3 = (ranked.param(name) for name in ("alpha", "cap4", "cap3", "b4", "b3"))
    return (
        f"Weights: w5 = 1, w4 = min({b4}·({n5}/{n4})^{alpha}, {cap4}) = {show(ranked.weight('b'))}, "
        f"w3 = min({b3}·({n5}/{n3})^{alpha}, {cap3}) = {show(ranked.weight('d'))}, w2 = w1 = 0, unjudged 0."
    )


def _sources_in_words() -> str:
    shown = ", ".join(f"{name} of {source}" for name, source in SOURCES.items())
    return f"Sources: {shown}. What repeats a source counts beta of its weight."
