"""A run of rag-gs goes on from its S5: its grades are taken over, its Top-20 is refined here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.store import Store
from core.store.doctor import examine
from core.work.golden.plan import candidates
from core.work.golden.stages import pruned
from tests.importers.helpers import SHARED, needs, read
from tests.vendors import serve
from tests.work.golden import built

RUN = SHARED / "peer_outputs" / "rag_gs" / "data" / "runs" / "demo"
SPEC = """
name = "continued"
collection.stored = "rag-gs"
prices = "fake"
[golden]
language = "fr"
[[golden.pool]]
runs = ["MERGED"]
depth = 100
[golden.judge]
grades = "GRADES"
[golden.refine]
method = "METHOD"
model = "judge"
turns = 60
"""


@pytest.mark.slow
@needs(RUN)
def test_a_run_of_rag_gs_goes_on_from_its_s5(tmp_path: Path):
    made = read(RUN, collection_id="rag-gs")
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    merged = next(run.run_id for run in made.runs if "merge" in run.label)
    (grades,) = (each.golden_set_id for each in made.golden_sets)
    before = built.grades(store, grades)
    text = SPEC.replace("MERGED", merged).replace("GRADES", grades)
    texts = dict(store.read().passages("rag-gs").select("text", "passage_id").iter_rows())
    asked = dict(store.read().queries("rag-gs").select("text", "query_id").iter_rows())

    def judge(body: Mapping[str, Any]) -> str:
        question, passages = built.texts_of(body)
        names = [texts[passage] for passage in passages]
        best = sorted(range(len(names)), key=lambda at: (-before[asked[question], names[at]], names[at]))
        return json.dumps({"order": [at + 1 for at in best]})

    with serve(chat=judge) as vendors:
        for method in ("locks", "map"):
            job = built.job(store, vendors.url, text.replace("METHOD", method).replace("continued", method))
            pool = candidates(job)
            assert pool is not None
            kept = pruned(pool, job.grades, job.spec.golden.prune.keep)
            for query, theirs in stage("s5_pruned").items():
                assert set(kept.filter(query_id=query)["passage_id"]) == theirs
            built.build(store, job, vendors.url)
            snapshot = store.read()
            assert built.grades(store, method) == before
            row = snapshot.golden_sets("rag-gs").row(
                by_predicate=pl.col("golden_set_id") == method, named=True
            )
            assert row["parents"] == [grades]
            orders = snapshot.orders(method)
            for query, rows in orders.partition_by("query_id", as_dict=True).items():
                found = [before[query[0], passage] for passage in rows.sort("rank")["passage_id"]]
                assert rows.height == kept.filter(query_id=query[0]).height
                assert pl.Series(found[:20]).mean() >= 0.95 * pl.Series(sorted(found)[::-1][:20]).mean()
        assert examine(store).sound


def stage(name: str) -> dict[str, set[str]]:
    """Question to the passages of one stage of the run."""
    found: dict[str, set[str]] = {}
    for path in sorted(RUN.glob(f"q*/{name}/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["qid"], set()).add(row["doc_id"])
    return found
