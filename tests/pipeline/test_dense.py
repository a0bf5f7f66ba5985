import numpy as np
import pytest

from core.errors import UnknownNameError
from core.pipeline.dense import INDEXES, HnswIndex, make_index
from tests.pipeline.corpora import unit_vectors

VECTORS = unit_vectors(2000, 32, seed=1)
QUERIES = unit_vectors(40, 32, seed=2)


def exact(query: np.ndarray, k: int) -> list[int]:
    return np.argsort(-(VECTORS @ query), kind="stable")[:k].tolist()


def recall(name: str, k: int) -> float:
    index = make_index(name, VECTORS)
    shared = [len(set(exact(query, k)) & set(index.search(query, k).passages.tolist())) for query in QUERIES]
    return float(np.mean(shared)) / k


@pytest.mark.parametrize("k", [1, 10, 100, 200])
def test_flat_is_exact(k: int):
    index = make_index("flat", VECTORS)
    for query in QUERIES:
        found = index.search(query, k)
        assert found.passages.tolist() == exact(query, k)
        np.testing.assert_allclose(found.scores, VECTORS[found.passages] @ query, atol=1e-6)


@pytest.mark.parametrize("k", [10, 100, 200])
@pytest.mark.parametrize(("name", "floor"), [("hnsw-f32", 0.9), ("int8", 0.95)])
def test_the_approximate_kinds_find_most(name: str, floor: float, k: int):
    assert recall(name, k) >= floor


@pytest.mark.parametrize("name", list(INDEXES))
def test_what_every_kind_promises(name: str):
    index = make_index(name, VECTORS)
    found = index.search(QUERIES[0], 200)
    assert len(set(found.passages.tolist())) == len(found.passages) == 200
    assert (np.diff(found.scores) <= 0).all()
    assert index.size_bytes > 0
    again = make_index(name, VECTORS).search(QUERIES[0], 200)
    assert again.passages.tolist() == found.passages.tolist()


@pytest.mark.parametrize("name", list(INDEXES))
def test_a_corpus_smaller_than_the_depth_is_returned_whole(name: str):
    found = make_index(name, VECTORS[:7]).search(QUERIES[0], 50)
    assert sorted(found.passages.tolist()) == list(range(7))


@pytest.mark.parametrize("name", list(INDEXES))
def test_equal_vectors_stand_in_corpus_order(name: str):
    twins = np.repeat(VECTORS[:3], 4, axis=0)
    assert make_index(name, twins).search(VECTORS[1], 4).passages.tolist() == [4, 5, 6, 7]


def test_int8_takes_about_a_quarter_of_the_bytes():
    flat, small = (make_index(name, VECTORS).size_bytes for name in ("flat", "int8"))
    assert small < 0.3 * flat


def test_a_search_deeper_than_ef_search_still_fills_the_depth():
    assert len(HnswIndex(VECTORS, ef_search=16).search(QUERIES[0], 150).passages) == 150


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="flat, hnsw-f32, int8"):
        make_index("ivf", VECTORS)
