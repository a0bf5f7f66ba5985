"""How large the prompt is that a stack sends: what breaks ties (metrics.md §9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from core.prices.cost import mean_usage
from core.records import Origin
from core.stats.generation import GENERATE
from core.store import Snapshot


def prompts(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    """What every run sends to the generator."""
    ids = runs["run_id"].to_list()
    usage = snapshot.usage(ids).filter((pl.col("stage") == GENERATE) & (pl.col("unit") == "input_tokens"))
    read = mean_usage(usage).drop_nulls("amount").group_by("run_id").agg(pl.col("amount").sum())
    specs = [json.loads(spec) for spec in runs["spec"]]
    sent = [_passages(*row) for row in zip(specs, runs["origin"], runs["candidates"], strict=True)]
    sizes = [_chunk(spec) for spec in specs]
    told = runs.select("run_id").with_columns(
        pl.Series("passages_sent", sent, dtype=pl.Float64), pl.Series("chunk", sizes, dtype=pl.Float64)
    )
    return told.join(read, on="run_id", how="left", maintain_order="left").select(
        "run_id",
        pl.coalesce("amount", pl.col("passages_sent") * pl.col("chunk")).alias("tokens_sent"),
        "passages_sent",
    )


def _passages(spec: Mapping[str, Any], origin: str, candidates: int | None) -> float | None:
    sent = spec.get("chunks_sent")
    if isinstance(sent, int):
        return float(sent)
    whole = origin == Origin.RUN.value and not spec.get("cut")
    return float(candidates) if whole and candidates is not None else None


def _chunk(spec: Mapping[str, Any]) -> float | None:
    """Tokens of a chunk, where the specification says."""
    chunker = spec.get("chunker")
    size = chunker.get("size") if isinstance(chunker, Mapping) else None
    return float(size) if isinstance(size, int | float) and not isinstance(size, bool) else None
