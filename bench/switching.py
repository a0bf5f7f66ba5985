"""How often the rule says switch: when no candidate is better, and when one is (docs/switch.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from core.decide.switching import Item, Move, Terms, gains, stay_or_switch

WORLDS, SD, DELTA = 2_000, 0.2, 0.01
CANDIDATES, QUERIES = (1, 24), (64, 150)
MDD = 2.8  # Standard errors of a difference that a test at 2.5 % on one side finds in 80 %


def share(candidates: int, queries: int, lift: float, rng: np.random.Generator) -> float:
    """Return in what share of worlds the rule says switch; only the first candidate is better, by `lift`."""
    moved = 0
    for _ in range(WORLDS):
        difficulty = rng.normal(0, 0.25, queries)
        values = difficulty + rng.normal(0, SD, (candidates + 1, queries))
        values[1] += lift
        family = gains(values, 0, 0.0, DELTA)
        best = max(family, key=lambda row: family[row].difference)
        move = Move(gain=family[best], saves_usd=0.0, saves_ms=0.0, items=(Item("embed again", 100.0, ""),))
        moved += stay_or_switch(move, Terms()).answer == "switch"
    return moved / WORLDS


def main() -> pl.DataFrame:
    """Run all worlds and return the table of docs/switch.md."""
    rng, rows = np.random.default_rng(20261128), list[dict[str, Any]]()
    for candidates in CANDIDATES:
        for queries in QUERIES:
            lift = 2 * MDD * SD * (2 / queries) ** 0.5
            row = {"candidates": candidates, "queries": queries, "lift": lift}
            rows.append(row | {"none": share(candidates, queries, 0.0, rng)})
            rows[-1]["twice"] = share(candidates, queries, lift, rng)
    return pl.DataFrame(rows)


if __name__ == "__main__":
    print(main())
