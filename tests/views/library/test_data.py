from pathlib import Path

import pytest

from core.errors import InputError, UnknownNameError
from core.importers import Options, load
from core.records import Origin
from core.store import Store
from core.views.library import data
from core.views.library.data import ALL
from tests.stores import Lab


@pytest.fixture
def store(tmp_path: Path) -> Store:
    lab = Lab().judge({"q1": {"p": 5, "x": 1}, "q2": {"y": 4}}).ask({"q1": "one"}).hold({"p": "p"})
    lab.run("r1", label="First [one]", final={"q1": ["p", "x"], "q2": ["p"]}, pool="dense@2")
    lab.run(
        "r2",
        label="Second",
        origin=Origin.PUBLISHED,
        figures=[{"measure": "RR", "k": 1, "value": 0.5, "n": 50}],
    )
    lab.run("r3", label="bare", origin=Origin.RUN)
    return lab.write(tmp_path / "store")


def test_the_runs_with_origin_and_n(store: Store):
    rows = data.runs(store.read()).sort("run_id")
    assert rows.select("run_id", "origin", "n", "passages", "pool", "added_revision").rows() == [
        ("r1", "imported", 2, 3, "dense@2", 1),
        ("r2", "published", 50, None, None, 1),
        ("r3", "measured", None, None, None, 1),
    ]
    assert data.runs(store.read(), removed=True).is_empty()
    sentence, more = data.answer(store.read())
    assert sentence.startswith("The store holds 3 runs in 1 workspace: ")
    assert sentence.endswith(": 1 imported, 1 from papers, 1 measured.")
    assert more.startswith("1 golden set; 1 collection; revision ")


@pytest.mark.parametrize(
    ("collection", "words", "found"),
    [(ALL, "", 3), ("lab", " ", 3), ("other", "", 0), (ALL, "[ONE]", 1), (ALL, "r2", 1), (ALL, ".*", 0)],
)
def test_runs_are_found_by_what_they_are_called(store: Store, collection: str, words: str, found: int):
    assert data.chosen(data.runs(store.read()), collection, words).height == found


def test_delete_and_restore_are_one_revision_each(store: Store):
    before = store.revision()
    said = data.delete(store, ["r1", "r3"])
    assert said.startswith("2 runs deleted in one transaction (revision 2).")
    assert store.revision() == before + 1
    assert data.runs(store.read())["run_id"].to_list() == ["r2"]
    gone = data.runs(store.read(), removed=True)
    assert set(gone["run_id"]) == {"r1", "r3"}
    assert gone.filter(gone["run_id"] == "r1")["n"].to_list() == [2]
    assert data.runs(store.read(before)).height == 3, "earlier revisions keep showing them"
    assert "2 runs deleted, to be restored" in data.answer(store.read())[1]
    assert data.restore(store, ["r1"]) == "1 run restored in one transaction (revision 3)."
    assert set(data.runs(store.read())["run_id"]) == {"r1", "r2"}
    assert store.read().revisions().sort("revision", descending=True).select(
        "revision", "action", "note"
    ).rows() == [
        (3, "restore", "r1"),
        (2, "delete", "r1, r3"),
        (1, "test", ""),
    ]
    with pytest.raises(UnknownNameError):
        data.delete(store, ["r1", "r9"])
    assert store.revision() == 3


def test_collections_and_golden_sets(store: Store):
    assert data.collections(store.read()).select("collection_id", "queries", "passages").rows() == [
        ("lab", 1, 1)
    ]
    assert data.golden_sets(store.read()).select("golden_set_id", "queries", "judgements").rows() == [
        ("gold", 2, 3)
    ]


@pytest.mark.parametrize("name", sorted(data.formats().values()))
def test_an_export_as_one_file(store: Store, tmp_path: Path, name: str):
    found = data.packed(store.read(), name, "lab")
    file = tmp_path / "x.zip"
    file.write_bytes(found.content)
    made = load([file], Options(collection_id="lab"))
    assert "judgements" in made.taken
    assert ("rankings" in made.taken) == (name != "beir")
    with pytest.raises(UnknownNameError):
        data.packed(store.read(), name, "nope")


def test_an_export_that_cannot_be_made_is_said(tmp_path: Path):
    store = Lab().judge({"a b": {"p": 5}}).write(tmp_path / "store")
    with pytest.raises(InputError, match="has a blank"):
        data.packed(store.read(), "trec")


def test_an_empty_store(tmp_path: Path):
    snapshot = Store.open(tmp_path / "none").read()
    assert data.answer(snapshot) == (
        "The store holds 0 runs in 0 workspaces.",
        "0 golden sets; 0 collections; revision 0.",
    )
    assert data.runs(snapshot).is_empty()
    assert snapshot.revisions().sort("revision", descending=True).is_empty()
