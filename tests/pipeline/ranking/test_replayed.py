"""Fusions of many queries at once give what the fusion of one query gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.ranking import Hits
from core.pipeline.ranking.pool import fuse
from core.pipeline.ranking.replay import Legs, fused, grid

PASSAGES = 40
LEG = st.dictionaries(st.integers(0, PASSAGES - 1), st.integers(0, 8), max_size=30)


def leg(scores: dict[int, int]) -> Hits:
    """A ranking by small whole scores, so that there are ties, which go in corpus order."""
    ranked = sorted(scores, key=lambda passage: (-scores[passage], passage))
    return Hits(np.array(ranked, dtype=np.int64), np.array([float(scores[each]) for each in ranked]))


def legs(queries: list[tuple[Hits, Hits]]) -> Legs:
    ranks = np.full((2, len(queries), PASSAGES), np.inf)
    scores = np.full(ranks.shape, np.nan)
    for query, pair in enumerate(queries):
        for place, hits in enumerate(pair):
            ranks[place, query, hits.passages] = np.arange(1, len(hits.passages) + 1)
            scores[place, query, hits.passages] = hits.scores
    return Legs(ranks, scores)


@given(st.lists(st.tuples(LEG, LEG), min_size=1, max_size=4), st.integers(1, 12), st.data())
def test_equals_the_fusion_query_by_query(given_: list[tuple[dict, dict]], k: int, data: st.DataObject):
    queries = [(leg(one), leg(other)) for one, other in given_]
    fusion = data.draw(st.sampled_from(grid(30, scored=True)))
    found = fused(legs(queries), fusion, k)
    for row, pair in zip(found, queries, strict=True):
        assert row[row >= 0].tolist() == fuse(fusion, pair, k).passages.tolist()


@pytest.mark.parametrize(
    ("depth", "scored", "depths", "methods"),
    [
        (200, True, {20, 50, 100}, {"rrf", "convex"}),
        (50, False, {20, 50}, {"rrf"}),
        (10, True, {10}, {"rrf", "convex"}),
    ],
)
def test_nothing_deeper_than_what_is_stored_is_replayed(
    depth: int, scored: bool, depths: set[int], methods: set[str]
):
    fusions = grid(depth, scored=scored)
    assert {fusion["depth"] for fusion in fusions} == depths
    assert {fusion["method"] for fusion in fusions} == methods
    assert fusions[0] == {"method": "rrf", "constant": 60, "depth": max(depths)}
