"""Copies of a store: whole, consistent while others write, incremental, and the way back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.errors import StoreDamagedError, StoreError
from core.records import Batch
from core.store import Store, doctor, upkeep
from tests.store import material
from tests.store.material import add, rankings, run


def grow(store: Store, name: str) -> None:
    add(store, Batch(runs=(run(name),), frames={"rankings": rankings(name, {"q1": ["p1", "p2"]})}))


def runs(store: Store) -> list[str]:
    return store.read().runs()["run_id"].to_list()


def test_a_copy_has_all_history_and_takes_only_what_is_new(filled: Store, tmp_path: Path) -> None:
    grow(filled, "c")
    first = upkeep.backup(filled, tmp_path / "copy")
    copy = Store.open(tmp_path / "copy")
    assert copy.read().revisions().equals(filled.read().revisions())
    assert [copy.read(each).runs().height for each in range(3)] == [0, 2, 3]
    assert first.copied == first.files
    grow(filled, "d")
    second = upkeep.backup(filled, tmp_path / "copy")
    assert (second.copied, second.files) == (2, first.files + 2)  # rankings and their codes
    assert runs(copy) == runs(filled)


@pytest.mark.slow
def test_a_copy_made_while_others_write_is_some_revision(store: Store, tmp_path: Path) -> None:
    add(store, material.small())
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            grow(store, f"new-{number:03}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            upkeep.backup(store, tmp_path / "copy")
            copy = Store.open(tmp_path / "copy")
            assert not [each for each in doctor.examine(copy).findings if each.level is doctor.Level.DAMAGE]
            assert len(runs(copy)) == copy.revision() + 1
    finally:
        stop.set()
        writer.join()
    assert runs(copy) == runs(store)[: copy.revision() + 1]


@pytest.mark.slow
def test_a_restore_mends_and_goes_back_only_when_told(filled: Store, tmp_path: Path) -> None:
    upkeep.backup(filled, tmp_path / "copy")
    grow(filled, "c")
    next(filled.path.glob("parts/*/passages.parquet")).unlink()
    done = upkeep.restore(filled, tmp_path / "copy")
    assert (done.copied, done.revision, runs(filled)) == (1, 2, ["a", "b", "c"])
    done = upkeep.restore(filled, tmp_path / "copy", back=True)
    assert (done.revision, done.aside, runs(filled)) == (3, 1, ["a", "b"])
    assert filled.read().revisions()["revision"].to_list() == [1, 3]
    grow(filled, "d")
    assert (filled.revision(), runs(filled)) == (4, ["a", "b", "d"])


@pytest.mark.parametrize("damage", ["part", "catalogue"])
def test_a_damaged_backup_restores_nothing(filled: Store, tmp_path: Path, damage: str) -> None:
    upkeep.backup(filled, tmp_path / "copy")
    glob = "parts/*/rankings.parquet" if damage == "part" else "catalogue/*"
    file = next((tmp_path / "copy").glob(glob))
    file.write_bytes(file.read_bytes()[:-1])
    target = Store.open(tmp_path / "new")
    with pytest.raises(StoreDamagedError, match="bytes"):
        upkeep.restore(target, tmp_path / "copy")
    assert target.revision() == 0


@pytest.mark.slow
def test_what_is_no_copy_is_refused(filled: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other")
    add(other, material.small())
    for refused in (
        lambda: upkeep.backup(filled, filled.path),
        lambda: upkeep.backup(filled, other.path),
        lambda: upkeep.restore(filled, other.path),
        lambda: upkeep.restore(filled, tmp_path / "absent"),
    ):
        before = filled.read().revision
        with pytest.raises(StoreError):
            refused()
        assert (filled.read().revision, other.read().revision) == (before, 1)
