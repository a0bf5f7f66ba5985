"""One vector index: built, searched, saved and opened again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Ints, Vectors
from core.errors import InputError
from core.extras import later
from core.params import ParamOptions, whole
from core.pipeline.index.kinds import (
    BLOCK_ROWS,
    FILTERED,
    INDEXES,
    METRICS,
    SAME,
    IndexKind,
    Training,
    blocks,
    check_metric,
    no_selection,
    row_lengths,
    unit,
)
from core.pipeline.index.saved import new_folder
from core.pipeline.index.scope import IndexScope
from core.pipeline.ranking import Hits, top_k, top_k_rows
from core.records import JsonMap

if TYPE_CHECKING:
    import faiss
else:  # not needed for stored results
    faiss = later("faiss")

NOTHING = Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
_SPARE = 8
_ROUNDING = 2.0**-22
"""Rounding error of a float32 sum of products, per square root of its terms and relative to their size."""
KIND = "vector index"
_FILE = "index.faiss"
_BATCH = 4096
_SEED = 0


class ExactSearch:
    """Searches a flat index."""

    def __init__(self, index: faiss.Index, sign: int, longest: float) -> None:
        self._index, self._sign, self._longest = index, sign, longest

    def ranked(self, queries: Vectors, k: int) -> list[Hits]:
        """Return the best k passages of each query [q, dim], scored with faiss's values times the sign."""
        depth = min(k + _SPARE, self._index.ntotal)
        proposed, positions = self._index.search(queries, depth)
        hits = top_k_rows(positions, self._sign * self._values(queries, positions), k)
        if depth == self._index.ntotal:
            return hits
        slack = self._slack(queries)
        last_kept = np.array([hit.scores[-1] for hit in hits])
        for row in np.flatnonzero(last_kept - self._sign * proposed[:, -1] <= 2 * slack):
            hits[row] = self._reaching(queries[row : row + 1], last_kept[row] - 2 * slack[row], k)
        return hits

    def among(self, queries: Vectors, k: int, scope: IndexScope) -> list[Hits]:
        """Return the best k of the allowed passages, each of which is compared."""
        positions = scope.positions[np.newaxis]
        values = (self._values(query[np.newaxis], positions)[0] for query in queries)
        return [top_k(positions[0], self._sign * scored, k) for scored in values]

    def _reaching(self, query: Vectors, score: float, k: int) -> Hits:
        """Return the best k of all passages with at least this score."""
        radius = np.nextafter(np.float32(score), -np.inf, dtype=np.float32)  # which faiss excludes
        _, _, positions = self._index.range_search(query, float(self._sign * radius))
        positions = np.sort(positions)[np.newaxis]
        return top_k(positions[0], self._sign * self._values(query, positions)[0], k)

    def _values(self, queries: Vectors, positions: Ints) -> NDArray[np.float32]:
        """Return the values of faiss for pairs: queries [q, dim] and positions [q, n] to values [q, n]."""
        values = np.empty(positions.shape, dtype=np.float32)
        pointers = [faiss.swig_ptr(array) for array in (queries, values, positions)]
        compute = self._index.compute_distance_subset  # type: ignore[attr-defined]  # only flat kinds have it
        compute(len(queries), pointers[0], positions.shape[1], *pointers[1:])
        return values

    def _slack(self, queries: Vectors) -> Floats:
        """Return the largest possible error of a value, per query."""
        lengths = row_lengths(queries).astype(np.float64)
        size = lengths * self._longest if self._sign > 0 else (lengths + self._longest) ** 2
        slack: Floats = _ROUNDING * np.sqrt(queries.shape[1]) * size
        return slack


def ann_recall(hits: Hits, exact_hits: Hits, k: int) -> float | None:
    """Return the recall@K of an approximate search against the exact one.

    Passages count by identity: of two with equal scores only the one that the exact search ranks is a match,
    since compressed codes do not show whether scores are equal.
    """
    wanted = exact_hits.passages[:k]
    if not len(wanted):
        return None
    return float(np.isin(wanted, hits.passages[:k]).mean())


