"""Writing whole or not at all, and locks."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from core.files import is_locked, locked, read_json, replacing, write_json, write_text


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_it_is_the_old_one_or_the_new_one_as_a_whole(tmp_path: Path, kind: str):
    def write(to: Path, text: str) -> None:
        if kind == "folder":
            to.mkdir()
        (to / "x" if kind == "folder" else to).write_text(text)

    def read() -> str:
        return (path / "x" if kind == "folder" else path).read_text()

    path = tmp_path / "it"
    with replacing(path) as draft:
        write(draft, "old")
        assert not path.exists()
    with pytest.raises(TypeError), replacing(path) as draft:
        write(draft, None)  # begun, and failed
    assert read() == "old"
    with replacing(path):
        pass
    assert read() == "old", "nothing was written, so nothing is replaced"
    with replacing(path, mark="new") as draft:
        assert draft.name == ".it.new"
        write(draft, "new")
    assert read() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_says_how_long_it_is(tmp_path: Path):
    assert write_text(tmp_path / "x", "é\n") == 3
    assert (tmp_path / "x").read_text() == "é\n"


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", '{"a": 1'])
def test_json_that_cannot_be_read_is_absent(tmp_path: Path, text: str):
    path = tmp_path / "x.json"
    assert read_json(path) is None
    path.write_text(text)
    assert read_json(path) is None
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_is_held_by_one(tmp_path: Path):
    path = tmp_path / "lock"
    assert not is_locked(path)
    with locked(path) as mine:
        assert mine
        assert is_locked(path)
        with locked(path) as other:
            assert not other
    assert not is_locked(path)

    def give_up() -> None:
        raise TimeoutError

    with locked(path), pytest.raises(TimeoutError), locked(path, wait=give_up):
        pass


def _hold(path: Path, held: object, release: object) -> None:
    with locked(path):
        held.set()
        release.wait(30)


@pytest.mark.slow
def test_a_lock_ends_with_its_process(tmp_path: Path):
    context = multiprocessing.get_context("spawn")  # the server of `tests.warm` would import everything
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(tmp_path / "lock", held, release))
    process.start()
    assert held.wait(30)
    assert is_locked(tmp_path / "lock")
    process.kill()
    process.join()
    assert not is_locked(tmp_path / "lock")
