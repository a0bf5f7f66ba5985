"""Runs and qrels of ranx: {query: {passage: score}} as JSON, plain or packed (.lz4, .gz), or as CBOR (.lz4).

Both have the same shape. The file name decides if it states which one it is. Otherwise scores that are small
integers in no particular order are grades; if both are possible, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, merged
from core.importers.judgements import golden_set, said_by_name
from core.importers.read.jsons import MOST_BYTES, Json, at, kind_of_value, read_object
from core.importers.read.member import MIB, Archive, Member, per_member
from core.importers.read.rows import identified, refuse
from core.importers.read.streamed import ordered_blocks
from core.importers.read.tabular import PARQUET, read_table
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, file_report
from core.importers.runs import collection_of, imported_run, rankings, run_labels

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SHAPE = re.compile(r"\{(?:S:\{(?:S:[-+.\deE]+,?)*\},?)*(?:S:\{(?:S:[-+.\deE]+,?)*)?\}?\}?(?:S(?::\{?)?)?")
_MAP, _CBOR_TEXT = 5, 3
_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(\{|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)')
_MEASURE = re.compile(
    r".*@\d+.*|(?:n?dcg|map|mrr|recall|precision|hit|acc|f1|bleu|rouge).*|ap|rr|p|r", re.IGNORECASE
)
_LONG = 10  # Mean number of pairs from which on an unordered object of objects is taken for rankings
_MOST_GRADE = 5
_COLUMNS = {"q_id": "query_id", "doc_id": "passage_id", "score": "score"}
"""Columns that ranx writes to Parquet → ours."""
_RUN, _QRELS, _EITHER, _UNLIKELY = 0.9, 0.9, 0.85, 0.4


class RanxRun(Format):
    """Scores of passages per query."""

    name, title = "ranx-run", "ranx run (JSON, LZ4)"
    takes = {"rankings": "every passage with its score, ordered by score as trec_eval does"}
    recognised = "a JSON object of objects of numbers, by the name of the file, else by how they fall"

    def sniff(self, probe: Archive) -> float:
        return _confidence(probe.members[0])[0] if len(probe.members) == 1 else 0.0

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        return (FileReport(archive.members[0].name, "key", ("*",)) for archive in archives)

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return "its lists are short and their scores do not fall. If it is a run, say so (--as ranx-run)"

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        labels = iter(run_labels([("", archive.stem) for archive in archives], options))
        parts = [Import(collections=collection_of(options, "ranx files"))]
        for archive in archives:
            member = archive.members[0]
            rows = _rows(member).with_columns(
                pl.lit("").alias("run"), pl.lit("final").alias("stage"), pl.lit(None, pl.Int64).alias("rank")
            )
            done = ordered_blocks([rows], member.name, rows.height, options.tie_order)
            run = imported_run(
                options, next(labels), member.digest, importer=self.name, decided={"order": done.rules[""]}
            )
            parts += [Import(runs=(run,)), rankings(done, {"": run.run_id})]
        return merged(parts)


class RanxQrels(Format):
    """Grades of passages per query."""

    name, title = "ranx-qrels", "ranx qrels (JSON, Parquet)"
    takes = {"judgements": "every passage with its grade, mapped to 1..5"}
    recognised = "a JSON object of objects of integers; Parquet of q_id, doc_id and integers as score"

    def sniff(self, probe: Archive) -> float:
        return _confidence(probe.members[0])[1] if len(probe.members) == 1 else 0.0

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        for member in (archive.members[0] for archive in archives):
            if member.head.startswith(PARQUET):
                yield file_report(member, dict.fromkeys(_COLUMNS, TAKEN))
            else:
                yield FileReport(member.name, "key", ("*",))

    def why_not(self, probe: Archive) -> str:  # noqa: ARG002
        return "it holds too few integers to know them for grades. If they are, say so (--as ranx-qrels)"

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        parts = [Import(collections=collection_of(options, "ranx files"))]
        for archive in archives:
            member = archive.members[0]
            rows = _graded(member) if member.head.startswith(PARQUET) else _rows(member, whole=True)
            rows = rows.rename({"score": "grade"})
            parts.append(golden_set(rows, member.name, member.stem, options, from_zero=True))
        return merged(parts)


def _graded(member: Member) -> pl.DataFrame:
    table = read_table(member, "parquet")
    rows = table.taking({name: column for column, name in _COLUMNS.items()})
    scores = pl.col("score").cast(pl.Float64, strict=False)
    bad = rows.filter((scores != scores.floor()).fill_null(value=True))
    refuse(bad, "The score is not an integer.", member.name)
    graded = rows.with_columns(scores, pl.col("line").cast(pl.Int64))
    return identified(graded, member.name, "query_id", "passage_id")


@per_member
def _confidence(member: Member) -> tuple[float, float]:
    """Return the confidences that a file is a run and that it is qrels, from the numbers in its head."""
    if member.head.startswith(PARQUET):
        return 0.0, 0.0 if said_by_name(member.name) == "run" else _of_parquet(member)
    if _is_cbor(member.head):
        return _RUN, 0.0  # ranx packs only runs
    text = member.head.removeprefix(b"\xef\xbb\xbf").lstrip().decode("utf-8", "replace")
    bare = re.sub(r"\s+", "", _TEXT.sub("S", text)).partition('"')[0]  # the head may end within a text
    lists = _lists(text) if text.startswith("{") else []
    numbers = [number for ranking in lists for _, number in ranking]
    tabular = all(_MEASURE.fullmatch(key) for ranking in lists for key, _ in ranking)  # a table of results
    if not numbers or _SHAPE.fullmatch(bare) is None or tabular:
        return 0.0, 0.0
    return _by_values(lists, [float(number) for number in numbers], said_by_name(member.name))


def _by_values(
    lists: Sequence[Sequence[tuple[str, str]]], values: Sequence[float], said: str | None
) -> tuple[float, float]:
    """Return the confidences that lists of scores are a run and qrels; the file name breaks ties."""
    whole = all(value.is_integer() for value in values)
    if said == "qrels" and whole:
        return 0.0, _QRELS
    if not whole or not all(0 <= value <= _MOST_GRADE for value in values):
        return (_RUN if _is_ranked(lists) else _UNLIKELY), 0.0
    if said == "run":
        return _RUN, 0.0
    if len(lists) < 2 or len(values) < 3:
        return _UNLIKELY, _UNLIKELY
    plainly = all(number.isdigit() for ranking in lists for _, number in ranking)
    ordered = _falls(lists) and len(set(values)) > 1
    return (_UNLIKELY, _QRELS) if plainly and not ordered else (_EITHER, _EITHER)


def _of_parquet(member: Member) -> float:
    """Return the confidence that a Parquet file is qrels; ranx runs have the same columns with floats."""
    try:
        schema = read_table(member, "parquet", 1).rows.schema
    except InputError:
        return 0.0
    return _QRELS if list(schema) == list(_COLUMNS) and schema["score"].is_integer() else 0.0


def _lists(text: str) -> list[list[tuple[str, str]]]:
    lists: list[list[tuple[str, str]]] = []
    for key, value in _PAIR.findall(text):
        if value == "{":
            lists.append([])
        elif lists:
            lists[-1].append((key, value))
    return lists


def _is_ranked(lists: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Return whether lists are long, or scores fall as in ranx files; tables of numbers show neither."""
    pairs = sum(map(len, lists))
    return pairs >= _LONG * max(1, len(lists)) or _falls(lists)


