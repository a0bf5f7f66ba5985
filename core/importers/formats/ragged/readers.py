"""What readers of RAGGED answered: from the first k passages, from gold passages, or without any.

A reader's folder holds a folder per mode and in it ``top_<k>`` for every k; ``gold`` and ``no_context`` have
no depth. Answers of another mode than ``top_k`` were not written from what the retriever ranked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, counted, frames_of, merged
from core.importers.formats.ragged.files import kind, once
from core.importers.read.jsons import MOST_BYTES, Json, json_rows, number, optional
from core.importers.read.piece import Piece, Tree
from core.importers.read.text import place
from core.importers.samples import VALUE, graded_by, means
from core.records import Run

TOP_K = "top_k"
MODES: Mapping[str, str] = MappingProxyType(
    {
        "top_k": TOP_K, "top_positive": "gold_only", "top_negative": "no_gold", "gold": "gold",
        "no_context": "none",
    }
)  # fmt: skip
"""Folder → what answers were written from: the first k, the gold passages among all that were retrieved (the
first k of those), the first k that are not gold, all gold passages, nothing."""
_WITHOUT_K: Mapping[str, int | None] = MappingProxyType({"gold": None, "none": 0})
"""k of the modes that have no depth: not told, no passage."""
_TOP = re.compile(r"top_?(\d{1,6})")
_DEFAULT_GRADE = "f1"
_SAID = pl.Schema({"id": pl.String(), "input": pl.String(), "text": pl.String(), "line": pl.Int64()})


@dataclass(frozen=True)
class Said:
    """The answers of one file."""

    piece: Piece  # the file
    rows: pl.DataFrame  # id, input, text of the answer, line
    values: pl.DataFrame  # columns of `VALUE`: measures of each answer
    left: tuple[LeftOut, ...]  # what of it is not taken


@dataclass(frozen=True)
class Reader:
    """Answers that belong together."""

    name: str  # path of the folder without mode and depth
    mode: str  # a value of `MODES`
    files: Mapping[int | None, Said]  # k → the answers; k is None where it is not told

    @property
    def asked(self) -> pl.DataFrame:
        """id, input of all its questions."""
        return pl.concat([each.rows.select("id", "input") for each in self.files.values()])


@dataclass(frozen=True)
class _Spot:
    """Where a file lies: base folder, mode and k."""

    name: str
    mode: str
    k: int | None


def readers(files: Sequence[tuple[Piece, Tree]]) -> tuple[list[Reader], dict[str, str]]:
    """Group the files of readers."""
    spots: dict[_Spot, Piece] = {}
    lost: dict[str, str] = {}
    again: dict[str, str] = {}
    for piece, tree in sorted(files, key=lambda each: kind(each[0]) == "raw"):
        spot = _spot(piece, tree)
        if spot is None:
            lost[piece.name] = "from how many passages its answers were written is not known"
        elif spot not in spots:
            spots[spot] = piece
        elif kind(piece) == "raw":
            again[piece.name] = "its answers stand evaluated beside it"
        else:
            raise InputError(f"Two files hold the answers at k = {spot.k}.", where=piece.name)
    if lost and not spots:
        raise InputError(
            "From how many passages these answers were written is not known.",
            where=next(iter(lost)),
            do="Offer the reader's folder, with its folders top_1, top_2…",
        )
    held: dict[tuple[str, str], dict[int | None, Said]] = {}
    modes = list(MODES.values())
    for spot in sorted(spots, key=lambda each: (modes.index(each.mode), each.name, each.k or 0)):
        held.setdefault((spot.name, spot.mode), {})[spot.k] = _said(spots[spot])
    return [Reader(*key, said) for key, said in held.items()], lost | again


def _spot(piece: Piece, tree: Tree) -> _Spot | None:
    """Where a file lies, by its nearest folder of a depth, or of a mode without one; None without both."""
    folders = [] if tree.name == piece.relative else [tree.name, *piece.relative.split("/")[:-1]]
    above = list(piece.path.absolute().parts[:-1]) if piece.path else folders or [tree.parent]
    near = above[-max(len(folders), 3) :]
    bare = [each for each in near if each not in MODES and not _TOP.fullmatch(each)]
    for folder, parent in zip(reversed(near), [*reversed(near[:-1]), ""], strict=True):
        top, mode = _TOP.fullmatch(folder), MODES.get(folder, "")
        if top and int(top[1]):
            return _Spot("/".join(bare), MODES.get(parent, TOP_K), int(top[1]))
        if mode in _WITHOUT_K:
            return _Spot("/".join(bare), mode, _WITHOUT_K[mode])
    return None


def _said(piece: Piece) -> Said:
    """Read a file of answers."""
    said: list[tuple[str | None, str | None, str | None, int]] = []
    values: list[tuple[str, str, float | None]] = []
    others = 0
    for line, row in json_rows(piece, MOST_BYTES):
        where = place(piece.name, line)
        query = row.get("id")
        if isinstance(query, int) and not isinstance(query, bool):
            query = str(query)
        query = query if isinstance(query, str) else ""
        said.append((query, optional(row, "input", str, where), optional(row, "answer", str, where), line))
        given = optional(row, "answer_evaluation", dict, where) or {}
        measured = _measured(given, where)
        others += len(given) - len(measured)
        values += [(query, name, value) for name, value in measured.items()]
    rows = once(pl.DataFrame(said, schema=_SAID, orient="row"), piece.name)
    left = {"entries of answer_evaluation that are no numbers": others}
    return Said(piece, rows, pl.DataFrame(values, schema=VALUE, orient="row"), counted(left, piece.name))


def _measured(given: Json, where: str) -> dict[str, float | None]:
    """Measures of an answer: numbers, and flags as 1 and 0; null is one that is missing."""
    flags = {name: float(value) for name, value in given.items() if isinstance(value, bool)}
    plain = {
        name: number(given, name, where)
        for name, value in given.items()
        if value is None or (isinstance(value, int | float) and name not in flags)
    }
    return flags | plain


def answers(reader: Reader, run: Run, options: Options) -> Import:
    """The answers of a reader with their measures; of `TOP_K` the means too, as figures of the stack."""
    wanted = options.columns.get("grade")
    parts = []
    for k, said in reader.files.items():
        names = set(said.values["signal"])
        graded = graded_by(
            said.rows.select(pl.col("id").alias("query_id"), "text", pl.lit(k, pl.Int32).alias("k")),
            said.values.with_columns(pl.lit(k or None, pl.Int32).alias("k")),
            run.run_id,
            run.label,
            wanted or (_DEFAULT_GRADE if _DEFAULT_GRADE in names else None),
        )
        figures = means(said.values, run.run_id, k) if reader.mode == TOP_K else pl.DataFrame()
        parts.append(merged((graded, Import(frames=frames_of(aggregates=figures), left_out=said.left))))
    return merged(parts)
