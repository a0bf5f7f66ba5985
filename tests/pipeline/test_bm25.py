import math
from collections import Counter

import bm25s
import numpy as np
import pytest
import Stemmer

from core.errors import InputError, UnknownNameError
from core.pipeline.bm25 import Bm25Index
from core.pipeline.text import Analyzer
from tests.pipeline.corpora import random_texts


def naive(texts: list[str], query: str, k1: float, b: float) -> list[float]:
    """The Lucene variant, term by term, as the docstring of core.pipeline.bm25 states it."""
    analyzer = Analyzer()
    documents = [Counter(analyzer.terms(text)) for text in texts]
    lengths = [sum(counts.values()) for counts in documents]
    mean = sum(lengths) / len(lengths)
    scores = [0.0] * len(texts)
    for term in analyzer.terms(query):
        holders = sum(term in counts for counts in documents)
        if not holders:
            continue
        idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for at, counts in enumerate(documents):
            if counts[term]:
                damped = counts[term] + k1 * (1 - b + b * lengths[at] / mean)
                scores[at] += idf * counts[term] / damped
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (1.2, 0.0), (2.0, 1.0)])
@pytest.mark.parametrize("query", ["sorted frames", "group group mean", "the lazy window reads", "caches"])
def test_scores_equal_the_formula(k1: float, b: float, query: str):
    texts = [*random_texts(60, seed=3), "", "the of and"]
    expected = naive(texts, query, k1, b)
    found = Bm25Index(texts, k1=k1, b=b).search(query, k=len(texts))
    assert sorted(found.passages) == [at for at, score in enumerate(expected) if score > 0]
    np.testing.assert_allclose(found.scores, [expected[at] for at in found.passages], rtol=1e-5)
    assert (np.diff(found.scores) <= 0).all()


def test_depth_cuts_the_same_ranking():
    index = Bm25Index(random_texts(200, seed=5))
    deep = index.search("sort the columns", 200)
    for k in (1, 7, 50):
        assert index.search("sort the columns", k).passages.tolist() == deep.passages[:k].tolist()


def test_equal_passages_stand_in_corpus_order():
    index = Bm25Index(["lazy frame", "row", "lazy frame", "lazy frame"])
    assert index.search("lazy", 2).passages.tolist() == [0, 2]


@pytest.mark.parametrize("query", ["", "the", "zebra", "?!"])
def test_a_query_without_known_terms_finds_nothing(query: str):
    found = Bm25Index(["lazy frame", "row"]).search(query, 10)
    assert found.passages.shape == found.scores.shape == (0,)


def test_a_corpus_without_terms_is_refused():
    with pytest.raises(InputError, match="No passage holds a word"):
        Bm25Index(["", "the"])


def test_terms_equal_those_of_bm25s():
    texts = [
        "The Running dogs' group_by() of DataFrames isn't sorted; naïve Café x y2 3.14",
        *random_texts(20, seed=1),
    ]
    stemmer = Stemmer.Stemmer("english")
    expected = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
    analyzer = Analyzer()
    assert [analyzer.terms(text) for text in texts] == expected


def test_an_unknown_language_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="english"):
        Analyzer("klingon")
