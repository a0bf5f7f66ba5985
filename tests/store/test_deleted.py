"""Deleted golden sets and collections: what goes with them, what comes back, what is refused meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ClqError, InputError, StoreError, UnknownNameError
from core.records import Batch, Collection, GoldenSet
from core.store import LedgerKind, Snapshot, Store, doctor
from core.store.ledger import standing
from tests import stores
from tests.store import chunked, material
from tests.store.material import CORPUS, GOLD, add, files, judgements, run


@pytest.fixture
def cut(store: Store) -> Store:
    """A collection with two chunkings, at revision 1."""
    stores.filled(store.path, "chunked", lambda path: stores.add(path, chunked.batch(), "fill"))
    return store


def remove(store: Store, kind: LedgerKind, *ids: str) -> Snapshot:
    with store.write("delete") as writer:
        writer.remove(kind, ids)
    return store.read()


def restore(store: Store, kind: LedgerKind, *ids: str) -> Snapshot:
    with store.write("restore") as writer:
        writer.restore(kind, ids)
    return store.read()


def held(snapshot: Snapshot, **which: bool) -> tuple[list[str], list[str], list[str]]:
    return (
        snapshot.collections(parts=True, **which)["collection_id"].to_list(),
        snapshot.golden_sets(parts=True, **which)["golden_set_id"].to_list(),
        snapshot.runs(**which)["run_id"].to_list(),
    )


@pytest.mark.slow
def test_a_deleted_golden_set_goes_with_its_parts(cut: Store) -> None:
    before = held(cut.read())
    after = remove(cut, "golden_set", "gold")
    assert held(after) == (before[0], ["tied"], before[2])
    assert held(after, removed=True) == ([], ["gold"], [])
    assert held(after, hidden=True) == ([], ["gold@halves", "gold@pages"], [])
    for read in (lambda: after.judgements("gold"), lambda: after.graded(before[2], "gold")):
        with pytest.raises(UnknownNameError, match="No golden set 'gold'"):
            read()
    assert after.with_deleted().judgements("gold").equals(cut.read(1).judgements("gold"))
    assert held(cut.read(1)) == before, "earlier revisions show it"
    assert held(restore(cut, "golden_set", "gold")) == before
    assert doctor.examine(cut).sound


@pytest.mark.slow
def test_a_deleted_collection_hides_all_of_it_and_restoring_brings_back_just_that(cut: Store) -> None:
    other = GoldenSet(golden_set_id="spare", collection_id="corpus", name="Spare")
    add(
        cut,
        Batch(
            golden_sets=(other,),
            runs=(run("early"),),
            frames={"judgements": judgements({"q1": {"p1": 2}}, "spare")},
        ),
    )
    remove(cut, "run", "early")
    before = held(remove(cut, "golden_set", "spare"))
    after = remove(cut, "collection", "corpus")
    assert held(after) == ([], [], [])
    assert held(after, removed=True) == (["corpus"], [], []), "only that can be restored"
    assert held(after, hidden=True) == ([name for name in before[0] if name != "corpus"], *before[1:])
    with pytest.raises(UnknownNameError):
        after.passages("corpus@halves")
    counts = doctor.examine(cut)
    assert counts.sound
    assert not counts.findings
    assert (counts.counts["collections"], counts.counts["collections (removed)"], counts.counts["runs"]) == (
        0,
        1,
        0,
    )
    back = restore(cut, "collection", "corpus")
    assert held(back) == before
    assert held(back, removed=True) == ([], ["spare"], ["early"]), "what was deleted before stays deleted"


def test_other_collections_are_left_alone(filled: Store) -> None:
    far = GoldenSet(golden_set_id="corpus", collection_id="far", name="called as a collection is")
    batch = Batch(
        collections=(Collection(collection_id="far", name="Far"),),
        golden_sets=(far,),
        runs=(run("corpus", collection_id="far"),),
    )
    add(filled, batch)
    assert held(remove(filled, "collection", "corpus")) == (["far"], ["corpus"], ["corpus"])
    add(filled, batch)
    assert filled.revision() == 3, "nothing of it is deleted"


def test_twice_and_in_one_transaction(filled: Store) -> None:
    remove(filled, "golden_set", "gold", "gold")
    assert remove(filled, "golden_set", "gold").revision == 2, "it is deleted already"
    with filled.write("both") as writer:
        writer.remove("collection", ["corpus"])
        writer.restore("collection", ["corpus"])
        writer.restore("golden_set", ["gold"])
        writer.remove("run", ["a"])
        writer.remove("collection", ["corpus"])
    assert held(filled.read()) == ([], [], [])
    assert held(restore(filled, "collection", "corpus")) == (["corpus"], ["gold"], ["b"])


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        ("golden_set", "nope", UnknownNameError, "No golden set 'nope'. Found: gold"),
        ("collection", "nope", UnknownNameError, "No collection 'nope'. Found: corpus"),
        (
            "golden_set",
            "gold@halves",
            InputError,
            "'gold@halves' is part of 'gold'. Name 'gold'; its parts go",
        ),
        ("collection", "corpus@halves", InputError, "'corpus@halves' is part of 'corpus'"),
    ],
)
def test_what_cannot_be_deleted(
    cut: Store, kind: LedgerKind, name: str, error: type[ClqError], message: str
) -> None:
    before = files(cut)
    for turned in (remove, restore):
        with pytest.raises(error, match=message):
            turned(cut, kind, name)
    assert files(cut) == before


def test_what_is_hidden_is_restored_with_what_hides_it(filled: Store) -> None:
    remove(filled, "collection", "corpus")
    for turned in (remove, restore):
        with pytest.raises(
            StoreError, match=r"run 'a' is hidden with the deleted collection 'corpus'\. Restore that"
        ):
            turned(filled, "run", "a")
        with pytest.raises(StoreError, match="golden set 'gold' is hidden with the deleted"):
            turned(filled, "golden_set", "gold")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Batch(collections=(CORPUS,)), "collection 'corpus' is deleted. Restore it, or give"),
        (Batch(runs=(run("new"),)), "collection 'corpus' is deleted"),
        (
            Batch(collections=(replace(CORPUS, collection_id="corpus@x", part_of="corpus"),)),
            "'corpus' is deleted",
        ),
        (Batch(golden_sets=(replace(GOLD, golden_set_id="new"),)), "collection 'corpus' is deleted"),
        (Batch(golden_sets=(replace(GOLD, collection_id="far"),)), "golden set 'gold' is deleted"),
        (Batch(frames={"judgements": judgements({"q1": {"p1": 5}})}), "No golden set 'gold'"),
    ],
)
def test_nothing_is_added_to_what_is_deleted(filled: Store, batch: Batch, message: str) -> None:
    remove(filled, "collection", "corpus")
    before = files(filled)
    with pytest.raises(ClqError, match=message):
        add(filled, batch)
    assert files(filled) == before
    restore(filled, "collection", "corpus")
    assert add(filled, material.small()) == 3, "nothing of it is new"


def test_the_rows_of_a_restored_golden_set_may_give_way(filled: Store) -> None:
    remove(filled, "golden_set", "gold")
    new = judgements({"q1": {"p1": 1}})
    with filled.write("import") as writer:
        writer.restore("golden_set", ["gold"])
        writer.add(Batch(golden_sets=(GOLD,), frames={"judgements": new}), replacing=["gold"])
    assert filled.read().judgements("gold")["grade"].to_list() == [1]
    assert filled.read(1).judgements("gold").height == 3


def test_in_a_store_of_the_first_release(tmp_path: Path) -> None:
    shutil.unpack_archive(Path(__file__).with_name("first_light.zip"), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    remove(store, "golden_set", "gold")
    assert held(remove(store, "collection", "corpus")) == ([], [], [])
    assert held(restore(store, "collection", "corpus")) == (["corpus"], [], ["a"])
    assert held(store.read(), removed=True) == ([], ["gold"], ["b"])
    assert held(store.read(1)) == (["corpus"], ["gold"], ["a", "b"])
    assert doctor.examine(store).sound


@pytest.mark.slow
def test_a_process_killed_while_it_deletes_leaves_the_store_as_it_was(filled: Store) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from core.store import Store
with Store.open(Path(sys.argv[1])).write("delete") as writer:
    writer.remove("golden_set", ["gold"])
    writer.remove("collection", ["corpus"])
    os.kill(os.getpid(), signal.SIGKILL)
"""
    before = held(filled.read())
    command = [sys.executable, "-c", script, str(filled.path)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert held(filled.read()) == before
    assert filled.revision() == 1
    assert held(remove(filled, "golden_set", "gold"))[1] == []
    assert doctor.examine(filled).sound


_RECORDS = [
    ("collection", "c", "c", None),
    ("collection", "c@x", "c@x", "c"),
    ("collection", "d", "d", None),
    ("golden_set", "g", "c", None),
    ("golden_set", "g@x", "c@x", "g"),
    ("golden_set", "c", "d", None),
    ("run", "r", "c", None),
    ("run", "d", "d", None),
]


@pytest.mark.slow
@given(gone=st.sets(st.sampled_from([record[:2] for record in _RECORDS if "@" not in record[1]])))
def test_what_is_hidden_against_the_plain_rule(gone: set[tuple[str, str]]) -> None:
    """A record is hidden while its whole is deleted, or its collection, or the whole of that."""
    rows = [(kind, name, 1, "removed" if (kind, name) in gone else "added") for kind, name, *_ in _RECORDS]
    state = pl.DataFrame(rows, schema=["kind", "id", "added_revision", "event"], orient="row")
    wholes = pl.DataFrame(_RECORDS, schema=["kind", "id", "collection_id", "part_of"], orient="row")
    found = standing(state, lambda: wholes)
    assert found.select(state.columns).equals(state)
    part_of = {name: whole for kind, name, _, whole in _RECORDS if kind == "collection"}
    for kind, name, collection, whole in _RECORDS:
        above = {("collection", collection), ("collection", part_of[collection]), (kind, whole)}
        behind = found.row(by_predicate=(pl.col("kind") == kind) & (pl.col("id") == name), named=True)[
            "behind"
        ]
        expected = {f"{each.replace('_', ' ')} '{of}'" for each, of in (above - {(kind, name)}) & gone}
        assert behind in (expected or {None})


def test_which_revisions_changed_a_collection(cut: Store) -> None:
    """Each step changes one of two collections; names of one are those of other things in the other."""
    far = Batch(
        collections=(Collection(collection_id="far", name="Far"),),
        golden_sets=(GoldenSet(golden_set_id="corpus", collection_id="far", name="named as a collection"),),
        runs=(run("gold", collection_id="far"),),
    )
    graded = judgements({"q9": {"p": 5}}, "corpus")
    steps: list[tuple[str, Batch | tuple[LedgerKind, str]]] = [
        ("far", far),
        ("far", Batch(frames={"judgements": graded})),
        ("corpus", Batch(golden_sets=(replace(GOLD, golden_set_id="spare"),))),
        ("corpus", ("run", "h")),
        ("far", ("run", "gold")),
        ("corpus", ("golden_set", "gold")),
        ("far", ("collection", "far")),
        ("corpus", Batch(frames={"judgements": judgements({"q3": {"p1": 2}}, "spare")})),
    ]
    first = cut.revision()
    for _, step in steps:
        if isinstance(step, Batch):
            add(cut, step)
        else:
            remove(cut, step[0], step[1])
    for name in ("corpus", "far"):
        expected = [first + at for at, (whose, _) in enumerate(steps, 1) if whose == name]
        for after in range(first, cut.revision() + 1):
            told = cut.read().changes_of(name, after)["revision"].to_list()
            assert told == [number for number in expected if number > after], (name, after)
    assert cut.read().changes_of("corpus@halves", 0)["revision"].to_list() == [first], "a part of its own"
    assert cut.read(first + 3).changes_of("corpus", first)["revision"].to_list() == [first + 3]
    assert cut.read().changes_of("nobody", 0).is_empty()
