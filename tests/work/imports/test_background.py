"""Imports in processes of their own: to the end, to a refusal, and cancelled."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from core.importers import Options, TableAs, Upload
from core.jobs import JobStatus, Launch, State, process
from core.store import Store
from core.work.imports import background

RUN = "q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\n"


def ended(job: Launch) -> JobStatus:
    """Wait for an import; the process itself says when it is over."""
    process._children[job.pid].wait(timeout=120)
    return background.look(job)


@pytest.mark.slow
def test_an_upload_is_imported_and_a_changed_one_waits_for_a_decision(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    options = Options(collection_id="c d", label="--label")
    done = background.begin(store.path, [Upload("../mine.trec", RUN.encode())], options)
    status = ended(done)
    assert (status.state, done.name, status.facts["fresh"]) == (State.FINISHED, "mine.trec", True)
    assert store.read().runs()["label"].to_list() == ["--label"]
    assert not (done.folder / "files").exists()
    assert list((done.folder / "scratch").iterdir()) == []

    file = tmp_path / "mine.trec"
    file.write_text(RUN.replace("p2", "p3"))
    refused = background.begin(store.path, [file], options)
    status = ended(refused)
    assert (status.state, status.facts["changed"]) == (State.FAILED, ["run '--label'"])
    assert store.revision() == 1
    assert background.open_jobs(store.path) == [refused, done]
    background.see(done)
    assert background.open_jobs(store.path) == [refused]
    again = background.again(refused, store.path, "replace")
    assert ended(again).state is State.FINISHED
    assert store.read().runs().height == 1


def test_decisions_reach_the_process() -> None:
    options = Options(
        split="all", row="query", all_tasks=True, skip=frozenset({"b", "a"}), without=frozenset({"x"}),
        columns={"run": "who"}, numbers={"ms": "thousands"},
    )  # fmt: skip
    assert background._flags(options) == [
        "--split=all", "--row=query", "--all-tasks", "--skip=a", "--skip=b", "--without=x",
        "--numbers=ms=thousands", "--column=run=who",
    ]  # fmt: skip


def test_what_was_said_of_the_only_table_reaches_the_process() -> None:
    said = TableAs({"run": "who"}, "query", frozenset({"x"}), {"ms": "decimal-comma"})
    assert background._flags(Options(tables={"a.csv": said})) == [
        "--row=query", "--without=x", "--numbers=ms=decimal-comma", "--column=run=who"
    ]  # fmt: skip


def test_cancelling_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(endless))
    job = background.begin(tmp_path / "store", [tmp_path / "x"], Options())
    assert background.look(job).state is State.RUNNING
    background.cancel(job)
    assert background.look(job).state is State.CANCELLED
    assert not (job.folder / "scratch").exists()
    assert Store.open(tmp_path / "store").revision() == 0


def test_nothing_was_begun(tmp_path: Path) -> None:
    assert background.open_jobs(tmp_path / "store") == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes by /proc")
def test_a_number_that_another_process_has_by_now_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "imports" / "1"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"pid": os.getpid(), "name": "x", "arguments": []}))
    (job,) = background.open_jobs(tmp_path / "store")
    assert background.look(job).state is State.KILLED
    background.cancel(job)
    assert background.look(job).state is State.CANCELLED
