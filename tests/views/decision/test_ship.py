"""How the chosen stack is handed back, or why it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.store import Store
from core.views.decision.ship import shipping

SPARSE = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 20}
DENSE = {"mode": "dense", "embedder": "wordllama", "index": "flat", "dim": 64, "candidates": 20}
CASES: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "sparse": (SPARSE, "python", "elasticsearch"),
    "dense": (DENSE, "python", "haystack"),
    "a reranker": ({**SPARSE, "reranker": "cohere"}, None, "reranker cohere"),
    "an index": ({**DENSE, "index": "hnsw-f32"}, None, "index hnsw-f32"),
    "as published": ({"mode": "dense", "embedder": "wordllama"}, None, "an unknown K, index unknown"),
    "no mode": ({"name": "theirs"}, None, "how it retrieves is unknown"),
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
    ("changes", "words"), [({"chunking": "c"}, "chunks"), ({"collection_id": "clq-paper"}, "no passages")]
)
def test_what_the_store_lacks(changes: dict[str, str], words: str, demo_store: Path):
    row = {"run_id": "r", "spec": json.dumps(SPARSE), "chunking": None, "collection_id": "python-docs"}
    how = shipping(Store.open(demo_store).read(), {**row, **changes})
    assert (how.command, words in how.sentence) == (None, True)
