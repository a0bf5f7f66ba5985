"""Results of ann-benchmarks (HDF5): seconds per query, the neighbours found and their distances.

Queries and vectors have no names there, so their numbers are their ids. A data set file beside the results
has the exact neighbours; they become judgements, so that R@count is the recall that ann-benchmarks reports
(which also counts neighbours at an equal distance).

The reader is written in Python: a damaged file cannot hang or end the process. The sizes in a file are
checked against its bytes before any of it is read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.base import RESEMBLES, Format, Import, Look, Options, counted, frames_of, merged
from core.importers.judgements import golden_set
from core.importers.read.member import Archive, Member, members_of, per_member
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, ReportParts, settled
from core.importers.runs import collection_of, imported_run, run_labels, slug
from core.importers.settings import kept

HDF5 = b"\x89HDF\r\n\x1a\n"
_MOST_BYTES = 2 << 30  # Largest file that is read into memory; a plain file on the disk need not be
_MOST_ATTRIBUTES = 200
_VALUE_BYTES, _MOST_HELD = 64, 1 << 29  # Bytes that a value takes in memory until it is a row; their limit
_LARGEST = 2.0**63  # Numbers of vectors are below it
_TRUE_DEFAULT = 100


class AnnBenchmarks(Format):
    """Results of approximate search, and the data sets with the exact neighbours."""

    name, title = "ann-benchmarks", "ann-benchmarks results (HDF5)"
    takes = {
        "rankings": "the neighbours of every query; the score is the distance with its sign changed",
        "timings": "the time of every query, unless queries were asked in batches",
        "judgements": "the exact neighbours, from a data set file beside the results",
    }
    recognised = "HDF5 with times and neighbors, or with test and neighbors"
    units = "times from seconds to milliseconds"
    traps = (
        "Fewer neighbours than asked for are padded with −1 there; the padding is left out and counted.",
        "Times of batches are no time of a query and are left out.",
    )
    names_collection, mixed = 1, True
    known: ClassVar[Mapping[str, ReportParts]] = {
        "result": dict.fromkeys(("times", "neighbors", "distances", "attrs.*"), TAKEN),
        "truth": {
            "neighbors": TAKEN,
            **dict.fromkeys(("train", "test"), "vectors, which are not kept"),
            "distances": "of exact neighbours",
        },
    }

    @staticmethod
    @per_member
    def kind(member: Member) -> str | None:
        if not member.head.startswith(HDF5):
            return None
        try:
            with _opened(member) as file:
                names = set(file)
        except InputError:
            return None
        if {"times", "neighbors"} <= names:
            return "result"
        return "truth" if {"test", "neighbors"} <= names else None

    def sniff(self, probe: Archive) -> float:
        resembles = len(probe.members) == 1 and probe.members[0].head.startswith(HDF5)
        return super().sniff(probe) or (RESEMBLES if resembles else 0.0)

    def why_not(self, probe: Archive) -> str:
        try:
            with _opened(probe.members[0]):
                return "it has neither times and neighbors nor test and neighbors"
        except InputError as error:
            return str(error)

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        """Return the attributes of the first result, or the sizes of a data set."""
        member = next(
            (candidate for candidate in archive.members if self.kind(candidate) == "result"),
            archive.members[0],
        )
        if self.kind(member) == "result":
            result = _read_result(member)
            facts = {**result.attributes, "queries": result.times.size}
        else:
            facts = dict(zip(("queries", "exact neighbours"), _read_truth(member).shape, strict=True))
        rows = {"what": list(facts), "value": [str(value)[:500] for value in facts.values()]}
        return Look(pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        """Yield the tables of every file, and its attributes after ``attrs.``."""
        for member in members_of(archives):
            with _opened(member) as file:
                names = [*map(shown, file), *(f"attrs.{shown(name)}" for name in file.attrs)]
            yield settled(member.name, "key", names, self.known[self.kind(member) or "result"])

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every result as a run; a data set is a collection unless the user named one."""
        members = members_of(archives)
        if wrong := next((member for member in members if not member.head.startswith(HDF5)), None):
            raise InputError("This is not an HDF5 file.", where=wrong.name)
        truths = [member for member in members if self.kind(member) == "truth"]
        by_dataset: dict[str, list[_Result]] = {}
        for member in members:
            if member not in truths:
                result = _read_result(member)
                by_dataset.setdefault(result.text("dataset"), []).append(result)
        parts = []
        for name, results in by_dataset.items():
            there = _in_collection(name, options)
            labels = run_labels([(entry.text("name"), entry.member.stem) for entry in results], there)
            parts.append(Import(collections=collection_of(there, "ann-benchmarks")))
            parts += [_run(entry, label, there) for entry, label in zip(results, labels, strict=True)]
        for member in truths:
            alone = next(iter(by_dataset), "") if len(by_dataset) == 1 else member.stem
            name = member.stem if member.stem in by_dataset else alone
            counts = {entry.neighbors.shape[1] for entry in by_dataset.get(name, ())}
            there = _in_collection(name, options)
            parts.append(Import(collections=collection_of(there, "ann-benchmarks")))
            parts += [_exact(member, count, there) for count in sorted(counts) or [_TRUE_DEFAULT]]
        return merged(parts)


