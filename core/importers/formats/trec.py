"""TREC runs (``qid iter docid rank score tag``) and qrels (``qid iter docid rel``), as trec_eval reads them.

Fields are separated by any number of blanks or tabs; lines that begin with ``#`` are comments; fields beyond
the known ones are reserved by trec_eval, ignored here and counted.

Lines of blank-separated fields into a frame, without a Python loop over the lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.base import LIKELY, RESEMBLES, SURE, Format, Import, Options, counted, merged
from core.importers.judgements import golden_set
from core.importers.read.ordering import Ordered, TieOrder
from core.importers.read.piece import Piece, Tree, head_lines
from core.importers.read.rows import numbers
from core.importers.read.streamed import ordered_blocks
from core.importers.read.text import Block, blocks, place, quoted
from core.importers.runs import collection_of, imported_run, rankings, run_labels

_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 11, 12, 13, 32]] = True
_NEWLINE, _TAB, _HASH = 10, 9, ord("#")


@dataclass(frozen=True, slots=True)
class Fields:
    """What a file of fields held."""

    rows: pl.DataFrame  # one text column for each wanted field, and `line`
    comments: int  # lines that begin with ``#``
    longer: int  # lines with more fields than wanted, and the first of them
    first_longer: int  # its line; 0 if there is none


def read_fields(piece: Piece, columns: Sequence[str], short: str) -> Fields:
    """Read a file of fields separated by any number of blanks or tabs; blank lines do not count."""
    parts = list(field_blocks(piece, columns, short))
    return Fields(
        pl.concat([part.rows for part in parts], rechunk=True),
        sum(part.comments for part in parts),
        sum(part.longer for part in parts),
        next((part.first_longer for part in parts if part.longer), 0),
    )


def field_blocks(piece: Piece, columns: Sequence[str], short: str) -> Iterator[Fields]:
    """Read a file as `read_fields` does, block by block; arguments and errors as there."""
    any_data = False
    for block in blocks(piece):
        part = _block(piece, block, columns, short)
        any_data |= part.rows.height > 0
        if part.rows.height or part.comments:
            yield part
    if not any_data:
        raise InputError("The file holds no lines of data.", where=piece.name)


def _block(piece: Piece, block: Block, columns: Sequence[str], short: str) -> Fields:
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    rows = _regular(data, columns)
    if rows is None:
        return _irregular(piece, data, block.first_line, columns, short)
    first = block.first_line
    rows = rows.with_columns(pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("line"))
    if len(data) > piece.limits.cell_bytes:
        _refuse_long(piece, rows, columns)
    return Fields(rows, 0, 0, 0)


def _regular(data: bytes, columns: Sequence[str]) -> pl.DataFrame | None:
    """Read a block whose every line is the wanted fields between single blanks, or between single tabs.

    Most files are like this, and need nothing but counting and searching to be known so.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    ends = text == _NEWLINE
    lines = int(np.count_nonzero(ends))
    for mark, others in ((b" ", b"\t\r\v\f"), (b"\t", b" \r\v\f")):
        marks = text == mark[0]
        if np.count_nonzero(marks) != lines * (len(columns) - 1) or any(each in data for each in others):
            continue
        marks |= ends
        # Two of them side by side are an empty field, an empty line, or blanks around a line.
        if marks[0] or (marks[1:] & marks[:-1]).any() or data[0] == _HASH or b"\n#" in data:
            return None
        rows = _parse(data, columns, mark.decode())
        # As many separators as lines need: a line with too many stands against one with too few.
        fits = rows.height == lines and not rows[columns[-1]].null_count()
        return rows if fits else None
    return None


def _irregular(piece: Piece, data: bytes, first_line: int, columns: Sequence[str], short: str) -> Fields:
    """Read a block of any fields, blanks and tabs, comments and blank lines."""
    text = np.frombuffer(data, dtype=np.uint8)
    newline = text == _NEWLINE
    token = ~(_SPACE[text] | newline)
    before = np.concatenate(([False], token[:-1]))
    ends = np.flatnonzero(newline)
    starts = np.concatenate(([0], ends[:-1] + 1))
    counts = np.add.reduceat((token & ~before).astype(np.int32), starts)
    comment = text[starts] == _HASH
    wanted = (counts > 0) & ~comment
    few = np.flatnonzero(wanted & (counts < len(columns)))
    if few.size:
        line = data[starts[few[0]] : ends[few[0]]].decode()
        where = place(piece.name, first_line + int(few[0]))
        found = f"{short.format(n=int(counts[few[0]]))} The line reads {quoted(line)}."
        raise InputError(found, where=where)
    # One tab after each field, none before: polars then reads a plain tab-separated text.
    kept = token | newline | before
    kept &= np.repeat(wanted, ends - starts + 1)
    tidy = np.where(token | newline, text, np.uint8(_TAB))[kept].tobytes()
    lines = np.flatnonzero(wanted)
    longer = np.flatnonzero(wanted & (counts > len(columns)))
    rows = _parse(tidy, columns).with_columns(pl.Series("line", (lines + first_line).astype(np.int64)))
    _refuse_long(piece, rows, columns)
    first = int(longer[0]) + first_line if longer.size else 0
    return Fields(rows, int(comment.sum()), int(longer.size), first)


def _parse(tidy: bytes, columns: Sequence[str], separator: str = "\t") -> pl.DataFrame:
    schema = dict.fromkeys(columns, pl.String)
    if not tidy:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        tidy,
        separator=separator,
        has_header=False,
        quote_char=None,
        schema=schema,
        truncate_ragged_lines=True,
        extra_columns="ignore",
    )


def _refuse_long(piece: Piece, rows: pl.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        long = rows.filter(pl.col(column).str.len_bytes() > piece.limits.cell_bytes)
        if long.height:
            raise InputError(
                f"A field is longer than {piece.limits.cell_bytes:,} bytes.",
                where=place(piece.name, long["line"][0], column),
            )


_RUN = ("query_id", "iteration", "passage_id", "rank", "score", "run")
_QRELS = ("query_id", "iteration", "passage_id", "grade")
_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:')  # How a JSON object begins
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
