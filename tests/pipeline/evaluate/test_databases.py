"""Evaluations that search databases: the same rankings as in memory, and tables that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.pipeline.index import DatabasePlace, make_index
from core.providers.embed import make_embedder
from core.records import Stack
from tests.pipeline.corpora import passages, random_texts
from tests.pipeline.evaluate.helpers import Sunk, job, protocol, run

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
TEXTS = random_texts(80, seed=7)


def stack(index: str, **params: Any) -> Stack:
    spec = {"mode": "dense", "embedder": "fake", "dim": 32, "index": index, "reranker": "none"}
    more = {"index_params": params} if params else {}
    return Stack({**spec, **more, "candidates": 10})


def rankings(sunk: Sunk, run_id: str) -> list[tuple[Any, ...]]:
    rows = sunk.table("rankings").filter(run_id=run_id)
    return rows.select("query_id", "rank", "passage_id", pl.col("score").round(5)).rows()


@pytest.mark.parametrize("engine", ["pgvector", "lancedb"])
def test_an_exact_search_of_a_database_ranks_as_the_flat_index(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip({"pgvector": "psycopg"}.get(engine, engine))
    where = {"url_env": "PG_URL"} if engine == "pgvector" else {}
    if where:
        monkeypatch.setenv("PG_URL", request.getfixturevalue("postgres"))
    stacks = [stack("flat"), stack(engine, exact="yes"), stack(engine)]
    outcome, sunk = run(tmp_path, job(stacks, protocol=protocol(repeats=1)))
    flat, exact, near = (each.run_id for each in outcome.runs)
    assert rankings(sunk, flat) == rankings(sunk, exact)
    recall = sunk.table("signals").filter(signal="ann_recall")
    assert recall["run_id"].unique().to_list() == [near]
    assert recall["value"].min() >= 0.8
    told = outcome.runs[1].manifest["indexes"][engine]
    assert told["build_s"] >= 0
    assert told["bytes"] > 80 * 32 * 4
    usage = sunk.table("usage").filter(run_id=exact, stage="retrieve")
    assert usage["unit"].unique().to_list() == (["requests"] if where else ["cpu_ms"])
    assert str(tmp_path.parent) not in str(outcome.runs[1].manifest)


def test_an_engine_that_searches_words_too_is_measured_beside_its_vectors(tmp_path: Path):
    pytest.importorskip("qdrant_edge")
    searches = ("dense", "bm25", "rrf")
    stacks = [stack("qdrant-edge", search=search, exact="yes") for search in searches]
    outcome, sunk = run(tmp_path, job(stacks, protocol=protocol(repeats=1)))
    dense, words, both = (
        {(query, passage) for query, _, passage, _ in rankings(sunk, each.run_id)} for each in outcome.runs
    )
    assert dense != words
    assert both <= dense | words
    assert sunk.table("signals").filter(signal="ann_recall").is_empty()
    sizes = [run.manifest["indexes"]["qdrant-edge"]["bytes"] for run in outcome.runs]
    assert sizes[0] < sizes[1]


def test_a_table_that_is_there_is_measured_without_embedding_the_corpus(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PG_URL", postgres)
    searched = passages(TEXTS)
    texts = job(texts=searched).corpora[None].texts.to_list()
    vectors = make_embedder("fake", 32).embed(texts)
    make_index("pgvector", vectors, place=DatabasePlace(tmp_path, "production"))
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("ALTER TABLE production ADD chunk_id text")
        ids = job(texts=searched).corpora[None].passage_ids.to_list()
        for number, name in enumerate(ids):
            connection.execute("UPDATE production SET chunk_id = %s WHERE id = %s", (name, number))
    there = stack("pgvector", table="production", id="chunk_id", vector="embedding")
    outcome, sunk = run(tmp_path, job([there], texts=searched, protocol=protocol(repeats=1)))
    assert not list((tmp_path / "evaluations").rglob("vectors.npy"))
    again, other = run(tmp_path / "flat", job([stack("flat")], texts=searched, protocol=protocol(repeats=1)))
    assert rankings(sunk, outcome.runs[0].run_id) == rankings(other, again.runs[0].run_id)
    assert sunk.table("signals").filter(signal="ann_recall")["value"].min() == 1.0
