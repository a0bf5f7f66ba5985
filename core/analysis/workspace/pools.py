"""The candidate pool that a stack's ceiling belongs to, and its losses there (metrics.md §2).

With a reranker the final order chose from the candidates that the reranker got. Without one nothing reads K,
so that the ranking continues as far as any run of the same stack kept it: its ceiling is that of the deepest
pool. Every page, record and command takes pool, ceiling and losses from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from core.axes import as_read, stack_key
from core.tables import remembered

DEPTH = "candidates"
EMPTY_SLOT = -1
NOT_STATED = "not stated"
RETRIEVAL, ORDERING, BALANCED = "missed passages", "bad ranking", "both alike"
MARGIN = 0.02  # Difference of the two headrooms below which neither comes first; the paper gives no threshold
SEARCHED = pl.col("manifest").str.json_path_match("$.corpus.hash")
"""Hash of the texts that a run searched; null if it was not recorded."""


def candidates_of(pool: str) -> str:
    """Return a pool in words, by the depth that its convention names: ``50 candidates``."""
    depth = pool.partition("@")[2]
    return f"{depth} candidates" if depth else "candidates"


def stack_of(spec: str) -> str | None:
    """Return the key that runs of one stack share whatever their K; None if K is read, or unknown."""
    stated = json.loads(spec)
    return stack_key(stated) if stated.get(DEPTH) and DEPTH not in as_read(stated) else None


@remembered
def deeper(runs: pl.DataFrame) -> Mapping[str, tuple[str, ...]]:
    """Return for each run the others of its stack with a deeper pool, the deepest and newest of these first.

    Args:
        runs: run_id, collection_id, chunking, spec and manifest, the oldest first.
    """
    of = ("collection_id", "chunking", SEARCHED.alias("texts"))
    depth = pl.col("spec").str.json_path_match(f"$.{DEPTH}").cast(pl.Int64, strict=False)
    stated = runs.select("run_id", *of, "spec", depth=depth).drop_nulls("depth")
    stacks = pl.Series("stack", [stack_of(spec) for spec in stated["spec"]], dtype=pl.String)
    known = stated.with_columns(stacks).drop_nulls("stack").reverse()
    known = known.sort("depth", descending=True, maintain_order=True)
    found: dict[str, tuple[str, ...]] = {}
    for _, alike in known.group_by("stack", "collection_id", "chunking", "texts", maintain_order=True):
        for run_id, own in alike.select("run_id", "depth").rows():
            found[run_id] = tuple(alike.filter(pl.col("depth") > own)["run_id"])
    return {run_id: others for run_id, others in found.items() if others}


def begun(grades: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Return whether there is anything in the first slot: bool [runs, queries]."""
    if not grades.shape[2]:
        return np.zeros(grades.shape[:2], dtype=np.bool_)
    return np.asarray(grades[..., 0] != EMPTY_SLOT)


def split(actual: pl.Expr, proc: pl.Expr) -> list[pl.Expr]:
    """Split 1 − quality into ordering loss and retrieval loss, plus a label for what to improve first."""
    ordering = (proc - actual).clip(lower_bound=0)
    retrieval = 1 - pl.max_horizontal(actual, proc)
    reading = (
        pl.when((ordering - retrieval).abs() < MARGIN)
        .then(pl.lit(BALANCED))
        .when(retrieval > ordering)
        .then(pl.lit(RETRIEVAL))
        .otherwise(pl.lit(ORDERING))
    )
    return [ordering.alias("ordering"), retrieval.alias("retrieval"), reading.alias("reading")]


def lost(actual: float, proc: float) -> dict[str, Any]:
    """Return the losses of one stack: ordering, retrieval and reading; see `split`."""
    return pl.select(split(pl.lit(actual), pl.lit(proc))).row(0, named=True)
