"""Runs and qrels of ranx: {query: {passage: score}} as JSON, plain or packed (.lz4, .gz), or as CBOR (.lz4).

Both have one shape. Scores that are small integers throughout are grades; whole numbers written with a
decimal point may be either, and that is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, Account, account
from core.importers.base import Format, Import, Options, frames_of, merged
from core.importers.judgements import golden_set
from core.importers.read.jsons import MOST_BYTES, Json, at, kind_of_value, read_object
from core.importers.read.ordering import as_trec_eval, ordered
from core.importers.read.piece import MIB, Piece, Tree
from core.importers.read.rows import identified, refuse
from core.importers.read.tabular import PARQUET, read_table
from core.importers.read.text import shown
from core.importers.runs import collection_of, imported_run, run_labels

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SHAPE = re.compile(r"\{(?:S:\{(?:S:[-+.\deE]+,?)*\},?)*(?:S:\{(?:S:[-+.\deE]+,?)*)?\}?\}?(?:S(?::\{?)?)?")
_MAP, _CBOR_TEXT = 5, 3
_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(\{|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)')
_MEASURE = re.compile(
    r".*@\d+.*|(?:n?dcg|map|mrr|recall|precision|hit|acc|f1|bleu|rouge).*|ap|rr|p|r", re.IGNORECASE
)
_LONG = 10  # From this mean number of pairs on, an unordered object of objects is taken for rankings
_MOST_GRADE = 5
_COLUMNS = {"q_id": "query_id", "doc_id": "passage_id", "score": "score"}
"""Columns that ranx writes into Parquet → ours."""
_RUN, _QRELS, _EITHER, _UNLIKELY = 0.9, 0.9, 0.85, 0.4


class RanxRun(Format):
    """Scores of passages per query."""

    name, title, brings = "ranx-run", "ranx run (JSON, LZ4)", ("rankings",)
    takes = {"rankings": "every passage with its score, ordered by score as trec_eval does"}  # noqa: RUF012
    recognised = "a JSON object of objects of numbers; small integers throughout are taken for qrels"

    def sniff(self, probe: Tree) -> float:
        """An object of objects of numbers that are not all small integers."""
        return _confidence(probe)[0]

    def accounts(self, trees: Sequence[Tree], options: Options) -> Iterator[Account]:  # noqa: ARG002
        """Every passage of every query."""
        return (Account(tree.pieces[0].name, "key", ("*",)) for tree in trees)

    def why_not(self, probe: Tree) -> str:  # noqa: ARG002
        """Why numbers by name and name are not taken for a run."""
        return "its lists are short and their scores do not fall. If it is a run, say so (--as ranx-run)"

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read one run of each file."""
        labels = iter(run_labels([("", tree.stem) for tree in trees], options))
        parts = [Import(collections=collection_of(options, "ranx files"))]
        for tree in trees:
            piece = tree.pieces[0]
            rows = _rows(piece).with_columns(
                pl.lit("").alias("run"), pl.lit("final").alias("stage"), pl.lit(None, pl.Int64).alias("rank")
            )
            done = ordered(as_trec_eval(rows) if options.tie_order == "trec_eval" else rows, piece.name)
            run = imported_run(
                options, next(labels), piece.digest, importer=self.name, decided={"order": done.rules[""]}
            )
            table = done.rows.with_columns(pl.lit(run.run_id).alias("run_id"))
            parts.append(Import(runs=(run,), frames=frames_of(rankings=table), notes=done.notes))
        return merged(parts)


