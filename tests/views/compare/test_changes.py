"""Pairs of stacks that differ in exactly one thing, against a comparison of all pairs."""

import json
from datetime import UTC, datetime, timedelta
from itertools import combinations

import polars as pl
import pytest

from core.pipeline.demo import grid
from core.views.compare.changes import PAIRS, changes, kinds, of_kind

RRF = {"method": "rrf", "constant": 60, "depth": 100}
DENSE = {"mode": "dense", "embedder": "e", "dim": 64, "index": "flat", "reranker": "none", "candidates": 50}
SPARSE = {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 50}
HYBRID = {**DENSE, **SPARSE, "mode": "hybrid", "fusion": RRF}


def runs(*specs, ids=None):
    start = datetime(2025, 1, 1, tzinfo=UTC)
    ids = ids or [f"r{n}" for n in range(len(specs))]
    return pl.DataFrame(
        {
            "run_id": ids,
            "name": [f"stack {run_id}" for run_id in ids],
            "spec": [json.dumps(spec, sort_keys=True) for spec in specs],
            "created_at": [start + timedelta(days=n) for n in range(len(specs))],
        }
    )


def found(*specs):
    return changes(runs(*specs)).select("axis", "change", "run_before", "run_after").rows()


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (DENSE, {**DENSE, "index": "int8"}, ("index", "flat → int8")),
        (DENSE, {**DENSE, "index": "pq", "index_params": {"m": 8}}, ("index", "flat → pq (m 8)")),
        (DENSE, {**DENSE, "dim": 128}, ("dimension", "64 d → 128 d")),
        (DENSE, {**DENSE, "embedder": "f", "dim": 512}, ("embedder", "e 64 d → f 512 d")),
        (DENSE, {**DENSE, "rewrite": "clean"}, ("rewrite", "none → clean")),
        (DENSE, {**DENSE, "reranker": "rerank-2.5"}, ("reranker", "none → rerank-2.5")),
        (DENSE, {**DENSE, "candidates": 100}, ("candidate depth", "K = 50 → K = 100")),
        (DENSE, {**DENSE, "metric": "ip"}, ("distance", "cosine → ip")),
        (DENSE, {**DENSE, "cut": {"method": "knee"}}, ("cutoff", "none → knee")),
        (DENSE, {**DENSE, "chunks_sent": 8}, ("chunks sent", "all → 8")),
        (DENSE, {**DENSE, "chunker": {"method": "page", "size": 200}}, ("chunker", "none → page, size 200")),
        (SPARSE, {**SPARSE, "bm25": {"k1": 0.9}}, ("BM25 parameters", "default → k1 0.9")),
        (HYBRID, {**HYBRID, "fusion": {**RRF, "constant": 10}},
         ("fusion", "rrf, constant 10, depth 100 → rrf, constant 60, depth 100")),
        (DENSE, HYBRID, ("BM25 leg", "without BM25 → with BM25")),
        (SPARSE, HYBRID, ("dense leg", "without embedder → with e 64 d")),
        (DENSE, {**DENSE, "house_rule": ["a", "b"]}, ("house rule", "none → a/b")),
    ],
)  # fmt: skip
def test_one_difference_is_found_and_said(one, other, said):
    assert [row[:2] for row in found(one, other)] == [said]
    assert [row[:2] for row in found(other, one)] == [said], "whichever comes first"


def test_the_value_that_is_off_or_smaller_comes_before():
    ((_, _, before, after),) = found({**DENSE, "rewrite": "a-rewriter"}, DENSE)
    assert (before, after) == ("r1", "r0")
    ((_, _, before, after),) = found({**DENSE, "candidates": 100}, {**DENSE, "candidates": 50})
    assert (before, after) == ("r1", "r0")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DENSE, {**DENSE, "index": "int8", "dim": 128}),
        (DENSE, SPARSE),
        (HYBRID, {**HYBRID, "index": "int8", "dim": 128}),
        (DENSE, {**HYBRID, "candidates": 100}),
        ({"name": "their system"}, {"name": "our system"}),
        ({"name": "their system", "candidates": 50}, {"name": "our system", "candidates": 100}),
    ],
)
def test_two_differences_are_no_pair(one, other):
    assert found(one, other) == []


def test_the_latest_run_of_a_stack_stands_for_all():
    again = runs(DENSE, {**DENSE, "index": "int8"}, DENSE, ids=["old", "other", "new"])
    assert changes(again).select("run_before", "run_after").rows() == [("new", "other")]


def test_every_pair_of_a_grid_is_found_once():
    stacks = [dict(stack.spec) for stack in grid(dims=(64, 128), depths=(20, 100))]
    table = changes(runs(*stacks))
    assert dict(table.schema) == dict(PAIRS)
    pairs = [frozenset(row) for row in table.select("run_before", "run_after").rows()]
    assert len(set(pairs)) == len(pairs)
    legs = ({"sparse", "mode", "fusion"}, {"embedder", "dim", "index", "mode", "fusion"})
    expected = set()
    for (a, one), (b, other) in combinations(enumerate(stacks), 2):
        apart = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
        if len(apart) == 1 or ("mode" in apart and any(apart <= leg for leg in legs)):
            expected.add(frozenset({f"r{a}", f"r{b}"}))
    assert set(pairs) == expected


def test_kinds_of_changes_in_their_order():
    table = changes(runs(DENSE, {**DENSE, "index": "int8"}, {**DENSE, "candidates": 100},
                         {**DENSE, "candidates": 20}, {**DENSE, "rewrite": "clean"}))  # fmt: skip
    assert kinds(table) == [
        "rewrite: none → clean",
        "index: flat → int8",
        "candidate depth: K = 20 → K = 50",
        "candidate depth: K = 20 → K = 100",
        "candidate depth: K = 50 → K = 100",
    ]
    assert of_kind(table, "index: flat → int8")["run_after"].to_list() == ["r1"]
    assert kinds(changes(runs())) == []
