"""The second end-to-end test: a classic collection through pipeline, store and measures."""

from __future__ import annotations

from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from core.metrics import Extra, Measure, score, score_all
from core.pipeline.demo import grid
from core.pipeline.evaluate import Job, Protocol, corpus_of, merged, run_job
from core.pipeline.evaluate.session import Site
from core.records import Batch
from core.store import Graded, Snapshot, Store
from tests.metrics import oracle
from tests.pipeline import cranfield

pytestmark = pytest.mark.skipif(
    not cranfield.FOLDER.is_dir(), reason=f"the Cranfield collection is not at {cranfield.FOLDER}"
)

K = 10
# RA-nWG@10 of a separate throw-away script with the same engines.
EXPECTED = {"sparse": 0.456, "dense": 0.381, "hybrid": 0.458}


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """What BM25, wordllama-256 flat and their fusion return, as the pipeline hands it over."""
    sunk: list[Batch] = []
    job = Job(
        name="cranfield",
        collection_id=cranfield.COLLECTION,
        corpora={None: corpus_of(cranfield.table("passages"))},
        queries=cranfield.table("queries"),
        stacks=grid(dims=(256,), indexes=("flat",), depths=(100,)),
        protocol=Protocol(repeats=1),
    )
    run_job(job, sunk.append, site=Site(work=tmp_path_factory.mktemp("cranfield") / "evaluations"))
    return merged(sunk)


@pytest.fixture(scope="module")
def snapshot(batch: Batch, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = Store(tmp_path_factory.mktemp("cranfield") / "store")
    kept = cranfield.without_source_documents(_rankings(batch))
    with store.write("import", "Cranfield") as writer:
        writer.add(cranfield.imported().batch)
        writer.add(replace(batch, frames={**batch.frames, "rankings": kept}))
    return store.read()


def _graded(batch: Batch, snapshot: Snapshot) -> Graded:
    (golden,) = cranfield.imported().golden_sets
    return snapshot.graded([run.run_id for run in batch.runs], golden.golden_set_id)


def _rankings(batch: Batch) -> pl.DataFrame:
    rows = batch.frames["rankings"]
    assert isinstance(rows, pl.DataFrame)
    return rows


def _by_query(rankings: pl.DataFrame, run_id: str) -> dict[str, list[str]]:
    rows = rankings.filter(run_id=run_id).sort("query_id", "rank")
    return dict(rows.group_by("query_id").agg("passage_id").iter_rows())


def test_the_two_empty_passages_are_not_searched(batch: Batch):
    assert batch.runs[0].manifest["corpus"]["indexed"] == 1398
    assert batch.runs[0].manifest["corpus"]["without_text"] == 2


def test_the_hybrid_is_the_fusion_of_the_other_two(batch: Batch):
    sparse, dense, hybrid = (_by_query(_rankings(batch), run.run_id) for run in batch.runs)
    place = {passage: at for at, passage in enumerate(cranfield.table("passages")["passage_id"])}
    for query, fused in hybrid.items():
        scores: dict[str, float] = {}
        for leg in (sparse.get(query, []), dense[query]):
            for rank, passage in enumerate(leg, start=1):
                scores[passage] = scores.get(passage, 0.0) + 1 / (60 + rank)
        assert fused == sorted(scores, key=lambda passage: (-scores[passage], place[passage]))[:100]


def test_the_store_and_the_measures_agree_with_the_naive_oracle(batch: Batch, snapshot: Snapshot):
    graded = _graded(batch, snapshot)
    values = score(Measure.parse(f"RA-nWG@{K}"), graded.grades, graded.pool_counts)[..., K - 1]
    judged = cranfield.judged()
    assert list(graded.query_ids) == sorted(judged)
    kept = cranfield.without_source_documents(_rankings(batch))
    for run, found in zip(graded.run_ids, values, strict=True):
        ranked = _by_query(kept, run)
        expected = [
            oracle.value("RA-nWG", ranked.get(query, []), judged[query], K) for query in graded.query_ids
        ]
        np.testing.assert_allclose(found, np.array(expected, dtype=np.float64), atol=1e-12)


def test_the_quality_is_what_the_engines_are_known_to_reach(batch: Batch, snapshot: Snapshot):
    graded = _graded(batch, snapshot)
    values = score(Measure.parse(f"RA-nWG@{K}"), graded.grades, graded.pool_counts)[..., K - 1]
    reached = {
        run.stack.spec["mode"]: float(np.nanmean(row)) for run, row in zip(batch.runs, values, strict=True)
    }
    assert reached == pytest.approx(EXPECTED, abs=0.03)


def test_classical_measures_agree_with_ir_measures(batch: Batch, snapshot: Snapshot):
    """Grades 2..5 as they are; relevant from 4 on, and from 3 on."""
    graded = _graded(batch, snapshot)
    judged, ranked = cranfield.judged(), cranfield.without_source_documents(_rankings(batch))
    pairs = {
        "P@10": P(rel=4) @ 10,
        "P@10(rel=3)": P(rel=3) @ 10,
        "Success@5": Success(rel=4) @ 5,
        "AP@100": AP(rel=4) @ 100,
        "R@50": R(rel=4) @ 50,
        "nDCG@10": nDCG @ 10,
        "RR@100": RR(rel=4),
    }
    depth = graded.grades.shape[2]
    measures = {text: Measure.parse(text) for text in pairs}
    made = score_all(
        measures.values(), graded.grades, graded.pool_counts, depth=depth, extra=Extra(gains=graded.gains)
    )
    for row, run_id in enumerate(graded.run_ids):
        scores = {
            query: {passage: -float(rank) for rank, passage in enumerate(passages)}
            for query, passages in _by_query(ranked, run_id).items()
        }
        there = {
            (str(each.measure), each.query_id): each.value
            for each in ir_measures.iter_calc(pairs.values(), judged, scores)
        }
        for text, theirs in pairs.items():
            values = np.nan_to_num(made[measures[text]][row, :, (measures[text].k or 1) - 1])
            expect = [there.get((str(theirs), query), 0.0) for query in graded.query_ids]
            np.testing.assert_allclose(values, expect, rtol=0, atol=1e-6, err_msg=text)
