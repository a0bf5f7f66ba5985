"""Needs of indexes of many passages: bytes, build time and dollars by kind, from a small model.

Bytes are those of `core.pipeline.index.expected_bytes`. Seconds of building are the numbers (passages ×
dimensions) divided by a rate, plus those of learning; a graph is walked the longer the larger it is, by a
power of its size, and in proportion to the candidates looked at per vector added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from core.errors import InputError
from core.pipeline.evaluate.steps import FILTERING
from core.pipeline.index import ENGINES, INDEX_NAMES, expected_bytes, index_options, kind_of
from core.prices import PriceBook
from core.records import JsonMap, canonical_json

NUMBERS_PER_S: Mapping[str, float] = MappingProxyType(
    {
        "flat": 2e7,
        "int8": 6e6,
        "hnsw-f32": 1.41e5,
        "hnsw-int8": 1.7e5,
        "pq": 7e7,
        "opq": 7e7,
        "ivf-flat": 2.2e8,
        "ivf-pq": 2.6e7,
        "pgvector": 1.4e5,
        "lancedb": 5.9e4,
        "qdrant": 1e5,
        "qdrant-edge": 1.5e5,
        "milvus": 1e5,
        "redis": 1e5,
        "elasticsearch": 5e4,
        "opensearch": 5e4,
    }
)
"""Numbers that an index with its default options takes in a second of one core; a graph at `LEVEL` passages.

Measured here on random vectors of 64 dimensions (`bench.index_scale`), seconds of processor time: hnsw-f32
(M = 16, efConstruction = 64) on one thread beside other work 527.5 for two million, 239.9 for one and 14.9
for 100,000 (11.4 alone); earlier, with faiss's own number of threads, 351 for a million and 23.9. hnsw-int8
11.5 for 100,000. With the same options pgvector 724 for a million, LanceDB 21.9 for 100,000 and 383 for a
million, qdrant-edge 18.9 for 50,000; flat, int8: two million; ivf-flat and ivf-pq: see `PER_LIST`. qdrant,
milvus, redis, elasticsearch and opensearch: assumptions.
"""
BY_LISTS: Mapping[str, float] = MappingProxyType({"pgvector": 4e5, "lancedb": 4.3e6})
"""The same for vectors in lists (ivfflat, ivf_pq): a million such vectors, 1,000 lists."""
PER_LIST, LEARNT_PER_LIST = 2.4e10, 4.2e7
"""What lists of ivf-flat and ivf-pq add: numbers × lists compared, and vectors learnt from × lists, a second.

Of 100,000 and a million such vectors ivf-flat took 0.15 and 0.57 seconds with 64 lists, 1.86 and 4.57 with
1,000; ivf-pq (16 parts) 2.51 and 4.87, 4.46 and 8.71.
"""
_OF_LIST = 256
"""Vectors that k-means looks at for each list, at most."""
LEARNING_S: Mapping[str, float] = MappingProxyType(
    {"pq": 4.4, "opq": 16.0, "ivf-flat": 0.08, "ivf-pq": 2.2, "lancedb": 29.0}
)
"""Seconds to learn codes and lists from a sample, whose size does not grow with the passages.

At `DIM` dimensions; it is an assumption that they are proportional to the dimensions, and that LanceDB's
1,000 lists stand for any number of lists. pq took 5.3 and opq 16.9 seconds for a million, ivf_pq of LanceDB
29.9 for 100,000 and 59.2 for two million.
"""
DIM = 64
LEVEL, GROWTH = 100_000, 0.2
"""Passages at which rates of graphs hold, and the power of the passages by which a vector takes longer."""
_EFFORTS = ("efConstruction", "ef_construction")
GIB = 2**30
_Parts = Mapping[str, Sequence[int]]
"""Passages in each partition, by the way of filtering that has them."""
_S_PER_H = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One kind of index at this many passages."""

    index: str  # its kind
    params: JsonMap  # its options that are not the defaults
    dim: int  # dimensions
    passages: int  # vectors
    indexes: int  # one, or one per partition
    asked: bool  # whether a stack of the sweep has it
    memory_bytes: int  # in memory, or what a database caches to be as fast
    disk_bytes: int  # vectors and index as files; without the least of a database's index that is not known
    build_s: float  # seconds of one core
    build_usd: float | None  # dollars of those; None if the price is not known
    usd_per_month: float | None  # dollars of memory and disk


