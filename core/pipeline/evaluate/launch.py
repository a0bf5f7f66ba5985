"""Evaluations as processes of their own, so that a dashboard that is reloaded or closed does not end them.

Each leaves "<evaluations>/launched/<nanoseconds>" with its specification, its process and what that printed.
A process writes its number into the status of its evaluation, so that one finds the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from core import jobs
from core.files import write_json
from core.pipeline.evaluate.folder import EVALUATIONS, Folder, State, Status, folders
from core.pipeline.sweep import load

_LAUNCHED = "launched"


@dataclass(frozen=True, slots=True)
class Known:
    """An evaluation that was begun, from here or elsewhere.

    Attributes:
        name: Name of its folder; of a process that has not got that far, of its launch.
        status: How far it is.
        folder: Its folder; None when it ended, or still is, before having one.
    """

    name: str
    status: Status
    folder: Folder | None


def work_of(store: Path) -> Path:
    """The folder of all evaluations whose results go into a store."""
    return store.absolute().parent / EVALUATIONS


def begin(text: str, store: Path) -> None:
    """Start an evaluation.

    Args:
        text: The specification; its paths are relative to the current folder.
        store: Where its results go.

    Raises:
        SpecError: If the text is none; nothing was started.
    """
    spec = load(text + "\n")
    launch = jobs.new_folder(work_of(store) / _LAUNCHED)
    write_json(launch / "spec.json", spec.model_dump(mode="json", exclude_none=True))
    _start(launch, spec.name, store, ["run", "--yes", str(launch / "spec.json")])


def resume(known: Known, store: Path) -> None:
    """Let an evaluation that was stopped go on."""
    launch = jobs.new_folder(work_of(store) / _LAUNCHED)
    _start(launch, known.status.name, store, ["resume", known.name])


def cancel(known: Known) -> None:
    """Ask an evaluation to stop; what has finished stays, and it can be resumed."""
    if known.folder is not None:
        known.folder.stop.touch()
    else:
        jobs.stop(known.status.pid)


def known(store: Path) -> list[Known]:
    """Every evaluation of a store, newest first; a process that has none yet begins, or failed before."""
    work = work_of(store)
    evaluations = [
        Known(each.path.name, status, each) for each in folders(work) if (status := each.status()) is not None
    ]
    pids = {each.status.pid for each in evaluations}
    early = [
        Known(job.folder.name, _early(begun), None)
        for job in jobs.jobs(work / _LAUNCHED)
        if job.pid not in pids and (begun := job.status()).state is not State.KILLED
    ]
    return sorted([*early, *evaluations], key=lambda each: each.status.started_at, reverse=True)


def _start(launch: Path, name: str, store: Path, command: Sequence[str]) -> None:
    jobs.begin(launch, name, ["--store", str(store.absolute()), *command])


def _early(status: jobs.Status) -> Status:
    told = {each.name: getattr(status, each.name) for each in fields(status)}
    return Status(**{**told, "stage": "reading the corpus" if status.state is State.RUNNING else ""})
