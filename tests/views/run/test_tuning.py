"""Sweeps of indexes around a stack: what is tried, and that a listed stack is made again as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from core.cli.app import app
from core.errors import InputError
from core.pipeline import demo
from core.pipeline.sweep import parse
from core.pipeline.sweep.expand import expand, point
from core.records import JsonMap, Stack
from core.store import Store
from core.views.run.tuning import Around, around, missing, settings, specification
from tests.views.made import AT_10, BOOK, DEMO

DENSE: JsonMap = {
    "mode": "dense", "embedder": "wordllama", "index": "flat", "dim": 64, "reranker": "none",
    "candidates": 20,
}  # fmt: skip
HYBRID: JsonMap = {
    **DENSE, "mode": "hybrid", "sparse": "bm25", "fusion": {"method": "rrf", "constant": 60, "depth": 100},
}  # fmt: skip
SHAPES = [
    *(stack.spec for stack in (*demo.grid()[::9], *demo.noisy()[::4], *demo.reranked())),
    {**DENSE, "index": "hnsw-f32", "index_params": {"M": 8, "efSearch": 9}, "metric": "l2", "chunks_sent": 3},
    {**HYBRID, "bm25": {"k1": 1.2, "language": "french"}, "dedup": {"method": "exact", "look": 2}},
]


@pytest.mark.parametrize("spec", SHAPES)
def test_a_stack_that_is_listed_is_made_again_as_it_was(spec: JsonMap):
    text = json.dumps({"collection": {"stored": "c"}, "stack": [point(spec)]})
    (made,) = expand(parse(text, "json", name="test"))
    assert made.spec == spec


@pytest.mark.parametrize(
    ("spec", "kind", "efforts", "passages", "tried"),
    [
        (DENSE, ("hnsw-f32", {}), (), 500, [{"efSearch": ef} for ef in (20, 40, 80, 160, 320)]),
        (HYBRID, ("hnsw-f32", {}), (), 500, [{"efSearch": ef} for ef in (100, 200, 400, 800, 1600)]),
        (DENSE, ("hnsw-f32", {"M": 4}), (64, 128), 500, [{"M": 4, "efSearch": 64}, {"M": 4}]),
        (DENSE, ("ivf-flat", {}), (), 500, [{"nprobe": n} for n in (1, 2, 4)] + [{}, {"nprobe": 12}]),
        (DENSE, ("ivf-flat", {"lists": 6}), (), 500, [{"lists": 6, "nprobe": n} for n in (1, 2, 4, 6)]),
        (DENSE, ("ivf-flat", {"nprobe": 3}), (1, 2), 500, [{"nprobe": 3}]),
        (DENSE, ("ivf-flat", {}), (), 1, [{"nprobe": 1}]),
        (DENSE, ("int8", {}), (5,), 500, [{}]),
        # refine = 0 is what is usual, as is ef_search = 128
        (
            DENSE,
            ("lancedb", {}),
            (64, 128),
            500,
            [
                {"ef_search": 64},
                {"ef_search": 64, "refine": 2},
                {"ef_search": 64, "refine": 10},
                {},
                {"refine": 2},
                {"refine": 10},
            ],
        ),
        (
            DENSE,
            ("lancedb", {"method": "ivf_pq", "partitions": 3, "refine": 5}),
            (),
            500,
            [{"method": "ivf_pq", "partitions": 3, "refine": 5, "probes": n} for n in (1, 2, 3)],
        ),
        (DENSE, ("lancedb", {"method": "none"}), (), 500, [{"method": "none"}]),
        # pgvector looks at 1,000 at most
        ({**DENSE, "candidates": 300}, ("pgvector", {}), (), 500, [{"ef_search": 300}, {"ef_search": 600}]),
    ],
)
def test_efforts_double_up_to_all_there_is(
    spec: JsonMap, kind: tuple[str, JsonMap], efforts: tuple[int, ...], passages: int, tried: list[JsonMap]
):
    flat, *others = settings(Around(spec, "r", None, {}), [kind], efforts, passages)
    assert flat.spec == spec
    assert [stack.spec.get("index_params", {}) for stack in others] == tried
    assert {stack.spec["index"] for stack in others} == {kind[0]}


def test_what_cannot_be_built_is_refused_before_anything_runs():
    with pytest.raises(InputError, match="500 vectors"):
        settings(Around(DENSE, "r", None, {}), [("pq", {})], (), 500)


def view_of(store: Path) -> View:
    return View(Store.open(store).read(), DEMO, quality=AT_10, latency=Latency(), book=BOOK)


def test_the_best_stack_with_vectors_is_taken_unless_one_is_named(demo_store: Path):
    view = view_of(demo_store)
    base = around(view)
    assert (base.spec["index"], base.spec["mode"]) == ("flat", "hybrid")
    labels = view.table["name"].to_list()
    named = around(view, next(name for name in labels if "hnsw" in name))
    assert named.spec["index"] == "flat"
    assert "index_params" not in named.spec
    with pytest.raises(InputError, match="without vectors"):
        around(view, next(name for name in labels if name.startswith("BM25") and "⊕" not in name))
    tried = settings(named, [("ivf-flat", {})], (1, 2), 3423)
    assert [stack.spec["index"] for stack in missing(tried, view)] == ["ivf-flat"] * 2
    said = specification(named, tried, view)
    assert said["collection"] == {"stored": "python-docs", "language": "english"}
    assert [stack.stack_id for stack in expand(parse(json.dumps(said), "json", name="test"))] == [
        stack.stack_id for stack in tried
    ]


@pytest.mark.parametrize(
    ("manifest", "chunking", "material"),
    [
        (
            {"sweep": {"collection": {"path": "/nowhere", "language": "french"}}},
            None,
            {"stored": "python-docs"},
        ),
        ({"sweep": {"collection": {"path": "."}}}, "cut", {"path": "."}),
        ({"sweep": {"collection": {"stored": "docs"}}}, "cut", {"stored": "docs"}),
        ({"sweep": {"collection": {"path": "/nowhere"}}}, "cut", None),
        ({}, "cut", None),
    ],
)
def test_what_the_stack_was_run_on_is_searched_again(
    manifest: dict[str, Any], chunking: str | None, material: JsonMap | None, demo_store: Path
):
    base = Around(DENSE, "r", chunking, manifest)
    if material is None:
        with pytest.raises(InputError, match="are not there"):
            specification(base, [Stack(DENSE)], view_of(demo_store))
        return
    assert specification(base, [Stack(DENSE)], view_of(demo_store))["collection"].items() >= material.items()


@pytest.mark.slow
def test_a_sweep_runs_what_is_missing_and_names_the_least_that_is_safe(demo_store: Path, tmp_path: Path):
    store = tmp_path / "data" / "store"
    shutil.copytree(demo_store, store)

    def tune(*words: str, code: int = 0) -> tuple[list[dict[str, Any]], str]:
        asked = ["--store", str(store), "indexes", "tune", "--collection", "python-docs", "--format", "json"]
        done = CliRunner().invoke(app, [*asked, *words])
        assert done.exit_code == code, done.output
        return (json.loads(done.stdout) if code == 0 else []), done.stderr

    before = Store.open(store).read().runs().height
    kinds = ("--kinds", "ivf-flat", "--ef", "1,64")
    planned = CliRunner().invoke(app, ["--store", str(store), "indexes", "tune", *kinds, "--dry-run",
                                       "--collection", "python-docs"])  # fmt: skip
    assert "384 searches: 2 stacks, 64 questions asked 3 times" in planned.stderr
    assert Store.open(store).read().runs().height == before
    rows, said = tune(*kinds)
    assert [(row["effort"], row["taken"]) for row in rows] == [(1, False), (64, True)]
    assert (rows[1]["percent"], rows[1]["pct_proc"]) == pytest.approx((100, rows[1]["flat_proc"]))
    assert rows[0]["percent"] < rows[1]["percent"]
    assert "ivf-flat: looking at 64 surely keeps 98 %" in said
    again, said = tune(*kinds)
    assert again == rows
    assert "searches" not in said
    assert Store.open(store).read().runs().height == before + 2
    assert "--kinds" in tune("--ef", "3", code=2)[1]
