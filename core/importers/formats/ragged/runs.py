"""Runs of RAGGED's files: a retriever with the answers of every reader that read its passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from core.answers import CLOSED_BOOK, GOLD, TOP_K
from core.importers.base import Import, Options, frames_of, merged
from core.importers.formats.ragged.files import lists
from core.importers.formats.ragged.readers import Reader, answers, figures
from core.importers.read.piece import Piece, digest_of
from core.importers.read.text import shown
from core.importers.runs import imported_run, run_labels
from core.records import JsonMap, Run

NAME = "ragged"
_ROOTS = ("reader_results", "retriever_results", "predictions")
"""Folders of the tool that say nothing in a label."""
_ORACLES = (
    "gold_only took the first k gold passages of all that were retrieved, not those among the first k; "
    "answers from gold passages or without any stand with each retriever that their reader read."
)


@dataclass(frozen=True)
class Retriever:
    """A retriever's lists: its path, its file, and its rows as `retrieved` gives them."""

    name: str
    piece: Piece
    rows: pl.DataFrame

    @property
    def asked(self) -> pl.DataFrame:
        """id, input of its questions."""
        return self.rows.select("id", "input")


def runs(retrievers: Sequence[Retriever], reading: Sequence[Reader], options: Options) -> list[Import]:
    """A run per retriever with the answers of its readers; per reader and mode where none was read."""
    read = [(reader, _read_by(reader, retrievers, reading)) for reader in reading]
    alone = [reader for reader, theirs in read if not theirs]
    several = len(retrievers) > 1
    own = [(_retriever_label(each, several=several), each.piece.stem) for each in retrievers]
    own += [(_reader_label(each), "") for each in alone]
    labels = run_labels(own, options)
    parts = []
    for retriever, label in zip(retrievers, labels, strict=False):
        theirs = [reader for reader, them in read if any(each is retriever for each in them)]
        parts.append(_searched(retriever, _named(theirs, retrievers), label, options))
    parts += [
        _alone(reader, label, options) for reader, label in zip(alone, labels[len(retrievers) :], strict=True)
    ]
    return [*parts, Import(notes=(_ORACLES,) * any(reader.mode != TOP_K for reader in reading))]


def _read_by(reader: Reader, retrievers: Sequence[Retriever], reading: Sequence[Reader]) -> list[Retriever]:
    """The retriever whose output a reader read: the only one, or the only one that its path names.

    Where the path names none, gold passages and no passages are of all that the same reader read.
    """
    if len(retrievers) == 1:
        return list(retrievers)
    parts = [_parts(each.name) for each in retrievers]
    named = [
        each
        for each, mine in zip(retrievers, parts, strict=True)
        if (mine - set().union(*(other for other in parts if other is not mine))) & _parts(reader.name)
    ]
    if len(named) == 1 or reader.mode not in (GOLD, CLOSED_BOOK):
        return named if len(named) == 1 else []
    base = _base(reader, retrievers)
    same = [each for each in reading if each.mode == TOP_K and _base(each, retrievers) == base]
    ids = {id(found) for each in same for found in _read_by(each, retrievers, reading)}
    return [each for each in retrievers if id(each) in ids]


def _parts(path: str) -> set[str]:
    return {part.removesuffix(".jsonl") for part in path.lower().split("/")}


def _folders(reader: Reader) -> list[str]:
    """The folders of a reader after the one that the tool keeps all readers in."""
    folders = reader.name.split("/")
    root = next((at for at, each in enumerate(folders, 1) if each in _ROOTS), 0)
    return folders[root:] or folders


def _base(reader: Reader, retrievers: Sequence[Retriever]) -> tuple[str, ...]:
    """The folders of a reader that no retriever has: its name, and the data set's where that is told."""
    known = set().union(*(_parts(each.name) for each in retrievers))
    folders = _folders(reader)
    return tuple(each for each in folders if each.lower() not in known) or (folders[-1],)


def _named(reading: Sequence[Reader], retrievers: Sequence[Retriever]) -> list[tuple[Reader, str]]:
    """What readers of one retriever are called: by the first of their own folders where that is enough."""
    bases = [_base(each, retrievers) for each in reading]
    short = Counter((base[0], each.mode) for base, each in zip(bases, reading, strict=True))
    whole = any(times > 1 for times in short.values())
    names = [" · ".join(base) if whole else base[0] for base in bases]
    return [(each, shown(name, 200)) for each, name in zip(reading, names, strict=True)]


def _retriever_label(retriever: Retriever, *, several: bool) -> str:
    folders = retriever.name.split("/")[:-1]
    return " · ".join([*folders[-1:], retriever.piece.stem] if several else [retriever.piece.stem])


def _reader_label(reader: Reader) -> str:
    return " · ".join([*_folders(reader), *([] if reader.mode == TOP_K else [reader.mode])])


def _searched(
    retriever: Retriever, reading: Sequence[tuple[Reader, str]], label: str, options: Options
) -> Import:
    """The run of a retriever; what was answered from it is no part of its identity."""
    sparse = "bm25" in retriever.name.lower()
    kind = {"mode": "sparse", "sparse": "bm25"} if sparse else {"retriever": shown(retriever.piece.stem)}
    decided = {"retriever": shown(retriever.name), "ks": []}
    run = _run([retriever.piece], label, decided, kind, options)
    rows = lists(retriever.rows, retriever.piece)
    ranked = rows.with_columns(run_id=pl.lit(run.run_id), stage=pl.lit("final"))
    said = [answers(reader, run, name, options) for reader, name in reading]
    return merged((Import(runs=(run,), frames=frames_of(rankings=ranked)), *said))


def _alone(reader: Reader, label: str, options: Options) -> Import:
    """The run of a reader of which it is not known what it read, or of one of its other modes."""
    oracle = reader.mode != TOP_K
    decided = {
        "retriever": None,
        "ks": list(reader.files),
        **({"passages": reader.mode} if oracle else {}),
    }
    run = _run([said.piece for said in reader.files.values()], label, decided, {}, options)
    said = answers(reader, run, shown(" · ".join(_folders(reader)), 200), options)
    note = f"{shown(label)}: what it read is not known, so it has no rankings."
    means = Import() if oracle else figures(reader, run)
    return merged((Import(runs=(run,), notes=() if oracle else (note,)), said, means))


def _run(pieces: Sequence[Piece], label: str, decided: JsonMap, axes: JsonMap, options: Options) -> Run:
    spec = {"name": shown(label, 200), **axes}
    digest = digest_of(pieces)
    return imported_run(options, label, digest, importer=NAME, decided=decided, spec=spec)
