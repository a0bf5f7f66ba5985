"""What a query can be perturbed by, as data, and a measure under the worst of it.

Robust[X] is, query by query, the worst of X over the ranking of the query as it is and the rankings of the
query perturbed in the chosen ways (metrics.md §8; ours): each way by itself, as the stack's own runs with it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.metrics.info import MeasureInfo, Scores, Values
from core.metrics.inputs import ABSENT, Inputs
from core.params import Param

SECTION = "arXiv:2511.09545 §4.4, worst case (ours)"
_USUAL = {"noise": 4}

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
)
"""Ways and their levels; 0 leaves the query as it is."""


def chosen(values: Values) -> tuple[str, ...]:
    """Return the perturbations that values of parameters ask for, as runs are named by: "noise 4"."""
    return tuple(f"{way.name} {values[way.name]}" for way in PERTURBATIONS if values.get(way.name))


def robust(info: MeasureInfo) -> MeasureInfo:
    """Robust[X] of a measure X."""
    worse = np.minimum if info.higher_is_better else np.maximum

    def worst(inputs: Inputs, values: Values, out: Scores) -> None:
        np.copyto(out, inputs.value(info, values))
        for name in chosen(values):
            other = inputs.perturbed(name)
            worse(out, other.value(info, values), out=out)
            out[:, (other.grades == ABSENT).any(axis=0)] = np.nan

    ways = tuple(replace(way, default=_USUAL.get(way.name, way.default)) for way in PERTURBATIONS)
    return replace(
        info,
        name=f"Robust[{info.name}]",
        text=f"The worst {info.name} over the query as it is and as it is perturbed.",
        formula=f"min over the query and its chosen perturbations of {info.name}@K, query by query",
        section=SECTION,
        score=worst,
        params=(*info.params, *ways),
        ceiling=None,
        needs=info.needs | {"perturbed"},
        na=" ".join(part for part in (info.na, "The stack was not run with each perturbation.") if part),
        differs="",
    )
