"""How often a drift is announced where nothing changed, and where something did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.calibration import SEED, Row
from core.stats.drift import DAY_S, drift

TRIALS = 1000
QUERIES, WINDOWS = 800, 4


@dataclass(frozen=True)
class World:
    """Traffic of some days; every number has a standard deviation of 1 or a little more."""

    days: float = 8.0
    alike: float = 0.0  # the share of the variance that the queries of a session have in common
    cycle: float = 0.0  # by how much the day moves a query, up and down
    shift: float = 0.0  # by how much the second half lies above the first
    told: bool = True  # whether sessions are told apart


QUIET = {
    "nothing changed, single queries": World(),
    "nothing changed, sessions of five": World(alike=0.5),
    "nothing changed, sessions of five, not told apart": World(alike=0.5, told=False),
    "nothing changed, daily cycle": World(cycle=1.0),
    "nothing changed, daily cycle of three days": World(cycle=1.0, days=3.0),
    "nothing changed, daily cycle and sessions of five": World(cycle=1.0, alike=0.5),
}


def rows(trials: int | None = None) -> Iterator[Row]:
    """Count false alarms, and drifts of half a standard deviation that are found."""
    many = trials or TRIALS
    for what, world in QUIET.items():
        alarms, held = seen(world, many)
        yield Row(f"drift announced, {what}", 5, 100 * alarms, many)
        yield Row(f"interval of the shift, {what}", 95, 100 * held, many)
    for what in ("single queries", "sessions of five", "daily cycle and sessions of five"):
        moved = replace(QUIET[f"nothing changed, {what}"], shift=0.5)
        yield Row(
            f"drift of half a standard deviation found, {what}", np.nan, 100 * seen(moved, many)[0], many
        )


def seen(world: World, trials: int) -> tuple[float, float]:
    """Return how often any window drifted, and how often the last window's interval holds the true shift."""
    any_of, held, compared = 0, 0, 0
    for trial in range(trials):
        random = np.random.default_rng([SEED, trial])
        at, session, values = _traffic(world, random)
        table = drift(values, at, WINDOWS, session=session if world.told else None, seed=trial)
        any_of += bool(table["drifted"].any())
        last = table.row(-1, named=True)
        if last["shift"] is not None:
            compared += 1
            held += last["shift_low"] <= world.shift <= last["shift_high"]
    return any_of / trials, held / max(compared, 1)


def _traffic(world: World, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    each = 5 if world.alike else 1
    began = np.sort(random.random(QUERIES // each)) * world.days * DAY_S
    session = np.repeat(np.arange(len(began)), each)
    at = began[session] + 30.0 * np.tile(np.arange(each), len(began))
    common = random.standard_normal(len(began))[session]
    values = np.sqrt(world.alike) * common + np.sqrt(1 - world.alike) * random.standard_normal(QUERIES)
    values = values + world.cycle * np.sin(2 * np.pi * at / DAY_S)
    return at, session, values + world.shift * (began[session] > world.days * DAY_S / 2)
