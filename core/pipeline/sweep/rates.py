"""How long work is expected to take: rates with their sources, measured ones first.

Times of vendors vary with the hour and the network; what is expected here is for deciding between minutes,
hours and days.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from core.providers.base import Amount

EMBED_MS = 140.0
"""A query at a vendor: the CLQ paper's Table 1 has medians of 133 to 149 ms."""
RERANK_MS, RERANK_MS_PER_PASSAGE = 230.0, 2.25
"""A call at a vendor: the CLQ paper's Table 15 has 331 ms at K = 50 and 668 ms at K = 200 (rerank-2.5)."""
CHAT_MS, OUTPUT_TOKENS_PER_S = 1000.0, 60.0
"""A call at a vendor: an assumption."""
BATCH_MS = 1000.0
"""A batch of passages at a vendor: an assumption."""
STATIC_PASSAGES_PER_S, ENCODER_PASSAGES_PER_S = 500.0, 20.0
"""Embedding here, static vectors and encoders: measured on a busy core, and an assumption."""
BM25_PASSAGES_PER_S = 5_000.0
INDEX_NUMBERS_PER_S: Mapping[str, float] = {
    "flat": 5e6,
    "int8": 5e6,
    "hnsw-f32": 2.5e5,
    "hnsw-int8": 2e5,
    "pq": 5e5,
    "opq": 2e5,
}
"""Numbers (passages × dimensions) that an index takes in a second, of a busy core; pq, opq: assumptions."""
SEARCH_MS = 1.0
"""A query and a step here, in a small corpus; exact search adds its own."""
NUMBERS_COMPARED_PER_MS = 1e6
LOCAL_RERANK_MS_PER_PASSAGE = 20.0
"""A cross-encoder here: an assumption."""

PUBLISHED, ASSUMED, MEASURED = "published medians", "assumed", "measured earlier"
PROBED = "servers of one's own asked now"


@dataclass(frozen=True, slots=True)
class Expected:
    """A time.

    Attributes:
        ms: Milliseconds.
        basis: Where it comes from: `PUBLISHED`, `ASSUMED`, `MEASURED` or `PROBED`.
    """

    ms: float
    basis: str


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast an embedder was a moment ago.

    Attributes:
        query_ms: Milliseconds of one query.
        tokens_per_s: Tokens of passages in a second, one call at a time.
    """

    query_ms: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Times of calls at vendors and at servers of one's own.

    Attributes:
        probed: Speeds of embedders by their name, of `core.pipeline.sweep.probe`.
        measured: Median ms by stage, model and candidate depth (0 where none matters), of earlier runs.
    """

    measured: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    probed: Mapping[str, Speed] = field(default_factory=dict)

    def call(self, stage: str, model: str, *, depth: int = 0, used: tuple[Amount, ...] = ()) -> Expected:
        """The time of asking a vendor about one query.

        Args:
            stage: "embed", "rerank" or "rewrite".
            model: Its name.
            depth: How many passages are reranked.
            used: What it uses; answers of chat models take time by their length.
        """
        if stage == "embed" and model in self.probed:
            return Expected(self.probed[model].query_ms, PROBED)
        near = {k: ms for (at, name, k), ms in self.measured.items() if (at, name) == (stage, model)}
        if near:
            return Expected(near[min(near, key=lambda k: abs(k - depth))], MEASURED)
        if stage == "embed":
            return Expected(EMBED_MS, PUBLISHED)
        written = sum(each.amount or 0.0 for each in used if each.unit == "output_tokens")
        if written:
            return Expected(CHAT_MS + 1000 * written / OUTPUT_TOKENS_PER_S, ASSUMED)
        return Expected(RERANK_MS + RERANK_MS_PER_PASSAGE * depth, PUBLISHED)


_MODELS = {"embed": "embedder", "rerank": "reranker", "rewrite": "rewrite"}


def measured(runs: pl.DataFrame, timings: pl.DataFrame) -> dict[tuple[str, str, int], float]:
    """Median times of models in earlier runs.

    Args:
        runs: run_id and spec (JSON).
        timings: Rows of the table "timings" of these runs.

    Returns:
        Milliseconds by stage, model and candidate depth (0 for stages that it does not matter to).
    """
    specs = {row["run_id"]: json.loads(row["spec"]) for row in runs.select("run_id", "spec").to_dicts()}
    found: dict[tuple[str, str, int], float] = {}
    medians = (
        timings.filter(pl.col("stage").is_in(list(_MODELS)))
        .group_by("run_id", "stage")
        .agg(pl.col("ms").median())
    )
    for run_id, stage, ms in medians.sort("run_id").iter_rows():
        spec = specs.get(run_id, {})
        model = spec.get(_MODELS[stage])
        if model and ms is not None:
            found[stage, model, int(spec.get("candidates", 0)) if stage == "rerank" else 0] = ms
    return found


def corpus_s(calls: int, tokens: float, *, concurrency: int, tokens_per_minute: float | None) -> float:
    """Seconds of embedding a corpus at a vendor: by its pace or by its batches, whichever takes longer."""
    paced = 60 * tokens / tokens_per_minute if tokens_per_minute else 0.0
    return max(paced, calls * BATCH_MS / 1000 / max(1, concurrency))
