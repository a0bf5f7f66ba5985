"""Search of a space of stacks, against asking every stack every query: hypervolume by share of the work.

The grid: 848 stacks of local parts over Cranfield (225 queries, grades without the source document): BM25 in
four settings, wordllama at 64, 128 and 256 dimensions, exact and int8 indexes, four fusions, the word-overlap
reranker or none, K of 10, 20, 50 and 100. All of it is asked once (build/search-grid.npz) and then replayed.
Latency is the median of a query's stages; cost is what the same path would be billed: machine time, and for
reranked stacks the list price of rerank-2.5-lite for the tokens of K passages of usual length.

Compared at 20 seeds: our search (TPE with racing, and racing with proposals at random), plain multi-objective
TPE and random search, both asking each stack every query. Hypervolume (moocore) of the stacks that were asked
every query, as a share of the grid's: on quality and the logarithms of latency and cost between the grid's
best and worst values, which no single cheap stack can fill. Intervals are 95 % bootstraps over the seeds.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

from core.metrics import Measure
from core.paths import ROOT
from core.pipeline.evaluate.budget import Budget, Receipts
from core.pipeline.evaluate.build import Artifacts, Builder
from core.pipeline.evaluate.models import Models
from core.pipeline.search.asking import Course, Grades
from core.pipeline.search.propose import Told, propose
from core.pipeline.search.race import Race, Rules
from core.pipeline.search.run import Plan, search
from core.pipeline.search.space import Space
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.records import Stack
from core.stats.intervals import bootstrap_means

Floats = NDArray[np.float64]
Steps = list[tuple[int, list[int]]]
GRID = ROOT / "build" / "search-grid.npz"
CRANFIELD = ROOT.parent / "shared" / "collections" / "cranfield"
SEEDS, TRIALS, PLAIN = 20, 240, 170
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
SPEC = """
name = "search-grid"
collection = "{collection}"
golden_set.split = "test_without_source_doc"
axes.embedder = "wordllama"
axes.dim = [64, 128, 256]
axes.index = ["flat", "int8"]
axes.bm25 = [{{k1 = 1.2, b = 0.75}}, {{k1 = 0.9, b = 0.4}}, {{k1 = 1.5, b = 0.75}}, {{k1 = 2.0, b = 0.9}}]
axes.fusion = [{{method = "rrf", constant = 60}}, {{method = "rrf", constant = 10}},
  {{method = "convex", alpha = 0.3}}, {{method = "convex", alpha = 0.6}}]
