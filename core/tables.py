"""The schemas of tables, whose rows are numerous and uniform records.

Queries, passages, judgements, rankings, timings, usage, aggregates and the like are rows of Polars frames
whose schema is declared here once; the store, the importers and the pipeline all exchange these frames.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl

GENERATE, FIRST_TOKEN = "generate", "first_token"
"""Stages: the whole answer, and its first token, which is included in the former."""


NUGGETS = 64  # Maximum number of nuggets per question, as they are counted as bits
_KINDS: Mapping[str, pl.DataType] = {
    "": pl.String(),
    "texts": pl.List(pl.String),
    "date": pl.Date(),
    "bool": pl.Boolean(),
    "int8": pl.Int8(),
    "int16": pl.Int16(),
    "int32": pl.Int32(),
    "int64": pl.Int64(),
    "float": pl.Float64(),
}
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows larger than memory: frames of one schema, any one of which fits."""

    frames: tuple[pl.LazyFrame, ...]  # the rows, one frame after the other; read only on demand

    def lazy(self) -> pl.LazyFrame:
        """Return all rows as one frame."""
        return pl.concat(self.frames)


Row = Mapping[str, Any]  # A row by column
Frame = pl.DataFrame | pl.LazyFrame | Pieces


def altered(rows: Frame, *changes: pl.Expr) -> Frame:
    """Return the rows with changed values in some columns; nothing is read."""
    if isinstance(rows, Pieces):
        return Pieces(tuple(piece.with_columns(changes) for piece in rows.frames))
    return rows.lazy().with_columns(changes)


def schema(declared: str) -> pl.Schema:
    """Return the columns of a table, declared as ``"run_id rank:int32"``; one without a type is text."""
    parts = (column.partition(":") for column in declared.split())
    return pl.Schema({name: _KINDS[kind] for name, _, kind in parts})


