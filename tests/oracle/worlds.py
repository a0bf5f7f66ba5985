"""Made-up worlds for the decision: stacks with their results as files, and what is asked of them."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.oracle.rule import Question

MEASURES = {  # better the higher, 0 or 1 per query
    "nDCG@10": (True, False),
    "Success@10": (True, True),
    "Harm@10": (False, False),
    "RR@10": (True, False),
    "R@10": (True, False),
}
LEFT = ("all", "all", "all", "some", "some", "some", "one", "none")  # feasible stacks that a limit leaves
BANDS = (0.0, 5.0, 30.0, 75.0, 300.0)
UNKNOWN = ("none", "none", "some", "all")


@dataclass(frozen=True)
class World:
    """A table to import and a question on it."""

    name: str
    measure: str
    asked: Question
    whole: bool = True  # whether a missing score leaves an empty cell; else the row is not there

    def write(self, folder: Path) -> Path:
        """Write the table: a row per stack and query, or per stack where only averages are known."""
        path = folder / f"{self.name}.csv"
        path.write_text("\n".join([self._header, *self._rows()]) + "\n", encoding="utf-8")
        return path

    @property
    def words(self) -> list[str]:
        """What is asked, as options of the command."""
        asked = self.asked
        options = {
            "--measure": self.measure,
            "--rule": asked.rule,
            "--jitter-ms": asked.band,
            "--sla-ms": asked.sla,
            "--budget": asked.budget,
            "--min-quality": asked.floor,
            "--indifference": asked.delta,
        }
        return [word for key, value in options.items() if value is not None for word in (key, str(value))]

    @property
    def _known(self) -> dict[str, np.ndarray]:
        columns = {"latency_ms": self.asked.latency, "usd_per_1k": self.asked.cost}
        return {name: values for name, values in columns.items() if not np.isnan(values).all()}

    @property
    def _header(self) -> str:
        query = [] if self.asked.averages else ["query_id"]
        return ",".join(["stack", *query, self.measure, *self._known])

    def _rows(self) -> list[str]:
        asked, known = self.asked, self._known.values()
        if asked.averages:
            columns = [asked.quality, *known]
            return [",".join([name, *(_cell(c[s]) for c in columns)]) for s, name in enumerate(asked.names)]
        columns = [_square(values, asked.n) for values in (asked.quality, *known)]
        return [
            ",".join([name, f"q{q:03d}", *(_cell(c[s, q]) for c in columns)])
            for s, name in enumerate(asked.names)
            for q in range(asked.n)
            if self.whole or not np.isnan(asked.quality[s, q])
        ]


def _square(values: np.ndarray, n: int) -> np.ndarray:
    return values if values.ndim == 2 else np.repeat(values[:, None], n, axis=1)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else repr(float(value))


def world(seed: int) -> World:
    """Make a world: every fifth of averages, else of results per query, every twentieth of few queries."""
    random = np.random.default_rng([2026, seed])
    measure = str(random.choice(list(MEASURES)))
    higher, binary = MEASURES[measure]
    stacks, queries = int(random.integers(2, 23)), int(random.integers(15, 121))
    if seed % 20 == 0:
        queries = int(random.integers(5, 11))
    quality = _quality(random, stacks, queries, measure)
    if seed % 5 == 4:
        quality = quality.mean(axis=1).round(int(random.choice([2, 2, 3, 4])))
    asked = Question(
        names=tuple(f"stack {place:02d}" for place in random.permutation(stacks)),
        quality=quality,
        latency=_latency(random, stacks, None if quality.ndim == 1 else queries),
        cost=_cost(random, stacks),
        rule=str(random.choice(["quality", "quality", "quality", "cost", "latency"])),
        band=float(random.choice(BANDS)),
        higher=higher,
        binary=binary,
        delta=float(random.choice([0.0, 0.005, 0.03, 0.1])) if random.random() < 0.25 else None,
    )
    asked = _limited(random, _answerable(asked))
    whole = seed % 2 == 0
    if not asked.averages and seed % 3 == 0:
        asked = _missing(np.random.default_rng([2027, seed]), asked, whole=whole)
    return World(f"world-{seed:03d}", measure, asked, whole)


def _missing(random: np.random.Generator, asked: Question, *, whole: bool) -> Question:
    """Take scores away: of some stacks a few, of some many, of some queries of most; never all of one."""
    stacks, n = asked.quality.shape
    share = random.choice([0.0, 0.02, 0.08, 0.1, 0.3], stacks, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    gone = random.random((stacks, n)) < share[:, None]
    gone[:, random.random(n) < random.choice([0.0, 0.05])] = True
    gone[0, 0], gone[np.arange(stacks), random.integers(0, n, stacks)] = True, False
    latency = asked.latency
    if not whole and latency.ndim == 2:
        latency = np.where(gone, np.nan, latency)
    return replace(asked, quality=np.where(gone, np.nan, asked.quality), latency=latency)


def _quality(random: np.random.Generator, stacks: int, queries: int, measure: str) -> np.ndarray:
    """Stacks of a common difficulty; some are a good one with few queries changed, some are clones."""
    true = random.normal(random.uniform(0.3, 0.7), random.choice([0.0, 0.03, 0.06, 0.15]), stacks)
    hard = random.normal(0, random.uniform(0, 0.25), queries)
    values = true[:, None] + hard + random.normal(0, random.uniform(0.03, 0.3), (stacks, queries))
    good = np.argsort(-values.mean(axis=1))[: int(random.integers(1, 4))]
    for place in np.flatnonzero(random.random(stacks) < random.choice([0.0, 0.5, 0.9])):
        values[place] = values[random.choice(good)]
        changed = random.random(queries) < random.choice([0.0, 0.02, 0.1])
        values[place, changed] += random.normal(0, 0.07, changed.sum())
    return _as_measured(values, random, measure)


def _as_measured(values: np.ndarray, random: np.random.Generator, measure: str) -> np.ndarray:
    if measure == "Success@10":
        return (values > random.uniform(0.3, 0.6)).astype(float)
    if measure == "RR@10":
        return (1 / np.clip(np.round(1 / np.clip(values, 0.09, 1)), 1, 10)).round(4)
    if measure == "Harm@10":
        return (1 - np.clip(values, 0, 1)).round(1)
    return np.clip(values, 0, 1).round(4)


def _latency(random: np.random.Generator, stacks: int, queries: int | None) -> np.ndarray:
    """Per query, or one number a stack; unknown of none, some or all."""
    typical = random.uniform(5, random.choice([30, 200, 800]), stacks)
    if queries is None or random.random() < 0.25:
        made = typical
    else:
        made = typical[:, None] * random.lognormal(0, random.uniform(0.02, 0.5), (stacks, queries))
    made = made.round(2)
    made[_unknown(random, stacks)] = np.nan
    return made


def _cost(random: np.random.Generator, stacks: int) -> np.ndarray:
    """Some equal, some within 1 % of another; unknown of none, some or all."""
    cost = random.lognormal(0, 1, stacks).round(3) + 0.001
    for place in np.flatnonzero(random.random(stacks) < random.choice([0.0, 0.5])):
        cost[place] = cost[random.integers(stacks)] * random.choice([1.0, 1.005, 1.015])
    cost = cost.round(5)
    cost[_unknown(random, stacks)] = np.nan
    return cost


def _unknown(random: np.random.Generator, stacks: int) -> np.ndarray:
    which = random.choice(UNKNOWN)
    return random.random(stacks) < {"none": 0.0, "some": 0.3, "all": 1.0}[str(which)]


def _answerable(asked: Question) -> Question:
    """Ask for no axis on which nothing is known: that is an error, not an answer."""
    axis = {"cost": asked.cost, "latency": asked.latency}.get(asked.rule)
    return replace(asked, rule="quality") if axis is not None and np.isnan(axis).all() else asked


def _limited(random: np.random.Generator, asked: Question) -> Question:
    """Set limits, each halfway between two stacks, so that no comparison lies on its border."""
    limits = {}
    for name, values, often in (("sla", asked.p50, 0.5), ("budget", asked.cost, 0.3)):
        if random.random() < often and not np.isnan(values).all():
            limits[name] = _limit(random, values)
    if random.random() < 0.3:
        limits["floor"] = min(max(asked.sign * -_limit(random, -asked.merit), 0.0), 1.0)
    return replace(asked, **limits)


def _limit(random: np.random.Generator, values: np.ndarray) -> float:
    """Return a highest value that leaves all, some, one or none."""
    steps = np.unique(values[~np.isnan(values)])
    place = {"all": len(steps), "one": 1, "none": 0}.get(str(random.choice(LEFT)))
    place = int(random.integers(1, len(steps) + 1)) if place is None else place
    edges = [steps[0] - 0.01 * abs(steps[0]), *steps, steps[-1] + 0.01 * abs(steps[-1])]
    return float((edges[place] + edges[place + 1]) / 2)
