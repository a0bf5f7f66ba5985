"""TREC runs (``qid iter docid rank score tag``) and qrels (``qid iter docid rel``), as trec_eval reads them.

Fields are separated by any number of blanks or tabs; lines that begin with ``#`` are comments; fields beyond
the known ones are reserved by trec_eval, ignored here and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import polars as pl

from core.errors import InputError
from core.importers.base import LIKELY, RESEMBLES, SURE, Format, Import, Options, counted, merged
from core.importers.judgements import golden_set
from core.importers.read.fields import field_blocks, read_fields
from core.importers.read.ordering import Ordered, TieOrder
from core.importers.read.piece import Piece, Tree, head_lines
from core.importers.read.rows import numbers
from core.importers.read.streamed import ordered_blocks
from core.importers.read.text import place, quoted
from core.importers.runs import collection_of, imported_run, rankings, run_labels

_RUN = ("query_id", "iteration", "passage_id", "rank", "score", "run")
_QRELS = ("query_id", "iteration", "passage_id", "grade")
_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:')
"""How a JSON object begins."""
_UNUSED = {"iteration": "trec_eval does not read it"}
_RUN_TAKEN, _QRELS_TAKEN = (tuple(name for name in names if name not in _UNUSED) for names in (_RUN, _QRELS))


class TrecRun(Format):
    """Rankings of one or several runs."""

    name, title, brings = "trec-run", "TREC run", ("rankings",)
    fields = (_RUN_TAKEN, _UNUSED)

    def sniff(self, probe: Tree) -> float:
        """Lines of six fields or more, of which the fifth is a number."""
        return _confidence(probe, _is_run, len(_RUN))

    def why_not(self, probe: Tree) -> str:
        """The first line that does not fit."""
        return _misfit(
            probe, _is_run, "a TREC run has 6: query, iteration, passage, rank, score (a number), tag"
        )

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read run files; each tag of each file is a run."""
        found, room = [], options.limits.rows_in_memory
        for tree in trees:
            found.append(_Read(tree.pieces[0], room, options.tie_order))
            room -= found[-1].in_memory
        own = [(tag, each.piece.stem) for each in found for tag in sorted(each.done.rules)]
        labels = iter(run_labels(own, options))
        return merged(self._import(each, labels, options) for each in found)

    def _import(self, each: _Read, labels: Iterator[str], options: Options) -> Import:
        runs = {
            tag: imported_run(
                options,
                next(labels),
                each.piece.digest,
                importer=self.name,
                decided={"order": rule, "tag": tag},
            )
            for tag, rule in sorted(each.done.rules.items())
        }
        made = Import(collections=collection_of(options, "imported: TREC"), runs=tuple(runs.values()))
        ids = {tag: run.run_id for tag, run in runs.items()}
        return merged((each.ignored, made, rankings(each.done, ids)))


