"""The kinds of vector index, in memory and in databases: what each is, its options, and what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.arrays import Vectors
from core.errors import InputError, UnknownNameError
from core.extras import later
from core.params import Method, Param, ParamOptions, read_options, whole
from core.records import JsonMap

if TYPE_CHECKING:
    import faiss
else:  # not needed for stored results
    faiss = later("faiss")

METRICS = ("cosine", "ip", "l2")
"""What "near" means between vectors.

* cosine: vectors are scaled to unit length in the index (the vectors given are not changed); the score is the
  inner product, -1 to 1. A vector of zeros has cosine 0 with everything.
* ip: the inner product of the vectors as they are. Among vectors of different lengths the long ones win
  whatever they mean; a model without normalisation fell from 52 % to 12 % Recall@5 that way (thesis on RAG
  methods, §7.2.3 and Table 7.1). So it is refused for them, unless their model is declared to be trained for
  it.
* l2: the negative Euclidean distance, so that higher is better here, too.
"""

BLOCK_ROWS = 65_536
"""Number of vectors read, scaled and added at once: a small share of what stays on disk."""

_UNIT_TOLERANCE = 0.005
"""Tolerance around 1 for the length of a normalised vector, as vendors send rounded numbers."""
POINTS_PER_CENTROID = 39
"""Training vectors per centroid that k-means needs (the limit below which faiss warns)."""
MORE, SAME = "more", "same"
FILTERED = Param(
    name="filtered", default=MORE, choices=(MORE, SAME),
    text="Looked at under a filter: more, the less it leaves, and all that it leaves where that is less; or"
    " the same as without one.",
)  # fmt: skip
_GRAPH = (
    Param(name="M", default=32, low=2, high=512, text="Neighbours per vector."),
    Param(
        name="efConstruction", default=200, low=1, high=10_000, text="Candidates looked at per vector added."
    ),
    Param(
        name="efSearch",
        default=128,
        low=1,
        high=100_000,
        text="Candidates looked at per search; raised to the depth asked for when that is larger.",
    ),
    FILTERED,
)
_ID = 8
"""Bytes per vector for its id in a list."""
_TRAIN = Param(
    name="train", default=65_536, low=1, high=10_000_000, text="Vectors to learn from, a seeded sample."
)
_CODES = (
    Param(
        name="m",
        default=0,
        low=0,
        high=4096,
        text="Parts of a vector, each one code; 0: a quarter of the dimensions, or the next divisor below.",
    ),
    Param(name="nbits", default=8, low=4, high=12, text="Bits of a code: 2^nbits centroids for each part."),
    _TRAIN,
)
_LISTS = (
    Param(
        name="lists",
        default=64,
        low=1,
        high=1_000_000,
        text="Lists that vectors fall into by their nearest centroid; unless said, as many fewer as leave 39"
        " passages to each.",
    ),
    Param(
        name="nprobe",
        default=8,
        low=1,
        high=1_000_000,
        text="Lists looked at per search, the nearest first; as many as there are find what flat finds.",
    ),
)
_ROUNDS = Param(name="rounds", default=10, low=1, high=100, text="Rounds of learning the rotation.")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COLUMNS = ("id", "vector", "text")
KEY = Param(name="key_env", default="", free=True, text="Environment variable that holds an API key, if any.")


def check_metric(
    metric: str,
    vectors: Vectors | None = None,
    *,
    normalised: bool | None = None,
    allow_unnormalised: bool = False,
    where: str = "metric",
) -> None:
    """Refuse a metric that does not fit the vectors."""
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS, where=where)
    if metric != "ip" or allow_unnormalised:
        return
    if vectors is not None:
        _require_unit(row_lengths(vectors), where)
    elif normalised is False:
        raise _not_normalised("The model does not normalise its vectors", where)


def _require_unit(lengths: NDArray[np.float32], where: str) -> None:
    # Texts without content are zero vectors, which are never neighbours.
    off = (lengths > 0) & (np.abs(lengths - 1) > _UNIT_TOLERANCE)
    if off.any():
        share = f"{np.count_nonzero(off):,} of {len(lengths):,} vectors are not normalised"
        spread = f"lengths from {lengths[off].min():.3g} to {lengths[off].max():.3g}"
        raise _not_normalised(f"{share} ({spread})", where)


def _not_normalised(problem: str, where: str) -> InputError:
    return InputError(
        f"{problem}: by inner product long vectors win whatever they say.",
        where=where,
        do="Use the metric cosine or l2, or allow it for a model that was trained for the inner product.",
    )


def blocks(vectors: Vectors) -> Iterator[Vectors]:
    """Yield the rows in parts of at most `BLOCK_ROWS`, as float32."""
    for start in range(0, len(vectors), BLOCK_ROWS):
        yield np.ascontiguousarray(vectors[start : start + BLOCK_ROWS], dtype=np.float32)


def row_lengths(vectors: Vectors, *, what: str = "vectors") -> NDArray[np.float32]:
    """Return the Euclidean length of every row."""
    with np.errstate(over="ignore"):  # a length beyond float32 is refused below
        parts = [np.sqrt(np.linalg.vecdot(block, block)) for block in blocks(vectors)]
    lengths: NDArray[np.float32] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if np.isfinite(lengths).all():
        return lengths
    odd = np.flatnonzero(~np.isfinite(lengths))
    raise InputError(
        f"{len(odd):,} of {len(lengths):,} vectors hold a number that is not finite (first: {odd[0]}).",
        where=what,
        do="Embed these texts again.",
    )


def unit(block: Vectors, lengths: NDArray[np.float32], *, out: Vectors | None = None) -> Vectors:
    """Return copies [n, dim] of rows divided by their lengths, in `out` if given; zeros stay zeros."""
    divisors = lengths if lengths.all() else np.where(lengths > 0, lengths, np.float32(1))
    return np.divide(block, divisors[:, np.newaxis], out=out, dtype=np.float32)


class Training(Enum):
    """What a kind learns from the vectors before it adds them."""

    NONE = "nothing"
    RANGE = "smallest and largest value per dimension"
    SAMPLE = "centroids of a seeded sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKind(Method):
    """One kind of vector index."""

    make: Callable[[int, int, ParamOptions], faiss.Index]  # empty, of a dimension and metric
    vector_bytes: Callable[[int, ParamOptions], float]  # bytes per vector of a dimension
    training: Training = Training.NONE  # its prior learning
    exact: bool = False  # whether it compares every original vector
    effort: str = ""  # the option for the search effort; empty if all is searched
    selects: bool = True  # whether it can search among some of its vectors only

    @property
    def searching(self) -> tuple[str, ...]:
        """Options that change the search and not the built index."""
        return (self.effort, FILTERED.name) if self.effort else ()

    def read(
        self, given: JsonMap | None = None, *, dim: int | None = None, passages: int | None = None
    ) -> ParamOptions:
        """Check options as far as possible before anything is built, and fill in the defaults."""
        read = read_options(self.options, given, where=f"index {self.name}")
        if self.training is Training.SAMPLE:
            if dim is not None and "m" in read:
                read["m"] = _parts(whole(read, "m"), dim, self.name)
            if passages is not None and "lists" in read and "lists" not in (given or {}):
                read["lists"] = min(whole(read, "lists"), max(passages // POINTS_PER_CENTROID, 1))
            _check_sample(read, passages, self.name)
        return read

    def expected_bytes(self, given: JsonMap | None, *, dim: int, passages: int) -> int:
        """Return the approximate size of an index in bytes, without building it."""
        read = self.read(given, dim=dim, passages=passages)
        learned = 4 * dim * sum(_centroids(read).values()) or 8 * dim
        rotation = 4 * dim * dim if self.name == "opq" else 0
        return int(passages * self.vector_bytes(dim, read)) + learned + rotation


def _graph(index: faiss.IndexHNSW, options: ParamOptions) -> faiss.Index:
    index.hnsw.efConstruction = whole(options, "efConstruction")
    return index


def _pq(dim: int, metric: int, options: ParamOptions) -> faiss.Index:
    return faiss.IndexPQ(dim, whole(options, "m"), whole(options, "nbits"), metric)


def _opq(dim: int, metric: int, options: ParamOptions) -> faiss.Index:
    rotation = faiss.OPQMatrix(dim, whole(options, "m"))
    rotation.niter = whole(options, "rounds")
    # It learns with an eight-bit quantiser unless it is given another one, which it does not keep alive.
    quantiser = faiss.ProductQuantizer(dim, whole(options, "m"), whole(options, "nbits"))
    rotation.pq = quantiser
    rotation.referenced_objects = [quantiser]  # type: ignore[attr-defined]
    return faiss.IndexPreTransform(rotation, _pq(dim, metric, options))


def _ivf(dim: int, metric: int, options: ParamOptions) -> faiss.Index:
    return _lists(faiss.IndexIVFFlat(_coarse(dim, metric), dim, whole(options, "lists"), metric))


def _ivf_pq(dim: int, metric: int, options: ParamOptions) -> faiss.Index:
    lists, parts, bits = (whole(options, name) for name in ("lists", "m", "nbits"))
    return _lists(faiss.IndexIVFPQ(_coarse(dim, metric), dim, lists, parts, bits, metric))


def _coarse(dim: int, metric: int) -> faiss.Index:
    return faiss.IndexFlat(dim, metric)


def _lists(index: faiss.IndexIVF) -> faiss.Index:
    index.cp.min_points_per_centroid = 1  # too few vectors were refused before, and one list needs none
    return index


def _links(options: ParamOptions) -> float:
    """Return the bytes of the graph per vector.

    There are 2 M links at the ground level, M at each level above, and their offsets.
    """
    m = whole(options, "M")
    return 4 * (2 * m + m / (m - 1)) + 12


def _codes(_: int, options: ParamOptions) -> float:
    return whole(options, "m") * whole(options, "nbits") / 8


KINDS = (
    IndexKind(
        name="flat",
        text="Every vector is compared, in float32: exact.",
        make=lambda dim, metric, _: faiss.IndexFlat(dim, metric),
        vector_bytes=lambda dim, _: 4.0 * dim,
        exact=True,
    ),
    IndexKind(
        name="hnsw-f32",
        text="Walks a navigable small-world graph over float32 vectors (Malkov and Yashunin, TPAMI 2020).",
        make=lambda dim, metric, options: _graph(
            faiss.IndexHNSWFlat(dim, whole(options, "M"), metric), options
        ),
        vector_bytes=lambda dim, options: 4.0 * dim + _links(options),
        options=_GRAPH,
        effort="efSearch",
    ),
    IndexKind(
        name="hnsw-int8",
        text="The same graph over vectors held as 8-bit numbers.",
        make=lambda dim, metric, options: _graph(
            faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, whole(options, "M"), metric),  # type: ignore[arg-type]  # a wrong stub
            options,
        ),
        vector_bytes=lambda dim, options: dim + _links(options),
        options=_GRAPH,
        training=Training.RANGE,
        effort="efSearch",
    ),
    IndexKind(
        name="int8",
        text="Every vector is compared, held as 8-bit numbers scaled per dimension.",
        make=lambda dim, metric, _: faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, metric),
        vector_bytes=lambda dim, _: float(dim),
        training=Training.RANGE,
    ),
    IndexKind(
        name="pq",
        text="Every vector is compared, held as codes of its parts (Jégou, Douze and Schmid, TPAMI 2011).",
        make=_pq,
        selects=False,
        vector_bytes=_codes,
        options=_CODES,
        training=Training.SAMPLE,
    ),
    IndexKind(
        name="opq",
        text="Codes of the parts after a learned rotation (Ge, He, Ke and Sun, CVPR 2013).",
        make=_opq,
        selects=False,
        vector_bytes=_codes,
        options=(*_CODES, _ROUNDS),
        training=Training.SAMPLE,
    ),
    IndexKind(
        name="ivf-flat",
        text="Compares the vectors of the nearest lists, in float32 (Sivic and Zisserman, ICCV 2003).",
        make=_ivf,
        vector_bytes=lambda dim, _: 4.0 * dim + _ID,
        options=(*_LISTS, _TRAIN, FILTERED),
        training=Training.SAMPLE,
        effort="nprobe",
    ),
    IndexKind(
        name="ivf-pq",
        text="The same lists, of codes of what a vector adds to its centroid (Jégou et al., TPAMI 2011).",
        make=_ivf_pq,
        vector_bytes=lambda dim, options: _codes(dim, options) + _ID,
        options=(*_LISTS, *_CODES, FILTERED),
        training=Training.SAMPLE,
        effort="nprobe",
    ),
)
INDEXES: Mapping[str, IndexKind] = MappingProxyType({kind.name: kind for kind in KINDS})


def steady(name: str, options: JsonMap, depth: int) -> bool:
    """Return whether a search of less than a depth finds the first passages of a search of that depth.

    A graph does as long as it looks at no more candidates for the deeper one; databases do not say.
    """
    kind = INDEXES.get(name)
    if kind is None:
        return False
    read = read_options(kind.options, options, where=f"index {name}")
    return kind.effort != "efSearch" or whole(read, kind.effort) >= depth


def _parts(asked: int, dim: int, name: str) -> int:
    if asked == 0:
        return next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)
    if dim % asked:
        fitting = ", ".join(str(parts) for parts in range(1, dim + 1) if dim % parts == 0)
        raise InputError(
            f"{dim} dimensions cannot be cut into m={asked} equal parts.",
            where=f"index {name}",
            do=f"Choose m from {fitting}.",
        )
    return asked


def _centroids(options: ParamOptions) -> dict[str, int]:
    """Return the numbers of centroids learned for the parts and for the lists, by the option that sets it."""
    bits = {"nbits": 1 << whole(options, "nbits")} if "nbits" in options else {}
    return bits | ({"lists": whole(options, "lists")} if "lists" in options else {})


def _check_sample(options: ParamOptions, passages: int | None, name: str) -> None:
    offered = {"train": whole(options, "train")} | ({} if passages is None else {"passages": passages})
    short = min(offered, key=lambda key: offered[key])
    for option, centroids in _centroids(options).items():
        needed = POINTS_PER_CENTROID * centroids
        if offered[short] >= needed or centroids == 1:
            continue
        most = offered[short] // POINTS_PER_CENTROID
        fitting = most.bit_length() - 1 if option == "nbits" else most
        smaller = f"{option}={fitting}, or " if fitting >= (4 if option == "nbits" else 1) else ""
        said = f"2^{whole(options, 'nbits')}" if option == "nbits" else f"{centroids:,}"
        raise InputError(
            f"{offered[short]:,} vectors ({short}) are too few to learn from: {said} centroids need"
            f" {POINTS_PER_CENTROID} each, {needed:,}.",
            where=f"index {name}",
            do=f"Choose {smaller}a kind that learns nothing (flat, int8, hnsw-f32).",
        )


def no_selection(name: str) -> InputError:
    """Return the error for an index that cannot search among some of its vectors only."""
    return InputError(
        f"The index {name} cannot filter while it searches.",
        where="filtering",
        do="Use post:4 or partition with it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEngine(Method):
    """A database that keeps vectors."""

    title: str  # its display name
    package: str  # the package that connects to it
    requirements: str  # the requirements file that installs it
    example: str  # an example address
    schemes: tuple[str, ...]  # valid schemes of an address
    vector_bytes: Callable[[int, ParamOptions], float]  # bytes per vector of a dimension, rows and index
    least_bytes: int | None = None  # of the files of one vector's table and index; None = not known
    folder: bool = False  # whether it works on a folder if no address is given
    searching: tuple[str, ...] = ("exact",)  # options that change the search and not the built index

    def read(
        self, given: JsonMap | None = None, *, dim: int | None = None, passages: int | None = None
    ) -> ParamOptions:
        """Check options and fill in the defaults; an empty word counts as not given."""
        del dim, passages
        where = f"index {self.name}"
        stated = {name: value for name, value in (given or {}).items() if value != ""}
        read = read_options(self.options, stated, where=where)
        if not read["table"]:  # the columns of a built table have fixed names
            read |= {param.name: param.default for param in self.options if param.name in _COLUMNS}
        if not (read["url_env"] or self.folder):
            raise InputError("No address is given.", where=where, do='Name its variable: url_env = "…".')
        for key in ("url_env", "key_env"):
            if read.get(key) and not _VARIABLE.fullmatch(str(read[key])):
                problem = f"{key} is not the name of an environment variable."
                raise InputError(problem, where=where, do="Put the value into a variable, and give its name.")
        return read

    def variables(self) -> set[str]:
        """Return the environment variables that belong to the engine, which need no permission."""
        usual = {str(param.default) for param in self.options if param.name == "url_env" and param.default}
        return usual | {f"{self.name.upper()}_URL", f"{self.name.upper()}_API_KEY"}

    def expected_bytes(self, given: JsonMap | None, *, dim: int, passages: int) -> int:
        """Return the approximate size of an index in bytes, without building it."""
        return int(passages * self.vector_bytes(dim, self.read(given)))


def shared(url_env: str, *, id: str, vector: str) -> tuple[Param, ...]:  # noqa: A002 - as it is written
    """Return the options that every engine has."""
    named = "Environment variable that holds the address."
    return (
        Param(name="url_env", default=url_env, free=True, text=named),
        Param(name="table", default="", free=True, text="Table that is there; empty: one is built."),
        Param(name="id", default=id, free=True, text="Where that table keeps the passage's identifier."),
        Param(name="vector", default=vector, free=True, text="Where it keeps the vector."),
        Param(name="exact", default="no", choices=("no", "yes"), text="Compare every vector."),
    )