def _falls(lists: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Return whether scores never rise within a list, and some lists have several."""
    falling = all(float(left[1]) >= float(right[1]) for ranking in lists for left, right in pairwise(ranking))
    return falling and any(len(ranking) > 1 for ranking in lists)


def _is_cbor(head: bytes) -> bool:
    """Return whether a file begins like a map of text to a map.

    The first bytes of an item give its kind and its length.
    """
    spot = 0
    for kind in (_MAP, _CBOR_TEXT, _MAP):
        if spot >= len(head) or head[spot] >> 5 != kind or head[spot] & 31 > 27:
            return False
        short = head[spot] & 31
        more = 0 if short < 24 else 1 << (short - 24)
        length = int.from_bytes(head[spot + 1 : spot + 1 + more], "big") if more else short
        spot += 1 + more + (length if kind == _CBOR_TEXT else 0)
    return True


def _cbor(member: Member) -> Json:
    try:
        import cbor2  # noqa: PLC0415
    except ImportError:
        problem = "The file holds CBOR, whose package is not installed."
        raise InputError(problem, where=member.name, do="Install it: pip install cbor2.") from None
    if member.size > MOST_BYTES:
        raise InputError(f"A file of more than {MOST_BYTES // MIB:,} MiB is not read.", where=member.name)
    broken = (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError, EOFError)
    try:
        value: object = cbor2.loads(member.read())
    except (*broken, re.error) as error:
        raise InputError(f"This is not valid CBOR: {shown(error, 200)}.", where=member.name) from error
    if isinstance(value, dict):
        maps = [value, *(inner for inner in value.values() if isinstance(inner, dict))]
        if all(isinstance(key, str) for mapping in maps for key in mapping):
            return value
    raise InputError("This is not a map of texts to maps of texts to scores.", where=member.name)


def _rows(member: Member, *, whole: bool = False) -> pl.DataFrame:
    """Return query_id, passage_id, score, line (the number of the pair)."""
    value = _cbor(member) if _is_cbor(member.head) else read_object(member)
    queries: list[str] = []
    passages: list[str] = []
    scores: list[float] = []
    for query, scored in value.items():
        if not isinstance(scored, dict):
            raise InputError(f"It is {kind_of_value(scored)}, not an object.", where=at(member.name, query))
        kinds = {int} if whole else {int, float}
        for passage, score in scored.items():
            good = type(score) in kinds or (type(score) is float and score.is_integer())
            if not good or not -1e300 < score < 1e300:
                problem = f"The score is not {'an integer' if whole else 'a finite number'}."
                raise InputError(problem, where=at(member.name, query, passage))
        queries += [query] * len(scored)
        passages += scored
        scores += [float(score) for score in scored.values()]
    if not queries:
        raise InputError("The file holds no pair of query and passage.", where=member.name)
    rows = pl.DataFrame({"query_id": queries, "passage_id": passages, "score": scores})
    numbered = rows.with_columns(line=pl.int_range(1, pl.len() + 1))
    return identified(numbered, member.name, "query_id", "passage_id")
