"""REBEL's ratings by rules: what each rule sees, and that scores are the paper's sum over them."""

from __future__ import annotations

import numpy as np
import pytest

from core.providers.rerank import make_reranker
from core.providers.rerank.criteria import composite
from core.providers.rerank.surface import ratings

PLAIN = "cats sleep a lot"


@pytest.mark.parametrize(
    ("column", "other"),
    [
        (1, "cats sleep a lot " * 30),
        (2, "cats sleep a lot, but others do not; however, some do"),
        (3, "cats sleep 15 hours, see `sleep` or nap(5)"),
        (4, "cats sleep a lot [12], see also https://example.org"),
        (5, "cats sleep a lot (2021)"),
    ],
)
def test_each_rule_sees_what_it_is_for(column: int, other: str):
    rated = ratings("how do cats sleep", [PLAIN, other])
    assert rated[1, column] > rated[0, column]
    assert (rated[:, 1:] <= 5).all()


@pytest.mark.parametrize("passages", [[], [""], ["", "?"], ["cats"]])
def test_odd_texts_have_ratings(passages: list[str]):
    rated = ratings("", passages)
    assert rated.shape == (len(passages), 6)
    assert np.isfinite(rated).all()


def test_scores_are_the_papers_sum_and_what_is_irrelevant_is_discarded():
    passages = ["cats sleep 15 hours", "the market fell in 2020", "cats do bark"]
    reply = make_reranker("rebel-rules").rerank("how long do cats sleep", passages)
    about = reply.details["rated"]
    assert about["origin"] == "fixed"
    assert [len(row) for row in about["ratings"]] == [6, 1, 6]
    weights = [weight for _, _, weight in about["criteria"]]
    made = [composite(row[0], row[1:], weights[: len(row) - 1]) for row in about["ratings"]]
    np.testing.assert_allclose(reply.value.scores, made)
    assert reply.value.discarded == 1
    assert reply.value.order[0] == 0
