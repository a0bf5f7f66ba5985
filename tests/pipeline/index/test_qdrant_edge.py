"""Words in Qdrant's own engine: BM25 by its sparse vectors, and both rankings merged, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.filters import fields_of, parse
from core.pipeline.index import ENGINES, DatabaseIndex, DatabasePlace, is_ann, load_index, make_index
from core.pipeline.index.scope import IndexScope, scopes_of
from core.pipeline.index.terms import LANGUAGES
from core.pipeline.ranking import Hits, top_k
from tests.pipeline.corpora import unit_vectors

pytestmark = [pytest.mark.extras, pytest.mark.slow]
COUNT, QUERIES, K = 500, 210, 12
WORDS = [f"{one}{other}" for one in ("kal", "mor", "zub", "fin", "tro") for other in ("ak", "om", "up", "ix")]
VECTORS, ASKED = unit_vectors(COUNT, 16, seed=1), unit_vectors(QUERIES, 16, seed=2)
K1, B = 1.2, 0.75


def texts(count: int, most: int, seed: int) -> list[list[str]]:
    draw = np.random.default_rng(seed)
    odds = 1 / np.arange(1, len(WORDS) + 1)
    return [
        [str(word) for word in draw.choice(WORDS, size=draw.integers(1, most), p=odds / odds.sum())]
        for _ in range(count)
    ]


PASSAGES, QUESTIONS = texts(COUNT, 40, seed=3), texts(QUERIES, 5, seed=4)
FIELDS = fields_of([{"tenant": f"t{at % 7}", "n": at} for at in range(COUNT)])
SCOPES = scopes_of(
    FIELDS,
    [
        parse([{"tenant": f"t{at % 7}"}, {"n": {"lt": 2 * at + 1}}, {"tenant": {"not": "t1"}}][at % 3])
        for at in range(QUERIES)
    ],
)


def bm25(question: list[str]) -> np.ndarray:
    """BM25 of every passage, with the weights of Lucene."""
    lengths = np.array([len(words) for words in PASSAGES])
    scores = np.zeros(COUNT)
    for word in dict.fromkeys(question):
        counts = np.array([words.count(word) for words in PASSAGES])
        held = int((counts > 0).sum())
        idf = np.log(1 + (COUNT - held + 0.5) / (held + 0.5))
        scores += idf * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / lengths.mean()))
    return scores


def built(tmp_path: Path, search: str, **more: Any) -> DatabaseIndex:
    pytest.importorskip(ENGINES["qdrant-edge"].engine.package)
    place = DatabasePlace(tmp_path, "t", (), pl.Series([" ".join(words) for words in PASSAGES]), FIELDS)
    options = {"search": search, "exact": "yes", **more}
    make_index("qdrant-edge", VECTORS, "cosine", options, place=place).save(tmp_path / "index")
    index = load_index(tmp_path / "index")
    assert isinstance(index, DatabaseIndex)
    assert not is_ann("qdrant-edge", options)
    return index


def best(scores: np.ndarray, allowed: np.ndarray) -> Hits:
    left = np.flatnonzero(allowed & (scores > 0))
    return top_k(left, scores[left], K)


@pytest.mark.parametrize("filtered", [False, True])
def test_words_are_ranked_by_bm25_within_what_a_filter_leaves(tmp_path: Path, *, filtered: bool):
    index = built(tmp_path, "bm25")
    assert len(index) == COUNT
    for query, question in enumerate(QUESTIONS):
        scope = SCOPES[query] if filtered else None
        found = index.search(ASKED[query], K, " ".join(question), scope)
        allowed = np.ones(COUNT, bool) if scope is None else scope.allowed
        wanted, every = best(bm25(question), allowed), bm25(question)
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-5)
        np.testing.assert_allclose(every[found.passages], wanted.scores, rtol=1e-5)
        assert allowed[found.passages].all()


def fused(query: int, scope: IndexScope) -> dict[int, float]:
    cosine = np.where(scope.allowed, VECTORS @ ASKED[query] + 2, 0)
    found: dict[int, float] = {}
    for leg in (cosine, bm25(QUESTIONS[query])):
        for rank, passage in enumerate(best(leg, scope.allowed).passages.tolist(), 1):
            found[passage] = found.get(passage, 0.0) + 1 / (60 + rank)
    return found


def test_both_rankings_are_merged_by_ranks_within_what_a_filter_leaves(tmp_path: Path):
    index, agreed = built(tmp_path, "rrf"), 0
    for query, scope in enumerate(SCOPES):
        assert scope is not None
        found = index.search(ASKED[query], K, " ".join(QUESTIONS[query]), scope)
        wanted = sorted(fused(query, scope).values(), reverse=True)[:K]
        assert scope.allowed[found.passages].all()
        agreed += len(wanted) == len(found.scores) and np.allclose(found.scores, wanted, rtol=1e-5)
    assert agreed >= 0.9 * QUERIES  # where BM25 scores are equal the engine may rank otherwise


def test_an_index_without_words_keeps_none_and_every_language_is_known(tmp_path: Path):
    edge: Any = pytest.importorskip(ENGINES["qdrant-edge"].engine.package)
    (languages,) = (
        option.choices for option in ENGINES["qdrant-edge"].engine.options if option.name == "language"
    )
    assert set(languages) == {*LANGUAGES} - {"none"}
    for name in languages:
        edge.Bm25(edge.Bm25Config(language=name))
    dense, words = (built(tmp_path / search, search) for search in ("dense", "bm25"))
    assert dense.search(ASKED[0], K, "nothing").passages[0] == int((VECTORS @ ASKED[0]).argmax())
    assert not len(words.search(ASKED[0], K, "nothing").passages)
    assert not len(words.search(ASKED[0], K, "").passages)
