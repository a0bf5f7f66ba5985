"""Which stacks a specification makes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.sweep import parse
from core.pipeline.sweep.expand import count, expand, grid
from core.pipeline.sweep.model import Axes
from core.records import canonical_json, short_hash


def specs(text: str) -> list[dict[str, Any]]:
    return [dict(stack.spec) for stack in expand(parse('collection = "c/"\n' + text))]


def axes(**values: Any) -> Axes:
    return Axes.model_validate(values)


LEG = {"embedder": "wordllama", "dim": 256, "index": "flat"}
RRF = {"method": "rrf", "constant": 60, "depth": 100}
TAIL = {"reranker": "none", "candidates": 50}
CANONICAL = {
    "sparse": ('[axes]\nmode = "sparse"', {"mode": "sparse", "sparse": "bm25", **TAIL}),
    "dense": ('[axes]\nmode = "dense"', {"mode": "dense", **LEG, **TAIL}),
    "hybrid": (
        '[axes]\nmode = "hybrid"',
        {"mode": "hybrid", "sparse": "bm25", **LEG, "fusion": RRF, **TAIL},
    ),
    "all defaults written out": (
        '[axes]\nmode = "dense"\nmetric = "cosine"\nrewrite = "none"\ncut = "none"\nchunks_sent = "all"\n'
        'chunker = "none"\nbm25 = [{k1 = 1.5, b = 0.75}]',
        {"mode": "dense", **LEG, **TAIL},
    ),
    "nothing default": (
        '[axes]\nmode = "hybrid"\nbm25 = {k1 = 0.9}\nmetric = "l2"\nrewrite = "rules"\n'
        'index = {name = "hnsw-f32", M = 48, efSearch = 128}\ndim = 64\ncandidates = 20\n'
        'reranker = "rerank-2.5"\nfusion = {method = "rrf", constant = 10}\nchunks_sent = 5',
        {
            "mode": "hybrid",
            "sparse": "bm25",
            "bm25": {"k1": 0.9},
            "embedder": "wordllama",
            "dim": 64,
            "index": "hnsw-f32",
            "index_params": {"M": 48},
            "metric": "l2",
            "fusion": {"method": "rrf", "constant": 10, "depth": 100},
            "rewrite": "rules",
            "reranker": "rerank-2.5",
            "candidates": 20,
            "chunks_sent": 5,
        },
    ),
    "a stack of the list": (
        '[[stack]]\nmode = "sparse"\ncandidates = 7',
        {"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 7},
    ),
    "the legs of other modes do not count": (
        '[[stack]]\nmode = "sparse"\nembedder = "fake"\nfusion = "rrf"\nindex = "int8"',
        {"mode": "sparse", "sparse": "bm25", **TAIL},
    ),
}


@pytest.mark.parametrize(("text", "spec"), CANONICAL.values(), ids=CANONICAL.keys())
def test_the_canonical_form(text: str, spec: dict[str, Any]):
    assert specs(text) == [spec]


def test_the_language_of_the_collection_is_that_of_bm25():
    text = """
        [collection]
        path = "c/"
        language = "french"
        [axes]
        mode = "sparse"
        bm25 = [{}, {language = "english"}]
    """
    found = [dict(stack.spec) for stack in expand(parse(text))]
    assert [spec.get("bm25") for spec in found] == [{"language": "french"}, None]


def test_the_demo_grid_keeps_its_76_names():
    made = grid(axes(dim=[64, 128, 256], index=["flat", "hnsw-f32", "int8"], candidates=[20, 50, 100, 200]))
    assert len({stack.label for stack in made}) == len(made) == 76
    # Of the order and the ids, as they were before specifications existed.
    assert short_hash(*(stack.stack_id for stack in made)) == "0e53bf12ed31"


COUNTS = {
    "nothing": ("", 0),
    "the default axes": ("[axes]", 3),
    "a mode without a leg is not multiplied": (
        "[axes]\ndim = [64, 128]\nindex = ['flat', 'int8']",
        1 + 4 + 4,
    ),
    "axes of the pool multiply all": ("[axes]\ncandidates = [1, 2]\nreranker = ['none', 'x']", 3 * 4),
    "fusion multiplies hybrids": ("[axes]\nfusion = ['rrf', 'weighted', 'convex']", 1 + 1 + 3),
    "a model's own dimensions": (
        "[axes]\nmode = 'dense'\ndim = [64, 128]\nembedder = ['wordllama', {name = 'fake', dim = 3}]",
        3,
    ),
    "twice the same": ("[axes]\nmode = ['sparse', 'sparse']\n[[stack]]\nmode = 'sparse'", 1),
    "two blocks": ("[[axes]]\nmode = 'sparse'\n[[axes]]\nmode = 'dense'\ncandidates = [20, 50]", 3),
    "a list only": ("[axes]\nmethod = 'list'\n[[stack]]\nmode = 'sparse'", 1),
    "chunkers multiply": ("[axes]\nmode = 'sparse'\nchunker = ['sentence', 'page']", 2),
}


@pytest.mark.parametrize(("text", "expected"), COUNTS.values(), ids=COUNTS.keys())
def test_how_many_stacks(text: str, expected: int):
    assert len(specs(text)) == expected


def test_one_factor_at_a_time():
    text = """
        [axes]
        method = "one-factor"
        mode = ["sparse", "dense", "hybrid"]
        embedder = ["wordllama", {name = "fake", dim = 32}]
        dim = [64, 128, 256]
        index = ["flat", "int8"]
        candidates = [20, 50]
        [baseline]
        mode = "dense"
        dim = 128
        candidates = 50
    """
    found = specs(text)
    start = {"mode": "dense", **LEG, "dim": 128, **TAIL}
    assert found[0] == start
    changes = [
        {key for key in each.keys() | start.keys() if each.get(key) != start.get(key)} for each in found
    ]
    assert Counter(map(frozenset, changes)) == Counter(
        map(
            frozenset,
            [
                {},
                {"mode", "sparse", "embedder", "dim", "index"},
                {"mode", "sparse", "fusion"},
                {"embedder", "dim"},
                {"dim"},
                {"dim"},
                {"index"},
                {"candidates"},
            ],
        )
    )


def test_one_factor_starts_at_the_first_values():
    (start, *_) = specs("[axes]\nmethod = 'one-factor'\nmode = ['hybrid', 'dense']\ncandidates = [7, 9]")
    assert start == {"mode": "hybrid", "sparse": "bm25", **LEG, "fusion": RRF, **TAIL, "candidates": 7}


def test_one_factor_takes_another_models_own_dimension():
    text = "[axes]\nmethod = 'one-factor'\nmode = 'dense'\nembedder = ['fake', 'wordllama']\ndim = 32"
    assert [(each["embedder"], each["dim"]) for each in specs(text)] == [("fake", 32), ("wordllama", 256)]


names = st.lists(st.sampled_from(["none", "a", "b"]), min_size=1, max_size=3)


@pytest.mark.slow
@given(
    mode=st.lists(st.sampled_from(["sparse", "dense", "hybrid"]), min_size=1, max_size=3),
    dim=st.lists(st.sampled_from([64, 128, 256]), max_size=3),
    candidates=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    reranker=names,
    rewrite=names,
    fusion=st.lists(st.sampled_from(["rrf", "weighted"]), min_size=1, max_size=2),
    method=st.sampled_from(["grid", "one-factor"]),
)
def test_expansion_is_deterministic_distinct_and_bounded(**values: Any):
    spec = parse('collection = "c/"\n').model_copy(update={"axes": (axes(**values),)})
    made = expand(spec)
    assert [each.stack_id for each in made] == [each.stack_id for each in expand(spec)]
    assert len({canonical_json(each.spec) for each in made}) == len(made) <= count(spec)
    if values["method"] == "grid":
        tails = {
            (k, reranker, rewrite)
            for k in values["candidates"]
            for reranker in values["reranker"]
            for rewrite in values["rewrite"]
        }
        dims = len(set(values["dim"])) or 1
        legs = {"sparse": 1, "dense": dims, "hybrid": dims * len(set(values["fusion"]))}
        assert len(made) == len(tails) * sum(legs[mode] for mode in set(values["mode"]))


LABELS = {
    "mode = 'sparse'": "BM25, K = 50",
    "mode = 'dense'": "wordllama 256 d, K = 50",
    "mode = 'hybrid'\nfusion = {method = 'rrf', constant = 10}": (
        "BM25 ⊕ wordllama 256 d, K = 50 · rrf constant 10"
    ),
    "mode = 'hybrid'\nfusion = {method = 'rrf', constant = 10, weights = [1, 1.3]}": (
        "BM25 ⊕ wordllama 256 d, K = 50 · rrf 1 : 1.3 constant 10"
    ),
    "mode = 'sparse'\nbm25 = {k1 = 0.9}\nrewrite = 'rules'\nchunks_sent = 5": (
        "BM25, K = 50 · rules · bm25 k1 0.9 · 5 sent"
    ),
    "mode = 'dense'\nmetric = 'l2'\nindex = {name = 'hnsw-f32', M = 16}\nreranker = 'rerank-2.5'": (
        "wordllama 256 d hnsw-f32 + rerank-2.5, K = 50 · index M 16 · l2"
    ),
    "mode = 'sparse'\ncut = {method = 'percentile', percentile = 8}\nchunker = {method = 'page', size = 9}": (
        "BM25, K = 50 · page size 9 · percentile percentile 8.0"
    ),
}


@pytest.mark.parametrize(("text", "label"), LABELS.items(), ids=LABELS.values())
def test_labels_tell_stacks_apart(text: str, label: str):
    (stack,) = expand(parse('collection = "c/"\n[axes]\n' + text))
    assert stack.label == label
