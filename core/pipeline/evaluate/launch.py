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
from core.records import JsonMap

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
    start(work_of(store), spec.name, store, ["run", "--yes"], spec.model_dump(mode="json", exclude_none=True))


def resume(known: Known, store: Path) -> None:
    """Let an evaluation that was stopped go on."""
    start(work_of(store), known.status.name, store, ["resume", known.name])


def start(work: Path, name: str, store: Path, command: Sequence[str], spec: JsonMap | None = None) -> None:
    """Start a process that works in one of the folders of a folder of work.

    Args:
        work: The folder of all work of its kind.
        name: What it does, in words.
        store: Where its results go.
        command: What follows ``python -m core --store STORE``.
        spec: Its specification, whose file is named last; None where it needs none.
    """
    launch = jobs.new_folder(work / _LAUNCHED)
    if spec is not None:
        write_json(launch / "spec.json", spec)
        command = [*command, str(launch / "spec.json")]
    jobs.begin(launch, name, ["--store", str(store.absolute()), *command])


def cancel(known: Known) -> None:
    """Ask an evaluation to stop; what has finished stays, and it can be resumed."""
    if known.folder is not None:
        known.folder.stop.touch()
    else:
        jobs.stop(known.status.pid)


def known(store: Path) -> list[Known]:
    """Every evaluation of a store, newest first; a process that has none yet begins, or failed before."""
    return known_in(work_of(store))


def known_in(work: Path) -> list[Known]:
    """Everything that was begun in a folder of work; see `known`."""
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


def _early(status: jobs.Status) -> Status:
    told = {each.name: getattr(status, each.name) for each in fields(status)}
    return Status(**{**told, "stage": "reading the corpus" if status.state is State.RUNNING else ""})
