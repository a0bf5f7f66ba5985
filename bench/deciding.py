"""How few grades decide between two stacks, and how often the interval is ever wrong (docs/switch.md).

Two stacks show the same passages on 30 % of the questions, and one to ten others on the rest; a passage is
useful with a chance that differs by question. After every question the interval is read, and judging stops
when it decides. Beside it stands the empirical-Bernstein interval on the same draws (Waudby-Smith and Ramdas
2024, theorem 2).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.arrays import Floats
from core.stats.deciding import ALPHA, decision, drawn, looks

WORLDS, K, DELTA, MEANS, SAME = 2_000, 10, 0.02, 200, 0.3
CASES = ((150, 0.0), (150, 0.05), (150, 0.1), (150, 0.2), (1000, 0.0), (1000, 0.1))


def world(n: int, lift: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return how many of ten passages the stacks do not share [n], and the difference in useful ones [n]."""
    apart = np.where(rng.random(n) < SAME, 0, rng.integers(1, K + 1, n))
    useful = rng.beta(1, 3, n)
    new = rng.binomial(apart, np.minimum(useful + lift, 1))
    return apart / K, (new - rng.binomial(apart, useful)) / K


def bernstein(range_: Floats, seen: Floats, order: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the ends of the empirical-Bernstein interval after each draw."""
    width, n, t = 2 * range_, len(range_), np.arange(1, len(order) + 1)
    place = (seen + range_[order]) / width[order]
    least = -range_.sum() + np.append(0, np.cumsum(seen + range_[order]))[:-1]
    left = width.sum() - np.append(0, np.cumsum(width[order]))[:-1]
    means = (0.5 + np.cumsum(place)) / (t + 1)
    before = np.append(0.5, means[:-1])
    spread = np.append(0.25, ((0.25 + np.cumsum((place - means) ** 2)) / (t + 1))[:-1])
    stake = np.minimum(np.sqrt(2 * np.log(2 / ALPHA) / (spread * t * np.log1p(t))), 0.5)
    bound = np.log(2 / ALPHA) + np.cumsum((place - before) ** 2 * (-np.log1p(-stake) - stake))
    weight = np.cumsum(stake / left)
    middle = np.cumsum(stake * (place + least / left))
    ends = np.maximum.accumulate((middle - bound) / weight / n), (middle + bound) / weight / n
    return np.maximum(ends[0], least / n), np.minimum.accumulate(np.minimum(ends[1], (least + left) / n))


def stop(low: Floats, high: Floats) -> tuple[int, str | None]:
    """Return after how many questions the ends decide, and what."""
    for at, ends in enumerate(zip(low, high, strict=True)):
        if (said := decision(*ends, 0.0, DELTA)) is not None:
            return at, said
    return len(low) - 1, None


def case(n: int, lift: float, worlds: int) -> dict[str, Any]:
    """Return a row of the table."""
    rng = np.random.default_rng(20261128)
    outside = other = false = 0
    grades, peer, of = 0.0, 0.0, 0.0
    for seed in range(worlds):
        apart, true = world(n, lift, rng)
        draw, mean = drawn(-apart, apart, seed), true.mean()
        order = draw.order
        told = looks(draw, true[order], means=MEANS)
        ends = bernstein(apart, true[order], order)
        outside += bool(((told.low > mean + 1e-9) | (told.high < mean - 1e-9)).any())
        other += bool(((ends[0] > mean + 1e-9) | (ends[1] < mean - 1e-9)).any())
        at, said = stop(told.low, told.high)
        false += (said == "switch" and mean <= 0) or (said == "stay" and mean > 0)
        spent = 2 * K * np.append(0, np.cumsum(apart[order]))
        grades, of = grades + spent[at], of + spent[-1]
        peer += spent[stop(*ends)[0]]
    return {
        "questions": n,
        "lift": lift,
        "ever outside": outside / worlds,
        "Bernstein ever outside": other / worlds,
        "wrong": false / worlds,
        "grades": grades / of,
        "Bernstein grades": peer / of,
        "grades of all": of / worlds,
    }


def main() -> pl.DataFrame:
    """Run all worlds and return the table of docs/switch.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    worlds = parser.parse_args().worlds
    return pl.DataFrame([case(*each, worlds) for each in CASES])


if __name__ == "__main__":
    with pl.Config(tbl_cols=-1, tbl_width_chars=200):
        print(main())
