"""TREC runs (``qid iter docid rank score tag``) and qrels (``qid iter docid rel``), parsed like trec_eval.

Fields are separated by any number of blanks or tabs, or by tabs alone on a line that has enough of them: then
all fields but the last may contain blanks. Elsewhere a line that could be read with such an id is refused.
Lines that begin with ``#`` are comments; trec_eval reserves further fields, which are ignored and counted.

Lines become a frame without a Python loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.errors import InputError
from core.importers.base import LIKELY, RESEMBLES, SURE, Format, Import, Options, counted, merged
from core.importers.judgements import golden_set
from core.importers.read.member import Archive, Member, head_lines, members_of, per_member
from core.importers.read.ordering import Ordered
from core.importers.read.rows import again, identified, numbers, refuse, without_repeats
from core.importers.read.streamed import ordered_blocks
from core.importers.read.text import LineBlock, blocks, place, quoted
from core.importers.report import FileReport
from core.importers.runs import collection_frames, collection_of, imported_run, rankings, run_labels

_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 11, 12, 13, 32]] = True
_NEWLINE, _TAB, _HASH = 10, 9, ord("#")
_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_BLANKS = "More fields between blanks than {n}: an id may hold a blank."
_BLANK_IDS = "Ids hold blanks only where tabs part the fields of a line; else such a line is refused."
_TABS = "Separate the fields by tabs, or write ids without blanks."
_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:')  # How a JSON object begins
_HEAD_OF_TOPICS = {"query_id", "qid", "id", "query-id", "_id", "query", "text", "title", "question"}
_UNUSED = {"iteration": "trec_eval does not read it"}


@dataclass(frozen=True, slots=True)
class _Fields:
    rows: pl.DataFrame  # one text column for each wanted field, and `line`
    comments: int = 0  # lines that begin with ``#``
    longer: int = 0  # lines with more fields than wanted
    first_longer: int = 0  # number of the first of them, or 0


class _File:
    """A file of fields separated by any number of blanks or tabs; blank lines do not count."""

    def __init__(self, member: Member, kind: _Kind) -> None:
        lines = _lines(member)
        if lines and _is_json(lines):  # its blanks separate fields only by chance
            raise InputError("A JSON object: this is not a TREC file.", where=place(member.name, lines[0][0]))
        self.member, self._kind = member, kind
        self._comments = self.longer = self._first_longer = 0

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of the file, block by block."""
        any_data = False
        for block in blocks(self.member):
            part = _block(self.member, block, self._kind)
            self._comments += part.comments
            self.longer += part.longer
            self._first_longer = self._first_longer or part.first_longer
            if part.rows.height:
                any_data = True
                yield part.rows
        if not any_data:
            raise InputError("The file holds no lines of data.", where=self.member.name)

    @property
    def ignored(self) -> Import:
        """Return the skipped lines, after all blocks were read."""
        name = self.member.name
        notes = (f"{name}: {self._comments} comment lines skipped.",) if self._comments else ()
        left = counted({"fields after the last known one": self.longer}, place(name, self._first_longer))
        return Import(left_out=left, notes=notes)


def _block(member: Member, block: LineBlock, kind: _Kind) -> _Fields:
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    rows = _regular(data, kind.columns)
    if rows is None:
        return _irregular(member, data, block.first_line, kind)
    first = block.first_line
    rows = rows.with_columns(pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("line"))
    if len(data) > member.limits.cell_bytes:
        _refuse_long(member, rows, kind.columns)
    return _Fields(rows)