def _in_collection(dataset: str, options: Options) -> Options:
    if options.collection_given or not dataset:
        return options
    return replace(options, collection_id=slug(dataset), collection_name=dataset)


@dataclass(frozen=True)
class _Result:
    member: Member  # the file
    attributes: Mapping[str, object]  # its own attributes, plain values only
    times: np.ndarray  # seconds of every query, shape [queries]
    neighbors: np.ndarray  # numbers of the vectors that were found, [queries × count]; −1 = none
    distances: np.ndarray | None  # their distances, of the same shape; None if absent

    def text(self, name: str) -> str:
        """Return a text attribute, or "" if it is not a text."""
        value = self.attributes.get(name)
        return shown(value, 200) if isinstance(value, str) else ""


def _run(result: _Result, label: str, options: Options) -> Import:
    member, metric = result.member, result.text("distance")
    spec = {"index": result.text("algo") or "unnamed index", "name": shown(label, 200)}
    run = imported_run(
        options,
        label,
        member.digest,
        importer=AnnBenchmarks.name,
        decided={"attributes": kept(result.attributes)},
        spec={**spec, "metric": metric} if metric else spec,
    )
    rankings, left = _rankings(result, run.run_id)
    times = pl.DataFrame()
    notes = ["The score of a neighbour is its distance with the sign changed: higher is nearer."]
    with np.errstate(over="ignore"):
        ms = result.times.astype(np.float64) * 1000.0
    if result.attributes.get("batch_mode") in (True, 1):
        left["times of queries that were asked in batches"] = ms.size
    elif not (np.isfinite(ms).all() and (ms >= 0).all()):
        raise InputError("A time is negative or no number.", where=f"{member.name}, times")
    else:
        notes.append("Times converted from seconds to milliseconds; they are of the last of its repeats.")
        times = pl.DataFrame({"ms": ms}).with_columns(
            query_id=pl.int_range(pl.len()).cast(pl.String),
            run_id=pl.lit(run.run_id),
            stage=pl.lit("retrieve"),
            repeat=pl.lit(1),
        )
    frames = frames_of(rankings=rankings, timings=times)
    return Import(runs=(run,), frames=frames, left_out=counted(left, member.name), notes=tuple(notes))


def _rankings(result: _Result, run_id: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return distinct neighbours in the file's order, without padding, and what was left out, by reason."""
    queries, count = result.neighbors.shape
    given = result.distances
    scores = np.full(result.neighbors.shape, np.nan) if given is None else -given.astype(np.float64)
    rows = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), count),
            "passage": result.neighbors.reshape(-1),
            "score": scores.reshape(-1),
        }
    )
    real = rows.filter(pl.col("passage") >= 0)
    once = real.unique(["query_id", "passage"], keep="first", maintain_order=True)
    table = once.select(
        pl.col("query_id").cast(pl.String),
        run_id=pl.lit(run_id),
        stage=pl.lit("final"),
        rank=pl.int_range(1, pl.len() + 1).over("query_id"),
        passage_id=pl.col("passage").cast(pl.String),
        score=pl.when(pl.col("score").is_finite()).then("score"),
    )
    return table, {
        "neighbours that were not found (−1)": rows.height - real.height,
        "neighbours that a list repeats: the first place counts": real.height - once.height,
    }