class DenseIndex:
    """A vector index; `make_index` builds one and `load_index` opens one.

    Approximate kinds order the equal scores they found by corpus position; the flat kind also decides ties at
    the cut in this way.
    """

    def __init__(
        self,
        index: faiss.Index,
        kind: IndexKind,
        metric: str,
        *,
        options: ParamOptions,
        longest: float,
        build_s: float,
    ) -> None:
        self.name, self.metric, self.build_s = kind.name, metric, build_s
        self.dim: int = index.d
        self._index, self._kind, self._options, self._longest = index, kind, options, longest
        self._of_depth: dict[int, faiss.SearchParameters] = {}
        self.selects = kind.selects  # whether it can search among some of its passages only
        self._sign = -1 if metric == "l2" else 1
        self._exact = ExactSearch(index, self._sign, longest) if kind.exact else None

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def parameters(self) -> JsonMap:
        """Return the options for building and searching the index, for the manifest."""
        return {"metric": self.metric, **self._options}

    @cached_property
    def size_bytes(self) -> int:
        """Size of the serialised index."""
        parts: list[int] = []
        counter = faiss.PyCallbackIOWriter(lambda part: parts.append(len(part)))  # type: ignore[attr-defined]
        faiss.write_index(self._index, counter)
        return sum(parts)

    def with_options(self, options: JsonMap) -> DenseIndex:
        """Return the same index with other search options."""
        return DenseIndex(
            self._index,
            self._kind,
            self.metric,
            options=self._kind.read({**self._options, **options}),
            longest=self._longest,
            build_s=self.build_s,
        )

    def search(self, vector: Vectors, k: int, scope: IndexScope | None = None) -> Hits:
        """Return the best passages for one query vector, of those that its asker may see."""
        return self._ranked(self._prepared(vector[np.newaxis]), k, scope)[0]

    def search_batch(self, vectors: Vectors, k: int) -> list[Hits]:
        """Return the best passages for each of many query vectors."""
        parts = (vectors[start : start + _BATCH] for start in range(0, len(vectors), _BATCH))
        return [hits for part in parts for hits in self._ranked(self._prepared(part), k)]

    def save(self, path: Path) -> None:
        """Write the index into a folder."""
        about = {
            "name": self.name,
            "metric": self.metric,
            "options": self._options,
            "passages": len(self),
            "dim": self.dim,
            "longest": self._longest,
            "build_s": self.build_s,
        }
        with new_folder(path, KIND, about) as folder:
            faiss.write_index(self._index, str(folder / _FILE))

    def _prepared(self, vectors: Vectors) -> Vectors:
        queries = np.ascontiguousarray(vectors, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InputError(
                f"A query vector has {queries.shape[-1]} dimensions, the index {self.dim}.",
                where=f"index {self.name}",
                do="Embed queries with the model and dimension of the passages.",
            )
        lengths = row_lengths(queries, what="query vectors")
        return unit(queries, lengths) if self.metric == "cosine" else queries

    def _ranked(self, queries: Vectors, k: int, scope: IndexScope | None = None) -> list[Hits]:
        depth = min(k, len(self) if scope is None else len(scope.positions))
        if not depth:
            return [NOTHING] * len(queries)
        if self._exact:
            exact = self._exact
            hits = exact.ranked(queries, k) if scope is None else exact.among(queries, k, scope)
        else:
            index, told = self._index, self._search_parameters(depth)
            if scope is not None:
                index, told = self._selecting(depth, scope)
            values, positions = index.search(queries, depth, params=told)
            hits = top_k_rows(positions, values if self._sign > 0 else -values, depth)
        if self.metric != "l2":
            return hits
        # faiss gives squared distances; rounding can make the distance of equal vectors negative.
        return [Hits(hit.passages, -np.sqrt(np.maximum(-hit.scores, 0.0))) for hit in hits]

    def _search_parameters(self, depth: int) -> faiss.SearchParameters | None:
        if self._kind.effort and depth not in self._of_depth:
            self._of_depth[depth] = self._told(depth)
        return self._of_depth.get(depth)

    def _selecting(self, depth: int, scope: IndexScope) -> tuple[faiss.Index, faiss.SearchParameters]:
        """Return what to search, and how, among the allowed passages only.

        Of what is looked at, a filter leaves its share. So that as much is found as without one, efSearch and
        nprobe grow by the inverse of that share; and where a walk would compare more vectors (about M for
        each that it looks at) than are allowed, the allowed ones are compared, one by one.
        """
        if not self.selects:
            raise no_selection(self.name)
        told, allowed = self._options, len(scope.positions)
        if not self._kind.effort or told[FILTERED.name] == SAME:
            return self._index, self._told(depth, sel=scope.selector)
        looked_at = ceil(whole(told, self._kind.effort) * len(self) / allowed)
        if self._kind.effort == "efSearch" and allowed <= looked_at * whole(told, "M"):
            return self._vectors, faiss.SearchParameters(sel=scope.selector)  # type: ignore[call-arg]  # a wrong stub
        return self._index, self._told(depth, looked_at, sel=scope.selector)

    @cached_property
    def _vectors(self) -> faiss.Index:
        """The vectors of a graph, which can be searched without walking it."""
        vectors: faiss.Index = faiss.downcast_index(self._index.storage)  # type: ignore[attr-defined]
        return vectors

    def _told(
        self, depth: int, looked_at: int | None = None, **more: faiss.IDSelector
    ) -> faiss.SearchParameters:
        effort = self._kind.effort
        if not effort:
            return faiss.SearchParameters(**more)
        looked_at = looked_at or whole(self._options, effort)
        if effort == "nprobe":
            return faiss.SearchParametersIVF(nprobe=looked_at, **more)  # type: ignore[call-arg]  # a wrong stub
        # A walk cannot return more than it visits; the stubs lack its class.
        walk = faiss.SearchParametersHNSW(efSearch=max(looked_at, depth), **more)  # type: ignore[attr-defined]
        told: faiss.SearchParameters = walk
        return told


def make_index(
    name: str,
    vectors: Vectors,
    metric: str = "cosine",
    params: JsonMap | None = None,
    *,
    allow_unnormalised: bool = False,
) -> DenseIndex:
    """Build an index of a registered kind.

    The vectors are read, scaled and added in blocks: they may be a memory-mapped file, and little memory is
    used besides the index. On several threads the order in which a graph grows varies.
    """
    check_metric(metric)
    count, dim = vectors.shape
    if not count or not dim:
        raise InputError("There is no vector to index.", where=f"index {name}", do="Give at least one.")
    kind = INDEXES[name]
    read = kind.read(params, dim=dim, passages=count)
    check_metric(metric, vectors, allow_unnormalised=allow_unnormalised, where=f"index {name}")
    started = perf_counter()
    corpus = _Corpus(vectors, scale=metric == "cosine")
    index = kind.make(dim, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT, read)
    if kind.training is Training.RANGE:
        index.train(corpus.extremes())
    elif kind.training is Training.SAMPLE:
        index.train(corpus.sample(whole(read, "train")))
    _reserve(index, count)
    for block in corpus.blocks():
        index.add(block)
    seconds = perf_counter() - started
    return DenseIndex(index, kind, metric, options=read, longest=corpus.longest, build_s=seconds)


def load_index(path: Path, about: JsonMap) -> DenseIndex:
    """Open an index written by `DenseIndex.save`, given its metadata."""
    try:
        index = faiss.read_index(str(path / _FILE), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise _unusable(path) from error
    if (index.ntotal, index.d) != (about["passages"], about["dim"]) or about["metric"] not in METRICS:
        raise _unusable(path)
    kind, built = INDEXES[about["name"]], {key: about[key] for key in ("longest", "build_s")}
    options = kind.read(about["options"], dim=index.d)
    return DenseIndex(index, kind, about["metric"], options=options, **built)


def _unusable(path: Path) -> InputError:
    return InputError("The saved vector index cannot be read.", where=str(path), do="Build it again.")


def _reserve(index: faiss.Index, count: int) -> None:
    """Reserve memory for all vectors at once, as growing would copy them and briefly hold them twice."""
    kept = faiss.downcast_index(index.storage) if isinstance(index, faiss.IndexHNSW) else index
    if isinstance(kept, faiss.IndexFlatCodes):
        kept.codes.resize(count * kept.code_size)
        kept.codes.resize(0)


class _Corpus:
    """The vectors to index, scaled to unit length or unchanged, read block by block."""

    def __init__(self, vectors: Vectors, *, scale: bool) -> None:
        self._vectors = vectors
        lengths = row_lengths(vectors)
        self._lengths = lengths if scale else None
        self.longest = 1.0 if scale else float(lengths.max())

    def blocks(self) -> Iterator[Vectors]:
        """Yield all vectors, in order; a block may be overwritten by the next."""
        if self._lengths is None:
            yield from blocks(self._vectors)
            return
        scaled = np.empty((min(len(self._vectors), BLOCK_ROWS), self._vectors.shape[1]), dtype=np.float32)
        done = 0
        for block in blocks(self._vectors):
            yield unit(block, self._lengths[done : done + len(block)], out=scaled[: len(block)])
            done += len(block)

    def extremes(self) -> Vectors:
        """Return the minimum and maximum of each dimension [2, dim], all that 8-bit scaling learns."""
        pairs = np.concatenate([np.stack([b.min(axis=0), b.max(axis=0)]) for b in self.blocks()])
        return np.stack([pairs.min(axis=0), pairs.max(axis=0)])

    def sample(self, size: int) -> Vectors:
        """Return at most `size` vectors, drawn with a fixed seed."""
        count = len(self._vectors)
        rows = np.sort(np.random.default_rng(_SEED).permutation(count)[:size])
        drawn = np.ascontiguousarray(self._vectors[rows], dtype=np.float32)
        return drawn if self._lengths is None else unit(drawn, self._lengths[rows])
