"""Results of ann-benchmarks (HDF5): seconds per query, the neighbours that were found and their distances.

Queries and vectors have no names there: their numbers are their ids. A data set file beside the results has
the exact neighbours; they become judgements, so that R@count is the recall that ann-benchmarks reports (which
counts neighbours at an equal distance too).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, Account, settled
from core.importers.base import (
    RESEMBLES,
    SURE,
    Format,
    Import,
    LeftOut,
    Look,
    Options,
    counted,
    frames_of,
    merged,
)
from core.importers.formats.annbench import hdf5
from core.importers.judgements import golden_set
from core.importers.read.piece import Piece, Tree, pieces_of
from core.importers.read.text import shown
from core.importers.runs import collection_of, imported_run, run_labels, slug
from core.importers.settings import kept
from core.records import Run

_TRUE_DEFAULT = 100

_OF_RESULT = dict.fromkeys(("times", "neighbors", "distances", "attrs.*"), TAKEN)
_OF_TRUTH = {
    "neighbors": TAKEN,
    **dict.fromkeys(("train", "test"), "vectors, which are not kept"),
    "distances": "of exact neighbours",
}


class AnnBenchmarks(Format):
    """Results of approximate search, and the data sets that have the exact neighbours."""

    name, title = "ann-benchmarks", "ann-benchmarks results (HDF5)"
    brings = ("rankings", "timings", "judgements")
    takes = {  # noqa: RUF012
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
    names_collection = 1

    def sniff(self, probe: Tree) -> float:
        """Sure when a file of it has the data sets of a result or of exact neighbours."""
        if any(hdf5.kind_of_hdf5(piece) for piece in probe.pieces):
            return SURE
        return RESEMBLES if len(probe.pieces) == 1 and hdf5.is_hdf5(probe.pieces[0]) else 0.0

    def why_not(self, probe: Tree) -> str:
        """What is missing in an HDF5 file, or why it cannot be read."""
        return hdf5.why_no_kind(probe.pieces[0])

    def mine(self, probe: Tree) -> tuple[Piece, ...]:
        """Its HDF5 files."""
        return tuple(piece for piece in probe.pieces if hdf5.kind_of_hdf5(piece))

    def look(self, tree: Tree, options: Options) -> Look:  # noqa: ARG002
        """What the first result says of itself; the sizes of a data set."""
        piece = next((each for each in tree.pieces if hdf5.kind_of_hdf5(each) == "result"), tree.pieces[0])
        if hdf5.kind_of_hdf5(piece) == "result":
            found = hdf5.read_found(piece)
            told = {**found.attributes, "queries": found.times.size}
        else:
            told = dict(zip(("queries", "exact neighbours"), hdf5.read_truth(piece).shape, strict=True))
        rows = {"what": list(told), "value": [str(value)[:500] for value in told.values()]}
        return Look(pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}))

    def accounts(self, trees: Sequence[Tree], options: Options) -> Iterator[Account]:  # noqa: ARG002
        """The tables and attributes of every file."""
        for piece in pieces_of(trees):
            known = _OF_RESULT if hdf5.kind_of_hdf5(piece) == "result" else _OF_TRUTH
            yield settled(piece.name, "key", hdf5.names_in(piece), known)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read every result as a run."""
        pieces = pieces_of(trees)
        if wrong := next((piece for piece in pieces if not hdf5.is_hdf5(piece)), None):
            raise InputError("This is no HDF5 file.", where=wrong.name)
        truths = [piece for piece in pieces if hdf5.kind_of_hdf5(piece) == "truth"]
        found = [hdf5.read_found(piece) for piece in pieces if piece not in truths]
        names = list(dict.fromkeys(each.text("dataset") for each in found))
        parts = [
            _of_dataset(name, [each for each in found if each.text("dataset") == name], options)
            for name in names
        ]
        for piece in truths:
            name = piece.stem if piece.stem in names or len(names) != 1 else names[0]
            counts = {each.neighbors.shape[1] for each in found if each.text("dataset") == name}
            there = _in_collection(name, options)
            parts.append(Import(collections=collection_of(there, "ann-benchmarks")))
            parts += [_exact(piece, count, there) for count in sorted(counts) or [_TRUE_DEFAULT]]
        return merged(parts)