class RanxQrels(Format):
    """Grades of passages per query."""

    name, title, brings = "ranx-qrels", "ranx qrels (JSON, Parquet)", ("judgements",)
    takes = {"judgements": "every passage with its grade, mapped to 1..5"}  # noqa: RUF012
    recognised = "a JSON object of objects of small integers; Parquet of q_id, doc_id and integers as score"

    def sniff(self, probe: Tree) -> float:
        """An object of objects of small integers, or ranx's columns with scores that are integers."""
        if len(probe.pieces) == 1 and probe.pieces[0].head.startswith(PARQUET):
            return _QRELS if _is_grades(probe.pieces[0]) else 0.0
        return _confidence(probe)[1]

    def accounts(self, trees: Sequence[Tree], options: Options) -> Iterator[Account]:  # noqa: ARG002
        """Every passage of every query, or the columns of a table."""
        for piece in (tree.pieces[0] for tree in trees):
            if piece.head.startswith(PARQUET):
                yield account(piece, dict.fromkeys(_COLUMNS, TAKEN))
            else:
                yield Account(piece.name, "key", ("*",))

    def why_not(self, probe: Tree) -> str:  # noqa: ARG002
        """Why small integers by name and name are not taken for grades."""
        return "it holds too few integers to know them for grades. If they are, say so (--as ranx-qrels)"

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read one golden set of each file."""
        parts = [Import(collections=collection_of(options, "ranx files"))]
        for tree in trees:
            piece = tree.pieces[0]
            rows = _graded(piece) if piece.head.startswith(PARQUET) else _rows(piece, whole=True)
            rows = rows.rename({"score": "grade"})
            parts.append(golden_set(rows, piece.name, piece.stem, options, from_zero=True))
        return merged(parts)


def _is_grades(piece: Piece) -> bool:
    """Whether a Parquet file is what ranx writes of qrels; of a run it writes the same with fractions."""
    try:
        schema = read_table(piece, "parquet", 1).rows.schema
    except InputError:
        return False
    return list(schema) == list(_COLUMNS) and schema["score"].is_integer()


def _graded(piece: Piece) -> pl.DataFrame:
    """query_id, passage_id, score, line of a Parquet file."""
    table = read_table(piece, "parquet")
    rows = table.taking({name: column for column, name in _COLUMNS.items()})
    scores = pl.col("score").cast(pl.Int64, strict=False)
    refuse(rows.filter(scores.is_null()), "The score is not an integer.", piece.name)
    made = rows.with_columns(scores.cast(pl.Float64), pl.col("line").cast(pl.Int64))
    return identified(made, piece.name, "query_id", "passage_id")


def _confidence(probe: Tree) -> tuple[float, float]:
    """How sure a file is a run, and qrels, by the numbers in its head."""
    return _judged(probe.pieces[0].head) if len(probe.pieces) == 1 else (0.0, 0.0)


@lru_cache(maxsize=64)
def _judged(head: bytes) -> tuple[float, float]:
    if _is_cbor(head):
        return _RUN, 0.0  # ranx packs runs only
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return 0.0, 0.0
    bare = re.sub(r"\s+", "", _TEXT.sub("S", text.decode("utf-8", "replace")))
    if '"' in bare:  # a text that the end of the head cut off
        bare = bare[: bare.index('"')]
    lists = _lists(text.decode("utf-8", "replace"))
    numbers = [number for each in lists for _, number in each]
    if not numbers or _SHAPE.fullmatch(bare) is None or _is_table(lists):
        return 0.0, 0.0
    values = [float(each) for each in numbers]
    if any(not each.is_integer() or not 0 <= each <= _MOST_GRADE for each in values):
        return (_RUN if _is_ranked(lists) else _UNLIKELY), 0.0
    if len(lists) < 2 or len(values) < 3:
        return _UNLIKELY, _UNLIKELY
    return (_UNLIKELY, _QRELS) if all(each.isdigit() for each in numbers) else (_EITHER, _EITHER)


def _lists(text: str) -> list[list[tuple[str, str]]]:
    """The pairs of every inner object in the head of a file."""
    found: list[list[tuple[str, str]]] = []
    for key, value in _PAIR.findall(text):
        if value == "{":
            found.append([])
        elif found:
            found[-1].append((key, value))
    return found


def _is_table(lists: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Whether the inner keys are measures: then it is a table of results."""
    return all(_MEASURE.fullmatch(key) for each in lists for key, _ in each)


def _is_ranked(lists: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Whether lists are long, or their scores fall as in files of ranx; tables of numbers are neither."""
    pairs = sum(map(len, lists))
    falling = all(float(left[1]) >= float(right[1]) for each in lists for left, right in pairwise(each))
    several = any(len(each) > 1 for each in lists)
    return pairs >= _LONG * max(1, len(lists)) or (falling and several)


def _is_cbor(head: bytes) -> bool:
    """Whether it begins as a map of text to a map; the first bytes of an item are its kind and its length."""
    spot = 0
    for kind in (_MAP, _CBOR_TEXT, _MAP):
        if spot >= len(head) or head[spot] >> 5 != kind or head[spot] & 31 > 27:
            return False
        short = head[spot] & 31
        more = 0 if short < 24 else 1 << (short - 24)
        length = int.from_bytes(head[spot + 1 : spot + 1 + more], "big") if more else short
        spot += 1 + more + (length if kind == _CBOR_TEXT else 0)
    return True


def _cbor(piece: Piece) -> Json:
    try:
        import cbor2  # noqa: PLC0415
    except ImportError:
        found = "The file holds CBOR, whose package is not installed."
        raise InputError(found, where=piece.name, do="Install it: pip install cbor2.") from None
    if piece.size > MOST_BYTES:
        raise InputError(f"A file of more than {MOST_BYTES // MIB:,} MiB is not read.", where=piece.name)
    broken = (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError, EOFError)
    try:
        value: object = cbor2.loads(piece.read())
    except (*broken, re.error) as error:
        raise InputError(f"This is not valid CBOR: {shown(error, 200)}.", where=piece.name) from error
    if isinstance(value, dict) and all(isinstance(key, str) for key in _keys(value)):
        return value
    raise InputError("This is no map of texts to maps of texts to scores.", where=piece.name)


def _keys(value: dict[object, object]) -> Iterator[object]:
    yield from value
    for each in value.values():
        yield from each if isinstance(each, dict) else ()


def _rows(piece: Piece, *, whole: bool = False) -> pl.DataFrame:
    """query_id, passage_id, score, line (the number of the pair)."""
    value = _cbor(piece) if _is_cbor(piece.head) else read_object(piece)
    queries: list[str] = []
    passages: list[str] = []
    scores: list[float] = []
    for query, scored in value.items():
        if not isinstance(scored, dict):
            raise InputError(f"It is {kind_of_value(scored)}, not an object.", where=at(piece.name, query))
        kinds = {int} if whole else {int, float}
        for passage, score in scored.items():
            good = type(score) in kinds or (type(score) is float and score.is_integer())
            if not good or not -1e300 < score < 1e300:
                wanted = "an integer" if whole else "a finite number"
                raise InputError(f"The score is not {wanted}.", where=at(piece.name, query, passage))
        queries += [query] * len(scored)
        passages += scored
        scores += [float(score) for score in scored.values()]
    if not queries:
        raise InputError("The file holds no pair of query and passage.", where=piece.name)
    columns = {"query_id": queries, "passage_id": passages, "score": scores}
    schema = {"query_id": pl.String, "passage_id": pl.String, "score": pl.Float64}
    rows = pl.DataFrame(columns, schema=schema).with_row_index("line", offset=1)
    return identified(rows.with_columns(pl.col("line").cast(pl.Int64)), piece.name, "query_id", "passage_id")
