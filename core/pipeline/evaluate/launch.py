"""Evaluations as processes of their own, so that a dashboard that is reloaded or closed does not end them.

Each leaves "<evaluations>/launched/<nanoseconds>" with its specification, its process and what that printed.
A process writes its number into the status of its evaluation, so that one finds the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import BaseModel

from core import jobs
from core.files import write_json
from core.pipeline.evaluate.folder import EVALUATIONS, Folder, State, Status, folders
from core.pipeline.own.version import refuse_code
from core.pipeline.sweep import load_as
from core.pipeline.sweep.model import SweepSpec

_LAUNCHED = "launched"


@dataclass(frozen=True, slots=True)
class Known:
    """An evaluation that was begun, from here or elsewhere."""

    name: str  # Name of its folder; of a process that has not got that far, of its launch
    status: Status  # How far it is
    folder: Folder | None  # Its folder; None when it ended, or still is, before having one


@dataclass(frozen=True, slots=True)
class Launcher:
    """Begins, resumes and lists work of one kind, whose results go into a store."""

    folder: str  # Of all such work, beside the store
    begins: tuple[str, ...]  # The command that begins one unasked, without its specification
    resumes: tuple[str, ...]  # The command that lets one go on, without its name
    model: type[BaseModel]  # Its specification

    def work_of(self, store: Path) -> Path:
        """Return the folder of all such work whose results go into a store."""
        return store.absolute().parent / self.folder

    def begin(self, text: str, store: Path, options: Sequence[str] = (), *, own: bool = False) -> None:
        """Start one as a process of its own; its paths are relative to the current folder.

        Args:
            store: Where its results go.
            options: Of the command, besides those that it always has.
            own: Whether pipelines of one's own may run: their code, and requests to their addresses.

        Raises:
            InputError: If there are some and they may not; nothing was started.
            SpecError: If the text is no specification; nothing was started.
        """
        read = load_as(self.model, text + "\n")
        if isinstance(read, SweepSpec) and not own:
            refuse_code(read.own, "A specification that is not its user's own")
        spec = read.model_dump(mode="json", exclude_none=True)
        launch = jobs.new_folder(self.work_of(store) / _LAUNCHED)
        write_json(launch / "spec.json", spec)
        self._start(launch, spec["name"], store, (*self.begins, *options, str(launch / "spec.json")))

    def resume(self, one: Known, store: Path) -> None:
        """Let one that was stopped go on, where it ran."""
        launch = jobs.new_folder(self.work_of(store) / _LAUNCHED)
        where = ("--on", one.status.on) if one.status.on else ()
        self._start(launch, one.status.name, store, (*self.resumes, one.name, *where))

    def _start(self, launch: Path, name: str, store: Path, command: Sequence[str]) -> None:
        jobs.begin(launch, name, ["--store", str(store.absolute()), *command])

    def known(self, store: Path) -> list[Known]:
        """Return all that were begun, newest first; a process that has none yet begins, or failed before."""
        work = self.work_of(store)
        begun = [
            Known(folder.path.name, status, folder)
            for folder in folders(work)
            if (status := folder.status()) is not None
        ]
        pids = {evaluation.status.pid for evaluation in begun}
        early = [
            Known(job.folder.name, _early(job_status), None)
            for job in jobs.jobs(work / _LAUNCHED)
            if job.pid not in pids and (job_status := job.status()).state is not State.KILLED
        ]
        return sorted([*early, *begun], key=lambda evaluation: evaluation.status.started_at, reverse=True)


EVALUATION = Launcher(EVALUATIONS, ("run", "--yes"), ("resume",), SweepSpec)


def cancel(known: Known) -> None:
    """Ask an evaluation to stop; what has finished stays, and it can be resumed."""
    if known.folder is not None:
        known.folder.stop.touch()
    else:
        jobs.stop(known.status.pid)


def _early(status: jobs.Status) -> Status:
    values = {field.name: getattr(status, field.name) for field in fields(status)}
    return Status(**{**values, "stage": "reading the corpus" if status.state is State.RUNNING else ""})