axes.reranker = ["none", "fake"]
axes.candidates = [10, 20, 50, 100]
latency.repeats = 1
"""


@dataclass(frozen=True)
class Grid:
    """All stacks with what every query told of them, [S, Q]."""

    space: Space
    quality: Floats
    ms: Floats
    usd: Floats

    @property
    def points(self) -> Floats:
        """Figures of the stacks on all queries, scaled to 0 (best of the grid) … 1 (worst), [S, 3]."""
        quality = np.nanmean(self.quality, axis=1)
        axes = [-quality, np.log10(np.median(self.ms, axis=1)), np.log10(self.usd.mean(axis=1))]
        return np.column_stack([(axis - axis.min()) / np.ptp(axis) for axis in axes])


def grid() -> Grid:
    """Read the grid, or ask it now (a few minutes)."""
    if not GRID.exists():
        _ask_grid()
    with np.load(GRID) as held:
        stacks = [Stack(json.loads(text)) for text in held["specs"]]
        return Grid(Space(stacks), held["quality"], held["ms"], held["usd"])


def _ask_grid() -> None:
    job, _ = read_job(parse(SPEC.format(collection=CRANFIELD)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        budget = Budget(job.book, None, Receipts(folder / "ledger.sqlite"))
        models = Models(job.models, shared=None, own=None, meter=budget)
        corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
        builder = Builder(Artifacts(folder / "artifacts"), models, corpora)
        grades = Grades(job, Measure.parse("RA-nWG@10"))
        order = np.arange(job.queries.height)
        course = Course(job, order, grades, builder=builder, models=models, price=lambda _: 0.0)
        parts: list[tuple[Floats, Floats, Floats]] = []
        for start in range(0, len(job.stacks), 8):
            parts += course.ask(job.stacks[start : start + 8], 0, len(order))
            print(len(parts), flush=True)
    quality, ms, _ = (np.stack(each) for each in zip(*parts, strict=True))
    hourly = job.book.find("local-cpu", "cpu_hour")
    token = job.book.find("rerank-2.5-lite", "input_tokens")
    tokens = np.mean(next(iter(job.corpora.values())).texts.str.len_chars().to_numpy()) / 4
    reranked = np.array([stack.spec["reranker"] != "none" for stack in job.stacks])
    k = np.array([stack.spec["candidates"] for stack in job.stacks])
    machine = np.median(ms, axis=1) / 3.6e6 * hourly.each  # a mean would price what else the machine did
    usd = np.repeat((machine + reranked * k * tokens * token.each)[:, None], ms.shape[1], axis=1)
    specs = np.array([json.dumps(dict(stack.spec)) for stack in job.stacks])
    GRID.parent.mkdir(exist_ok=True)
    np.savez_compressed(GRID, specs=specs, quality=quality, ms=ms, usd=usd)


def volume(points: Floats) -> float:
    """Share of the box up to a tenth beyond the worst values that points dominate."""
    return float(moocore.hypervolume(points, ref=np.full(points.shape[1], 1.1))) if len(points) else 0.0


def raced(grid: Grid, seed: int, rules: Rules, trials: int, sampler: str) -> tuple[Steps, Race]:
    """Search with racing; after each step the queries asked in all and the stacks that are through."""
    order = np.random.default_rng(seed).permutation(grid.quality.shape[1])
    race = Race(len(order), rules)
    steps: Steps = []

    def ask(rows: Any, first: int, last: int) -> list[Any]:
        part = order[first:last]
        return [(grid.quality[row, part], grid.ms[row, part], grid.usd[row, part]) for row in rows]

    def told(_: Any) -> None:
        steps.append((race.asked, [each.row for each in race.whole]))

    def proposing(known: Any, count: int, maximised: Any) -> list[int]:
        return propose(grid.space, known, count, maximised=maximised, sampler=sampler, seed=seed)

    search(grid.space, race, ask, Plan(seed=seed, propose=proposing, trials=trials), told=told)
    return steps, race


def whole(grid: Grid, seed: int, sampler: str, most: int) -> Steps:
    """Ask each proposed stack every query: random search, or plain TPE that is told of each ten."""
    points, queries = grid.points, grid.quality.shape[1]
    if sampler == "random":
        rows = np.random.default_rng(seed).permutation(len(points))[:most].tolist()
    else:
        rows = np.random.default_rng(seed).permutation(len(points))[:10].tolist()
        while len(rows) < most:
            known = [Told(row, tuple(map(float, points[row]))) for row in rows]
            rows += propose(grid.space, known, 10, maximised=(False,) * 3, seed=seed)
    return [(queries * count, rows[:count]) for count in range(1, most + 1)]


def at_share(grid: Grid, steps: Steps, share: float) -> float:
    """Hypervolume, as a share of the grid's, reached with a share of its query evaluations."""
    points = grid.points
    done = [rows for asked, rows in steps if asked <= share * grid.quality.size]
    return volume(points[done[-1]]) / volume(points) if done else 0.0


METHODS = ("search", "search, proposals at random", "TPE, every query", "random, every query")


def curve(grid: Grid, method: str, seed: int) -> list[float]:
    """Hypervolume at each share of the work and at the end, then the share of the work at the end."""
    if method.startswith("search"):
        sampler = "random" if "random" in method else "tpe"
        steps, _ = raced(grid, seed, Rules(), TRIALS, sampler)
    else:
        most = int(max(SHARES) * len(grid.points)) if method.startswith("random") else PLAIN
        steps = whole(grid, seed, method.partition(",")[0].lower(), most)
    reached = [at_share(grid, steps, share) for share in SHARES]
    return [*reached, at_share(grid, steps, 1.0), steps[-1][0] / grid.quality.size]


def run() -> list[dict[str, Any]]:
    """Print hypervolume by share of the work, method by method."""
    held = grid()
    rows = []
    names = (*(f"{share:.0%} of the work" for share in SHARES), "at its end", "share of the work at its end")
    tables = {method: np.array([curve(held, method, seed) for seed in range(SEEDS)]) for method in METHODS}
    for at, name in enumerate(names):
        peer = float(tables[METHODS[-1]][:, at].mean())
        for method, table in tables.items():
            low, high = bootstrap_means(table[:, at])
            mean, least = float(table[:, at].mean()), float(table[:, at].min())
            rows.append(
                {
                    "name": f"{method}: hypervolume, {name} [{low[0]:.4f}, {high[0]:.4f}], least {least:.4f}",
                    "value": mean,
                    "unit": "",
                    "peer": METHODS[-1],
                    "peer_value": peer,
                    "ratio": mean / peer,
                }
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row["name"], row["value"])
