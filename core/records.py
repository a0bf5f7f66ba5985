"""The nouns of the product, frozen and typed, and the schemas of the tables that hold many of them.

Few and small things (collections, golden sets, stacks, runs) are dataclasses. Many and uniform things
(queries, passages, judgements, rankings, timings, usage, aggregates) are rows of Polars frames whose schema
is declared here once; the store, the importers and the pipeline all speak these frames.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import polars as pl

Frame = pl.DataFrame | pl.LazyFrame
JsonMap = Mapping[str, Any]


class Origin(StrEnum):
    """How a run came to be."""

    RUN = "run"  # measured here by the pipeline
    IMPORT = "import"  # brought from another tool
    PUBLISHED = "published"  # printed in a paper


class Basis(StrEnum):
    """How a number was obtained; shown as a small badge beside it."""

    MEASURED = "measured"
    MODELLED = "modelled"
    PUBLISHED = "published"
    IMPORTED = "imported"


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
        # What a generator answered from the first k passages, and how good that was. grade: in `scale`
        # ("0-1", "1-5"…), null when nobody graded it.
        "answers": pl.Schema(
            {
                "run_id": pl.String,
                "query_id": pl.String,
                "k": pl.Int32,
                "text": pl.String,
                "grade": pl.Float64,
                "scale": pl.String,
                "judge": pl.String,
            }
        ),
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


def canonical_json(value: JsonMap) -> str:
    """The one JSON text of a mapping: sorted keys, no spaces, no NaN. Equal mappings give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short_hash(*parts: str) -> str:
    """Twelve hexadecimal digits that identify the parts (BLAKE2b over length-prefixed UTF-8)."""
    digest = hashlib.blake2b(digest_size=6)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def part_id(whole: str, chunking: str) -> str:
    """The id of the part of a collection or a golden set that belongs to a chunking: "<whole>@<chunking>"."""
    return f"{whole}@{chunking}"


def now() -> datetime:
    """The current time with its zone (UTC)."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A corpus with its queries.

    Attributes:
        collection_id: Short stable name; part of links.
        name: What people read.
        source: Where it comes from, in words.
        notes: Limits, licence, anything a reader must know.
        part_of: The collection of which this one holds the chunks that one chunker made; its queries are
            there, its id is "<that id>@<chunking>". None for a collection of its own.
    """

    collection_id: str
    name: str
    source: str = ""
    notes: str = ""
    part_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """Graded judgements of one collection.

    Attributes:
        golden_set_id: Short stable name; part of links.
        collection_id: The collection that is judged.
        name: What people read.
        mapping: How raw grades became 1..5, for example "1-5" (as they are) or "binary: 0→1, 1→5".
        judge: Who judged, in words.
        notes: How the pool was made, limits.
        part_of: The golden set with grades anchored to spans whose grades for the chunks of one chunker
            these are; the id is "<that id>@<chunking>". None for a golden set of its own.
    """

    golden_set_id: str
    collection_id: str
    name: str
    mapping: str = "1-5"
    judge: str = ""
    notes: str = ""
    part_of: str | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """One retrieval configuration. Its identity is its canonical specification.

    Known keys of `spec` (all optional, others are kept): mode ("sparse", "dense", "hybrid"), sparse ("bm25"),
    embedder, dim, index ("flat", "hnsw-f32", "hnsw-int8", "int8"), fusion ({"method": "rrf", "constant": 60,
    "depth": 100}), reranker ("none" or a model), candidates (candidate depth K, the size of the pool).
    """

    spec: JsonMap = field(hash=False)

    @property
    def stack_id(self) -> str:
        """Hash of the canonical specification."""
        return f"s-{short_hash(canonical_json(self.spec))}"

    @property
    def label(self) -> str:
        """A short name such as ``voyage-3.5 512 d + rerank-2.5, K = 50``."""
        return stack_label(self.spec)


def stack_label(spec: JsonMap) -> str:
    """Name a stack by the axes it sets, in the product's vocabulary."""
    dense = " ".join(
        str(part)
        for part in (
            spec.get("embedder"),
            f"{spec['dim']} d" if spec.get("dim") else None,
            spec.get("index") if spec.get("index") not in (None, "flat") else None,
        )
        if part
    )
    legs = [str(spec["sparse"]).upper() if spec.get("sparse") else "", dense]
    head = " ⊕ ".join(leg for leg in legs if leg) or str(spec.get("name", "stack"))
    reranker = spec.get("reranker")
    tail = f" + {reranker}" if reranker and reranker != "none" else ""
    depth = f", K = {spec['candidates']}" if spec.get("candidates") else ""
    return " · ".join([head + tail + depth, *_qualities(spec)])


def _qualities(spec: JsonMap) -> list[str]:
    """What else tells a stack from others, as far as it is not the usual."""
    fusion = dict(spec.get("fusion") or {})
    usual = {"method": "rrf", "constant": 60, "depth": 100}
    named = {key: value for key, value in fusion.items() if usual.get(key) != value}
    chunker, sent = spec.get("chunker"), spec.get("chunks_sent")
    found = (
        _settings(chunker, "size", "overlap") + " late" * (chunker.get("late") == "yes") if chunker else "",
        str(spec["rewrite"]) if spec.get("rewrite", "none") != "none" else "",
        _settings({"method": "bm25", **spec["bm25"]}) if spec.get("bm25") else "",
        _settings({"method": "index", **spec["index_params"]}) if spec.get("index_params") else "",
        str(spec.get("metric") or ""),
        _settings({"method": fusion["method"], **named}) if named and fusion.get("method") else "",
        _settings(spec["cut"]) if spec.get("cut") else "",
        f"{sent} sent" if sent else "",
    )
    return [each for each in found if each]


def _settings(table: JsonMap, *shown: str) -> str:
    """A method with its settings, or with some of them: ``sentence size 200 overlap 70``."""
    keys = [key for key in table if key != "method" and (not shown or key in shown)]
    return " ".join([str(table["method"]), *(f"{key} {table[key]}" for key in keys)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stack executed (or reported) once on one collection.

    Attributes:
        run_id: Stable identity; equal content gives an equal id, so a repeated import is seen.
        collection_id: What was searched.
        stack: The configuration.
        label: What people read; untrusted text.
        origin: Measured here, imported or published.
        pool: Named convention of the candidate pool, for example "dense@50", "bm25@100", "rrf100@100",
            "post-rerank@50"; None when the run has no pool. Two conventions are never compared silently.
        environment: Where it ran (processor, versions, load); decides whether latencies compare.
        manifest: Everything needed to repeat it, and "cost_scope" where costs cover only some stages.
        created_at: When it was run or reported, with zone.
        chunking: Name of the chunking whose chunks were searched; its passages are those of the collection
            "<collection_id>@<chunking>". None when the passages are the collection's own.
    """

    run_id: str
    collection_id: str
    stack: Stack
    label: str
    origin: Origin
    pool: str | None = None
    environment: JsonMap = field(default_factory=dict, hash=False)
    manifest: JsonMap = field(default_factory=dict, hash=False)
    created_at: datetime = field(default_factory=now)
    chunking: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one transaction adds to the store. Frames follow `TABLES`; lazy frames are streamed to disk."""

    collections: tuple[Collection, ...] = ()
    golden_sets: tuple[GoldenSet, ...] = ()
    runs: tuple[Run, ...] = ()
    frames: Mapping[str, Frame] = field(default_factory=dict)


Sink = Callable[[Batch], None]
"""Where the pipeline puts what it measured; the caller connects it to a store."""
