"""A collection whose passages have tenants and whose queries have filters, and a sweep over it."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.filters import fields_of, parse
from tests.pipeline.corpora import random_texts

TENANTS = ["big"] * 500 + ["small"] * 200 + ["tiny"] * 4
QUERIES = {
    "q0": ("sort a frame", {"tenant": "big"}),
    "q1": ("lazy window mean", {"tenant": "small"}),
    "q2": ("join columns by row", {"tenant": "tiny"}),
    "q3": ("read and write a cache", {"tenant": ["small", "tiny"], "public": True}),
    "q4": ("plot an array", None),
}
AXES = """
collection = "c"
[axes]
mode = ["sparse", "dense", "hybrid"]
embedder = "fake"
dim = 16
index = ["flat", "hnsw-f32"]
candidates = 5
reranker = "fake"
{filtering}
[latency]
repeats = 2
"""
EVERY = 'filtering = ["none", "pre", "post:4", "partition:tenant"]'


def passages(tenants: list[str] = TENANTS) -> list[dict[str, Any]]:
    texts = random_texts(len(tenants), seed=5)
    known = [
        {"tenant": tenant, **({"public": at % 3 == 0} if at % 7 else {})} for at, tenant in enumerate(tenants)
    ]
    return [
        {"_id": f"p{at:03}", "text": text, "metadata": fields}
        for at, (text, fields) in enumerate(zip(texts, known, strict=True))
    ]


def beir(folder: Path, queries: dict[str, Any] = QUERIES) -> Path:
    """A collection with metadata, and queries with filters."""
    (folder / "c" / "qrels").mkdir(parents=True)
    asked = [
        {"_id": name, "text": text, **({"filter": wanted} if wanted is not None else {})}
        for name, (text, wanted) in queries.items()
    ]
    for name, rows in (("corpus", passages()), ("queries", asked)):
        (folder / "c" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    graded = "".join(f"{query}\tp{at:03}\t2\n" for query in queries for at in range(0, len(TENANTS), 30))
    (folder / "c" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{graded}")
    return folder


@lru_cache
def allowed(query: str) -> frozenset[str]:
    wanted = QUERIES[query][1]
    rows = passages()
    left = parse(wanted or {}).mask(fields_of([row["metadata"] for row in rows]))
    return frozenset(row["_id"] for row, seen in zip(rows, left, strict=True) if seen)
