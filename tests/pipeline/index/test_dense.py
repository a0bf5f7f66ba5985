from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.errors import InputError, UnknownNameError
from core.pipeline.index import (
    INDEXES,
    METRICS,
    DenseIndex,
    ann_recall,
    check_metric,
    expected_bytes,
    index_options,
    kinds,
    load_index,
    make_index,
)
from core.pipeline.ranking import Hits
from tests.pipeline.corpora import hits, unit_vectors

VECTORS = unit_vectors(1300, 32, seed=1)
QUERIES = unit_vectors(40, 32, seed=2)
SMALL: dict[str, dict[str, Any]] = {
    "pq": {"m": 16, "nbits": 5},
    "opq": {"m": 16, "nbits": 5, "rounds": 1},
    "ivf-pq": {"m": 16, "nbits": 5},
}
KINDS = list(INDEXES)
UNTRAINED = [name for name in KINDS if name not in SMALL]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


@lru_cache
def built(name: str, how: str = "cosine") -> DenseIndex:
    return make_index(name, VECTORS, how, SMALL.get(name))


def scores_of(how: str, vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    rows, asked = vectors.astype(np.float64), query.astype(np.float64)
    if how == "l2":
        return -np.sqrt(((rows - asked) ** 2).sum(axis=1))
    if how == "cosine":
        sizes = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
        return np.divide(rows @ asked, sizes, out=np.zeros(len(rows)), where=sizes > 0)
    return rows @ asked


def exact(how: str, vectors: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    scores = scores_of(how, vectors, query)
    return sorted(range(len(vectors)), key=lambda at: (-scores[at], at))[:k]


def same(one: Hits, other: Hits) -> bool:
    return one.passages.tolist() == other.passages.tolist() and one.scores.tolist() == other.scores.tolist()


@pytest.mark.parametrize("how", METRICS)
@pytest.mark.parametrize("k", [1, 10, 100, 200])
def test_flat_is_exact(how: str, k: int):
    for query in QUERIES[:10]:
        found = built("flat", how).search(query, k)
        assert found.passages.tolist() == exact(how, VECTORS, query, k)
        np.testing.assert_allclose(found.scores, scores_of(how, VECTORS, query)[found.passages], atol=1e-6)


@pytest.mark.parametrize("how", METRICS)
@pytest.mark.parametrize("k", [1293, 1299, 1300, 5000])
def test_flat_ranks_the_whole_corpus(how: str, k: int):
    # So deep, some neighbours differ by less than float32 tells: their order is not asked for.
    found, expected = built("flat", how).search(QUERIES[0], k), scores_of(how, VECTORS, QUERIES[0])
    assert len(set(found.passages.tolist())) == min(k, 1300)
    np.testing.assert_allclose(expected[found.passages], np.sort(expected)[::-1][:k], atol=1e-6)


@pytest.mark.slow
@given(
    arrays.arrays(np.int8, st.tuples(st.integers(1, 60), st.just(3)), elements=st.integers(-2, 2)),
    arrays.arrays(np.int8, st.tuples(st.integers(1, 30), st.just(3)), elements=st.integers(-2, 2)),
    st.sampled_from(["ip", "l2"]),
    st.integers(1, 70),
)
def test_ties_follow_the_corpus_however_many(vectors: np.ndarray, queries: np.ndarray, how: str, k: int):
    index = make_index("flat", vectors.astype(np.float32), how, allow_unnormalised=True)
    for query, found in zip(queries, index.search_batch(queries.astype(np.float32), k), strict=True):
        assert found.passages.tolist() == exact(how, vectors, query, k)


@pytest.mark.slow
@given(
    arrays.arrays(np.int8, st.tuples(st.integers(1, 30), st.just(4)), elements=st.integers(-3, 3)),
    st.integers(1, 35),
)
def test_cosine_scales_what_it_compares_and_leaves_the_vectors_alone(vectors: np.ndarray, k: int):
    given_vectors = vectors.astype(np.float32)
    index = make_index("flat", given_vectors)
    assert (given_vectors == vectors).all()
    for query in (vectors[0], vectors[-1] * 7):
        found, expected = index.search(query.astype(np.float32), k), scores_of("cosine", vectors, query)
        assert len(found.passages) == min(k, len(vectors))
        np.testing.assert_allclose(found.scores, expected[found.passages], atol=1e-6)
        np.testing.assert_allclose(found.scores, np.sort(expected)[::-1][:k], atol=1e-6)


@pytest.mark.parametrize("k", [3, 40])
def test_a_tie_at_the_cut_of_more_than_faiss_proposes(k: int):
    vectors = np.concatenate([VECTORS[:100], np.repeat(VECTORS[100:101], 60, axis=0), VECTORS[101:]])
    found = make_index("flat", vectors).search_batch(np.repeat(vectors[120:121], 25, axis=0), k)
    assert all(each.passages.tolist() == list(range(100, 100 + k)) for each in found)


def test_a_query_of_zeros_is_equally_near_to_all():
    found = built("flat").search(np.zeros(32, dtype=np.float32), 5)
    assert found.passages.tolist() == [0, 1, 2, 3, 4]
    assert found.scores.tolist() == [0.0] * 5


@pytest.mark.parametrize("how", METRICS)
@pytest.mark.parametrize("name", KINDS)
def test_a_batch_gives_what_single_searches_give(name: str, how: str):
    index = built(name, how)
    for query, found in zip(QUERIES, index.search_batch(QUERIES, 30), strict=True):
        alone = index.search(query, 30)
        if name in SMALL:
            np.testing.assert_allclose(found.scores, alone.scores, atol=1e-5)
        else:
            assert same(found, alone)
    assert index.search_batch(QUERIES[:0], 30) == []


@pytest.mark.parametrize("k", [10, 100])
@pytest.mark.parametrize("how", METRICS)
@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("hnsw-f32", 0.95), ("hnsw-int8", 0.9), ("int8", 0.95), ("pq", 0.4), ("opq", 0.4), ("ivf-flat", 0.4),
        ("ivf-pq", 0.3),
    ],
)  # fmt: skip
def test_the_approximate_kinds_find_most(name: str, floor: float, how: str, k: int):
    found = built(name, how).search_batch(QUERIES, k)
    recalls = [
        ann_recall(one, other, k)
        for one, other in zip(found, built("flat", how).search_batch(QUERIES, k), strict=True)
    ]
    assert np.mean([recall for recall in recalls if recall is not None]) >= floor


