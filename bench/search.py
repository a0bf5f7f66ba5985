"""Search of a space of stacks, against asking every stack every query: hypervolume by share of the work.

Two collections: Cranfield (225 queries, RA-nWG@10, grades without the source document), on which the rules of
the race were chosen, and 300 questions of PIAF (French, one passage answers each, nDCG@10), on which nothing
was. Each is a grid of 848 stacks of local parts: BM25 in four settings, wordllama at 64, 128 and 256
dimensions, exact and int8 indexes, four fusions, the word-overlap reranker or none, K of 10, 20, 50 and 100.
All of it is asked once (build/search-*.npz) and then replayed. Latency is the median of a query's stages;
cost is what the same path would be billed: machine time, and for reranked stacks the list price of
rerank-2.5-lite for the tokens of K passages of usual length.

Compared at 20 seeds: our search (TPE with racing, and racing with proposals at random), and plain
multi-objective TPE, NSGA-II and random search, all three asking each stack every query. Hypervolume (moocore)
of the stacks that were asked every query, as a share of the grid's: on quality and the logarithms of latency
and cost between the grid's best and worst values, which no single cheap stack can fill.
Intervals are 95 % bootstraps over the seeds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import moocore
import numpy as np

from core.arrays import Floats
from core.metrics import Measure
from core.paths import ROOT
from core.pipeline.evaluate.budget import Budget, Receipts
from core.pipeline.evaluate.build import Artifacts, Builder, Models
from core.pipeline.search.asking import AskedGrades, Course
from core.pipeline.search.propose import Space, StackTrial, propose
from core.pipeline.search.race import Race, search
from core.pipeline.sweep import parse
from core.pipeline.sweep.fields import Search
from core.pipeline.sweep.read import read_job
from core.records import Stack
from core.stats.means import mean_interval

Steps = list[tuple[int, list[int]]]
COLLECTIONS = ROOT.parent / "shared" / "collections"
SEEDS, TRIALS, PLAIN = 20, 240, 170
SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.5)
SPEC = """
name = "search-grid"
{collection}
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
class Task:
    """A collection with what is asked, and the measure that its grades call for."""

    name: str
    measure: str
    spec: str


TASKS = (
    Task(
        "Cranfield",
        "RA-nWG@10",
        f"""collection = "{COLLECTIONS / "cranfield"}"
golden_set.split = "test_without_source_doc\"""",
    ),
    Task(
        "PIAF",
        "nDCG@10",
        f"""collection = {{path = "{COLLECTIONS / "piaf_fr"}", language = "french"}}
queries.limit = 300""",
    ),
)


@dataclass(frozen=True)
class Grid:
    """All stacks with what every query told of them, [S, Q]."""

    space: Space
    quality: Floats
    ms: Floats
    usd: Floats

    @cached_property
    def points(self) -> Floats:
        """Figures of the stacks on all queries, scaled to 0 (best of the grid) … 1 (worst), [S, 3]."""
        quality = np.nanmean(self.quality, axis=1)
        axes = [-quality, np.log10(np.median(self.ms, axis=1)), np.log10(self.usd.mean(axis=1))]
        return np.column_stack([(axis - axis.min()) / np.ptp(axis) for axis in axes])


@cache
def grid(task: Task) -> Grid:
    """Read the grid of a task, or ask it now (some minutes)."""
    path = ROOT / "build" / f"search-{task.name.lower()}.npz"
    if not path.exists():
        _ask_grid(task, path)
    with np.load(path) as held:
        stacks = [Stack(json.loads(text)) for text in held["specs"]]
        return Grid(Space(stacks), held["quality"], held["ms"], held["usd"])


