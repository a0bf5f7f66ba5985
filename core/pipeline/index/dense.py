"""One vector index: built, searched, saved and opened again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from core.errors import InputError
from core.params import Options, whole
from core.pipeline.index.exact import ExactSearch
from core.pipeline.index.kinds import INDEXES, Kind, Training, index_options
from core.pipeline.index.metric import BLOCK_ROWS, METRICS, blocks, check_metric, row_lengths, unit
from core.pipeline.index.saved import about_folder, new_folder
from core.pipeline.ranking.hits import Hits, top_k_rows
from core.providers.embed import Vectors
from core.records import JsonMap

if TYPE_CHECKING:
    import faiss

_KIND = "vector index"
_FILE = "index.faiss"
_BATCH = 4096
_SEED = 0


class DenseIndex:
    """A vector index; `make_index` builds one and `load_index` opens one.

    Approximate kinds order equal scores by the corpus among what they found; the flat kind also decides a
    tie at the cut so.
    """

    def __init__(
        self, index: faiss.Index, kind: Kind, metric: str, *, options: Options, longest: float, build_s: float
    ) -> None:
        self.name, self.metric, self.build_s = kind.name, metric, build_s
        self.dim: int = index.d
        self._index, self._kind, self._options, self._longest = index, kind, options, longest
        self._of_depth: dict[int, faiss.SearchParameters] = {}
        self._sign = -1 if metric == "l2" else 1
        self._exact = ExactSearch(index, self._sign, longest) if kind.exact else None

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def parameters(self) -> JsonMap:
        """What the index was built and is searched with, for the manifest."""
        return {"metric": self.metric, **self._options}

    @cached_property
    def size_bytes(self) -> int:
        """Size of the index when serialised."""
        import faiss  # noqa: PLC0415 - not needed to plan

        parts: list[int] = []
        counter = faiss.PyCallbackIOWriter(lambda part: parts.append(len(part)))  # type: ignore[attr-defined]
        faiss.write_index(self._index, counter)
        return sum(parts)

    def search(self, vector: Vectors, k: int) -> Hits:
        """The best passages for one query vector."""
        return self._ranked(self._prepared(vector[np.newaxis]), k)[0]

    def search_batch(self, vectors: Vectors, k: int) -> list[Hits]:
        """The best passages for each of many query vectors."""
        parts = (vectors[start : start + _BATCH] for start in range(0, len(vectors), _BATCH))
        return [hits for part in parts for hits in self._ranked(self._prepared(part), k)]

    def save(self, path: Path) -> None:
        """Write the index into a folder."""
        import faiss  # noqa: PLC0415 - not needed to plan

        about = {
            "name": self.name,
            "metric": self.metric,
            "options": self._options,
            "passages": len(self),
            "dim": self.dim,
            "longest": self._longest,
            "build_s": self.build_s,
        }
        with new_folder(path, _KIND, about) as folder:
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

    def _ranked(self, queries: Vectors, k: int) -> list[Hits]:
        if self._exact:
            hits = self._exact.ranked(queries, k)
        else:
            depth = min(k, len(self))
            values, found = self._index.search(queries, depth, params=self._search_parameters(depth))
            hits = top_k_rows(found, values if self._sign > 0 else -values, depth)
        if self.metric != "l2":
            return hits
        # faiss gives squared distances; rounding can take that of equal vectors below zero.
        return [Hits(each.passages, -np.sqrt(np.maximum(-each.scores, 0.0))) for each in hits]

    def _search_parameters(self, depth: int) -> faiss.SearchParameters | None:
        if self._kind.graph and depth not in self._of_depth:
            import faiss  # noqa: PLC0415 - not needed to plan

            # A search cannot return more than it looks at. The stubs of faiss lack this class.
            looked_at = max(whole(self._options, "efSearch"), depth)
            self._of_depth[depth] = faiss.SearchParametersHNSW(efSearch=looked_at)  # type: ignore[attr-defined]
        return self._of_depth.get(depth)


def make_index(
    name: str,
    vectors: Vectors,
    metric: str = "cosine",
    params: JsonMap | None = None,
    *,
    allow_unnormalised: bool = False,
) -> DenseIndex:
    """Build an index of a registered kind.

    The vectors are read, scaled and added in blocks: they may be a memory-mapped file, and beside the index
    little memory is taken. On several threads a graph grows in an order that differs from time to time.
    """
    import faiss  # noqa: PLC0415 - not needed to plan

    check_metric(metric)
    count, dim = vectors.shape
    if not count or not dim:
        raise InputError("There is no vector to index.", where=f"index {name}", do="Give at least one.")
    read = index_options(name, params, dim=dim, passages=count)
    check_metric(metric, vectors, allow_unnormalised=allow_unnormalised, where=f"index {name}")
    started = perf_counter()
    kind = INDEXES[name]
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


def load_index(path: Path, *, mapped: bool = True) -> DenseIndex:
    """Open what `DenseIndex.save` wrote."""
    import faiss  # noqa: PLC0415 - not needed to plan

    about = about_folder(path, _KIND)
    try:
        index = faiss.read_index(str(path / _FILE), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except RuntimeError as error:
        raise _unusable(path) from error
    if (index.ntotal, index.d) != (about["passages"], about["dim"]) or about["metric"] not in METRICS:
        raise _unusable(path)
    options = index_options(about["name"], about["options"], dim=index.d)
    return DenseIndex(
        index,
        INDEXES[about["name"]],
        about["metric"],
        options=options,
        longest=about["longest"],
        build_s=about["build_s"],
    )


def _unusable(path: Path) -> InputError:
    return InputError("The saved vector index cannot be read.", where=str(path), do="Build it again.")


def _reserve(index: faiss.Index, count: int) -> None:
    """Take the memory for all vectors at once: growing would copy them and for a moment hold them twice."""
    import faiss  # noqa: PLC0415 - not needed to plan

    kept = faiss.downcast_index(index.storage) if isinstance(index, faiss.IndexHNSW) else index
    if isinstance(kept, faiss.IndexFlatCodes):
        kept.codes.resize(count * kept.code_size)
        kept.codes.resize(0)


class _Corpus:
    """The vectors to index, scaled to unit length or as they are, read block by block."""

    def __init__(self, vectors: Vectors, *, scale: bool) -> None:
        self._vectors = vectors
        lengths = row_lengths(vectors)
        self._lengths = lengths if scale else None
        self.longest = 1.0 if scale else float(lengths.max())

    def blocks(self) -> Iterator[Vectors]:
        """All of them, in order; a block may be overwritten by the next."""
        if self._lengths is None:
            yield from blocks(self._vectors)
            return
        scaled = np.empty((min(len(self._vectors), BLOCK_ROWS), self._vectors.shape[1]), dtype=np.float32)
        done = 0
        for block in blocks(self._vectors):
            yield unit(block, self._lengths[done : done + len(block)], out=scaled[: len(block)])
            done += len(block)

    def extremes(self) -> Vectors:
        """Smallest and largest value of each dimension [2, dim]: all that 8-bit scaling learns."""
        pairs = np.concatenate([np.stack([b.min(axis=0), b.max(axis=0)]) for b in self.blocks()])
        return np.stack([pairs.min(axis=0), pairs.max(axis=0)])

    def sample(self, size: int) -> Vectors:
        """At most `size` of them, drawn with a fixed seed."""
        count = len(self._vectors)
        rows = np.sort(np.random.default_rng(_SEED).permutation(count)[:size])
        drawn = np.ascontiguousarray(self._vectors[rows], dtype=np.float32)
        return drawn if self._lengths is None else unit(drawn, self._lengths[rows])
