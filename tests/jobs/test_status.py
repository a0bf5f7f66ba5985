"""How far long work is, for people and for other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.files import write_json
from core.jobs import State, Stopped, Tracker, Watch, read_status
from core.pipeline.evaluate import Status


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def tracker(clock: Clock, **options: object) -> tuple[Tracker, list[Status]]:
    told: list[Status] = []
    return Tracker(Status(evaluation_id="e", name="n"), told=told.append, clock=clock, **options), told


def test_what_is_left_is_guessed_from_what_was_seen(clock: Clock):
    counting, told = tracker(clock)
    counting.expect({"build": 2, "measure": 4})
    counting.begin("build", "first")
    assert told[-1].eta_s is None
    clock.now += 10
    counting.end()
    counting.begin("build", "second")
    assert (told[-1].done, told[-1].total, told[-1].stage, told[-1].eta_s) == (1, 6, "second", 10)
    clock.now += 4
    counting.within(350, 1400, "passages")
    assert told[-1].eta_s == pytest.approx(12)
    assert (told[-1].so_far, told[-1].share) == ("350 of 1,400 passages", 1.25 / 6)
    clock.now += 6
    counting.end()
    counting.begin("measure", "third")
    clock.now += 1
    counting.end()
    counting.begin("measure", "fourth")
    assert told[-1].eta_s == pytest.approx(3)
    assert (told[-1].so_far, told[-1].share) == ("", 3 / 6)
    counting.skip("measure", 2)
    assert counting.status.done == 5


def test_it_is_not_told_more_often_than_anybody_can_read(clock: Clock):
    counting, told = tracker(clock)
    counting.expect({"measure": 1})
    counting.begin("measure", "x")
    count = len(told)
    for _ in range(100):
        clock.now += 0.01
        counting.within(1, 2, "questions")
    assert len(told) - count in (3, 4)


def test_the_file_tells_another_process(tmp_path: Path, clock: Clock):
    path = tmp_path / "status.json"
    assert read_status(path, Status, alive=True) is None
    counting, _ = tracker(clock, path=path, facts=lambda: {"usd": 1.5, "usd_lost": 0.5, "calls_again": 2})
    counting.begin("build", "x")
    status = read_status(path, Status, alive=True)
    assert status is not None
    assert (status.state, status.stage, status.usd, status.usd_lost) == (State.RUNNING, "x", 1.5, 0.5)
    assert status.calls_again == 2
    assert status == counting.status
    killed = read_status(path, Status, alive=False)
    assert killed is not None
    assert (killed.state, killed.message) == (State.KILLED, "Its process ended without a word.")
    counting.close(State.BUDGET, "no money")
    stopped = read_status(path, Status, alive=False)
    assert stopped is not None
    assert (stopped.state, stopped.message, stopped.eta_s) == (State.BUDGET, "no money", None)


@pytest.mark.parametrize("change", [{"state": "?"}, {"started_at": 5}, {"name": None, "state": None}])
def test_a_file_of_another_kind_is_no_status(tmp_path: Path, change: dict[str, object]):
    write_json(tmp_path / "status.json", {"evaluation_id": "e", "name": "n", **change})
    assert read_status(tmp_path / "status.json", Status, alive=True) is None


@pytest.mark.parametrize("how", ["asked", "file"])
def test_a_watch_ends_waits_and_raises_at_the_next_look(tmp_path: Path, how: str):
    interrupted: list[int] = []
    asked = {"now": False}
    with Watch(lambda: asked["now"], tmp_path / "cancel", lambda: interrupted.append(1)) as watch:
        watch.check()
        watch.wait(0.001)
        assert not watch.stopping
        if how == "asked":
            asked["now"] = True
        else:
            (tmp_path / "cancel").touch()
        with pytest.raises(Stopped):
            watch.wait(30)
        with pytest.raises(Stopped):
            watch.check()
    assert watch.stopping
    assert interrupted == [1]
