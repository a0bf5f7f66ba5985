"""Perturbations of a query as data, and a measure under the worst of them.

Robust[X] is, query by query, the worst of X (the least, or the most if less is better) over rankings of
the same stack (metrics.md §8; ours): of the original query, of the query perturbed in each chosen way alone
(noise=4, typo=1: in the run with noise 4 alone, and in that with typo 1 alone), and of the query perturbed in
several of these ways at once, if that was run. A query has no value if the stack has no run for it clean or
in one of the chosen ways alone; combinations that were not run are left out.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import ABSENT, Inputs
from core.params import Param

SECTION = "arXiv:2511.09545 §4.4, worst case (ours)"
_USUAL = {"noise": 4}
_SAID = " and ".join(f"{way} {level}" for way, level in _USUAL.items())

PERTURBATIONS: tuple[Param, ...] = (
    Param(
        name="noise",
        default=0,
        low=0,
        high=4,
        step=1,
        text="Small talk around the query, each level with that of the level before (CLQ paper §4.4): "
        "1 greeting, 2 filler, 3 digression, 4 emoji",
    ),
    Param(
        name="typo",
        default=0,
        low=0,
        high=4,
        step=1,
        text="Words with a slip of the keyboard, a neighbouring key or two letters swapped (ours)",
    ),
    Param(name="accents", default=0, low=0, high=1, step=1, text="1 = typed without accents (ours)"),
    Param(
        name="case", default=0, low=0, high=2, step=1, text="1 = all in lower case, 2 = in upper case (ours)"
    ),
    Param(
        name="names",
        default="0",
        choices=(
            "0",
            "1",
            "2",
            "3",
            "mask",
            "gibberish",
            "label",
            "accents",
            "initials",
            "inverted",
            "case",
            "nfd",
        ),
        text="Names in the query put into another form (CLQ paper §4.2): 1 to 3 letters off, one mask for "
        "all, a random token, without a label, without accents, initials, last name first, other case, NFD",
    ),
)
"""Ways of perturbing a query and their levels; 0 leaves the query unchanged."""


def chosen(values: Values) -> tuple[str, ...]:
    """Return the perturbations that parameter values ask for, as runs name them: "noise 4"."""
    levels = ((way.name, str(values.get(way.name, 0))) for way in PERTURBATIONS)
    return tuple(f"{name} {level}" for name, level in levels if level != "0")


def together(values: Values) -> tuple[str, ...]:
    """Return every combination of two or more of the perturbations: "noise 4 typo 1"."""
    alone = chosen(values)
    sizes = range(2, len(alone) + 1)
    return tuple(" ".join(some) for size in sizes for some in combinations(alone, size))


def robust(info: MeasureInfo) -> MeasureInfo:
    """Return Robust[X] for a measure X that needs only grades."""
    worse = np.minimum if info.higher_is_better else np.maximum

    def worst(inputs: Inputs, values: Values, out: Scores) -> None:
        np.copyto(out, inputs.value(info, values))
        for name in chosen(values):
            other = inputs.perturbed(name)
            worse(out, other.value(info, values), out=out)
            out[:, (other.grades == ABSENT).any(axis=0)] = np.nan
        for name in filter(inputs.is_perturbed, together(values)):
            other = inputs.perturbed(name)
            asked = ~(other.grades == ABSENT).any(axis=0)
            worse(out, other.value(info, values), out=out, where=asked)

    ways = tuple(replace(way, default=_USUAL.get(way.name, way.default)) for way in PERTURBATIONS)
    return replace(
        info,
        name=f"Robust[{info.name}]",
        text=f"The worst {info.name} over the query as it is and as it is perturbed, "
        f"by default with {_SAID}.",
        formula=f"{'min' if info.higher_is_better else 'max'} over the query and its chosen perturbations of "
        f"{info.name}@K, query by query",
        section=SECTION,
        score=worst,
        params=(*info.params, *ways),
        ceiling=None,
        needs=info.needs | {"perturbed"},
        na=" ".join(part for part in (info.na, "The stack was not asked it in each chosen way.") if part),
        differs="",
    )