def _regular(data: bytes, columns: Sequence[str]) -> pl.DataFrame | None:
    """Read a block whose every line is the wanted fields between single blanks, or between single tabs.

    Most files are like this, and counting and searching suffice to recognise it.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    ends = text == _NEWLINE
    lines = int(np.count_nonzero(ends))
    for mark, others in ((b" ", b"\t\r\v\f"), (b"\t", b" \r\v\f")):
        marks = text == mark[0]
        if np.count_nonzero(marks) != lines * (len(columns) - 1) or any(other in data for other in others):
            continue
        marks |= ends
        # Two separators side by side mean an empty field, an empty line, or blanks around a line.
        if marks[0] or (marks[1:] & marks[:-1]).any() or data[0] == _HASH or b"\n#" in data:
            return None
        rows = _parse(data, columns, mark.decode())
        # The counts balance: a line with too many separators may hide one with too few.
        fits = rows.height == lines and not rows[columns[-1]].null_count()
        return rows if fits else None
    return None


def _irregular(member: Member, data: bytes, first_line: int, kind: _Kind) -> _Fields:
    """Read a block with any mix of fields, blanks and tabs, comments and blank lines."""
    columns, text = kind.columns, np.frombuffer(data, dtype=np.uint8)
    newline = text == _NEWLINE
    token = ~(_SPACE[text] | newline)
    before = np.concatenate(([False], token[:-1]))
    ends = np.flatnonzero(newline)
    starts = np.concatenate(([0], ends[:-1] + 1))
    counts = np.add.reduceat((token & ~before).astype(np.int32), starts)
    comment = text[starts] == _HASH
    wanted = (counts > 0) & ~comment
    tabs = text == _TAB
    field = np.cumsum(tabs)
    field -= np.repeat(field[starts] - tabs[starts], ends - starts + 1)
    tabbed = wanted & (_between_tabs(field, token & ~before, starts, len(columns)) == len(columns))
    if tabbed.any():
        inner = np.repeat(tabbed, ends - starts + 1) & (field < len(columns) - 1)
        token |= inner & ~(tabs | newline)
        before = np.concatenate(([False], token[:-1]))
        counts = np.add.reduceat((token & ~before).astype(np.int32), starts)
    few = np.flatnonzero(wanted & (counts < len(columns)))
    if few.size:
        line = data[starts[few[0]] : ends[few[0]]].decode()
        where = place(member.name, first_line + int(few[0]))
        problem = f"{kind.short.format(n=int(counts[few[0]]))} The line reads {quoted(line)}."
        raise InputError(problem, where=where)
    # With one tab after each field and none before, polars reads a plain tab-separated text.
    kept = token | newline | before
    kept &= np.repeat(wanted, ends - starts + 1)
    tidy = np.where(token | newline, text, np.uint8(_TAB))[kept].tobytes()
    lines = np.flatnonzero(wanted)
    longer = np.flatnonzero(wanted & (counts > len(columns)))
    parted = longer[~tabbed[longer]]
    _refuse_blanks([(int(at) + first_line, data[starts[at] : ends[at]]) for at in parted], member.name, kind)
    around = pl.col(columns).str.strip_chars(" \r\v\f") if tabbed.any() else pl.col(columns)
    numbered = pl.Series("line", (lines + first_line).astype(np.int64))
    rows = _parse(tidy, columns).with_columns(around, numbered)
    _refuse_long(member, rows, columns)
    first = int(longer[0]) + first_line if longer.size else 0
    return _Fields(rows, int(comment.sum()), int(longer.size), first)


def _between_tabs(field: np.ndarray, begins: np.ndarray, starts: np.ndarray, most: int) -> np.ndarray:
    """Count, for every line, how many of its first fields between tabs are not empty."""
    at = np.flatnonzero(begins)
    line = np.searchsorted(starts, at, side="right") - 1
    new = np.ones(at.size, dtype=bool)
    new[1:] = (field[at[1:]] != field[at[:-1]]) | (line[1:] != line[:-1])
    return np.bincount(line[new & (field[at] < most)], minlength=starts.size)


def _refuse_blanks(lines: Sequence[tuple[int, bytes]], name: str, kind: _Kind) -> None:
    """Refuse the first of some long lines that reads well with a blank in an id, or only so."""
    texts = pl.DataFrame(lines, schema={"line": pl.Int64, "text": pl.Binary}, orient="row")
    text = pl.col("text").cast(pl.String)
    sure = text.str.contains(kind.fits) & ~text.str.contains(kind.shifted)
    bad = texts.with_columns(text).filter(~sure)
    refuse(bad, f"{kind.long} The line reads {{text}}.", name, do=_TABS)


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


def _refuse_long(member: Member, rows: pl.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        long = rows.filter(pl.col(column).str.len_bytes() > member.limits.cell_bytes)
        refuse(long, f"A field is longer than {member.limits.cell_bytes:,} bytes.", member.name, column)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The format of a file's lines."""

    columns: tuple[str, ...]
    short: str  # message for a line with too few fields
    long: str  # message for a line with too many fields, if it is unclear which they are
    fits: str  # pattern of a longer line whose first fields are valid
    shifted: str  # pattern of a line that a blank in an id may have lengthened


