"""The schemas of the tables that hold many and uniform things, one row each.

Queries, passages, judgements, rankings, timings, usage, aggregates and the like are rows of Polars frames
whose schema is declared here once; the store, the importers and the pipeline all speak these frames.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows larger than memory: frames of one schema, any one of which fits."""

    frames: tuple[pl.LazyFrame, ...]  # the rows, one frame after the other; read only when they are asked for

    def lazy(self) -> pl.LazyFrame:
        """All rows as one frame."""
        return pl.concat(self.frames)


Frame = pl.DataFrame | pl.LazyFrame | Pieces


def altered(rows: Frame, *columns: pl.Expr) -> Frame:
    """The rows with other values in some columns; nothing is read."""
    if isinstance(rows, Pieces):
        return Pieces(tuple(each.with_columns(columns) for each in rows.frames))
    return rows.lazy().with_columns(columns)


TABLES: Mapping[str, pl.Schema] = MappingProxyType(
    {
        # tags: "name=value" strings, for example "package=numpy", "type=narrow", "language=en".
        "queries": pl.Schema(
            {
                "collection_id": pl.String(),
                "query_id": pl.String(),
                "text": pl.String(),
                "tags": pl.List(pl.String()),
            }
        ),
        # tokens may be null; tokenizer says how they were counted ("o200k_base", "estimate") or is null.
        # source is the document (facet) the passage was cut from, or null.
        "passages": pl.Schema(
            {
                "collection_id": pl.String,
                "passage_id": pl.String,
                "title": pl.String,
                "text": pl.String,
                "tokens": pl.Int32,
                "tokenizer": pl.String,
                "source": pl.String,
            }
        ),
        # grade: 1..5 after the golden set's mapping; raw: the grade as it was given.
        "judgements": pl.Schema(
            {
                "golden_set_id": pl.String,
                "query_id": pl.String,
                "passage_id": pl.String,
                "grade": pl.Int8,
                "raw": pl.Int16,
                "judge": pl.String,
            }
        ),
        # stage: "pool" (candidates a reranker or final cut could choose from) or "final"; rank counts from 1.
        "rankings": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "stage": pl.String,
                "rank": pl.Int32,
                "passage_id": pl.String,
                "score": pl.Float64,
            }
        ),
        # stage: embed, retrieve, sparse, fuse, rerank, generate… ; milliseconds; repeat counts from 1.
        "timings": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "stage": pl.String,
                "repeat": pl.Int16,
                "ms": pl.Float64,
            }
        ),
        # unit: input_tokens, output_tokens, search_units, requests, cpu_ms; item: what is priced, for example
        # "rerank-2.5" or "local-cpu"; query_id null = per query on average over the run; amount null = it was
        # used, but how much is not known.
        "usage": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "stage": pl.String,
                "item": pl.String,
                "unit": pl.String,
                "amount": pl.Float64,
                "basis": pl.String,
            }
        ),
        # Results that come without per-query data. measure: a name without its cutoff ("RA-nWG",
        # "PROC[RA-nWG]"), or "latency_p50"/"latency_p95" in ms with a stage, or "usd_per_1k" with a stage;
        # stage "total" = the whole path.
        "aggregates": pl.Schema(
            {
                "run_id": pl.String,
                "measure": pl.String,
                "k": pl.Int32,
                "stage": pl.String,
                "value": pl.Float64,
                "n": pl.Int32,
                "low": pl.Float64,
                "high": pl.Float64,
                "source": pl.String,
            }
        ),
        # Figures of one query that are neither time nor usage. signal: "top_margin", "score_gap",
        # "rerank_entropy", "ann_recall"…; k: the depth it was taken at, or null. At most one row each.
        "signals": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "signal": pl.String,
                "k": pl.Int32,
                "value": pl.Float64,
            }
        ),
        # What a reader answered, and what it took. mode: "top_k" (or null), "gold_only", "no_gold", "gold",
        # "none"; k: how many passages were sent at most; pass counts from 1; truncated: the passages were cut
        # to fit. What is not known is null.
        "answers": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "reader": pl.String,
                "prompt": pl.String,
                "temperature": pl.Float64,
                "mode": pl.String,
                "k": pl.Int32,
                "pass": pl.Int16,
                "text": pl.String,
                "input_tokens": pl.Int64,
                "output_tokens": pl.Int64,
                "truncated": pl.Boolean,
                "first_token_ms": pl.Float64,
                "ms": pl.Float64,
                "usd": pl.Float64,
            }
        ),
        # How good an answer is. scale: "0-1", "1-5"…; judge: the model or person, null = computed; query_id
        # null = a mean over n questions that came without the single answers.
        "answer_scores": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "reader": pl.String,
                "prompt": pl.String,
                "temperature": pl.Float64,
                "mode": pl.String,
                "k": pl.Int32,
                "pass": pl.Int16,
                "scorer": pl.String,
                "judge": pl.String,
                "value": pl.Float64,
                "scale": pl.String,
                "n": pl.Int32,
                "low": pl.Float64,
                "high": pl.Float64,
                "source": pl.String,
            }
        ),
        # What a right answer says; a query may have several.
        "gold_answers": pl.Schema({"collection_id": pl.String, "query_id": pl.String, "answer": pl.String}),
        # Where a chunk lies in its source document: characters start_char (included) to end_char (excluded).
        "chunks": pl.Schema(
            {
                "collection_id": pl.String,
                "passage_id": pl.String,
                "source": pl.String,
                "start_char": pl.Int64,
                "end_char": pl.Int64,
            }
        ),
        # Grades of a golden set that are anchored to characters of source documents, so that they hold for
        # any chunker; grade and raw as in "judgements".
        "spans": pl.Schema(
            {
                "golden_set_id": pl.String,
                "query_id": pl.String,
                "source": pl.String,
                "start_char": pl.Int64,
                "end_char": pl.Int64,
                "grade": pl.Int8,
                "raw": pl.Int16,
                "judge": pl.String,
            }
        ),
        # One act of judging a row; a passage may be judged by several, and by one several times. judge: a
        # model or a person; grade: null for an answer that could not be used; at: ISO 8601 with its zone;
        # prompt: a hash of it. What is not known is null.
        "gradings": pl.Schema(
            {
                "golden_set_id": pl.String,
                "query_id": pl.String,
                "passage_id": pl.String,
                "judge": pl.String,
                "grade": pl.Int8,
                "at": pl.String,
                "seconds": pl.Float64,
                "prompt": pl.String,
                "input_tokens": pl.Int64,
                "output_tokens": pl.Int64,
                "usd": pl.Float64,
                "note": pl.String,
            }
        ),
        # Figures of a diagnosis of an embedder. diagnosis: "names", "noise"…; run: counts from 1, null = over
        # all; condition: what was done to the texts ("base", "gibberish_name"…); measure: "d_name",
        # "dd_name_pct"…; n: texts or bundles that counted.
        "diagnostics": pl.Schema(
            {
                "collection_id": pl.String,
                "diagnosis": pl.String,
                "embedder": pl.String,
                "dim": pl.Int32,
                "language": pl.String,
                "run": pl.Int32,
                "condition": pl.String,
                "measure": pl.String,
                "value": pl.Float64,
                "n": pl.Int32,
                "low": pl.Float64,
                "high": pl.Float64,
            }
        ),
        # The order that listwise refinement made of a golden set's best passages; rank counts from 1.
        # information: what was learnt of the score; locks, contradictions: pairs that the passage is in.
        "orders": pl.Schema(
            {
                "golden_set_id": pl.String,
                "query_id": pl.String,
                "passage_id": pl.String,
                "rank": pl.Int32,
                "score": pl.Float64,
                "exposures": pl.Int32,
                "information": pl.Float64,
                "locks": pl.Int32,
                "contradictions": pl.Int32,
            }
        ),
    }
)


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
    schema = TABLES[table]
    if isinstance(rows, list):
        return pl.DataFrame(rows, schema=dict(schema), orient="row")
    made = pl.DataFrame(dict(rows))
    missing = [pl.lit(None).alias(name) for name in schema if name not in made.columns]
    return made.with_columns(missing).select([pl.col(name).cast(dtype) for name, dtype in schema.items()])


P = ParamSpec("P")
R = TypeVar("R")


def remembered(
    function: Callable[Concatenate[pl.DataFrame, P], R],
) -> Callable[Concatenate[pl.DataFrame, P], R]:
    """Keep what a pure function of a frame returned, for as long as that very frame lives.

    Args:
        function: Takes a frame and hashable positional arguments; nobody may change what it returns.
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
