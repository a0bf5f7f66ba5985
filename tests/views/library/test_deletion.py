"""What goes along with what is deleted, in words, and what can be restored."""

from pathlib import Path

import pytest

from core.errors import StoreError
from core.records import Batch
from core.store import Store
from core.views.library import data
from tests.store import chunked
from tests.store.material import judgements


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three runs, a golden set with parts for two chunkings and one without."""
    store = Store.open(tmp_path / "store")
    with store.write("test") as writer:
        writer.add(chunked.batch())
    return store


ALL_OF_IT = "3 runs, 2 golden sets, 3 queries, 5 passages"


def test_what_goes_along_is_counted(store: Store):
    snapshot = store.read()
    assert data.goes_along(snapshot, "run", ["h"]) == ""
    assert data.goes_along(snapshot, "golden_set", ["gold"]) == "4 judgements, 2 anchored grades"
    assert data.goes_along(snapshot, "golden_set", ["gold", "tied"]) == "5 judgements, 2 anchored grades"
    assert data.goes_along(snapshot, "collection", ["corpus"]) == ALL_OF_IT
    assert data.collections(snapshot).select("collection_id", "runs", "golden_sets", "passages").rows() == [
        ("corpus", 3, 2, 5)
    ]


def test_a_golden_set_goes_and_comes_back(store: Store):
    said = data.delete(store, ["gold"], "golden_set")
    assert said.startswith(
        "1 golden set (with 4 judgements, 2 anchored grades) deleted in one transaction (revision 2)."
    )
    snapshot = store.read()
    assert data.golden_sets(snapshot)["golden_set_id"].to_list() == ["tied"]
    assert data.golden_sets(snapshot, removed=True)["golden_set_id"].to_list() == ["gold"]
    assert data.answer(snapshot)[1].endswith("; 1 golden set deleted, to be restored.")
    assert data.gone(snapshot) == {"ws": [], "gs": ["gold"]}
    assert data.restore(store, ["gold"], "golden_set") == (
        "1 golden set (with 4 judgements, 2 anchored grades) restored in one transaction (revision 3)."
    )
    assert store.read().revisions().sort("revision", descending=True)["note"].to_list() == [
        "golden set gold",
        "golden set gold",
        "",
    ]


def test_a_collection_goes_with_what_it_holds_and_brings_back_that(store: Store):
    data.delete(store, ["h"])
    data.delete(store, ["tied"], "golden_set")
    rest = "2 runs, 1 golden set, 3 queries, 5 passages"
    assert f"(with {rest})" in data.delete(store, ["corpus"], "collection")
    snapshot = store.read()
    assert data.runs(snapshot).is_empty()
    assert data.runs(snapshot, removed=True).is_empty(), "it cannot be restored before its collection"
    assert data.collections(snapshot).is_empty()
    assert data.collections(snapshot, removed=True).select("runs", "golden_sets", "passages").rows() == [
        (2, 1, 5)
    ]
    assert data.goes_along(snapshot, "collection", ["corpus"], removed=True) == rest
    assert data.gone(snapshot) == {"ws": ["corpus"], "gs": ["gold"]}
    with pytest.raises(StoreError, match="hidden with the deleted collection 'corpus'"):
        data.restore(store, ["gold"], "golden_set")
    assert f"(with {rest})" in data.restore(store, ["corpus"], "collection")
    assert set(data.runs(store.read())["run_id"]) == {"p", "w"}
    assert "; 1 run and 1 golden set deleted" in data.answer(store.read())[1]


def test_judgements_of_another_name_count_with_their_own_set_only(store: Store):
    with store.write("more") as writer:
        writer.add(Batch(frames={"judgements": judgements({"q1": {"d": 5}}, "gold")}))
    assert data.goes_along(store.read(), "golden_set", ["gold"]) == "5 judgements, 2 anchored grades"