_RUN = _Kind(
    ("query_id", "iteration", "passage_id", "rank", "score", "run"),
    "This line has {n} fields, a run has 6: query, iteration, passage, rank, score, tag.",
    _BLANKS.format(n=6),
    rf"^\s*(\S+\s+){{3}}[-+]?\d*\s+{_NUMBER}\s",
    rf"\s[-+]?\d+\s+{_NUMBER}\s+\S+\s*$|^\s*\S+\s+\S+\s+[Qq]0\s",
)
_QRELS = _Kind(
    ("query_id", "iteration", "passage_id", "grade"),
    "This line has {n} fields, qrels have 4: query, iteration, passage, grade.",
    _BLANKS.format(n=4),
    r"^\s*(\S+\s+){3}[-+]?\d+\s",
    r"\s[-+]?\d+\s*$",
)
_MARCO = _Kind(
    ("query_id", "passage_id", "rank"),
    "This line has {n} fields, a run of MS MARCO has 3: query, passage, rank.",
    _BLANKS.format(n=3),
    r"^\s*(\S+\s+){2}\d+\s",
    r"\s\d+\s*$",
)
_TOPIC = _Kind(("query_id", "text"), "This line has {n} fields; topics have 2: query, text.", "", "", "")


class TrecRun(Format):
    """Rankings of one or several runs."""

    name, title, takes = "trec-run", "TREC run", {"rankings": ""}
    recognised = "Lines of six fields or more, of which the fifth is a number"
    traps = (_BLANK_IDS,)
    lines = _RUN

    def sniff(self, probe: Archive) -> float:
        return _confidence(probe, _is_run, len(_RUN.columns))

    def why_not(self, probe: Archive) -> str:
        wanted = "a TREC run has 6: query, iteration, passage, rank, score (a number), tag"
        return _misfit(probe, _RUN, _is_run, wanted)

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        return _accounts(archives, self.lines.columns)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read each tag of each file as a run."""
        files, room = [], options.limits.rows_in_memory
        for member in members_of(archives):
            file = _File(member, self.lines)
            if self.lines is _RUN:
                _refuse_qrels(member)
            done = ordered_blocks(_ranked(file), member.name, room, options.tie_order)
            room -= done.rows.height if isinstance(done, Ordered) else 0
            files.append((file, done))
        own = [(tag, file.member.stem) for file, done in files for tag in sorted(done.rules)]
        labels = iter(run_labels(own, options))
        parts = [Import(collections=collection_of(options, "imported: TREC"))]
        for file, done in files:
            runs = {
                tag: imported_run(
                    options,
                    next(labels),
                    file.member.digest,
                    importer=self.name,
                    decided={"order": rule, "tag": tag},
                )
                for tag, rule in sorted(done.rules.items())
            }
            ids = {tag: run.run_id for tag, run in runs.items()}
            parts += [file.ignored, Import(runs=tuple(runs.values())), rankings(done, ids)]
        return merged(parts)


class MsMarcoRun(TrecRun):
    """Rankings of one run, without scores."""

    name, title, takes = "msmarco-run", "MS MARCO run", {"rankings": "without scores"}
    recognised = "Lines of query, passage and rank, which counts 1..n for each query"
    lines = _MARCO

    def sniff(self, probe: Archive) -> float:
        rows = [_fields(line, 3) for _, line in _lines(probe.members[0])] if len(probe.members) == 1 else []
        if not rows or not all(len(row) == 3 and row[2].isdecimal() for row in rows):
            return 0.0
        next_rank: dict[str, int] = {}
        for query, _, rank in rows:
            if int(rank) != next_rank.setdefault(query, 1):
                return 0.0
            next_rank[query] += 1
        return SURE if max(next_rank.values()) > 2 else 0.0  # a 1 after each passage may be a grade

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return ""


class Topics(Format):
    """Queries with their texts."""

    name, title, takes = "topics", "Topics (query, tab, text)", {"queries": ""}
    recognised = "Lines of an id, a tab and a text; the file's name or header says query, topic or question"
    traps = ("A file of ids and texts that is not called so is taken where --as topics says so.",)

    def sniff(self, probe: Archive) -> float:
        rows = [line.split("\t") for _, line in _lines(probe.members[0])] if len(probe.members) == 1 else []
        if not rows or not all(len(row) == 2 and row[0].strip() and row[1].strip() for row in rows):
            return 0.0
        texts = any(" " in text for _, text in rows)
        names = " ".join((probe.members[0].stem, *(rows[0] if set(rows[0]) <= _HEAD_OF_TOPICS else ())))
        asked = re.search(r"quer(y|ies)|topic|question|qid", names.lower()) is not None
        return 0.0 if not texts else SURE if asked else RESEMBLES + 0.1

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return "the file's name does not say that it holds queries. If it does, say so (--as topics)"

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        return _accounts(archives, _TOPIC.columns)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read each file; a first line that names the columns is not a query."""
        parts = [Import(collections=collection_of(options, "imported: topics"))]
        for member in members_of(archives):
            rows = pl.concat([_topics(member, block) for block in blocks(member)])
            if set(rows.select(pl.col("query_id", "text").str.to_lowercase()).row(0)) <= _HEAD_OF_TOPICS:
                rows = rows[1:]
            alike = again(identified(rows, member.name, "query_id", "text"), "query_id", "text")["line"]
            first = place(member.name, alike[0] if len(alike) else None)
            left = counted({"queries that stand twice, alike: they count once": len(alike)}, first)
            rows = without_repeats(rows)
            refuse(again(rows, "query_id"), "The query {query_id} stands twice.", member.name)
            parts.append(Import(frames=collection_frames(options, rows.drop("line")), left_out=left))
        return merged(parts)