def _in_collection(dataset: str, options: Options) -> Options:
    """A data set is a collection, unless the user named one or the file does not say which it is."""
    if options.collection_given or not dataset:
        return options
    return replace(options, collection_id=slug(dataset), collection_name=dataset)


def _of_dataset(dataset: str, found: Sequence[hdf5.Found], options: Options) -> Import:
    there = _in_collection(dataset, options)
    labels = run_labels([(each.text("name"), each.piece.stem) for each in found], there)
    runs = [_result(each, label, there) for each, label in zip(found, labels, strict=True)]
    return merged([Import(collections=collection_of(there, "ann-benchmarks")), *runs])


def _result(found: hdf5.Found, label: str, options: Options) -> Import:
    run = _run(found, label, options)
    table, left = _rankings(found, run.run_id)
    times = pl.DataFrame()
    notes = ["The score of a neighbour is its distance with the sign changed: higher is nearer."]
    piece = found.piece
    with np.errstate(over="ignore"):
        ms = found.times.astype(np.float64) * 1000.0
    if found.attributes.get("batch_mode") in (True, 1):
        left.append(LeftOut(found.times.size, "times of queries that were asked in batches", piece.name))
    elif not (np.isfinite(ms).all() and (ms >= 0).all()):
        raise InputError("A time is negative or no number.", where=f"{piece.name}, times")
    else:
        notes.append("Times converted from seconds to milliseconds; they are of the last of its repeats.")
        of_run = {"run_id": pl.lit(run.run_id), "stage": pl.lit("retrieve"), "repeat": pl.lit(1)}
        times = pl.DataFrame({"ms": ms}).with_columns(
            pl.int_range(pl.len()).cast(pl.String).alias("query_id"), **of_run
        )
    frames = frames_of(rankings=table, timings=times)
    return Import(runs=(run,), frames=frames, left_out=tuple(left), notes=tuple(notes))


def _run(found: hdf5.Found, label: str, options: Options) -> Run:
    algorithm, metric = found.text("algo"), found.text("distance")
    spec = {
        "index": algorithm or "unnamed index",
        "name": shown(label, 200),
        **({"metric": metric} if metric else {}),
    }
    decided = {"attributes": kept(found.attributes)}
    digest = found.piece.digest
    return imported_run(options, label, digest, importer=AnnBenchmarks.name, decided=decided, spec=spec)


def _rankings(found: hdf5.Found, run_id: str) -> tuple[pl.DataFrame, list[LeftOut]]:
    """Neighbours in the order of the file, each once, without padding."""
    queries, count = found.neighbors.shape
    given = found.distances
    scores = np.full(found.neighbors.shape, np.nan) if given is None else -given.astype(np.float64)
    rows = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), count),
            "passage": found.neighbors.reshape(-1),
            "score": scores.reshape(-1),
        }
    )
    real = rows.filter(pl.col("passage") >= 0)
    once = real.unique(["query_id", "passage"], keep="first", maintain_order=True)
    table = once.select(
        pl.lit(run_id).alias("run_id"),
        pl.col("query_id").cast(pl.String),
        pl.lit("final").alias("stage"),
        pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"),
        pl.col("passage").cast(pl.String).alias("passage_id"),
        pl.when(pl.col("score").is_finite()).then("score").alias("score"),
    )
    left = {
        "neighbours that were not found (−1)": rows.height - real.height,
        "neighbours that a list repeats: the first place counts": real.height - once.height,
    }
    return table, list(counted(left, found.piece.name))


def _exact(piece: Piece, count: int, options: Options) -> Import:
    """The nearest so many neighbours of every query as a golden set."""
    nearest = hdf5.read_truth(piece)[:, :count]
    queries, depth = nearest.shape
    rows = pl.DataFrame(
        {"query_id": np.repeat(np.arange(queries), depth), "passage_id": nearest.reshape(-1)}
    ).unique(maintain_order=True)
    rows = rows.filter(pl.col("passage_id") >= 0).with_columns(
        pl.col("query_id", "passage_id").cast(pl.String), grade=pl.lit(1), line=pl.int_range(1, pl.len() + 1)
    )
    if rows.is_empty():
        raise InputError("The data set holds no neighbours.", where=piece.name)
    made = golden_set(rows, piece.name, f"nearest-{depth}", options, "exact search")
    note = (
        f"{piece.name}: the {depth} exact neighbours of each query count as relevant, all others as unjudged."
    )
    return merged((made, Import(notes=(note,))))
