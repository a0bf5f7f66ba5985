"""Measures recall and speed of an index, at several depths, search efforts and numbers of clients.

Every client is a thread that asks one vector at a time and waits for the answer, over a separate connection
if the engine has connections; latencies are those of single searches, queries per second those of all clients
together. Recall is against the exact neighbours, counted by one client.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, count, product
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from core.arrays import Vectors
from core.errors import InputError
from core.pipeline.environment import threads
from core.pipeline.index import (
    INDEXES,
    DatabaseIndex,
    DatabasePlace,
    DenseIndex,
    ann_recall,
    index_options,
    is_ann,
    is_existing,
    make_index,
    obstacles,
    use_index,
)
from core.pipeline.ranking import Hits
from core.records import JsonMap, canonical_json, short_hash
from core.stats.means import mean_interval
from core.tables import frame

DIAGNOSIS = "indexes"
RECALL, P50, P95, P99, QPS = "recall", "p50_ms", "p95_ms", "p99_ms", "queries_per_second"
BUILD, BYTES = "build_s", "bytes"
PERCENTILES: Mapping[str, float] = {P50: 50.0, P95: 95.0, P99: 99.0}
TAIL: Mapping[str, int] = {P50: 1, P95: 20, P99: 100}
"""Minimum number of searches for each percentile."""
_COLUMNS = ("value", "low", "high", "n")
SEARCHES = 400
"""Minimum number of searches per point, so that the tail means something."""
Index = DenseIndex | DatabaseIndex
_Figure = tuple[float, float | None, float | None, int]
"""A value, its interval if there is one, and the number of queries or searches behind it."""
_Figures = dict[str, _Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchGrid:
    """Depths, search efforts and numbers of clients to measure an index with."""

    ks: Sequence[int] = (10, 100)  # numbers of neighbours
    # search effort: ef of a graph, probes of lists; an index without either has one row
    efforts: Sequence[int] = (16, 64, 256)
    clients: Sequence[int] = (1, 4, 16)  # numbers of concurrent clients
    seconds: float = 1.0  # minimum duration of each measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPoint:
    """One index, measured in one way."""

    index: str  # its kind
    params: JsonMap  # its options other than the defaults, without the search effort
    effort: int | None  # the search effort; None if the index has none
    k: int  # number of neighbours requested
    clients: int  # number of concurrent clients
    figures: Mapping[str, _Figure]  # the measurements

    @property
    def condition(self) -> str:
        """Return, as JSON, what distinguishes it from other points."""
        built = {"index": self.index, "params": dict(self.params), "effort": self.effort}
        return canonical_json({**built, "k": self.k, "clients": self.clients})


def bench(
    kinds: Sequence[tuple[str, JsonMap]],
    vectors: Vectors,
    queries: Vectors,
    *,
    grid: BenchGrid,
    folder: Path,
    metric: str = "cosine",
    ids: Sequence[str] = (),
    doing: Callable[[str], None] = lambda _: None,
) -> Iterator[BenchPoint]:
    """Build every index, and measure it in every way.

    Args:
        kinds: Kinds of index with their options.
        vectors: The indexed vectors.
        queries: The query vectors.
        grid: The ways to measure.
        folder: For files on the disk.
        metric: How vectors are compared.
        ids: The passages of existing tables, in the order of the vectors.
        doing: Told what comes next.

    Yields:
        Points as they are measured.

    Raises:
        ClqError: Before anything is built, if a kind or an option is unknown or cannot be used here, or a
            depth is beyond the vectors.
    """
    deepest = max(grid.ks)
    if deepest > len(vectors):
        beyond = f"K = {deepest} is beyond {len(vectors):,} vectors."
        raise InputError(beyond, where="--k", do="Ask for fewer neighbours.")
    read = [(name, index_options(name, params, dim=vectors.shape[1])) for name, params in kinds]
    for problem in chain.from_iterable(obstacles(name, params) for name, params in kinds):
        raise problem
    exact = make_index("flat", vectors, metric).search_batch(queries, deepest)
    for number, (name, options) in enumerate(read):
        doing(f"build {name}")
        place = DatabasePlace(folder / str(number), f"clq_{short_hash(str(folder))}_{number}", ids)
        params = {key: value for key, value in kinds[number][1].items() if key != effort_of(name, options)}
        if is_existing(name, options):
            index: Index = use_index(name, metric, options, place=place, dim=vectors.shape[1])
        else:
            index = make_index(name, vectors, metric, options, place=place)
        try:
            with ThreadPoolExecutor(max(grid.clients)) as pool:
                yield from _asked(index, queries, exact, params, grid=grid, pool=pool, doing=doing)
        finally:
            if isinstance(index, DatabaseIndex):
                index.drop()


def _asked(
    index: Index,
    queries: Vectors,
    exact: Sequence[Hits],
    params: JsonMap,
    *,
    grid: BenchGrid,
    pool: ThreadPoolExecutor,
    doing: Callable[[str], None],
) -> Iterator[BenchPoint]:
    size, name = index.size_bytes, index.name
    whole: _Figures = {BUILD: (index.build_s, None, None, len(index))} if index.build_s else {}
    whole |= {BYTES: (float(size), None, None, len(index))} if size is not None else {}
    knob = effort_of(name, index.parameters)
    efforts: Sequence[int | None] = grid.efforts if knob else (None,)
    for effort, k in product(efforts, grid.ks):
        asked = index.with_options({knob: effort}) if effort else index
        doing(f"ask {name}, K = {k}" + (f", {knob} {effort}" if knob else ""))
        with threads(1):
            ranked = [asked.search(query, k) for query in queries]
            recall = _mean([ann_recall(hits, wanted, k) for hits, wanted in zip(ranked, exact, strict=True)])
            for clients in grid.clients:
                times = _timed(asked, queries, k, clients, seconds=grid.seconds, pool=pool)
                figures = {RECALL: recall, **times, **whole}
                yield BenchPoint(
                    index=name, params=params, effort=effort, k=k, clients=clients, figures=figures
                )


def effort_of(name: str, options: JsonMap) -> str:
    """Return the option for a more thorough search, or "" if an index has none."""
    if not is_ann(name, options):
        return ""
    if name in INDEXES:
        return INDEXES[name].effort
    by_lists = options.get("method") in ("ivfflat", "ivf_pq")
    own = "probes" if by_lists else "ef_search"
    return own if own in options and options.get("method") != "none" else ""


def refining_of(name: str, options: JsonMap) -> str:
    """Return the option for rescoring results, or "" if an index has none."""
    return "refine" if effort_of(name, options) and "refine" in options else ""


def _mean(recalls: Sequence[float | None]) -> _Figure:
    known = np.array([value for value in recalls if value is not None])
    low, high = mean_interval(known, "shares")
    return float(known.mean()), float(low[0]), float(high[0]), len(known)


def _timed(
    index: Index, queries: Vectors, k: int, clients: int, *, seconds: float, pool: ThreadPoolExecutor
) -> _Figures:
    """Measure with this many concurrent clients, each of them warmed up."""
    searches = max(len(queries), SEARCHES)
    numbers, start = count(), threading.Barrier(clients)

    def ask() -> tuple[float, float, list[float]]:
        times: list[float] = []
        try:
            index.search(queries[0], k)
            start.wait()
        except BaseException:
            start.abort()  # nobody waits for a failed client
            raise
        first = end = perf_counter()
        while (number := next(numbers)) < searches or end - first < seconds:
            begin = perf_counter()
            index.search(queries[number % len(queries)], k)
            end = perf_counter()
            times.append(1000 * (end - begin))
        return first, end, times

    asking = [pool.submit(ask) for _ in range(clients)]
    firsts, ends, by_client = zip(*[future.result() for future in asking], strict=True)
    times, taken = np.concatenate(by_client), max(ends) - min(firsts)
    there = {name: at for name, at in PERCENTILES.items() if len(times) >= TAIL[name]}
    percentiles = {
        name: (float(np.percentile(times, at)), None, None, len(times)) for name, at in there.items()
    }
    return {**percentiles, QPS: (len(times) / taken, None, None, len(times))}


def frame_of(points: Sequence[BenchPoint], *, collection_id: str, source: str, dim: int) -> pl.DataFrame:
    """Return points as rows of the table "diagnostics".

    Args:
        points: The measured points.
        collection_id: The collection they are stored under.
        source: The origin of the vectors: a model, or "random".
        dim: Dimensions of the vectors.
    """
    of_all = {"collection_id": collection_id, "diagnosis": DIAGNOSIS, "embedder": source, "dim": dim}
    rows = [
        {**of_all, "condition": point.condition, "measure": name, **dict(zip(_COLUMNS, figure, strict=True))}
        for point in points
        for name, figure in point.figures.items()
    ]
    return frame("diagnostics", rows)
