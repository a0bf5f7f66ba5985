"""Indexes measured here and imported: one row per way of asking, dollars, charts."""

from __future__ import annotations

import json

import polars as pl
import pytest

from core.pipeline.index.bench import BenchPoint, frame_of
from core.records import Batch, Collection, Run, Stack
from core.records import Origin as Came
from core.store import Store
from core.tables import frame
from core.views.latency.indexes import answer, benches, dollars, drawn, figures

FIGURES = {
    "recall": (0.9, 0.85, 0.95, 200),
    "p50_ms": (1.0, None, None, 400),
    "queries_per_second": (900.0, None, None, 400),
    "build_s": (3.0, None, None, 5000),
    "bytes": (1e6, None, None, 5000),
}
POINTS = [
    BenchPoint(
        index="pgvector",
        params={"m": 8, "url_env": "PG_URL"},
        effort=ef,
        k=10,
        clients=clients,
        figures=FIGURES,
    )
    for ef in (16, 64)
    for clients in (1, 4)
]
BENCH = {
    "importer": "vectordbbench",
    "task": {"case_config": {"k": 10}},
    "metrics": {
        "recall": 0.97, "serial_latency_p99": 0.004, "serial_latency_p95": 0, "load_duration": 60.0,
        "conc_num_list": [1, 4], "conc_qps_list": [300.0, 800.0], "conc_latency_p99_list": [0.005, 0.02],
    },
}  # fmt: skip


def imported(run_id: str, manifest: dict[str, object], collection: str = "c") -> Run:
    return Run(
        run_id=run_id, collection_id=collection, stack=Stack({"index": run_id}), label=run_id,
        origin=Came.IMPORT, manifest=manifest,
    )  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    store = Store.open(tmp_path_factory.mktemp("store"))
    rows = frame_of(POINTS, collection_id="ix", source="random", dim=8)
    timings = [
        {"run_id": "hnsw", "query_id": str(q), "stage": "retrieve", "repeat": 1, "ms": 2.0} for q in range(4)
    ]
    attributes = {"importer": "ann-benchmarks", "attributes": {"build_time": 5.0, "index_size": 10.0}}
    collections = (
        Collection(collection_id="ix", name="Indexes: random"),
        Collection(collection_id="c", name="C"),
    )
    runs = (
        imported("milvus", BENCH),
        imported("hnsw", attributes),
        imported("other", {"importer": "x"}),
    )
    frames = {"diagnostics": rows, "timings": frame("timings", timings)}
    with store.write("t") as writer:
        writer.add(Batch(collections=collections, runs=runs, frames=frames))
    return figures(store.read())


def test_every_way_of_asking_is_a_row(known: pl.DataFrame):
    here = known.filter(basis="measured")
    assert here.select("index", "effort", "k", "clients", "recall", "n", "searches", "passages").rows() == [
        ("pgvector (m 8)", ef, 10, clients, 0.9, 200, 400, 5000) for ef in (16, 64) for clients in (1, 4)
    ]
    assert here["where"].unique().to_list() == ["Indexes: random"]
    assert "PG_URL" not in json.dumps(here.to_dicts())


def test_imported_results_stand_beside_them_and_what_is_missing_is_unknown(known: pl.DataFrame):
    milvus = known.filter(index="milvus")
    assert milvus.select("clients", "recall", "p95_ms", "p99_ms", "queries_per_second", "build_s").rows() == [
        (1, 0.97, None, 4.0, None, 60.0),
        (1, 0.97, None, 5.0, 300.0, 60.0),
        (4, 0.97, None, 20.0, 800.0, 60.0),
    ]
    (hnsw,) = known.filter(index="hnsw").to_dicts()
    assert (hnsw["p50_ms"], hnsw["queries_per_second"], hnsw["recall"], hnsw["bytes"]) == (
        2.0,
        500.0,
        None,
        10_240.0,
    )
    assert set(known["index"]) == {"pgvector (m 8)", "milvus", "hnsw"}


def test_a_thousand_queries_cost_what_the_machine_costs_in_their_time(known: pl.DataFrame):
    priced = dollars(known, 0.36, 0.5).filter(index="pgvector (m 8)")
    assert priced["usd_per_1k"].to_list() == pytest.approx([0.36 / (3600 * 900 * 0.5) * 1000] * 4)
    assert dollars(known, None).get_column("usd_per_1k").null_count() == known.height


def test_lines_are_drawn_per_index_and_imported_ones_apart(known: pl.DataFrame):
    some = known.filter((pl.col("k") == 10) & (pl.col("clients") == 4))
    traces = drawn(some, "queries_per_second", "queries per second").data
    assert [(len(trace.x), trace.line.dash) for trace in traces] == [(2, "solid"), (1, "dot")]
    assert "No index" in answer(some, 10, 4)
    assert "milvus" in answer(some.filter(basis="imported"), 10, 4)
    assert benches(known) == ["Indexes: random"]
