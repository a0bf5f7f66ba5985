from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest

from core.errors import InputError, UnknownNameError
from core.pipeline.index.bm25 import Bm25Index, make_bm25
from core.pipeline.index.terms import Analyzer
from tests.pipeline.corpora import random_texts


def naive(texts: list[str], query: str, k1: float, b: float) -> list[float]:
    """The Lucene variant, term by term, as the docstring of core.pipeline.index.bm25 states it."""
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


@pytest.mark.parametrize(
    "options", [{"k1": -0.1}, {"k1": 11}, {"b": 1.5}, {"b": float("nan")}, {"k1": "much"}, {"b": None}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]):
    with pytest.raises(InputError, match="is not allowed"):
        make_bm25(["lazy frame"], options)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(UnknownNameError, match=r"No option 'k2'.*b, k1, language"):
        make_bm25(["lazy frame"], {"k2": 1})


def test_options_reach_the_index():
    index = make_bm25(["Les élèves", "autre"], {"k1": 0.9, "b": 0.4, "language": "french"})
    assert index.parameters == {
        "variant": "lucene",
        "k1": 0.9,
        "b": 0.4,
        "stemmer": "french",
        "stop_words": "french",
    }
    assert index.search("l'eleve", 5).passages.tolist() == [0]


TEXTS = [*random_texts(300, seed=8), "", "the", *random_texts(20, seed=8)]


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.0, 0.0), (1.2, 1.0)])
def test_scores_are_those_of_bm25s_to_the_bit(k1: float, b: float):
    peer = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
    peer.index([Analyzer().terms(text) for text in TEXTS], show_progress=False)
    index = Bm25Index(TEXTS, k1=k1, b=b)
    for query in ("sort the frames", "cache", "lazy lazy eager windows"):
        expected = peer.get_scores(Analyzer().terms(query))
        found = index.search(query, len(TEXTS))
        assert found.scores.tolist() == expected[found.passages].tolist()
        assert len(found.passages) == np.count_nonzero(expected)


def test_a_batch_gives_what_single_searches_give():
    index = Bm25Index(TEXTS)
    asked = ["sort the frames", "", "zebra", "cache"]
    for query, found in zip(asked, index.search_batch(asked, 7), strict=True):
        alone = index.search(query, 7)
        assert found.passages.tolist() == alone.passages.tolist()
        assert found.scores.tolist() == alone.scores.tolist()
    assert index.search_batch([], 7) == []


def test_a_saved_index_answers_the_same(tmp_path: Path):
    index = make_bm25(["l'élève 😀 zoé", "autre <b>", "élève zoé"], {"language": "french", "b": 0.5})
    index.save(tmp_path / "index")
    index.save(tmp_path / "index")
    loaded = Bm25Index.load(tmp_path / "index")
    assert loaded.parameters == index.parameters
    assert loaded.size_bytes == index.size_bytes > 0
    assert loaded.build_s == index.build_s > 0
    for query in ("zoe", "élèves autre", "rien"):
        one, other = index.search(query, 3), loaded.search(query, 3)
        assert one.passages.tolist() == other.passages.tolist()
        assert one.scores.tolist() == other.scores.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert not [path for path in (tmp_path / "index").iterdir() if path.suffix not in {".npy", ".json"}]


def test_what_is_not_a_saved_index_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"Found nothing instead of a saved BM25 index"):
        Bm25Index.load(tmp_path / "nowhere")
    (tmp_path / "about.json").write_text('{"format": 1, "kind": "soup"}')
    with pytest.raises(InputError, match=r"Found something else"):
        Bm25Index.load(tmp_path)


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Bm25Index(["lazy frame"]).save(tmp_path / "index")
    monkeypatch.setattr(bm25s.BM25, "save", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Bm25Index(["other words"]).save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert Bm25Index.load(tmp_path / "index").search("lazy", 1).passages.tolist() == [0]
