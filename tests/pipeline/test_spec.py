from typing import Any

import pytest

from core.errors import ClqError
from core.pipeline.spec import check, grid, pool_name

HYBRID = {
    "mode": "hybrid",
    "sparse": "bm25",
    "embedder": "wordllama",
    "dim": 64,
    "index": "flat",
    "fusion": {"method": "rrf", "constant": 60, "depth": 100},
    "candidates": 20,
}


def test_the_demo_grid_has_76_different_stacks():
    stacks = grid()
    assert len({stack.stack_id for stack in stacks}) == len(stacks) == 76
    assert len({stack.label for stack in stacks}) == 76
    for stack in stacks:
        check(stack.spec)


@pytest.mark.parametrize(
    ("mode", "name"), [("sparse", "bm25@50"), ("dense", "dense@50"), ("hybrid", "rrf100@50")]
)
def test_pools_are_named_by_how_they_were_made(mode: str, name: str):
    names = {
        pool_name(stack.spec)
        for stack in grid()
        if stack.spec["mode"] == mode and stack.spec["candidates"] == 50
    }
    assert names == {name}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mode": "psychic"}, "No mode 'psychic'.*dense, hybrid, sparse"),
        ({"mode": None}, "No mode"),
        ({"sparse": "splade"}, "No sparse engine 'splade'.*bm25"),
        ({"embedder": "bert"}, "No embedder 'bert'"),
        ({"index": "ivf"}, "No index 'ivf'"),
        ({"dim": "64"}, "dim = '64'"),
        ({"candidates": 0}, "candidates = 0"),
        ({"candidates": True}, "candidates = True"),
        ({"fusion": None}, "No fusion"),
        ({"fusion": {"method": "rrf", "constant": 60}}, "depth = None"),
        ({"reranker": "rerank-2.5"}, "No reranker 'rerank-2.5'"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(change: dict[str, Any], says: str):
    check(HYBRID)
    with pytest.raises(ClqError, match=says):
        check(HYBRID | change)
