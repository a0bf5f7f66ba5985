"""A pool holds only what the asker of its question may see: grades of anything else would be set aside."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from core.golden.pool import RankedSource
from core.records import Batch, Collection
from core.tables import frame
from core.work.golden.stages import pool_of
from tests.work.golden.built import QUESTIONS, TEXTS, job, store_of

TENANT = {name: "ab"[at % 2] for at, name in enumerate(TEXTS)}
ASKED = {"q1": "a", "q2": "b"}  # q3 may see everything


def test_a_pool_is_of_allowed_passages_and_its_search_filters_first(tmp_path: Path):
    store = store_of(tmp_path)
    known = [
        {"collection_id": "c", "passage_id": name, "metadata": json.dumps({"tenant": tenant})}
        for name, tenant in TENANT.items()
    ]
    asked = [
        {"collection_id": "c", "query_id": query, "filter": json.dumps({"tenant": tenant})}
        for query, tenant in ASKED.items()
    ]
    free = job(store, "http://127.0.0.1:9")
    tables = {"passage_metadata": known, "query_filters": asked}
    frames = {table: frame(table, rows) for table, rows in tables.items()}
    with store.write("filters") as writer:
        writer.add(Batch(collections=(Collection(collection_id="c", name="C"),), frames=frames))
    filtered = job(store, "http://127.0.0.1:9")
    assert [stack.spec.get("filtering") for stack in free.stacks] == [None, None]
    assert [stack.spec.get("filtering") for stack in filtered.stacks] == ["pre", "pre"]
    rows = [(query, name, at) for query in QUESTIONS for at, name in enumerate(TEXTS, 1)]
    ranked = RankedSource("r", "sparse", pl.DataFrame(rows, ["query_id", "passage_id", "rank"], orient="row"))
    whole, held = pool_of(free, [ranked]).rows, pool_of(filtered, [ranked]).rows
    for query in QUESTIONS:
        every, found = (set(of.filter(query_id=query)["passage_id"]) for of in (whole, held))
        assert every == {name for name, text in TEXTS.items() if text}
        assert found == {name for name in every if TENANT[name] == ASKED.get(query, TENANT[name])}