def _topics(member: Member, block: LineBlock) -> pl.DataFrame:
    numbered = enumerate(block.data.decode().split("\n"), block.first_line)
    lines = [(number, *line.partition("\t")) for number, line in numbered if line.strip()]
    if bad := next((number for number, _, tab, _ in lines if not tab), None):
        raise InputError(_TOPIC.short.format(n=1), where=place(member.name, bad))
    schema = {"line": pl.Int64, "query_id": pl.String, "text": pl.String}
    rows = [(number, query.strip(), text.strip()) for number, query, _, text in lines]
    return pl.DataFrame(rows, schema=schema, orient="row")


class TrecQrels(Format):
    """Judgements of one golden set per file."""

    name, title, takes = "trec-qrels", "TREC qrels", {"judgements": ""}
    recognised = "Lines of four fields, of which the last is an integer"
    traps = (_BLANK_IDS,)
    names_collection = 1

    def sniff(self, probe: Archive) -> float:
        return _confidence(probe, _is_qrels, len(_QRELS.columns))

    def why_not(self, probe: Archive) -> str:
        wanted = "TREC qrels have 4: query, iteration, passage, grade (an integer)"
        return _misfit(probe, _QRELS, _is_qrels, wanted)

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        return _accounts(archives, _QRELS.columns)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read each file as a golden set unless the options name one for all."""
        parts = [Import(collections=collection_of(options, "imported: TREC"))]
        for member in members_of(archives):
            file = _File(member, _QRELS)
            rows = pl.concat(list(file.blocks()), rechunk=True)
            if file.longer == rows.height:
                problem = "Every line has more than 4 fields: this is not a qrels file."
                raise InputError(problem, where=member.name)
            parts += [file.ignored, golden_set(rows, member.name, member.stem, options, from_zero=True)]
        return merged(parts)


def _accounts(archives: Sequence[Archive], fields: Sequence[str]) -> Iterator[FileReport]:
    taken = tuple(name for name in fields if name not in _UNUSED)
    unused = {name: why for name, why in _UNUSED.items() if name in fields}
    return (FileReport(member.name, "field", taken, unused) for member in members_of(archives))


def _refuse_qrels(member: Member) -> None:
    head = _lines(member)
    if head and all(len(_fields(line, 4)) == 4 for _, line in head):
        raise InputError(
            "This is a qrels file (4 fields: query, iteration, passage, grade), not a run.",
            where=place(member.name, head[0][0]),
            do="Offer it as trec-qrels, or let the format be recognised.",
        )


def _ranked(file: _File) -> Iterator[pl.DataFrame]:
    """Yield rows to be ordered: run, stage, query_id, passage_id, rank, score, line."""
    for rows in map(_completed, file.blocks()):
        # A rank that is not an integer isn't an error: trec_eval ignores the column, and the scores decide.
        rank = pl.col("rank").cast(pl.Int64, strict=False)
        _refuse_shifted(rows.filter(rank.is_null() | (pl.col("passage_id") == "Q0")), file.member.name)
        yield rows.with_columns(
            rank, score=numbers(rows, "score", file.member.name), stage=pl.lit("final")
        ).drop("iteration")


def _completed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return lines of a run with all fields; those of MS MARCO lack a tag and a score."""
    absent = {"run": pl.lit(""), "iteration": pl.lit(""), "score": pl.lit(None, pl.String)}
    return rows if "score" in rows.columns else rows.with_columns(**absent)


