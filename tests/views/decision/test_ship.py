"""How the chosen stack is handed back, or why it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from core.decide.rules import Constraints, decide
from core.store import Store
from core.views.decision.sections import PARTS, WRITTEN, handed, shipping
from tests.views.made import AT_10, BOOK, DEMO, stacks

SPARSE = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 20}
DENSE = {"mode": "dense", "embedder": "wordllama", "index": "flat", "dim": 64, "candidates": 20}
CASES: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "sparse": (SPARSE, "python", "elasticsearch"),
    "dense": (DENSE, "python", "haystack"),
    "a reranker": ({**SPARSE, "reranker": "cohere"}, None, "reranker cohere"),
    "an index": ({**DENSE, "index": "hnsw-f32"}, None, "index hnsw-f32"),
    "as published": ({"mode": "dense", "embedder": "wordllama"}, None, "an unknown K, index unknown"),
    "no mode": ({"name": "theirs"}, None, "an unknown way to retrieve"),
    "one's own": ({"mode": "own", "name": "shop", "call": "shop:find"}, None, "runs already: shop:find"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_or_the_reason(name: str, demo_store: Path):
    spec, kind, words = CASES[name]
    row = {"run_id": "r 1", "spec": json.dumps(spec), "chunking": None, "collection_id": "python-docs"}
    how = shipping(Store.open(demo_store).read(), row)
    command = f"python -m core export stack 'r 1' --as {kind}" if kind else None
    assert (how.command, words in how.sentence) == (command, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunking": "c"}, ": it searches chunks of documents."),
        ({"collection_id": "clq-paper"}, "no passages"),
    ],
)
def test_what_the_store_lacks(changes: dict[str, str], words: str, demo_store: Path):
    spec = {**SPARSE, **({"chunker": {"method": "sentence"}} if "chunking" in changes else {})}
    row = {"run_id": "r", "spec": json.dumps(spec), "chunking": None, "collection_id": "python-docs"}
    how = shipping(Store.open(demo_store).read(), {**row, **changes})
    assert (how.command, words in how.sentence) == (None, True)


MADE_OF = "python -m core manifest show r0"
INT8 = WRITTEN.format("no adapter carries out index int8")


@pytest.mark.parametrize(
    ("others", "fast", "sla", "says"),
    [
        (
            [SPARSE, {**DENSE, "index": "flat"}],
            1.0,
            None,
            ("r1", "stack 1, which ties with it, runs by itself"),
        ),
        (
            [{**DENSE, "reranker": "cohere"}, SPARSE],
            1.0,
            None,
            ("r2", "stack 2, which ties with it, runs"),
        ),
        (
            [{**DENSE, "dim": 128}, DENSE],
            90.0,
            None,
            ("r2", "which searches every vector instead, runs"),
        ),
        ([DENSE, {**DENSE, "dim": 128}], 90.0, 50, (None, f"{PARTS} {INT8}")),
        ([{**DENSE, "reranker": "cohere"}, {**SPARSE, "reranker": "cohere"}], 1.0, None, (None, PARTS)),
    ],
    ids=["a tie", "the second of a tie", "its twin", "a twin beyond the SLA", "none"],
)
def test_what_would_do_in_place_of_one_that_cannot_be_written(
    others: list[dict[str, Any]],
    fast: float,
    sla: float | None,
    says: tuple[str | None, str],
    demo_store: Path,
):
    run_id, words = says
    specs = [json.dumps(spec) for spec in ({**DENSE, "index": "int8"}, *others)]
    table = stacks(spec=specs, quality=[0.8] * 3, latency_ms=[1.0, fast, fast], cost=[1.0, 2.0, 3.0])
    table = table.with_columns(collection_id=pl.lit("python-docs"), chunking=pl.lit(None, pl.String))
    limits = Constraints(sla_ms=sla, jitter_ms=0.5)
    view = View(Store.open(demo_store).read(), DEMO, quality=AT_10, latency=Latency(), book=BOOK)
    how = handed(view, table, decide(table, limits))
    command = f"python -m core export stack {run_id} --as python" if run_id else MADE_OF
    assert (how.command, words in how.sentence) == (command, True)
