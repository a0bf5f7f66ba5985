"""An evaluation begun as a process of its own, as the dashboard does it."""

import time
from pathlib import Path

import pytest

from core.errors import InputError
from core.files import write_json
from core.jobs import Tracker
from core.pipeline.evaluate import State
from core.pipeline.evaluate.folder import Folder, Status
from core.store import Store
from core.work.sweep.kind import EVALUATION
from core.work.work import StartedWork
from tests.stores import Lab

SPEC = """
name = "launched"
collection.stored = "lab"
golden_set.stored = "gold"
[axes]
mode = ["sparse", "dense"]
embedder = ["fake"]
dim = [16]
index = ["flat"]
candidates = [2]
[latency]
repeats = 1
"""
PATIENCE_S = 120


def wait(store: Path, *states: State) -> StartedWork:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = EVALUATION.known(store)
        if found and found[0].status.state in states:
            return found[0]
        time.sleep(0.05)
    raise AssertionError([each.status for each in EVALUATION.known(store)])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    lab = Lab().ask({"q1": "wing lift", "q2": "heat"}).judge({"q1": {"p1": 5}, "q2": {"p2": 4}})
    lab.hold({"p1": "lift of a wing", "p2": "heat of a plate", "p3": "noise"}).write(tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.slow
def test_it_runs_by_itself_and_lands_in_the_store(store: Path):
    assert EVALUATION.known(store) == []
    EVALUATION.begin(SPEC, store)
    (begun,) = EVALUATION.known(store)
    assert (begun.status.name, begun.status.state) == ("launched", State.RUNNING)
    assert EVALUATION.known(store.parent / "other") == [], "another store in the same folder"
    done = wait(store, State.FINISHED, State.FAILED)
    assert (done.status.state, done.status.message) == (State.FINISHED, "")
    assert Store.open(store).read().runs("lab").height == done.status.runs_total == 2
    assert len(EVALUATION.known(store)) == 1
    assert (done.status.stores, EVALUATION.known(store.parent / "other")) == ([store.name], [])
    EVALUATION.resume(done, store)  # there is nothing left to do
    assert wait(store, State.FINISHED).name == done.name


@pytest.mark.slow
def test_what_cannot_begin_says_why(store: Path):
    with pytest.raises(InputError, match="axes"):
        EVALUATION.begin('collection = "lab"\naxis = 1\n', store)
    assert EVALUATION.known(store) == []
    EVALUATION.begin(SPEC.replace('"lab"', '"nowhere"'), store)
    failed = wait(store, State.FAILED)
    assert "nowhere" in failed.status.message
    assert failed.folder is None


@pytest.mark.parametrize(("on", "options"), [("", ()), ("ray", ("--on", "ray"))])
def test_it_goes_on_where_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, options: object):
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr("core.jobs.begin", lambda _folder, _name, command, **_: begun.append(tuple(command)))
    stopped = Status(name="swept", state=State.CANCELLED, on=on)
    EVALUATION.resume(StartedWork("swept-1", stopped, None), tmp_path / "store")
    assert begun[0][-len(("resume", "swept-1", *options)) :] == ("resume", "swept-1", *options)


@pytest.mark.parametrize(
    ("status", "mine"),
    [
        (Status(name="noted", stores=["store"], runs_done=2, collection_id="gone"), True),
        (Status(name="noted of both", stores=["other", "store"]), True),
        (Status(name="another's", stores=["other"], runs_done=2, collection_id="lab"), False),
        (Status(name="before the store was renamed", stores=["old"], runs_done=2, collection_id="lab"), True),
        (Status(name="moved away", stores=["old"], runs_done=2, collection_id="elsewhere"), False),
        (Status(name="of an earlier release", runs_done=2, collection_id="lab"), True),
        (Status(name="another's, of an earlier release", runs_done=2, collection_id="elsewhere"), False),
        (Status(name="failed early, of an earlier release", collection_id="elsewhere"), True),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_work_of_another_store_in_the_same_folder_is_not_listed(store: Path, status: Status, *, mine: bool):
    (store.parent / "other").mkdir()
    folder = Folder(EVALUATION.work_of(store) / "swept-1")
    folder.path.mkdir(parents=True)
    write_json(folder.spec, {})
    Tracker(status, path=folder.status_file).close(State.FINISHED)
    assert [one.status.name for one in EVALUATION.known(store)] == [status.name] * mine