def _refuse_shifted(rows: pl.DataFrame, name: str) -> None:
    """Refuse lines whose fields are shifted by one because an id contains a blank and the tag is missing."""
    number = {column: pl.col(column).cast(pl.Float64, strict=False).is_not_null() for column in _RUN.columns}
    bad = rows.filter(number["run"] & (~number["rank"] & number["score"] | (pl.col("passage_id") == "Q0")))
    problem = "The rank is {rank}, the score {score} and the tag {run}: an id may hold a blank."
    refuse(bad, problem, name, do=_TABS)


@per_member
def _lines(member: Member) -> list[tuple[int, str]]:
    """Return numbers and texts of the lines that hold data, from the head of the file."""
    numbered = enumerate(head_lines(member), 1)
    return [(number, line) for number, line in numbered if line.strip() and line[0] != "#"]


def _fields(line: str, least: int) -> list[str]:
    """Return the fields of a line: between tabs if it has enough of them, else between blanks."""
    *tabbed, last = [field.strip() for field in line.split("\t", least - 1)]
    apart = len(tabbed) == least - 1 and all(tabbed) and last and "\r" not in line
    return [*tabbed, *last.split()] if apart else line.split()


def _confidence(probe: Archive, good: Callable[[list[str]], bool], fields: int) -> float:
    numbered = _lines(probe.members[0]) if len(probe.members) == 1 else []
    if not numbered or _is_json(numbered):
        return 0.0
    lines = [_fields(line, fields) for _, line in numbered]
    share = sum(map(good, lines)) / len(lines)
    first, second = lines[0], lines[1] if len(lines) > 1 else []
    # Words in a first line above numbers make the file a table.
    if share >= 0.5 and (good(first) or len(first) != len(second)):
        return SURE if share >= 0.9 else LIKELY
    near = sum(abs(len(line) - fields) <= 1 for line in lines) / len(lines)
    return RESEMBLES if max(share, near) >= 0.5 else 0.0


def _is_json(lines: Sequence[tuple[int, str]]) -> bool:
    return _OBJECT.match(" ".join(lines[0][1].split())) is not None


def _misfit(probe: Archive, kind: _Kind, good: Callable[[list[str]], bool], wanted: str) -> str:
    lines = ((number, _fields(line, len(kind.columns))) for number, line in _lines(probe.members[0]))
    bad = next(((number, line) for number, line in lines if not good(line)), None)
    return f"line {bad[0]} has {len(bad[1])} fields, {quoted(' '.join(bad[1]))}; {wanted}" if bad else ""


def _is_run(fields: list[str]) -> bool:
    return len(fields) >= len(_RUN.columns) and _is_number(fields[4])


def _is_qrels(fields: list[str]) -> bool:
    return len(fields) == len(_QRELS.columns) and fields[3].lstrip("+-").isdigit()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
