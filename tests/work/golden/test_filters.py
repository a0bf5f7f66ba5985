"""A pool holds only what the asker of its question may see: grades of anything else would be set aside."""

from __future__ import annotations

import json
from pathlib import Path

from core.records import Batch, Collection
from core.tables import frame
from core.work.golden.plan import candidates
from tests.work.golden.built import QUESTIONS, TEXTS, job, store_of

TENANT = {name: "ab"[at % 2] for at, name in enumerate(TEXTS)}
ASKED = {"q1": "a", "q2": "b"}  # q3 may see everything


def test_a_pool_is_of_allowed_passages_and_reaches_its_depth(tmp_path: Path):
    store = store_of(tmp_path)
    free = candidates(job(store, "http://127.0.0.1:9"))
    known = [
        {"collection_id": "c", "passage_id": name, "metadata": json.dumps({"tenant": tenant})}
        for name, tenant in TENANT.items()
    ]
    asked = [
        {"collection_id": "c", "query_id": query, "filter": json.dumps({"tenant": tenant})}
        for query, tenant in ASKED.items()
    ]
    frames = {
        "passage_metadata": frame("passage_metadata", known),
        "query_filters": frame("query_filters", asked),
    }
    with store.write("filters") as writer:
        writer.add(Batch(collections=(Collection(collection_id="c", name="C"),), frames=frames))
    pool = candidates(job(store, "http://127.0.0.1:9"))
    assert free is not None
    assert pool is not None
    for query in QUESTIONS:
        found = set(pool.rows.filter(query_id=query)["passage_id"])
        assert found
        if query in ASKED:
            assert {TENANT[name] for name in found} == {ASKED[query]}
            assert len(found) >= 4, "filtered before the search: four deep of its own passages, not of all"
        else:
            assert found == set(free.rows.filter(query_id=query)["passage_id"])
    assert {TENANT[name] for name in free.rows.filter(query_id="q1")["passage_id"]} == {"a", "b"}