def at_scale(
    specs: Iterable[JsonMap], passages: int, book: PriceBook, parts: _Parts = MappingProxyType({})
) -> list[Size]:
    """Predict every kind of index, at this many passages, at the dimensions that a sweep has.

    The indexes of the stacks stand first, then the other kinds with their defaults.

    Args:
        parts: Passages in each partition today, by the way of filtering; their shares are kept.

    Raises:
        InputError: If there are no passages.
    """
    if passages < 1:
        raise InputError(f"{passages} passages cannot be indexed.", where="passages", do="Give at least 1.")
    dense = [spec for spec in specs if spec.get("mode") != "sparse" and spec.get("dim")]
    dims = dict.fromkeys(int(spec["dim"]) for spec in dense)
    asked = {_key(spec, parts): spec for spec in dense}
    sizes = [index_at(spec, passages, book, parts) for spec in asked.values()]
    whole = {(size.index, canonical_json(size.params), size.dim) for size in sizes if size.indexes == 1}
    for dim, name in product(dims, INDEX_NAMES):
        if (name, canonical_json({}), dim) in whole:
            continue
        try:
            index_options(name, {"url_env": "URL"} if name in ENGINES else {}, dim=dim, passages=passages)
        except InputError:  # too few to learn from
            continue
        sizes.append(_size(name, {}, dim, (passages,), book, asked=False))
    return sizes


def _key(spec: JsonMap, parts: _Parts) -> tuple[object, ...]:
    way = str(spec.get(FILTERING, ""))
    built = (spec["index"], canonical_json(spec.get("index_params", {})), int(spec["dim"]))
    return (*built, way if way in parts else "")


def index_at(spec: JsonMap, passages: int, book: PriceBook, parts: _Parts = MappingProxyType({})) -> Size:
    """Predict the index of a dense stack at this many passages; of partitions, all of theirs."""
    today = parts.get(str(spec.get(FILTERING, "")), (1,))
    grown = tuple(max(1, round(passages * part / sum(today))) for part in today)
    return _size(spec["index"], spec.get("index_params", {}), int(spec["dim"]), grown, book, asked=True)


def build_seconds(name: str, *, dim: int, passages: int, options: JsonMap | None = None) -> float:
    """Return about how many seconds one core builds an index."""
    usual = {option.name: option.default for option in kind_of(name).options}
    chosen = {**usual, **(options or {})}
    method = str(chosen.get("method", ""))
    rate = (BY_LISTS if method.startswith("ivf") else NUMBERS_PER_S)[name]
    if method == "none" or chosen.get("table"):
        return 0.0 if chosen.get("table") else passages * dim / NUMBERS_PER_S["flat"]
    seconds = passages * dim / rate
    if name.startswith("ivf"):
        lists = float(chosen["lists"])
        learnt_from = min(float(chosen["train"]), _OF_LIST * lists)
        seconds += passages * dim * lists / PER_LIST + learnt_from * lists / LEARNT_PER_LIST * dim / DIM
    if method.startswith("ivf") or name in ("pq", "opq", "ivf-flat", "ivf-pq"):
        return seconds + LEARNING_S.get(name, 0.0) * dim / DIM
    key = next((key for key in _EFFORTS if key in usual), None)
    if key is None:
        return seconds
    effort = float(chosen[key]) / float(usual[key])
    return float(seconds * effort * (passages / LEVEL) ** GROWTH)


def _size(
    name: str, params: JsonMap, dim: int, parts: Sequence[int], book: PriceBook, *, asked: bool
) -> Size:
    engine = ENGINES[name].engine if name in ENGINES else None
    options = {"url_env": "URL", **params} if engine else dict(params)
    each = [expected_bytes(name, dim=dim, passages=part, options=options) for part in parts]
    index, passages = sum(each), sum(parts)
    disk = (
        index + 4 * dim * passages if engine is None else sum(max(of, engine.least_bytes or 0) for of in each)
    )
    seconds = sum(build_seconds(name, dim=dim, passages=part, options=params) for part in parts)
    held = (
        usd_of(book, "local-memory", "gib_month", index / GIB),
        usd_of(book, "local-disk", "gib_month", disk / GIB),
    )
    known = engine is None or len(parts) == 1 or engine.least_bytes is not None
    return Size(
        index=name,
        params=params,
        dim=dim,
        passages=passages,
        indexes=len(parts),
        asked=asked,
        memory_bytes=index,
        disk_bytes=disk,
        build_s=seconds,
        build_usd=usd_of(book, "local-cpu", "cpu_hour", seconds / _S_PER_H),
        usd_per_month=None if held[0] is None or held[1] is None or not known else held[0] + held[1],
    )


def usd_of(book: PriceBook, item: str, unit: str, amount: float) -> float | None:
    """Return the cost of an amount, or None if the book has no price for it."""
    price = book.find(item, unit)
    return None if price is None else amount * price.price / price.per
