"""Fields of passages on page Library: listed with their types, marked as permissions, and unmarked."""

from __future__ import annotations

import pytest

from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.errors import UnknownNameError
from core.prices import PriceBook
from core.store import Store
from core.views.library.data import fields, mark
from tests.analysis.workspace.test_filters import ASKER, CLEAN, TENANT, stored

LEAKY = {**CLEAN, "q3": ["p00", *CLEAN["q3"]]}


def shipped(store: Store) -> list[str]:
    question = Question(collection="corpus", measure="RA-nWG@5")
    view = resolve(question, store.read(), PriceBook("none", ()))
    return view.feasible["name"].sort().to_list()


def test_a_field_is_marked_in_one_revision_and_unmarked_in_another(tmp_path):
    stored(tmp_path, {"leaky": LEAKY, "clean": CLEAN}, permission=False)
    store = Store.open(tmp_path)
    before = store.read()
    assert fields(before, "corpus").rows() == [("tenant", "text", len(TENANT), len(ASKER), "")]
    assert shipped(store) == ["clean", "leaky"]
    assert mark(store, "corpus", ["tenant"]) == "1 permission of corpus: tenant."
    now = store.read()
    assert now.revision == before.revision + 1
    assert fields(now, "corpus")["permission"].to_list() == ["permission"]
    assert shipped(store) == ["clean"], "a leaking stack is not shipped"
    assert now.access("corpus").permissions == {"tenant"}
    assert store.read(before.revision).access("corpus").permissions == frozenset()
    assert mark(store, "corpus", []) == "0 permissions of corpus: none."
    assert shipped(store) == ["clean", "leaky"]
    for table in ("passage_metadata", "query_filters", "judgements"):
        owner = "gold" if table == "judgements" else "corpus"
        assert getattr(store.read(), table)(owner).equals(getattr(before, table)(owner))


def test_a_field_of_no_passage_is_refused(tmp_path):
    stored(tmp_path, {"clean": CLEAN})
    store = Store.open(tmp_path)
    revision = store.read().revision
    with pytest.raises(UnknownNameError, match="No field of passages 'tenants'"):
        mark(store, "corpus", ["tenants"])
    assert store.read().revision == revision
