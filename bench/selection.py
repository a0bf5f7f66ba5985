"""What a rule of decision loses, and whether what it states is seen: made-up worlds and real grids.

Quality per query of S stacks is drawn, or questions are drawn with replacement from those of a real
workspace, whose whole set is then the truth. Each rule chooses; lost is the true quality of the best stack
less that of the chosen one. Rules: the one until 0.2 (cheapest of those whose paired 95 % interval contains
0), the highest estimate, and the product's (`core.decide`).

Beside them: how often the choice is a good selection (no more than δ below the best), as stated (PGS) and as
seen; and by how much the expected quality on new queries, and the estimate itself, lie above the true one.

    python -m bench selection
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

import core
from bench.search import COLLECTIONS, TASKS, grid
from core.arrays import Floats
from core.decide.beliefs import beliefs
from core.decide.joint import JointSample
from core.decide.rules import Constraints, decide
from core.decide.selection import assess
from core.decide.ties import Paired
from core.paths import ROOT
from core.stats.intervals import Labels, weights

SEED, DELTA = 20251112, 0.01
TRIALS, SAMPLES = 1000, 500  # per made-up world, per real grid and size
SIZES = (12, 24, 50, 100)
DRAWN = 1000  # A mean over trials needs no more
SPREAD = 0.28  # of a query's quality around its stack's
OUT = ROOT / "build" / "selection.json"


@dataclass(frozen=True)
class World:
    """True qualities of stacks, drawn anew in every trial."""

    name: str
    stacks: int
    queries: int
    true: Callable[[np.random.Generator, int], Floats]
    family: float = 0.0  # share of what sets a stack apart that it has in common with three others
    cluster: int = 1  # queries that come from one document
    within: float = 0.0  # share of what varies between queries that lies between documents

    @cached_property
    def labels(self) -> Labels | None:
        """Return of which document each query is [Q]; None where each is by itself."""
        return None if self.cluster == 1 else np.arange(self.queries) // self.cluster


def _normal(random: np.random.Generator, stacks: int, spread: float = 0.05) -> Floats:
    return random.normal(0.5, spread, stacks)


def _two_groups(random: np.random.Generator, stacks: int) -> Floats:
    return np.where(random.random(stacks) < 0.3, 0.58, 0.46) + random.normal(0, 0.01, stacks)


def _long_tail(random: np.random.Generator, stacks: int) -> Floats:
    return 0.6 - random.exponential(0.08, stacks)


def _near_equals(random: np.random.Generator, stacks: int) -> Floats:
    return random.normal(0.5, 0.005, stacks)


def _families(random: np.random.Generator, stacks: int) -> Floats:
    return np.repeat(random.normal(0.5, 0.05, -(-stacks // _KIN)), _KIN)[:stacks] + random.normal(
        0, 0.005, stacks
    )


_KIN = 4
SIZES_OF_WORLDS = ((6, 64), (20, 50), (20, 200), (76, 64))
WORLDS = tuple(
    World(f"{name}, {stacks} stacks, n = {queries}", stacks, queries, true)
    for name, true in (
        ("normal", _normal),
        ("two groups", _two_groups),
        ("long tail", _long_tail),
        ("near equals", _near_equals),
    )
    for stacks, queries in SIZES_OF_WORLDS
) + tuple(
    World(f"{name}, {stacks} stacks, n = {queries}", stacks, queries, true, *shape)
    for name, true, shape in (("families", _families, (0.8,)), ("clusters", _normal, (0.0, 4, 0.4)))
    for stacks, queries in SIZES_OF_WORLDS
)


def drawn_of(world: World, true: Floats, random: np.random.Generator) -> Floats:
    """Draw results per query around true qualities [S, Q]."""
    kin = np.arange(world.stacks) // _KIN
    documents = np.arange(world.queries) // world.cluster

    def noise(rows: int) -> Floats:
        between = random.normal(0, 1, (rows, int(documents[-1]) + 1))[:, documents]
        own = random.normal(0, 1, (rows, world.queries))
        return np.sqrt(world.within) * between + np.sqrt(1 - world.within) * own

    apart = np.sqrt(world.family) * noise(int(kin[-1]) + 1)[kin]
    apart += np.sqrt(1 - world.family) * noise(world.stacks)
    return np.asarray(true[:, None] + SPREAD / 2 * noise(1) + SPREAD * np.sqrt(0.75) * apart)


@dataclass(frozen=True)
class Told:
    """What one trial gave."""

    old: float  # lost by the rule until 0.2
    highest: float  # by the highest estimate
    lost: float  # by the product's rule
    stated: float  # probability of good selection
    seen: float  # 1 where the choice was one
    naive: float  # estimate of the shipped stack less its true quality
    expected: float  # its expected quality less the true one


def trial(
    values: Floats,
    true: Floats,
    cost: Floats,
    latency: Floats | None = None,
    *,
    labels: Labels | None = None,
) -> Told:
    """Decide on results per query [S, Q], of stacks whose true qualities are known [S]."""
    count, queries = values.shape
    names = [f"s{row:05}" for row in range(count)]
    ms = np.full(count, np.nan) if latency is None else latency
    figures = {"quality": values.mean(axis=1), "latency_ms": ms, "cost": cost}
    table = pl.DataFrame({"run_id": names, **figures}).fill_nan(None)
    paired, limits = Paired(names, values, clusters=labels), Constraints(delta=DELTA, jitter_ms=1e9)
    unknown = np.full(count, np.nan)
    sample = JointSample(values, np.full((count, queries), np.nan), cost, unknown, ms, clusters=labels)
    decision = decide(table, limits, paired=paired)
    held = beliefs(sample, seed=SEED, draws=DRAWN)
    sure = assess(table, decision, limits, held, paired)
    chosen, top = int(decision.chosen or 0), true.max()
    stated = 1.0 if sure.pgs is None else sure.pgs
    return Told(
        old=top - true[until_0_2(values, cost)],
        highest=top - true[int(values.mean(axis=1).argmax())],
        lost=top - true[chosen],
        stated=stated,
        seen=float(top - true[chosen] <= DELTA + 1e-12),
        naive=float(values[chosen].mean() - true[chosen]),
        expected=float((sure.expected or 0.0) - true[chosen]),
    )


def until_0_2(values: Floats, cost: Floats) -> int:
    """Return the cheapest stack whose paired 95 % interval from the best contains 0."""
    best = int(values.mean(axis=1).argmax())
    drawn = weights(values.shape[1], 1000, SEED)
    gaps = (values - values[best]) @ drawn.T / values.shape[1]
    low, high = np.quantile(gaps, [0.025, 0.975], axis=1)
    tied = (low <= 1e-9) & (high >= -1e-9)
    return int(np.where(tied, cost, np.inf).argmin())


def simulated(world: World, trials: int = TRIALS) -> list[Told]:
    """Draw a world again and again; costs are drawn with the stacks, whatever their quality."""
    random = np.random.default_rng(SEED)
    told = []
    for _ in range(trials):
        true = world.true(random, world.stacks)
        values = drawn_of(world, true, random)
        told.append(trial(values, true, random.random(world.stacks), labels=world.labels))
    return told


@dataclass(frozen=True)
class Real:
    """Stacks that were really run, on all their questions."""

    name: str
    quality: Floats  # [S, Q]
    cost: Floats  # [S]
    ms: Floats  # [S]


def reals() -> Iterator[Real]:
    """Yield the shipped workspace, and the grids of `bench.search` where their collections are."""
    yield shipped()
    for task in TASKS if COLLECTIONS.exists() else ():
        held = grid(task)
        quality = held.quality[:, ~np.isnan(held.quality).any(axis=0)]
        first = np.unique(quality, axis=0, return_index=True)[1]  # equal results are one stack
        yield Real(task.name, quality[first], held.usd.mean(axis=1)[first], np.median(held.ms, axis=1)[first])


def shipped() -> Real:
    """Read `docs-search`, in a store of its own."""
    store = ROOT / "build" / "selection-store"
    load = [sys.executable, "-m", "core", "--store", str(store), "demo", "--if-empty"]
    subprocess.run(load, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    view = core.open(store).workspace("docs-search").decide().view
    scores = view.paired
    assert scores is not None
    rows = pl.DataFrame({"run_id": list(scores.run_ids)}).join(
        view.table.select("run_id", "cost", "latency_ms"), on="run_id", how="left", maintain_order="left"
    )
    cost, ms = (rows[name].cast(pl.Float64).to_numpy() for name in ("cost", "latency_ms"))
    return Real("docs-search", np.nan_to_num(scores.values), cost, ms)


def sampled(real: Real, size: int, samples: int = SAMPLES) -> list[Told]:
    """Draw questions of a real workspace with replacement; all of them are the truth."""
    random, true = np.random.default_rng(SEED), real.quality.mean(axis=1)
    count = real.quality.shape[1]
    return [
        trial(real.quality[:, random.integers(0, count, size)], true, real.cost, real.ms)
        for _ in range(samples)
    ]


def summary(name: str, told: list[Told]) -> dict[str, Any]:
    """Average what the trials gave."""
    figures = {
        field: float(np.mean([getattr(each, field) for each in told])) for field in Told.__annotations__
    }
    return {"case": name, "trials": len(told), **figures}


def tables(trials: int = TRIALS, samples: int = SAMPLES) -> list[dict[str, Any]]:
    """Return a row per made-up world, and per real workspace and size."""
    rows = [summary(world.name, simulated(world, trials)) for world in WORLDS]
    for real in reals():
        for size in SIZES:
            rows.append(summary(f"{real.name}, n = {size}", sampled(real, size, samples)))
            print(rows[-1], flush=True)
    return rows


def run() -> list[dict[str, Any]]:
    """Measure all, into build/selection.json; the peer of what is lost is the rule until 0.2."""
    rows = tables()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return [
        {
            "name": f"true quality lost: {row['case']}",
            "value": row["lost"],
            "unit": "",
            "peer": "ties by significance",
            "peer_value": row["old"],
            "ratio": row["old"] / row["lost"] if row["lost"] else None,
        }
        for row in rows
    ]
