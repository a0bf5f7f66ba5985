"""The stack that is taken as the highest: its interval, and how often it is the very best, now and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.calibration import SEED, Row
from bench.selection import WORLDS, World, drawn_of
from core.arrays import Floats
from core.decide.beliefs import Beliefs, beliefs
from core.decide.joint import JointSample, chances
from core.decide.rules import Constraints

TRIALS = 1000
DRAWN = 1000
FAMILIES = ("normal", "two groups", "long tail", "near equals", "families", "clusters")


def equal(stacks: int) -> World:
    """Return a world in which no stack differs from another."""
    return World(f"{stacks} equal stacks", stacks, 64, lambda _, number: np.full(number, 0.5))


@dataclass(frozen=True)
class Seen:
    """What was stated of the stack with the highest estimate, and what was so; shares of the trials."""

    covered: float  # the interval of its expected quality
    alone: float  # the interval of one stack, as it would be by itself
    best: float  # P(best), stated
    truly: float
    again: float  # P(best on as many new queries), stated
    repeated: float


def _sample(world: World, values: Floats) -> JointSample:
    unknown = np.full(world.stacks, np.nan)
    timed = np.full(values.shape, np.nan)
    return JointSample(values, timed, unknown, unknown, unknown, clusters=world.labels)


def _held(world: World, values: Floats) -> Beliefs:
    held = beliefs(_sample(world, values), seed=SEED, draws=DRAWN)
    if held is None:
        raise ValueError(f"{world.name} has too few clusters")
    return held


def simulated(world: World, trials: int) -> Seen:
    """Draw a world again and again, take the highest estimate, and hold what is stated of it to the truth."""
    random, told = np.random.default_rng(SEED), []
    for _ in range(trials):
        true = world.true(random, world.stacks)
        held = _held(world, drawn_of(world, true, random))
        top, anew = int(held.means.argmax()), drawn_of(world, true, random)
        sample = replace(held.sample, noisy=held.leading(), again=held.again())
        counted = chances(sample, Constraints(), seed=SEED)
        off = true[top] - np.array([held.expected[top], held.means[top]])
        told.append([
            *(np.abs(off) <= held.reach[top]), counted.best[top], true[top] >= true.max(),
            counted.again[top], anew.mean(axis=1).argmax() == top,
        ])  # fmt: skip
    return Seen(*(float(share) for share in np.mean(np.array(told, dtype=np.float64), axis=0)))


def rows(trials: int | None = None) -> Iterator[Row]:
    """Yield coverage, P(best) and the chance to be best again, in all worlds together and one by one."""
    often = trials or TRIALS
    for stacks in (20, 85):
        world = equal(stacks)
        yield Row(
            f"expected quality of the highest of {world.name}",
            95,
            _percent(simulated(world, often).covered),
            often,
        )
    for name in FAMILIES:
        seen = [simulated(world, often) for world in WORLDS if world.name.startswith(name)]
        for what, stated, found in (
            ("interval of the shipped stack", None, "covered"),
            ("P(best) of the leader", "best", "truly"),
            ("best again on as many new queries", "again", "repeated"),
        ):
            said = 95.0 if stated is None else _mean(seen, stated)
            yield Row(f"{what}: {name}", said, _mean(seen, found), often * len(seen))


def _mean(seen: list[Seen], name: str) -> float:
    return _percent(float(np.mean([getattr(each, name) for each in seen])))


def _percent(share: float) -> float:
    return round(100 * share, 1)
