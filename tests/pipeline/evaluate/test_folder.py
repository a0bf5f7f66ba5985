"""Folders, artifacts and measurements of evaluations."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from core.errors import ClqError, InputError, UnknownNameError
from core.files import write_json
from core.pipeline.evaluate.artifacts import Artifacts
from core.pipeline.evaluate.folder import Folder, Measurements, StepTimes, find, folder_of, folders
from core.pipeline.evaluate.measure import in_order, places
from core.pipeline.evaluate.steps import Step
from core.records import now

STEP = Step("index", {"name": "flat"})


def test_an_artifact_is_made_once_and_whole(tmp_path: Path):
    artifacts = Artifacts(tmp_path / "artifacts")
    assert (artifacts.find(STEP), artifacts.about(STEP)) == (None, {})
    made: list[Path] = []

    def fill(draft: Path) -> dict[str, int]:
        made.append(draft)
        (draft / "x").write_text("1")
        if len(made) == 1:
            raise RuntimeError
        assert list(draft.iterdir()) == [draft / "x"], "what was left by the first is gone"
        return {"n": 1}

    with pytest.raises(RuntimeError):
        artifacts.make(STEP, fill)
    assert artifacts.find(STEP) is None
    folder = artifacts.make(STEP, fill)
    assert artifacts.make(STEP, fill) == folder == artifacts.find(STEP)
    assert len(made) == 2
    assert artifacts.about(STEP) == {"kind": "index", "params": {"name": "flat"}, "n": 1}


def test_long_work_goes_on_where_it_stopped(tmp_path: Path):
    artifacts = Artifacts(tmp_path)

    def fill(draft: Path) -> dict[str, int]:
        parts = len(list(draft.iterdir()))
        (draft / str(parts)).touch()
        if parts < 2:
            raise KeyboardInterrupt
        return {}

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            artifacts.make(STEP, fill, continues=True)
    assert {path.name for path in artifacts.make(STEP, fill, continues=True).iterdir()} == {
        "0", "1", "2", "about.json",
    }  # fmt: skip


def on_two_machines(tmp_path: Path, away: str):
    """What one machine made the other fetches, whole; what it did not finish sending the other makes."""
    one, other = (Artifacts(tmp_path / name / "artifacts", away) for name in ("one", "other"))

    def fill(draft: Path) -> dict[str, int]:
        (draft / "inner").mkdir()
        (draft / "inner" / "x").write_bytes(bytes(3_000_000))
        return {"n": 1}

    def refuse(_: Path) -> dict[str, int]:
        raise AssertionError

    one.make(STEP, fill)
    made = other.make(STEP, refuse)
    assert (made / "inner" / "x").stat().st_size == 3_000_000
    assert other.about(STEP) == one.about(STEP) == {"kind": "index", "params": {"name": "flat"}, "n": 1}
    assert one.make(STEP, refuse).is_dir()
    half = Step("index", {"name": "half"})
    one._send(half, made / "inner")  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        other.make(half, refuse)


def test_artifacts_that_lie_away(tmp_path: Path):
    on_two_machines(tmp_path, (tmp_path / "away").as_uri())


@pytest.mark.extras
def test_artifacts_in_object_storage(tmp_path: Path, storage: str):
    scheme, _, host = os.environ["AWS_ENDPOINT"].partition("://")
    on_two_machines(tmp_path, f"{storage}?endpoint_override={host}&scheme={scheme}")


def test_object_storage_that_does_not_answer(tmp_path: Path):
    with pytest.raises(ClqError, match="Object storage") as caught:
        Artifacts(tmp_path, "nothing://key:hidden@there").make(STEP, lambda _: {})
    assert "hidden" not in str(caught.value)


def test_threads_that_need_one_artifact_make_it_once(tmp_path: Path):
    artifacts, made = Artifacts(tmp_path), []
    threads = [
        threading.Thread(target=artifacts.make, args=(STEP, lambda draft: made.append(draft) or {}))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


@pytest.mark.parametrize(
    ("name", "folder"),
    [("My sweep!", "My-sweep"), ("../..", "evaluation"), ("é" * 99, "é" * 40), ("", "evaluation")],
)
def test_folders_have_readable_names_inside_the_folder_of_all(tmp_path: Path, name: str, folder: str):
    made = folder_of(tmp_path, name, "abc")
    assert made.path == tmp_path / f"{folder}-abc"
    assert made.evaluation_id == "abc"


def test_evaluations_are_found_by_name_or_id(tmp_path: Path):
    for name in ("a-1", "b-2", "b-3"):
        folder = Folder(tmp_path / name)
        folder.path.mkdir()
        write_json(folder.spec, {})
    (tmp_path / "artifacts").mkdir()
    assert {each.path.name for each in folders(tmp_path)} == {"a-1", "b-2", "b-3"}
    for name in ("a", "1", "a-1"):
        assert find(tmp_path, name).path.name == "a-1"
    with pytest.raises(InputError, match="2 evaluations are called 'b'"):
        find(tmp_path, "b")
    with pytest.raises(UnknownNameError, match=r"No evaluation 'c'\. Found: a-1, b-2, b-3\."):
        find(tmp_path, "c")
    assert folders(tmp_path / "nowhere") == []


def test_measurements_survive_the_process(tmp_path: Path):
    path = tmp_path / "m.sqlite"
    first, began = Measurements(path), now()
    first.put("s", "1.1", StepTimes(np.array([1.0, 2.0]), np.array([0.5, 0.25]), 3.0, places([1, 0])))
    first.put("s", "1.2", StepTimes(np.array([4.0, 5.0]), None))
    first.begin_round(1, began)
    first.close()
    again = Measurements(path)
    one, other = again.get("s", "1.1"), again.get("s", "1.2")
    assert one is not None
    assert other is not None
    assert (one.ms.tolist(), one.cpu_ms.tolist(), one.waited_ms) == ([1, 2], [0.5, 0.25], 3)
    assert (other.ms.tolist(), other.cpu_ms, other.place) == ([4, 5], None, None)
    assert one.place is not None
    assert one.place.tolist() == [2, 1]
    assert again.get("s", "2.1") is None
    again.begin_round(1, now())
    again.end_round(1, began)
    again.end_round(1, now())
    assert again.rounds() == {1: (began, began)}
    again.close()


def test_places_say_as_which_query_each_was_asked():
    assert places([2, 0, 3, 1]).tolist() == [2, 4, 1, 3]


@pytest.mark.parametrize("workers", [1, 4])
def test_concurrent_work_keeps_the_order_and_stops_at_an_error(workers: int):
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 5:
            raise ValueError("five")
        return item * item

    assert list(in_order(work, range(5), workers)) == [0, 1, 4, 9, 16]
    begun.clear()
    with pytest.raises(ValueError, match="five"):
        list(in_order(work, range(100), workers))
    assert workers > 1 or begun == [0, 1, 2, 3, 4, 5]
    assert list(in_order(work, [], workers)) == []
