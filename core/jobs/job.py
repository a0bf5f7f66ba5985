"""Work begun as a process of its own: a closed dashboard ends none, and every dashboard can watch it.

Each has a folder "<nanoseconds>" with how it was begun, how far it is and what it printed; the process writes
`STATUS` there, or tells elsewhere how far it is.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.files import read_json, write_json
from core.jobs import process
from core.jobs.status import State, Status, Tracker, read_status

STATUS = "status.json"
_BEGUN, _PRINTED, _SEEN, _KEPT = "job.json", "printed.txt", "seen", 20


@dataclass(frozen=True, slots=True)
class Job:
    """Work that was begun."""

    folder: Path  # its folder
    name: str  # what it does, in words
    pid: int  # its process
    arguments: tuple[str, ...] = ()  # what it was begun with, for whoever begins it again

    def status(self) -> Status:
        """How far it is; killed if its process ended without a word, or told its end elsewhere."""
        alive = not process.ended(self.pid)  # asked first: it may tell its end at any moment
        began = datetime.fromtimestamp(int(self.folder.name) / 1e9, tz=UTC)
        silent = Status(name=self.name, pid=self.pid, started_at=began, updated_at=began)
        status = read_status(self.folder / STATUS, Status, alive=alive)
        if alive or (status is not None and status.state is not State.KILLED):
            return status or silent
        words = process.last_words(self.folder / _PRINTED)
        tracker = Tracker(status or silent)
        return tracker.close(State.FAILED if words else State.KILLED, words or "The process ended early.")

    def cancel(self, *, wait_s: float) -> None:
        """End it, after so many seconds by force."""
        process.stop(self.pid, wait_s=wait_s)
        status = self.status()
        if status.state in (State.RUNNING, State.KILLED):
            Tracker(status, path=self.folder / STATUS).close(State.CANCELLED)

    @property
    def seen(self) -> bool:
        """Whether somebody has seen how it ended."""
        return (self.folder / _SEEN).exists()

    def see(self) -> None:
        """Note that somebody has seen how it ended."""
        (self.folder / _SEEN).touch()


def new_folder(parent: Path) -> Path:
    """Make the folder of work that is about to begin; of older ones the last twenty stay."""
    for old in _folders(parent)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    folder = parent / str(time.time_ns())
    folder.mkdir(parents=True)
    return folder


def begin(
    folder: Path,
    name: str,
    command: Sequence[str],
    *,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Job:
    """Begin work, once more where its folder has ended work.

    Args:
        folder: From `new_folder`, with whatever the process needs.
        command: What follows ``python -m core``.
        arguments: What to remember of how it was begun.
    """
    for left in (STATUS, _SEEN):
        (folder / left).unlink(missing_ok=True)
    pid = process.start(command, folder / _PRINTED, environ)
    write_json(folder / _BEGUN, {"pid": pid, "name": name, "arguments": list(arguments)})
    return Job(folder, name, pid, tuple(arguments))


def jobs(parent: Path) -> list[Job]:
    """Return what was begun, the newest first."""
    begun = [(folder, read_json(folder / _BEGUN)) for folder in _folders(parent)]
    return [
        Job(folder, str(told["name"]), int(told["pid"]), tuple(told["arguments"]))
        for folder, told in begun
        if told is not None
    ]


def _folders(parent: Path) -> list[Path]:
    return sorted(parent.iterdir(), reverse=True) if parent.is_dir() else []