@pytest.mark.parametrize("how", METRICS)
@pytest.mark.parametrize("name", KINDS)
def test_what_every_kind_promises(name: str, how: str):
    index = built(name, how)
    found = index.search(QUERIES[0], 200)
    assert len(set(found.passages.tolist())) == len(found.passages) == 200
    assert (np.diff(found.scores) <= 0).all()
    assert found.passages.dtype == np.int64
    assert found.scores.dtype == np.float64
    assert (index.name, index.metric, len(index), index.dim) == (name, how, 1300, 32)
    assert index.build_s > 0
    assert index.parameters == {"metric": how, **index_options(name, SMALL.get(name), dim=32, passages=1300)}


@pytest.mark.parametrize("name", KINDS)
def test_two_builds_answer_alike(name: str):
    again = make_index(name, VECTORS, params=SMALL.get(name))
    assert all(same(again.search(query, 20), built(name).search(query, 20)) for query in QUERIES[:10])


@pytest.mark.parametrize("name", UNTRAINED)
def test_a_corpus_smaller_than_the_depth_is_returned_whole(name: str):
    for count in (1, 7):
        found = make_index(name, VECTORS[:count]).search(QUERIES[0], 50)
        assert sorted(found.passages.tolist()) == list(range(count))


@pytest.mark.parametrize("name", UNTRAINED)
def test_equal_vectors_stand_in_corpus_order(name: str):
    twins = np.repeat(VECTORS[:3], 4, axis=0)
    assert make_index(name, twins).search(VECTORS[1], 4).passages.tolist() == [4, 5, 6, 7]


def test_a_search_deeper_than_ef_search_still_fills_the_depth():
    index = make_index("hnsw-f32", VECTORS, params={"efSearch": 16})
    assert len(index.search(QUERIES[0], 150).passages) == 150


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_index_answers_the_same(name: str, tmp_path: Path):
    index = built(name, "l2")
    index.save(tmp_path / "index")
    loaded = load_index(tmp_path / "index")
    assert all(same(loaded.search(query, 20), index.search(query, 20)) for query in QUERIES[:10])
    assert (loaded.name, loaded.metric, loaded.parameters) == (index.name, index.metric, index.parameters)
    assert (loaded.size_bytes, loaded.build_s, len(loaded)) == (index.size_bytes, index.build_s, len(index))
    assert index.size_bytes == (tmp_path / "index" / "index.faiss").stat().st_size


