import pytest

from core.axes import as_read

PLAIN = {"mode": "dense", "embedder": "e", "index": "flat", "reranker": "none", "candidates": 50}


@pytest.mark.parametrize(
    ("more", "read"),
    [
        ({}, False),
        ({"mode": "sparse", "sparse": "bm25"}, False),
        ({"rewrite": "hygiene", "chunks_sent": 5}, False),
        ({"dedup": {"method": "vectors"}}, True),
        ({"reranker": "some"}, True),
        ({"reranker": None}, True),  # nobody says that nothing reranks
        ({"cut": {"method": "otsu"}}, True),  # looks at the scores of the whole pool
        ({"generator": "some"}, True),  # answers from K passages
        ({"mode": "own"}, True),
        ({"params": {"top_p": 0.9}}, True),  # of others' make
    ],
)
def test_a_depth_is_read_where_something_can_tell_two_of_them_apart(more: dict[str, object], read: bool):
    spec = {**PLAIN, **more}
    assert as_read(spec) == (spec if read else {key: spec[key] for key in spec if key != "candidates"})


def test_a_specification_that_says_nothing_is_as_it_is():
    assert as_read({}) == {}