TABLES: Mapping[str, pl.Schema] = {
    # tags: "name=value" strings, for example "package=numpy", "type=narrow", "language=en".
    "queries": schema("collection_id query_id text tags:texts"),
    # tokens may be null; tokenizer says how they were counted ("o200k_base", "estimate") or is null.
    # source is the document (facet) the passage was cut from, or null.
    "passages": schema("collection_id passage_id title text tokens:int32 tokenizer source"),
    # grade: 1..5 after the golden set's mapping; raw: the original grade.
    "judgements": schema("golden_set_id query_id passage_id grade:int8 raw:int16 judge"),
    # stage: "pool" (candidates a reranker or final cut could choose from) or "final"; rank counts from 1.
    "rankings": schema("run_id query_id stage rank:int32 passage_id score:float"),
    # stage: embed, retrieve, sparse, fuse, rerank, generate… ; milliseconds; repeat counts from 1.
    # place: when within its repeat it was measured, from 1; null = unknown.
    "timings": schema("run_id query_id stage repeat:int16 ms:float place:int32"),
    # unit: input_tokens, output_tokens, search_units, requests, cpu_ms; item: what is priced, for example
    # "rerank-2.5" or "local-cpu"; query_id null = per query on average over the run; amount null = used,
    # but the amount is unknown.
    "usage": schema("run_id query_id stage item unit amount:float basis"),
    # Results that come without per-query data. measure: a name without its cutoff ("RA-nWG",
    # "PROC[RA-nWG]"), or "latency_p50"/"latency_p95" in ms with a stage, or "usd_per_1k" with a stage;
    # stage "total" = the whole path.
    "aggregates": schema("run_id measure k:int32 stage value:float n:int32 low:float high:float source"),
    # Figures of one query that are neither time nor usage. signal: "top_margin", "score_gap",
    # "rerank_entropy", "ann_recall"…; k: the depth it was taken at, or null. At most one row each.
    "signals": schema("run_id query_id signal k:int32 value:float"),
    # Criteria that a reranker rated beyond relevance, by position from 1; query_id null = all queries.
    # origin: "fixed", "own" (of the specification), "inferred" from the query, "fallback" (used if
    # nothing, or no weight, could be inferred).
    "criteria": schema("run_id query_id position:int16 criterion meaning weight:float origin"),
    # Its rating of a candidate on the criterion at that position; 0 = its relevance. One that was discarded
    # for its relevance has that alone, one whose rating was unreadable has none. reason: with the relevance,
    # why the model rated the passage so, if it was asked.
    "ratings": schema("run_id query_id passage_id position:int16 rating:float reason"),
    # A reader's answer, and what it took. mode: "top_k" (or null), "gold_only", "no_gold", "gold",
    # "none"; k: how many passages were sent at most; pass counts from 1; truncated: the passages were cut
    # to fit. Unknown values are null.
    "answers": schema(
        "run_id query_id reader prompt temperature:float mode k:int32 pass:int16 text "
        "input_tokens:int64 output_tokens:int64 truncated:bool first_token_ms:float ms:float "
        "usd:float"
    ),
    # How good an answer is. scale: "0-1", "1-5"…; judge: the model or person, null = computed; query_id
    # null = a mean over n questions that came without the single answers.
    "answer_scores": schema(
        "run_id query_id reader prompt temperature:float mode k:int32 pass:int16 scorer judge "
        "value:float scale n:int32 low:float high:float source"
    ),
    # Correct answers; a query may have several.
    "gold_answers": schema("collection_id query_id answer"),
    # The group that a question comes from, which is the unit of resampling. kind: one of
    # `core.records.GROUPS`.
    "clusters": schema("collection_id query_id kind cluster"),
    # What is known of a passage, or of the document that passages were cut from, beside its text: a JSON
    # object of fields, which filters ask about (`core.filters`).
    "passage_metadata": schema("collection_id passage_id metadata"),
    # Which passages the asker of a question may see: a filter as canonical JSON.
    "query_filters": schema("collection_id query_id filter"),
    # What is declared about a field of the metadata. kind: a type of `core.filters.Kind`, null = found from
    # the values; permission: it says what an asker may see, so that no stack that leaks is shipped.
    "fields": schema("collection_id field kind permission:bool"),
    # Facts of a good answer to a question, and their support: a row for each passage that supports one, fully
    # or in part; an unsupported one has a row without a passage. nugget: 0 to 63.
    "nuggets": schema("golden_set_id query_id nugget:int16 text vital:bool passage_id support:float judge"),
    # Where a chunk lies in its source document: characters start_char (included) to end_char (excluded).
    "chunks": schema("collection_id passage_id source start_char:int64 end_char:int64"),
    # Grades of a golden set that are anchored to characters of source documents, so that they hold for
    # any chunker; grade and raw as in "judgements".
    "spans": schema(
        "golden_set_id query_id source start_char:int64 end_char:int64 grade:int8 raw:int16 judge"
    ),
    # One act of judging a row; a passage may be judged by several judges, and several times by one. judge: a
    # model or a person; grade: null for an unusable answer; at: ISO 8601 with its zone;
    # prompt: a hash of it. Unknown values are null.
    "gradings": schema(
        "golden_set_id query_id passage_id judge grade:int8 at seconds:float prompt "
        "input_tokens:int64 output_tokens:int64 usd:float note"
    ),
    # Figures of a diagnosis of an embedder. diagnosis: "names", "noise"…; run: counts from 1, null = over
    # all; condition: what was done to the texts ("base", "gibberish_name"…); measure: "d_name",
    # "dd_name_pct"…; n: texts or bundles that counted.
    "diagnostics": schema(
        "collection_id diagnosis embedder dim:int32 language run:int32 condition measure value:float "
        "n:int32 low:float high:float"
    ),
    # The order that listwise refinement gave a golden set's best passages; rank counts from 1.
    # information: what was learnt about the score; locks, contradictions: pairs that the passage is in.
    "orders": schema(
        "golden_set_id query_id passage_id rank:int32 score:float exposures:int32 information:float "
        "locks:int32 contradictions:int32"
    ),
}


def frame(table: str, rows: Mapping[str, Any] | list[dict[str, Any]]) -> pl.DataFrame:
    """Make a frame of a declared table.

    Args:
        table: A key of `TABLES`.
        rows: Columns or row dictionaries; columns left out are filled with null.

    Returns:
        A frame with exactly the declared columns, in order.

    Raises:
        KeyError: If the table is not declared.
    """
    declared = TABLES[table]
    if isinstance(rows, list):
        return pl.DataFrame(rows, schema=dict(declared), orient="row")
    given = pl.DataFrame(dict(rows))
    missing = [pl.lit(None).alias(name) for name in declared if name not in given.columns]
    return given.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in declared.items())


def remembered(
    function: Callable[Concatenate[pl.DataFrame, P], R],
) -> Callable[Concatenate[pl.DataFrame, P], R]:
    """Cache the result of a pure function of a frame, for as long as that very frame lives.

    Args:
        function: Takes a frame and hashable positional arguments; nobody may change its result.
    """
    kept: dict[Hashable, tuple[weakref.ref[pl.DataFrame], R]] = {}

    @wraps(function)
    def read(table: pl.DataFrame, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (id(table), *args, *kwargs.items())
        known = kept.get(key)
        if known is not None and known[0]() is table:
            return known[1]
        value = function(table, *args, **kwargs)
        kept[key] = (weakref.ref(table, lambda _: kept.pop(key, None)), value)
        return value

    return read