def _exact(member: Member, count: int, options: Options) -> Import:
    nearest = _read_truth(member)[:, :count]
    queries, depth = nearest.shape
    rows = pl.DataFrame(
        {"query_id": np.repeat(np.arange(queries), depth), "passage_id": nearest.reshape(-1)}
    ).unique(maintain_order=True)
    rows = rows.filter(pl.col("passage_id") >= 0).with_columns(
        pl.col("query_id", "passage_id").cast(pl.String), grade=pl.lit(1), line=pl.int_range(1, pl.len() + 1)
    )
    if rows.is_empty():
        raise InputError("The data set holds no neighbours.", where=member.name)
    imported = golden_set(rows, member.name, f"nearest-{depth}", options, "exact search")
    note = f"the {depth} exact neighbours of each query count as relevant, all others as unjudged"
    return replace(imported, notes=(*imported.notes, f"{member.name}: {note}."))


def _read_result(member: Member) -> _Result:
    with _opened(member) as file:
        times = _array(file, "times", 1, member)
        neighbors = _numbers(file, member)
        distances = _array(file, "distances", 2, member) if "distances" in file else None
        attributes = _attributes(file)
    if len(times) != len(neighbors) or (distances is not None and distances.shape != neighbors.shape):
        problem = f"There are {len(times):,} times for the neighbours of {len(neighbors):,} queries."
        raise InputError(problem, where=member.name)
    if not neighbors.size:
        raise InputError("The result holds no neighbours.", where=member.name)
    return _Result(member, attributes, times, neighbors, distances)


def _read_truth(member: Member) -> np.ndarray:
    """Return the exact neighbours of every query, nearest first, [queries × depth]."""
    with _opened(member) as file:
        return _numbers(file, member)


@contextmanager
def _opened(member: Member) -> Iterator[Any]:
    try:
        import pyfive  # noqa: PLC0415
    except ImportError:
        problem = "The reader of HDF5 files is not installed."
        raise InputError(problem, where=member.name, do="Install it: pip install pyfive.") from None
    with member.opener() as stored:
        plain = member.path is not None and stored.read(len(HDF5)) == HDF5
    if not plain and member.size > _MOST_BYTES:
        raise InputError("The file is too large to be read from where it is.", where=member.name)
    try:
        source = str(member.path) if plain else io.BytesIO(member.read())
        with pyfive.File(source) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # the reader raises anything on a damaged file
        reason = shown(str(error) or type(error).__name__, 200)
        raise InputError(f"The HDF5 file cannot be read: {reason}.", where=member.name) from error


def _array(file: Any, name: str, axes: int, member: Member) -> np.ndarray:  # noqa: ANN401
    where = f"{member.name}, {name}"
    if name not in file:
        raise InputError(f"There is no table {name}.", where=member.name)
    table = file[name]
    shape, dtype = tuple(table.shape), np.dtype(table.dtype)
    if len(shape) != axes or dtype.kind not in "iuf":
        raise InputError(f"The table has {len(shape)} axes of {dtype}.", where=where)
    claimed = math.prod(shape)
    if claimed * _VALUE_BYTES > max(_MOST_HELD, member.limits.ratio * member.size):
        problem = f"The table claims {claimed * dtype.itemsize:,} bytes in a file of {member.size:,}."
        raise InputError(problem, where=where)
    values = np.asarray(table[...])
    if values.shape != shape:
        raise InputError("The table is cut off.", where=where)
    return values


def _numbers(file: Any, member: Member) -> np.ndarray:  # noqa: ANN401
    neighbors = _array(file, "neighbors", 2, member)
    if neighbors.size and (neighbors.dtype.kind == "f" or neighbors.dtype.itemsize == 8):
        with np.errstate(invalid="ignore"):
            whole = (neighbors == np.rint(neighbors)).all() and (
                np.abs(neighbors.astype(np.float64)) < _LARGEST
            ).all()
        if not whole:
            raise InputError("A neighbour is not a whole number.", where=f"{member.name}, neighbors")
    return neighbors.astype(np.int64)


def _attributes(file: Any) -> dict[str, object]:  # noqa: ANN401
    attributes: dict[str, object] = {}
    for name in list(file.attrs)[:_MOST_ATTRIBUTES]:
        value = file.attrs[name]
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, float) and not math.isfinite(value):
            continue
        if isinstance(value, str | int | float | bool):
            attributes[shown(name)] = value
    return attributes