def test_what_is_not_a_saved_index_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="Found nothing instead of a saved vector index"):
        load_index(tmp_path / "nowhere")
    built("flat").save(tmp_path / "index")
    (tmp_path / "index" / "index.faiss").write_bytes(b"IxFI" + bytes(50))
    with pytest.raises(InputError, match="cannot be read"):
        load_index(tmp_path / "index")


@pytest.mark.parametrize("name", KINDS)
def test_the_size_is_known_before_it_is_built(name: str):
    expected = expected_bytes(name, dim=32, passages=1300, options=SMALL.get(name))
    assert built(name).size_bytes == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", ["flat", "int8", "hnsw-int8"])
def test_blocks_and_mapped_files_change_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(tmp_path / "vectors.npy", VECTORS[:500])
    whole = make_index(name, VECTORS[:500])
    monkeypatch.setattr(kinds, "BLOCK_ROWS", 33)
    blocks = make_index(name, np.load(tmp_path / "vectors.npy", mmap_mode="r"))
    if name == "hnsw-int8":  # the graph grows in another order
        assert ann_recall(blocks.search(QUERIES[0], 50), whole.search(QUERIES[0], 50), 50) > 0.9
    else:
        assert all(same(blocks.search(query, 20), whole.search(query, 20)) for query in QUERIES)