class TrecQrels(Format):
    """Judgements of one golden set per file."""

    name, title, brings, names_collection = "trec-qrels", "TREC qrels", ("judgements",), 1
    fields = (_QRELS_TAKEN, _UNUSED)

    def sniff(self, probe: Tree) -> float:
        """Lines of four fields, of which the last is an integer."""
        return _confidence(probe, _is_qrels, len(_QRELS))

    def why_not(self, probe: Tree) -> str:
        """The first line that does not fit."""
        return _misfit(probe, _is_qrels, "TREC qrels have 4: query, iteration, passage, grade (an integer)")

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read qrels files; each is a golden set unless the options name one for all."""
        collection = Import(collections=collection_of(options, "imported: TREC"))
        return merged([collection, *(self._one(tree.pieces[0], options) for tree in trees)])

    def _one(self, piece: Piece, options: Options) -> Import:
        _refuse_json(piece)
        found = read_fields(
            piece, _QRELS, "This line has {n} fields, qrels have 4: query, iteration, passage, grade."
        )
        if found.longer == found.rows.height:
            raise InputError("Every line has more than 4 fields: this is not a qrels file.", where=piece.name)
        ignored = _ignored(found.comments, found.longer, found.first_longer, piece)
        return merged((ignored, golden_set(found.rows, piece.name, piece.stem, options, from_zero=True)))


class _Read:
    """A run file, read."""

    def __init__(self, piece: Piece, room: int, ties: TieOrder) -> None:
        _refuse_json(piece)
        head = _lines(piece)
        if head and all(len(fields) == len(_QRELS) for _, fields in head):
            raise InputError(
                "This is a qrels file (4 fields: query, iteration, passage, grade), not a run.",
                where=place(piece.name, head[0][0]),
                do="Offer it as trec-qrels, or let the format be recognised.",
            )
        self.piece = piece
        self._comments = self._longer = self._first_longer = 0
        self.done = ordered_blocks(self._blocks(), piece.name, room, ties)
        self.ignored = _ignored(self._comments, self._longer, self._first_longer, piece)
        self.in_memory = self.done.rows.height if isinstance(self.done, Ordered) else 0

    def _blocks(self) -> Iterator[pl.DataFrame]:
        """Rows to be ordered: run, stage, query_id, passage_id, rank, score, line."""
        short = "This line has {n} fields, a run has 6: query, iteration, passage, rank, score, tag."
        for part in field_blocks(self.piece, _RUN, short):
            self._comments += part.comments
            self._longer += part.longer
            self._first_longer = self._first_longer or part.first_longer
            if part.rows.height:
                # A rank that is no integer is not an error: trec_eval ignores the column; the scores decide.
                yield part.rows.with_columns(
                    pl.col("rank").cast(pl.Int64, strict=False),
                    numbers(part.rows, "score", self.piece.name).alias("score"),
                    pl.lit("final").alias("stage"),
                ).drop("iteration")


def _ignored(comments: int, longer: int, first_longer: int, piece: Piece) -> Import:
    notes = (f"{piece.name}: {comments} comment lines skipped.",) if comments else ()
    left = counted({"fields after the last known one": longer}, place(piece.name, first_longer))
    return Import(left_out=left, notes=notes)


def _lines(piece: Piece) -> tuple[tuple[int, list[str]], ...]:
    """Numbers and fields of the lines that hold data, from the head of the file."""
    return _fields_of(tuple(head_lines(piece)))


@lru_cache(maxsize=64)
def _fields_of(lines: tuple[str, ...]) -> tuple[tuple[int, list[str]], ...]:
    numbered = enumerate(lines, 1)
    return tuple((number, line.split()) for number, line in numbered if line.strip() and line[0] != "#")


def _confidence(probe: Tree, good: Callable[[list[str]], bool], fields: int) -> float:
    lines = _lines(probe.pieces[0]) if len(probe.pieces) == 1 else ()
    if not lines or _is_json(lines):
        return 0.0
    share = sum(good(line) for _, line in lines) / len(lines)
    if share >= 0.5 and not _has_header(lines, good):
        return SURE if share >= 0.9 else LIKELY
    near = sum(abs(len(line) - fields) <= 1 for _, line in lines) / len(lines)
    return RESEMBLES if max(share, near) >= 0.5 else 0.0


def _is_json(lines: Sequence[tuple[int, list[str]]]) -> bool:
    return _OBJECT.match(" ".join(lines[0][1])) is not None


def _has_header(lines: Sequence[tuple[int, list[str]]], good: Callable[[list[str]], bool]) -> bool:
    """Whether words stand in the first line where the others have numbers: then it is a table."""
    return len(lines) > 1 and not good(lines[0][1]) and len(lines[0][1]) == len(lines[1][1])


def _refuse_json(piece: Piece) -> None:
    """Refuse JSON lines, whose blanks part fields by chance."""
    lines = _lines(piece)
    if lines and _is_json(lines):
        raise InputError("A JSON object: this is no TREC file.", where=place(piece.name, lines[0][0]))


def _misfit(probe: Tree, good: Callable[[list[str]], bool], wanted: str) -> str:
    bad = next(((number, line) for number, line in _lines(probe.pieces[0]) if not good(line)), None)
    return f"line {bad[0]} has {len(bad[1])} fields, {quoted(' '.join(bad[1]))}; {wanted}" if bad else ""


def _is_run(fields: list[str]) -> bool:
    return len(fields) >= len(_RUN) and _is_number(fields[4])


def _is_qrels(fields: list[str]) -> bool:
    return len(fields) == len(_QRELS) and fields[3].lstrip("+-").isdigit()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
