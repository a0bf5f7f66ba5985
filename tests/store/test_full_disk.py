"""A disk that refuses any single step of a write: it is said, nothing changes, and the next write works."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from core.errors import StoreError
from core.records import Batch
from core.store import Store, doctor, upkeep
from tests.store import material
from tests.store.material import rankings, run

pytestmark = pytest.mark.slow

STEPS = (
    (os, "fsync"),
    (os, "pwrite"),
    (shutil, "copyfile"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "write_text"),
)


@contextmanager
def refusing(at: int, number: int) -> Iterator[list[str]]:
    """Let the disk refuse one of the steps; 0 lets none fail. Yields the names of the steps taken."""
    taken: list[str] = []

    def wrapped(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **options: object) -> object:
            taken.append(name)
            if len(taken) == at:
                raise OSError(number, os.strerror(number))
            return real(*arguments, **options)

        return step

    patches = [patch.object(owner, name, wrapped(name, getattr(owner, name))) for owner, name in STEPS]
    for each in patches:
        each.start()
    try:
        yield taken
    finally:
        for each in patches:
            each.stop()


def grow(store: Store) -> None:
    ranked = rankings("c", {"q1": ["p1", "p2"]})
    material.add(store, Batch(runs=(run("c"),), frames={"rankings": ranked}))


def state(store: Store) -> tuple[object, ...]:
    snapshot = store.read()
    return snapshot.revision, snapshot.runs().rows(), snapshot.rankings(snapshot.runs()["run_id"]).rows()


@pytest.mark.parametrize(
    ("number", "said", "every"),
    [
        (errno.ENOSPC, "disk is full", 1),
        (errno.EROFS, "may only be read", 5),
        (errno.EACCES, "permission is missing", 5),
    ],
)
def test_every_step_of_an_import(filled: Store, tmp_path: Path, number: int, said: str, every: int) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(filled.path, whole)
    with refusing(0, number) as steps:
        grow(filled)
    assert len(steps) > 10
    for at in range(1, len(steps) + 1, every):
        store = Store.open(tmp_path / f"copy-{at}")
        shutil.copytree(whole, store.path)
        before = state(store)
        with refusing(at, number), pytest.raises(StoreError, match=said):
            grow(store)
        after = state(store)
        assert after == before or after[0] == 2, f"step {at}, {steps[at - 1]}"
        assert doctor.examine(store).sound
        grow(store)
        assert store.read().rankings(["c"]).height == 2
        assert doctor.examine(store).sound


def test_every_step_of_a_backup_and_of_a_restore(filled: Store, tmp_path: Path) -> None:
    things: dict[str, Callable[[Store, Path], object]] = {"backup": upkeep.backup, "restore": upkeep.restore}
    with refusing(0, errno.ENOSPC) as steps:
        upkeep.backup(filled, tmp_path / "backup")
    for name, thing in things.items():
        for at in range(1, len(steps) + 1, 3):
            target = tmp_path / f"{name}-{at}"
            source, other = (
                (filled, target) if name == "backup" else (Store.open(target), tmp_path / "backup")
            )
            with refusing(at, errno.ENOSPC) as taken, pytest.raises(StoreError, match="disk is full"):
                thing(source, other)
            assert len(taken) >= at
            assert doctor.examine(Store.open(target)).sound
            thing(source, other)
            assert state(Store.open(target)) == state(filled)