def test_eight_bits_learn_from_extremes_what_they_learn_from_all():
    learned = make_index("int8", VECTORS)._index
    peer = faiss.IndexScalarQuantizer(32, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    peer.train(kinds.unit(VECTORS, kinds.row_lengths(VECTORS)))
    np.testing.assert_array_equal(
        faiss.vector_to_array(learned.sq.trained), faiss.vector_to_array(peer.sq.trained)
    )


@pytest.mark.parametrize(
    ("name", "options", "facts", "says"),
    [
        ("ivf", {}, {}, r"No index 'ivf'.*flat, hnsw-f32, hnsw-int8, int8, .*opq, "),
        ("flat", {"M": 8}, {}, r"No option 'M'.*Found: none"),
        ("hnsw-f32", {"m": 8}, {}, r"No option 'm'.*M, efConstruction, efSearch"),
        ("hnsw-f32", {"M": 1}, {}, r"M=1 is not allowed.*2 to 512"),
        ("hnsw-f32", {"M": 8.5}, {}, "M=8.5 is not allowed"),
        ("hnsw-f32", {"M": True}, {}, "M=True is not allowed"),
        ("hnsw-f32", {"M": [8]}, {}, "M=.8. is not allowed"),
        ("pq", {"m": 5}, {"dim": 32}, r"32 dimensions.*m=5.*1, 2, 4, 8, 16, 32"),
        ("pq", {}, {"passages": 1400}, r"1,400 vectors \(passages\).*9,984.*nbits=5, or"),
        ("opq", {}, {"passages": 100}, r"100 vectors.*Choose a kind"),
        ("pq", {"train": 5000}, {"passages": 10**6}, r"5,000 vectors \(train\).*nbits=7"),
        ("ivf-flat", {"lists": 64}, {"passages": 1300}, r"1,300 vectors.*64 centroids.*2,496.*lists=33, or"),
        ("ivf-flat", {"lists": 2}, {"passages": 20}, r"20 vectors.*78.*Choose a kind"),
        ("ivf-flat", {"efSearch": 2}, {}, r"No option 'efSearch'.*lists, nprobe, train"),
        ("ivf-pq", {}, {"passages": 1300}, r"1,300 vectors.*2\^8.*nbits=5, or"),
    ],
)
def test_options_that_cannot_work(name: str, options: dict[str, Any], facts: dict[str, int], says: str):
    with pytest.raises((InputError, UnknownNameError), match=says):
        index_options(name, options, **facts)


def test_options_are_filled_in():
    usual = {"efConstruction": 200, "efSearch": 128, "filtered": "more"}
    assert index_options("hnsw-f32", {"M": 16}) == {"M": 16, **usual}
    for dim, parts in ((256, 64), (30, 6), (7, 1), (2, 1)):
        assert index_options("pq", {}, dim=dim)["m"] == parts


@pytest.mark.parametrize(("passages", "lists"), [(None, 64), (10**6, 64), (1300, 33), (77, 1), (1, 1)])
def test_lists_are_fewer_where_passages_are_few(passages: int | None, lists: int):
    assert index_options("ivf-flat", {}, passages=passages)["lists"] == lists


@pytest.mark.parametrize("how", METRICS)
def test_lists_looked_at_find_more_and_all_of_them_what_flat_finds(how: str):
    index, flat = built("ivf-flat", how), built("flat", how).search_batch(QUERIES, 20)
    assert index.parameters["lists"] == 33
    recalls = []
    for nprobe in (1, 4, 33, 100):
        found = index.with_options({"nprobe": nprobe}).search_batch(QUERIES, 20)
        pairs = zip(found, flat, strict=True)
        recalls.append(np.mean([ann_recall(one, other, 20) for one, other in pairs]))
    assert recalls[0] < recalls[1] < recalls[2] == recalls[3] == 1


def test_one_list_holds_no_more_than_it_has():
    few = built("ivf-flat").with_options({"nprobe": 1}).search(QUERIES[0], 1300)
    assert 0 < len(few.passages) < 300
    assert (few.passages >= 0).all()


LONG = VECTORS * np.linspace(0.5, 3, len(VECTORS), dtype=np.float32)[:, np.newaxis]


@pytest.mark.parametrize("how", ["cosine", "l2"])
def test_vectors_of_any_length_suit_cosine_and_distance(how: str):
    check_metric(how, LONG)
    check_metric(how, normalised=False)


def test_the_inner_product_wants_unit_vectors():
    zeros = np.zeros((3, 32), dtype=np.float32)
    check_metric("ip", np.concatenate([VECTORS, zeros]))
    check_metric("ip", (VECTORS * 1.004).astype(np.float16))
    check_metric("ip", normalised=True)
    check_metric("ip", normalised=None)
    with pytest.raises(
        InputError, match=r"index flat: 1,2\d\d of 1,300 vectors are not normalised.*0\.5 to 3"
    ):
        make_index("flat", LONG, "ip")
    with pytest.raises(InputError, match=r"model does not normalise.*cosine or l2"):
        check_metric("ip", normalised=False)
    with pytest.raises(UnknownNameError, match=r"No metric 'dot'.*cosine, ip, l2"):
        check_metric("dot")


def test_the_inner_product_of_any_vectors_can_be_meant():
    check_metric("ip", LONG, allow_unnormalised=True)
    found = make_index("flat", LONG, "ip", allow_unnormalised=True).search(QUERIES[0], 10)
    assert found.passages.tolist() == exact("ip", LONG, QUERIES[0], 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_numbers_that_are_not_finite_are_refused(bad: float):
    odd = VECTORS[:10].copy()
    odd[3, 5] = bad
    with pytest.raises(InputError, match=r"1 of 10 vectors.*first: 3"):
        make_index("flat", odd)
    with pytest.raises(InputError, match="query vectors: 1 of 1 vectors"):
        built("flat").search(odd[3], 5)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="no vector to index"):
        make_index("flat", VECTORS[:0])
    with pytest.raises(InputError, match="16 dimensions, the index 32"):
        built("flat").search(QUERIES[0, :16], 5)


@pytest.mark.parametrize(
    ("found", "wanted", "k", "recall"),
    [
        ([1, 2, 3], [1, 2, 3], 3, 1.0),
        ([3, 1, 2], [1, 2, 3], 3, 1.0),
        ([1, 9, 8], [1, 2, 3], 3, 1 / 3),
        ([1, 9, 2], [1, 2, 3], 2, 0.5),
        ([], [1, 2], 2, 0.0),
        ([4, 5], [4], 10, 1.0),
        ([4], [], 10, None),
    ],
)
def test_recall_against_the_exact_search(found: list[int], wanted: list[int], k: int, recall: float | None):
    assert ann_recall(hits(*found), hits(*wanted), k) == recall
