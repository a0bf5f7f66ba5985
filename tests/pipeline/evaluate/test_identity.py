"""What tells two manifests apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.evaluate.identity import ABSENT, described, diff, evaluation_manifest
from tests.pipeline.evaluate.helpers import job

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab.", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
MANIFESTS = st.dictionaries(st.text("abc", min_size=1, max_size=2), VALUES, max_size=4)


def test_differences_are_named_by_their_path():
    one = {"a": {"b": 1, "c": [1, 2]}, "d": "x", "same": {}}
    other = {"a": {"b": 2, "c": [1, 3]}, "e": None, "same": {}}
    assert diff(one, other).rows() == [
        ("a.b", "1", "2"),
        ("a.c", "[1,2]", "[1,3]"),
        ("d", '"x"', ABSENT),
        ("e", ABSENT, "null"),
    ]


@pytest.mark.slow
@given(MANIFESTS, MANIFESTS)
def test_equal_manifests_have_no_difference_and_it_does_not_matter_which_is_first(one, other):
    assert diff(one, one).is_empty()
    there, back = diff(one, other), diff(other, one)
    assert there.select("key", "other", "one").rows() == back.rows()
    assert there.is_empty() == (one == other)


def test_a_manifest_tells_what_decides_results_and_times():
    told = evaluation_manifest(job(), described())
    assert {"corpus", "queries"} <= told["hashes"].keys()
    assert {"faiss-cpu", "bm25s", "numpy"} <= told["versions"].keys()
    assert len(told["stacks"]) == len(job().stacks)
    changed = evaluation_manifest(job(asked=["other"]), described())
    keys = set(diff(told, changed)["key"])
    assert keys == {"evaluation.id", "hashes.queries"}
