"""What the bench of indexes measures, on a grid."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from core.errors import InputError, UnknownNameError
from core.pipeline.index import METRICS, make_index
from core.pipeline.index.bench import BenchGrid, bench, effort_of, frame_of
from core.tables import TABLES
from tests.pipeline.corpora import unit_vectors

VECTORS, QUERIES = unit_vectors(300, 16, seed=1), unit_vectors(20, 16, seed=2)
GRID = BenchGrid(ks=(5, 20), efforts=(8, 64), clients=(1, 3), seconds=0)


@pytest.mark.slow
def test_every_point_of_the_grid_is_measured(tmp_path: Path):
    points = list(bench([("flat", {}), ("hnsw-f32", {"M": 4})], VECTORS, QUERIES, grid=GRID, folder=tmp_path))
    assert [(p.index, p.effort, p.k, p.clients) for p in points] == [
        *(("flat", None, k, clients) for k in (5, 20) for clients in (1, 3)),
        *(("hnsw-f32", ef, k, clients) for ef in (8, 64) for k in (5, 20) for clients in (1, 3)),
    ]
    assert {p.figures["recall"][0] for p in points if p.index == "flat"} == {1.0}
    few, many = (np.mean([p.figures["recall"][0] for p in points if p.effort == ef]) for ef in (8, 64))
    assert few < many <= 1
    for point in points:
        told = point.figures
        assert told["p50_ms"][0] <= told["p95_ms"][0] <= told["p99_ms"][0]
        assert told["queries_per_second"][0] > 0
        assert told["p99_ms"][3] >= 400
    rows = frame_of(points, collection_id="c", source="random", dim=16)
    assert rows.schema == TABLES["diagnostics"]
    assert rows.select("condition", "measure").is_unique().all()
    assert json.loads(points[-1].condition)["params"] == {"M": 4}


@pytest.mark.parametrize("metric", METRICS)
def test_an_index_searched_with_more_effort_is_the_same_index(metric: str):
    index = make_index("hnsw-f32", VECTORS, metric, {"M": 4, "efSearch": 1})
    deeper = index.with_options({"efSearch": 300})
    wanted = make_index("flat", VECTORS, metric).search(QUERIES[0], 5)
    assert deeper.search(QUERIES[0], 5).passages.tolist() == wanted.passages.tolist()
    assert index.parameters["efSearch"] == 1


@pytest.mark.parametrize(
    ("name", "options", "knob"),
    [
        ("flat", {}, ""),
        ("int8", {}, ""),
        ("hnsw-int8", {}, "efSearch"),
        ("ivf-flat", {"lists": 8}, "nprobe"),
        ("pgvector", {"method": "hnsw", "ef_search": 40, "probes": 10}, "ef_search"),
        ("pgvector", {"method": "ivfflat", "ef_search": 40, "probes": 10}, "probes"),
        ("pgvector", {"method": "none", "ef_search": 40}, ""),
        ("pgvector", {"exact": "yes", "ef_search": 40}, ""),
        ("lancedb", {"method": "ivf_pq", "probes": 20}, "probes"),
        ("qdrant", {"ef_search": 128}, "ef_search"),
    ],
)
def test_what_a_search_looks_at_depends_on_the_index(name: str, options: dict[str, object], knob: str):
    assert effort_of(name, options) == knob


def test_what_cannot_be_measured_is_refused_before_anything_is_built(tmp_path: Path):
    with pytest.raises(InputError, match="beyond 300 vectors"):
        list(bench([("flat", {})], VECTORS, QUERIES, grid=BenchGrid(ks=(301,)), folder=tmp_path))
    with pytest.raises(UnknownNameError):
        list(bench([("flat", {}), ("tree", {})], VECTORS, QUERIES, grid=GRID, folder=tmp_path))


def test_a_client_that_fails_ends_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def search(self: object, query: np.ndarray, k: int) -> object:
        if threading.current_thread() is not threading.main_thread():
            raise InputError("no")
        return whole(self, query, k)

    from core.pipeline.index import DenseIndex

    whole = DenseIndex.search
    monkeypatch.setattr(DenseIndex, "search", search)
    with pytest.raises((InputError, threading.BrokenBarrierError)):
        list(bench([("flat", {})], VECTORS, QUERIES, grid=GRID, folder=tmp_path))
