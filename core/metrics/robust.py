"""What a query can be perturbed by, as data: measures, stacks and pages name it the same way."""

from __future__ import annotations

from core.params import Param

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
