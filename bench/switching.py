"""How often the rule says switch: when no candidate is better, and when one is (docs/switch.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from core.arrays import Floats
from core.decide.switching import Move, SwitchItem, Terms, gains, stay_or_switch

WORLDS = {1: 40_000, 24: 10_000}
"""Simulated worlds by the number of candidates."""
DELTA, QUERIES, LIFTED = 0.01, (64, 150), 2_000
MDD = 2.8  # Standard errors of a difference that a test at 2.5 % on one side finds in 80 %
_ONCE = (SwitchItem("embed again", 100.0, ""),)


def _even(rng: np.random.Generator, candidates: int, queries: int) -> Floats:
    """Return values that scatter alike in all stacks, around how hard each query is."""
    return rng.normal(0, 0.25, queries) + rng.normal(0, 0.2, (candidates + 1, queries))


def _hits(rng: np.random.Generator, candidates: int, queries: int) -> Floats:
    """Return 0 or 1: whether a query is answered, as likely by every stack."""
    chance = rng.beta(0.5, 0.5, queries)
    return (rng.random((candidates + 1, queries)) < chance).astype(np.float64)


def _large_losses(rng: np.random.Generator, candidates: int, queries: int) -> Floats:
    """Return candidates that tie on half of the queries, win little on 40 %, and lose much on 10 %."""
    kind = rng.random((candidates + 1, queries))
    apart = np.where(kind < 0.5, 0.0, np.where(kind < 0.9, 0.1, -0.4)) * rng.uniform(0.5, 1.5, kind.shape)
    apart[0] = 0.0
    return rng.normal(0, 0.25, queries) + apart


KINDS: Mapping[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "even": _even,
    "0 or 1": _hits,
    "few but large losses": _large_losses,
}


def moved(values: Floats) -> bool:
    """Return whether the rule says switch, at equal cost and latency."""
    family = gains(values, 0, 0.0, DELTA)
    best = max(family, key=lambda row: family[row].difference)
    move = Move(gain=family[best], saves_usd=0.0, saves_ms=0.0, items=_ONCE)
    return stay_or_switch(move, Terms()).answer == "switch"


def main() -> pl.DataFrame:
    """Run all worlds and return the table of docs/switch.md, in percent."""
    rng, rows = np.random.default_rng(20261129), list[dict[str, Any]]()
    for kind, world in KINDS.items():
        many = world(rng, 1, 100_000)
        sd = float(np.std(many[1] - many[0]))
        for candidates, worlds in WORLDS.items():
            for queries in QUERIES:
                lift = np.zeros((candidates + 1, 1))
                lift[1] = 2 * MDD * sd / queries**0.5
                none = sum(moved(world(rng, candidates, queries)) for _ in range(worlds))
                twice = sum(moved(world(rng, candidates, queries) + lift) for _ in range(LIFTED))
                row = {"differences": kind, "candidates": candidates, "queries": queries}
                rows.append(row | {"none": 100 * none / worlds, "twice": 100 * twice / LIFTED})
                print(rows[-1], flush=True)
    return pl.DataFrame(rows)


if __name__ == "__main__":
    print(main())
