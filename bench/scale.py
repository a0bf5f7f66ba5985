"""A large corpus of vectors: how fast it is indexed and searched, in how much memory, against faiss itself.

``python -m bench scale --passages 100000`` for fewer than a million.

Vectors are clustered and of unit length, 256 dimensions, drawn with a seed block by block into a file that
the indexes read memory-mapped. Every index is built in a process of its own; its peak of memory contains the
pages of that file. The peer is faiss called directly: one `add` of the same vectors, scaled by faiss. An HNSW
graph of a million vectors takes minutes, so the peer builds one over a tenth of them, and so is the
comparison. Searches are compared on the same faiss index and take turns, three times; the median counts.
Queries one by one are searched on one thread, as the product measures latencies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from bench.children import Case, Found, in_a_process, memory, peak_gib, row, timed, turns

PASSAGES, DIM, QUERIES, DEPTH = 1_000_000, 256, 200, 100
ALONE = {"flat": 5, "int8": 5, "hnsw-f32": 200}
CLUSTERS = 2_000
HNSW = {"M": 16, "efConstruction": 64, "efSearch": 128}
BLOCK = 50_000


def synthesise(folder: Path, passages: int) -> Found:
    """Draw passages and queries around the same centres."""
    centres = np.random.default_rng(1).standard_normal((CLUSTERS, DIM)).astype(np.float32)
    file = open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(passages, DIM))
    for start in range(0, passages, BLOCK):
        count = min(BLOCK, passages - start)
        file[start : start + count] = _drawn(centres, count, seed=start + 2)
    file.flush()
    np.save(folder / "queries.npy", _drawn(centres, QUERIES, seed=1))
    return {}


def _drawn(centres: np.ndarray, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors = centres[rng.integers(0, CLUSTERS, count)]
    vectors += rng.standard_normal(vectors.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def here(kind: str, folder: Path, passages: int) -> Found:
    """Build and search an index of the product, and search the same faiss index directly."""
    import faiss

    from core.pipeline.index import make_index

    vectors = np.load(folder / "vectors.npy", mmap_mode="r")[:passages]
    queries = np.load(folder / "queries.npy")
    build_s, index = timed(lambda: make_index(kind, vectors, params=HNSW if kind == "hnsw-f32" else None))
    hits = index.search_batch(queries, DEPTH)
    peak, alone = peak_gib(), queries[: ALONE[kind]]
    engine, params = index._index, index._search_parameters(DEPTH)
    seconds = turns(
        {
            "batch": lambda: index.search_batch(queries, DEPTH),
            "peer_batch": lambda: engine.search(queries, DEPTH, params=params),
        }
    )
    faiss.omp_set_num_threads(1)
    seconds |= turns(
        {
            "alone": lambda: [index.search(query, DEPTH) for query in alone],
            "peer_alone": lambda: [engine.search(q[np.newaxis], DEPTH, params=params) for q in alone],
        }
    )
    return {"build_s": build_s, "peak": peak, **seconds, **_recalls(folder, kind, hits)}


def _recalls(folder: Path, kind: str, hits: list[Any]) -> Found:
    from core.pipeline.index import ann_recall
    from core.pipeline.ranking import Hits

    if kind == "flat":
        np.save(folder / "exact.npy", np.array([each.passages for each in hits]))
        return {}
    pairs = [
        (found, Hits(passages, passages.astype(np.float64)))
        for found, passages in zip(hits, np.load(folder / "exact.npy"), strict=True)
    ]
    return {f"recall_{k}": float(np.mean([ann_recall(*pair, k) for pair in pairs])) for k in (10, DEPTH)}


def build_here(kind: str, folder: Path, passages: int) -> Found:
    """Build an index of the product over a tenth."""
    from core.pipeline.index import make_index

    vectors = np.load(folder / "vectors.npy", mmap_mode="r")[: passages // 10]
    return {"build_s": timed(lambda: make_index(kind, vectors, params=HNSW))[0]}


def build_peer(kind: str, folder: Path, passages: int) -> Found:
    """Build the same with faiss alone."""
    import faiss

    def build() -> None:
        vectors = np.array(mapped)
        faiss.normalize_L2(vectors)
        if kind == "hnsw-f32":
            index = faiss.IndexHNSWFlat(DIM, HNSW["M"], faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = HNSW["efConstruction"]
        elif kind == "int8":
            bits = faiss.ScalarQuantizer.QT_8bit
            index = faiss.IndexScalarQuantizer(DIM, bits, faiss.METRIC_INNER_PRODUCT)
            index.train(vectors)
        else:
            index = faiss.IndexFlatIP(DIM)
        index.add(vectors)

    mapped = np.load(folder / "vectors.npy", mmap_mode="r")
    mapped = mapped[: passages // 10] if kind == "hnsw-f32" else mapped[:passages]
    return {"build_s": timed(build)[0], "peak": peak_gib()}


CASES: dict[str, Case] = {
    "vectors": synthesise,
    "flat": partial(here, "flat"),
    "flat peer": partial(build_peer, "flat"),
    "int8": partial(here, "int8"),
    "int8 peer": partial(build_peer, "int8"),
    "hnsw-f32 tenth": partial(build_here, "hnsw-f32"),
    "hnsw-f32 peer": partial(build_peer, "hnsw-f32"),
    "hnsw-f32": partial(here, "hnsw-f32"),
}


def run(passages: int = PASSAGES) -> list[dict[str, Any]]:
    """Measure and compare.

    Args:
        passages: Size of the corpus.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; rates and recall: ratio = here / peer; memory:
        ratio = limit / here.
    """
    with tempfile.TemporaryDirectory() as name:
        found = {case: in_a_process(__name__, case, Path(name), passages) for case in CASES}
    return [one for kind in ALONE for one in _rows(kind, found, passages)]


def _rows(kind: str, found: dict[str, Found], passages: int) -> Iterator[dict[str, Any]]:
    ours, theirs = found[kind], found[f"{kind} peer"]
    what = f"{kind}, {passages:,} × {DIM}"
    if kind == "hnsw-f32":
        yield row(f"{what}: build", passages / ours["build_s"], "passages/s", "–", None)
        part, built = found["hnsw-f32 tenth"]["build_s"], passages // 10
    else:
        part, built = ours["build_s"], passages
    yield row(f"{kind}, {built:,}: build", built / part, "passages/s", "faiss", built / theirs["build_s"])
    for name, count, words in (("batch", QUERIES, "together"), ("alone", ALONE[kind], "one by one")):
        rate, other = count / ours[name], count / ours[f"peer_{name}"]
        yield row(f"{what}: {count} queries {words}, K = {DEPTH}", rate, "queries/s", "faiss", other)
    for k in (10, DEPTH):
        if f"recall_{k}" in ours:
            yield row(f"{what}: recall@{k}", ours[f"recall_{k}"], "", "flat", 1.0)
    yield memory(what, ours["peak"])
