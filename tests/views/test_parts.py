"""The parts of stacks' names, explained for who never saw one."""

from typing import Any

import pytest

from core.views.words.parts import explained

LATE = {"sparse": "bm25", "embedder": "all-MiniLM-L6-v2", "dim": 384, "reranker": "MiniLM late interaction"}
CASES: list[tuple[list[tuple[str, dict[str, Any]]], list[str]]] = [
    ([("BM25, K = 10", {"sparse": "bm25", "candidates": 10})], ["BM25", "K"]),
    ([("BM25", {"sparse": "bm25"})], ["BM25"]),
    ([("e5 384 d", {"embedder": "e5", "dim": 384})], ["e5", "384 d"]),
    ([("e5", {"embedder": "e5", "dim": 384, "reranker": "none"})], ["e5"]),
    ([("shop", {"mode": "own", "name": "shop"})], []),
    (
        [("BM25 ⊕ MiniLM + late interaction, K = 20 · rrf 1 : 1.3 constant 10", LATE)],
        ["BM25", "⊕", "rrf", "constant", "MiniLM", "late interaction", "K"],
    ),
    (
        [("MiniLM int8", {"embedder": "all-MiniLM-L6-v2", "index": "int8"})]
        + [(f"model{at} · hygiene", {"embedder": f"model{at}"}) for at in range(4)],
        ["MiniLM, model0, model1 and 2 more", "int8", "hygiene"],
    ),
    ([("own words", {"embedder": "all-MiniLM-L6-v2", "sparse": "bm25"})], []),
    ([("BM25 ⊕ e5 · convex alpha 0.6", {"sparse": "bm25", "embedder": "e5"})], ["BM25", "⊕", "convex", "e5"]),
]


@pytest.mark.parametrize(("stacks", "terms"), CASES, ids=[stacks[0][0] for stacks, _ in CASES])
def test_each_part_of_a_name_is_explained_once(stacks: list[tuple[str, dict[str, Any]]], terms: list[str]):
    found = explained(stacks)
    assert list(found) == terms
    assert all(len(words.split()) <= 14 for words in found.values())
