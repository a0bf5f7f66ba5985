"""Routing options: depths or rewrites of one stack, passages sent to its reader, or any stacks."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.analysis.families import Family, Known, Option, families, idle, stacks_as_options, usual_stacks
from core.analysis.workspace.view import View
from core.views.ask import Ask
from core.views.what_if import data, routing

OF_MY_CHOICE = "stacks of my choice"
ABOUT_FAMILIES = (
    "Stacks that differ only in their candidate depth K, or only in a rewrite, or the passages that a reader "
    "was sent. Smaller K of a pointwise reranker are replayed from its deepest run; a listwise one has to be "
    "run at every K."
)
MOST_OPTIONS = 3


def ask_options(view: View, ask: Ask, *, of_my_choice: bool = False) -> tuple[Family | None, list[Option]]:
    """Ask for a stack and its depths, rewrites or passages, or for any stacks, which have no family.

    Args:
        of_my_choice: Whether any stacks are the default; otherwise it is a stack with several depths.
    """
    within = view.feasible
    every = (*families(view.table), *data.rewriting(view), *data.answering(view))
    known = {family.name: family for family in every}
    names = [name for name, family in known.items() if len(family.options) > 1 or family.reranker]
    deeper = (known[name] for name in names if not (known[name].rewrites or known[name].answers))
    alive = (family for family in deeper if not idle(family, view.quality.k))
    several = (family.name for family in alive if len(_within(data.with_replays(view, family), within)) > 1)
    usual = OF_MY_CHOICE if of_my_choice else next(several, OF_MY_CHOICE)
    name = ask.listed("Stack", [*names, OF_MY_CHOICE], "fam", usual=usual, about=ABOUT_FAMILIES, width=400)
    if name == OF_MY_CHOICE:
        first, label = usual_stacks(within), "Stacks, two or three"
        picked = ask.stacks(view.table, view.decision, "among", usual=first, most=MOST_OPTIONS, label=label,
                            unsaid="the fastest and the best")  # fmt: skip
        return None, stacks_as_options(view.table, picked)
    family = data.with_replays(view, known[name])
    labels = {option.label + (" (replayed)" if option.deep else ""): option for option in family.options}
    what = "Rewrites" if family.rewrites else "Passages sent" if family.answers else "Candidates (K)"
    usual_ones = usual_options(_within(family, within) or family.options, rewrites=family.rewrites)
    chosen = [words_of for words_of, option in labels.items() if option in usual_ones]
    picked = ask.several(f"{what}, two or three", labels, "ks", usual=chosen, most=MOST_OPTIONS)
    return family, [option for words_of, option in labels.items() if words_of in picked]


def _within(family: Family, within: pl.DataFrame) -> tuple[Option, ...]:
    """Return a family's options within the limits: measured ones, and replays no deeper than these.

    Rewrites and passages sent aren't stacks of the table, which doesn't cover their limits.
    """
    if family.rewrites or family.answers:
        return family.options
    runs = set(within["run_id"])
    deepest = max(
        (option.depth or 0 for option in family.options if option.deep is None and option.run_id in runs),
        default=0,
    )
    return tuple(
        option
        for option in family.options
        if (option.run_id in runs if option.deep is None else (option.depth or 0) <= deepest)
    )


def usual_options(options: Sequence[Option], *, rewrites: bool = False) -> list[Option]:
    """Return the paper's K = 50 and 100 if available, otherwise the shallowest and the deepest."""
    paper = [option for option in options if option.depth in (50, 100) and not rewrites]
    return paper if len(paper) == 2 else [options[0], options[-1]]


def way_of(family: Family | None, known: Known) -> routing.RoutingWay:
    """Return how a query gets from the first option to a further one, if its signal is known then."""
    rewrites = family is not None and family.rewrites
    return routing.RoutingWay(
        known, family is not None and not rewrites, family is None or not family.refused, rewrites
    )