def _ask_grid(task: Task, path: Path) -> None:
    job, _ = read_job(parse(SPEC.format(collection=task.spec)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        budget = Budget(job.book, None, Receipts(folder / "ledger.sqlite"))
        models = Models(job.models, shared=None, own=None, meter=budget)
        corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
        builder = Builder(Artifacts(folder / "artifacts"), models, corpora)
        grades = AskedGrades(job, Measure.parse(task.measure))
        order = np.arange(job.queries.height)
        course = Course(job, order, grades, builder=builder, models=models, price=lambda _: 0.0)
        parts: list[tuple[Floats, ...]] = []
        for start in range(0, len(job.stacks), 8):
            parts += course.ask(job.stacks[start : start + 8], 0, len(order))
            print(len(parts), flush=True)
    quality, ms, *_ = (np.stack(each) for each in zip(*parts, strict=True))
    hourly = job.book.find("local-cpu", "cpu_hour")
    token = job.book.find("rerank-2.5-lite", "input_tokens")
    tokens = np.mean(next(iter(job.corpora.values())).texts.str.len_chars().to_numpy()) / 4
    reranked = np.array([stack.spec["reranker"] != "none" for stack in job.stacks])
    k = np.array([stack.spec["candidates"] for stack in job.stacks])
    machine = np.median(ms, axis=1) / 3.6e6 * hourly.each  # a mean would price what else the machine did
    usd = np.repeat((machine + reranked * k * tokens * token.each)[:, None], ms.shape[1], axis=1)
    specs = np.array([json.dumps(dict(stack.spec)) for stack in job.stacks])
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, specs=specs, quality=quality, ms=ms, usd=usd)


def volume(points: Floats) -> float:
    """Share of the box up to a tenth beyond the worst values that points dominate."""
    return float(moocore.hypervolume(points, ref=np.full(points.shape[1], 1.1))) if len(points) else 0.0


def raced(grid: Grid, seed: int, trials: int, sampler: str) -> tuple[Steps, Race]:
    """Search with racing; after each step the queries asked in all and the stacks that are through."""
    order = np.random.default_rng(seed).permutation(grid.quality.shape[1])
    race = Race(len(order), Search(seed=seed, trials=trials))
    steps: Steps = []

    def ask(rows: Any, first: int, last: int) -> list[Any]:
        part = order[first:last]
        unjudged = np.full(len(part), np.nan)  # of harm, which nothing limits here
        return [(grid.quality[row, part], grid.ms[row, part], grid.usd[row, part], unjudged) for row in rows]

    def note(_: Any) -> None:
        steps.append((race.asked, [each.row for each in race.whole]))

    def proposing(known: Any, count: int, maximised: Any) -> list[int]:
        return propose(grid.space, known, count, maximised=maximised, sampler=sampler, seed=seed)

    search(grid.space, race, ask, proposing, on_round=note)
    return steps, race


def whole(grid: Grid, seed: int, sampler: str, most: int) -> Steps:
    """Ask each proposed stack every query: random search, or a plain sampler that is told of each ten.

    What has all of the grid's hypervolume stops, as nothing is left to gain.
    """
    points, queries = grid.points, grid.quality.shape[1]
    rows = np.random.default_rng(seed).permutation(len(points))[:most].tolist()
    if sampler != "random":
        del rows[10:]
        while len(rows) < most and volume(points[rows]) < volume(points) - 1e-12:
            known = [StackTrial(row, tuple(map(float, points[row]))) for row in rows]
            rows += propose(grid.space, known, 10, maximised=(False,) * 3, sampler=sampler, seed=seed)
    return [(queries * count, rows[:count]) for count in range(1, len(rows) + 1)]


def at_share(grid: Grid, steps: Steps, share: float) -> float:
    """Hypervolume, as a share of the grid's, reached with a share of its query evaluations."""
    points = grid.points
    done = [rows for asked, rows in steps if asked <= share * grid.quality.size]
    return volume(points[done[-1]]) / volume(points) if done else 0.0


METHODS = {  # sampler, and whether stacks are raced
    "search": ("tpe", True),
    "search, proposals at random": ("random", True),
    "TPE, every query": ("tpe", False),
    "NSGA-II, every query": ("nsga2", False),
    "random, every query": ("random", False),
}


def curve(task: Task, method: str, seed: int) -> list[float]:
    """Hypervolume at each share of the work and at the end, then the share of the work at the end."""
    held, (sampler, races) = grid(task), METHODS[method]
    if races:
        steps, _ = raced(held, seed, TRIALS, sampler)
    else:
        most = int(max(SHARES) * len(held.points)) if sampler == "random" else PLAIN
        steps = whole(held, seed, sampler, most)
    reached = [at_share(held, steps, share) for share in SHARES]
    return [*reached, at_share(held, steps, 1.0), steps[-1][0] / held.quality.size]


def run() -> list[dict[str, Any]]:
    """Print hypervolume by share of the work, method by method, for each collection."""
    for task in TASKS:
        grid(task)  # asked before processes share it
    cases = list(product(TASKS, METHODS, range(SEEDS)))
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("forkserver")) as pool:
        curves = list(pool.map(curve, *zip(*cases, strict=True)))
    found = np.array(curves).reshape(len(TASKS), len(METHODS), SEEDS, -1)
    return [row for task, tables in zip(TASKS, found, strict=True) for row in _rows(task, tables)]


def _rows(task: Task, tables: Floats) -> Iterator[dict[str, Any]]:
    """The means of one collection, [method, seed, share]; the last method is the peer."""
    parts = (*(f"{share:.0%} of the work" for share in SHARES), "at its end", "share of the work at its end")
    for at, part in enumerate(parts):
        peer = float(tables[-1, :, at].mean())
        for method, table in zip(METHODS, tables[:, :, at], strict=True):
            low, high = mean_interval(table, "shares")
            interval = f"[{low[0]:.4f}, {high[0]:.4f}], least {table.min():.4f}"
            value = float(table.mean())
            yield {
                "name": f"{task.name}, {method}: hypervolume, {part} {interval}",
                "value": value,
                "unit": "",
                "peer": [*METHODS][-1],
                "peer_value": peer,
                "ratio": value / peer,
            }


if __name__ == "__main__":
    for row in run():
        print(row["name"], row["value"])
