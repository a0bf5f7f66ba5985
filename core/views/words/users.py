"""What hurts the users of the chosen stack: questions without an answer, and questions typed badly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.per_query import queries, useless
from core.analysis.perturbed import hardest, noise_effects
from core.analysis.workspace.view import View
from core.decide.axes import ROBUST
from core.views import text
from core.views.words.advice import first_step, second_row

_LEVELS = tuple(f"noise {level}" for level in range(1, 5))
_WAYS = {"noise": "small talk", "typo": "typos", "accents": "no accents", "case": "another letter case"}
_UNMEASURED = "Noisy queries were not measured for this stack."


@dataclass(frozen=True)
class Hurt:
    """One thing that hurts users, with its home page."""

    sentence: str
    label: str  # of the link to its home; "" for none
    page: str
    section: str
    numbers: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"sentence": self.sentence, **self.numbers}


def hurts(view: View) -> tuple[Hurt, ...]:
    """Return what is known to hurt users of the chosen stack, or of both that the heading names."""
    chosen, second = view.decision.chosen, second_row(view)
    if chosen is None:
        return ()
    if second is None:
        return _of(view, str(view.table["run_id"][chosen]), "")
    rather = view.once(first_step).rather
    sides = zip((chosen, second), rather.called if rather else ("", ""), strict=True)
    own, other = (_of(view, str(view.table["run_id"][row]), f"{text.capital(side)}: ") for row, side in sides)
    return *own, *(replace(hurt, label="") for hurt in other)


@cached(entries=64)
def _of(view: View, run_id: str, whose: str) -> tuple[Hurt, ...]:
    """Return the same of a stack; `whose` begins its sentences, "" for the only one."""
    found = [hurt for hurt in (_nothing_found(view, run_id), _typed_badly(view, run_id)) if hurt]
    return tuple(
        replace(hurt, sentence=f"{whose}{hurt.sentence[:1].lower()}{hurt.sentence[1:]}") if whose else hurt
        for hurt in found
    )


def _nothing_found(view: View, run_id: str) -> Hurt | None:
    """Count the queries on which the stack finds nothing useful, as page Queries does."""
    rows = queries(view, run_id)
    n, failed = rows["score"].count(), useless(rows).height
    if not failed:
        return None
    sentence = f"It finds nothing useful on {failed:,} of {text.count(n, 'query', 'queries')}."
    return Hurt(sentence, "Which queries", "queries", "", {"useless": failed, "n": n})


def _typed_badly(view: View, run_id: str) -> Hurt | None:
    """Say what perturbed queries cost the stack, as section Noise of Diagnostics does."""
    runs, effects = noise_effects(view)
    families = runs.rows.filter(run_id=run_id)["family"]
    row = hardest(effects.filter(family=families[0]), view.quality) if len(families) else None
    kept = ("perturb", "change", "change_low", "change_high", "n")
    if row is None:
        if hardest(effects, view.quality) is None:  # of no stack
            return None
        unknown = dict.fromkeys(kept)
        return Hurt(_UNMEASURED, "Which noise", "diagnostics", "noise", unknown)
    low, high = row["change_low"], row["change_high"]
    ends = "" if low is None or high is None else f" [{text.signed(low)}, {text.signed(high)}]"
    lost = f"{text.signed(row['change'])}{ends}"
    sentence = f"With {in_words(row['perturb'])}, {view.quality.name} changes by {lost}, n = {row['n']}."
    sentence += _robust(view, run_id)
    return Hurt(sentence, "Which noise", "diagnostics", "noise", {name: row[name] for name in kept})


def _robust(view: View, run_id: str) -> str:
    """Say how the robust quality differs from the mean with noise; "" if the table has none."""
    if ROBUST.column not in view.table.columns:
        return ""
    value = view.table.row(by_predicate=pl.col("run_id") == run_id, named=True)[ROBUST.column]
    said = f" Robust quality, each query at its worst level, is {text.score(value)}."
    return "" if value is None else said


def in_words(perturb: str) -> str:
    """Say what was done to the queries, such as "small talk (level 4 of 4)"."""
    if perturb in _LEVELS:
        return f"small talk (level {perturb[-1]} of {len(_LEVELS)})"
    ways = [words for way, words in _WAYS.items() if way in perturb.split()]
    return f"{' and '.join(ways)} ({perturb})" if ways else perturb
