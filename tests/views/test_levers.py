"""What is proposed to a stack: nothing that it is, that cannot change it, or that was measured on it."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.pools import BALANCED, ORDERING, RETRIEVAL
from core.decide.ties import Paired
from core.views.levers import NOTHING_LEFT, to_try
from tests.views.made import stacks

DENSE = {"mode": "dense", "embedder": "e", "dim": 8, "index": "flat", "reranker": "none", "candidates": 10}
SPARSE = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 10}
FUSED = {**DENSE, **SPARSE, "mode": "hybrid", "fusion": {"method": "rrf"}}
FUSE, REWRITE, RERANK = "fuse dense with BM25 candidates", "rewrite or denoise the queries", "add a reranker"
EXACT, DEEPEN = "tune the dense index for recall (efSearch, or exact search)", "deepen the candidate pool"
WIDEN = "widen the pool and strengthen the reranker together"
REST = ["drop near-duplicates", "shorten chunks", "clean the metadata sent with each chunk"]


@pytest.mark.parametrize(
    ("reading", "own", "others", "open_", "measured"),
    [
        (RETRIEVAL, DENSE, [], [FUSE, REWRITE], []),
        (RETRIEVAL, DENSE, [FUSED], [REWRITE], [FUSE]),
        (RETRIEVAL, SPARSE, [FUSED | {"candidates": 50}], [REWRITE], [FUSE]),  # whose K nothing reads either
        (RETRIEVAL, DENSE, [FUSED | {"embedder": "f"}, FUSED | {"reranker": "r"}], [FUSE, REWRITE], []),
        (RETRIEVAL, FUSED, [DENSE, SPARSE], [REWRITE], []),
        (RETRIEVAL, FUSED, [FUSED | {"rewrite": "rules"}], [], [REWRITE]),
        (RETRIEVAL, FUSED | {"rewrite": "rules"}, [], [], []),
        (RETRIEVAL, DENSE | {"index": "hnsw-f32"}, [], [FUSE, EXACT, REWRITE], []),
        (RETRIEVAL, DENSE | {"index": "hnsw-f32"}, [DENSE], [FUSE, REWRITE], [EXACT]),
        (RETRIEVAL, DENSE | {"reranker": "r"}, [], [FUSE, REWRITE, DEEPEN], []),
        (RETRIEVAL, DENSE | {"reranker": "r"}, [DENSE | {"reranker": "r", "candidates": 50}], [FUSE, REWRITE],
         [DEEPEN]),
        (RETRIEVAL, {"name": "nobody says"}, [FUSED], [FUSE, REWRITE], []),
        (ORDERING, DENSE, [DENSE | {"candidates": 50}], [RERANK, *REST], []),
        (ORDERING, DENSE, [DENSE | {"reranker": "r", "candidates": 50}], REST, [RERANK]),
        (ORDERING, DENSE | {"reranker": "r"}, [DENSE], ["use a stronger reranker", *REST], []),
        (ORDERING, DENSE | {"reranker": "r"}, [DENSE | {"reranker": "s"}], REST, ["use a stronger reranker"]),
        (ORDERING, DENSE | {"dedup": {"method": "m"}}, [], [RERANK, *REST[1:]], []),
        (BALANCED, DENSE, [], ["add a reranker over a wide pool"], []),
        (BALANCED, DENSE | {"reranker": "r"}, [], [WIDEN], []),
    ],
)  # fmt: skip
def test_what_is_left_to_try(reading, own, others, open_, measured):
    specs = [own, *others]
    rows = stacks(
        spec=list(map(json.dumps, specs)), quality=[0.4 + place / 10 for place in range(len(specs))]
    )
    said = to_try(rows.row(0, named=True), reading, rows, [True] * len(specs))
    left = f"Not tried here (CLQ paper §6): {'; '.join(open_)}." if open_ else NOTHING_LEFT
    gains = "; ".join(f"{words}: stack 1, +0.100" for words in measured)
    assert said == (f"Measured here with a gain: {gains}. " if gains else "") + left


@pytest.mark.parametrize(
    ("feasible", "words"),
    [
        ([True, True, True], "add a reranker;"),
        ([True, True, False], "add a reranker;"),
        ([True, False, False], "add a reranker (all 2 here that do are beyond your limits);"),
    ],
)
def test_what_only_breaks_the_limits_is_said_to(feasible: list[bool], words: str):
    specs = [DENSE, *({**FUSED, "reranker": "r", "candidates": k} for k in (10, 50))]
    rows = stacks(spec=list(map(json.dumps, specs)), quality=[0.4, 0.5, 0.6])
    assert words in to_try(rows.row(0, named=True), ORDERING, rows, feasible)


def test_of_what_was_measured_the_best_within_the_limits_is_named():
    specs = [DENSE, *({**FUSED, "candidates": k, "rewrite": "none"} for k in (10, 50))]
    specs = [{**spec, "rewrite": "none"} for spec in specs]
    rows = stacks(spec=list(map(json.dumps, specs)), quality=[0.4, 0.5, 0.6])
    for feasible, words in (
        ([True, True, True], "stack 2, +0.200."),
        ([True, True, False], "stack 1, +0.100."),
        ([True, False, False], "stack 2, +0.200, beyond your limits."),
    ):
        said = to_try(rows.row(0, named=True), RETRIEVAL, rows, feasible)
        assert said.partition(" No")[0].endswith(words)


def test_a_lever_that_moved_nothing_is_no_advice():
    specs = [DENSE, DENSE | {"reranker": "r"}]
    rows = stacks(spec=list(map(json.dumps, specs)), quality=[0.6191, 0.6194])
    said = to_try(rows.row(0, named=True), ORDERING, rows, [True, False])
    assert said.startswith(
        "Measured here without a sure gain: stack 1, which changes nothing, beyond your limits."
    )
    assert RERANK not in said


def test_rerankers_that_gained_nothing_are_named_with_their_differences_and_never_advised():
    names = ["stack 0", "r at 10", "r at 50", "s at 50"]
    specs = [
        DENSE,
        *(DENSE | {"reranker": each, "candidates": k} for each, k in (("r", 10), ("r", 50), ("s", 50))),
    ]
    values = np.tile(np.linspace(0.1, 0.9, 40), (4, 1))
    values[2] += np.where(np.arange(40) % 2, 0.3, -0.29)
    values[3] -= 0.05
    rows = stacks(spec=list(map(json.dumps, specs)), quality=values.mean(axis=1).tolist(), name=names)
    paired = Paired(rows["run_id"].to_list(), values)
    said = to_try(rows.row(0, named=True), ORDERING, rows, [True] * 4, paired)
    assert said.startswith("Measured here without a sure gain: r at 50, +0.005 [−0.0")
    assert "Measured here, surely worse: s at 50, −0.050 [−0.050, −0.050]." in said
    assert not any(words in said for words in (RERANK, "stronger reranker", "r at 10", "with a gain"))
    values[2] = values[0] + 0.1 + np.arange(40) % 2 / 100
    rows = rows.with_columns(quality=pl.Series(values.mean(axis=1)))
    said = to_try(rows.row(0, named=True), ORDERING, rows, [True] * 4, Paired(paired.run_ids, values))
    assert "Measured here with a gain: add a reranker: r at 50, +0.105 [" in said
    assert "s at 50" not in said
