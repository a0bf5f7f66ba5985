"""Dense retrieval: vector indexes of several kinds behind one interface.

Kinds in `INDEXES` are kept in memory by faiss, kinds in `ENGINES` in a database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from core.arrays import Vectors
from core.errors import ClqError, UnknownNameError
from core.extras import obstacle
from core.params import ParamOptions
from core.pipeline.index import dense, outside
from core.pipeline.index.dense import DenseIndex, ann_recall
from core.pipeline.index.kinds import INDEXES, METRICS, IndexEngine, IndexKind, check_metric
from core.pipeline.index.outside import DatabaseIndex, DatabasePlace, address
from core.pipeline.index.saved import about_folder
from core.plugins import loaded, subclass_of
from core.records import JsonMap

__all__ = [
    "ENGINES",
    "INDEXES",
    "INDEX_NAMES",
    "METRICS",
    "DatabaseIndex",
    "DatabasePlace",
    "DenseIndex",
    "IndexKind",
    "ann_recall",
    "check_metric",
    "expected_bytes",
    "index_options",
    "is_ann",
    "is_existing",
    "kind_of",
    "load_index",
    "make_index",
    "obstacles",
    "parted",
    "use_index",
]

ENGINES: Mapping[str, type[DatabaseIndex]] = MappingProxyType(
    loaded("clq.indexes", subclass_of(DatabaseIndex), INDEXES)
)
"""Indexes that databases keep, by name."""
INDEX_NAMES = (*INDEXES, *ENGINES)


def kind_of(name: str) -> IndexKind | IndexEngine:
    """Return the kind or engine of an index.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    if name in ENGINES:
        return ENGINES[name].engine
    if name in INDEXES:
        return INDEXES[name]
    raise UnknownNameError("index", name, INDEX_NAMES)


def index_options(
    name: str, options: JsonMap | None = None, *, dim: int | None = None, passages: int | None = None
) -> ParamOptions:
    """Check options as far as possible before anything is built, and fill in the defaults.

    Raises:
        UnknownNameError: If there is no such kind, or no such option of it.
        InputError: If an option is out of its range, or does not fit the vectors.
    """
    return kind_of(name).read(options, dim=dim, passages=passages)


def expected_bytes(name: str, *, dim: int, passages: int, options: JsonMap | None = None) -> int:
    """Return the approximate size of an index in bytes, without building it."""
    return kind_of(name).expected_bytes(options, dim=dim, passages=passages)


def is_exact(name: str, options: JsonMap | None = None) -> bool:
    """Return whether an index compares every vector uncompressed."""
    kind = kind_of(name)
    return kind.exact if isinstance(kind, IndexKind) else (options or {}).get("exact") == "yes"


def is_ann(name: str, options: JsonMap | None = None) -> bool:
    """Return whether an index searches for neighbours approximately."""
    return not is_exact(name, options) and (options or {}).get("search", "dense") == "dense"


def is_existing(name: str, options: JsonMap | None = None) -> bool:
    """Return whether an index is an existing table, so that nothing is built."""
    return name in ENGINES and bool((options or {}).get("table"))


def parted(name: str, options: JsonMap | None = None) -> tuple[JsonMap, JsonMap]:
    """Split options into those that identify a built index and those that only change how it is searched.

    Returns:
        Both groups; indexes with equal options of the first group are one.
    """
    given = dict(options or {})
    later = () if is_existing(name, given) else kind_of(name).searching
    searched = {key: given.pop(key) for key in later if key in given}
    return given, searched


def obstacles(name: str, options: JsonMap | None = None) -> Iterator[ClqError]:
    """Yield why an index cannot be used here.

    The reason is a missing package, or a missing variable with its address.
    """
    kind = kind_of(name)
    if not isinstance(kind, IndexEngine):
        return
    absent = obstacle(kind.package, kind.requirements, kind.title)
    if absent is not None:
        yield absent
    try:
        address(kind, kind.read(options))
    except ClqError as error:
        yield error


def make_index(
    name: str,
    vectors: Vectors,
    metric: str = "cosine",
    params: JsonMap | None = None,
    *,
    place: DatabasePlace | None = None,
    allow_unnormalised: bool = False,
) -> DenseIndex | DatabaseIndex:
    """Build an index of any kind; see `core.pipeline.index.dense.make_index`.

    Args:
        place: Its place in a database; needed for those kinds only.
    """
    kind_of(name)
    if name not in ENGINES or place is None:
        return dense.make_index(name, vectors, metric, params, allow_unnormalised=allow_unnormalised)
    check_metric(metric, vectors, allow_unnormalised=allow_unnormalised, where=f"index {name}")
    return ENGINES[name].build(place, vectors, metric, index_options(name, params))


def use_index(name: str, metric: str, params: JsonMap, *, place: DatabasePlace, dim: int) -> DatabaseIndex:
    """Search an existing table.

    Args:
        place: Its folder, and the passages that it holds.
        dim: Dimensions of the query vectors.

    Raises:
        InputError: If there is no such table or column, or it has another dimension.
        ProviderError: If the database does not answer.
    """
    check_metric(metric)
    return ENGINES[name].use(place, metric, index_options(name, params), dim=dim)


def load_index(path: Path, *, ids: Sequence[str] = ()) -> DenseIndex | DatabaseIndex:
    """Open an index written by its `save`.

    Args:
        ids: The passages of an existing table.
    """
    about = about_folder(path, dense.KIND, outside.KIND)
    if about["kind"] == dense.KIND:
        return dense.load_index(path, about)
    return ENGINES[about["name"]].load(path, about, ids)
