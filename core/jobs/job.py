"""Work in a separate process, and its progress: closing a dashboard does not end it, and any can watch it.

Each has a folder "<nanoseconds>" with its arguments, progress and output; the process writes
`STATUS` there, or reports its progress elsewhere.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.files import read_json, write_json
from core.jobs import process
from core.records import now

_EVERY_S = 0.25  # Minimum seconds between two writes of the file during a stage
STATUS = "status.json"
_BEGUN, _PRINTED, _SEEN, _KEPT = "job.json", "printed.txt", "seen", 20


class State(StrEnum):
    """Possible states of work."""

    RUNNING = "running"
    FINISHED = "finished"
    BUDGET = "stopped by budget"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    KILLED = "killed"  # its status says that it runs, but its process is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The progress of the work."""

    name: str  # display name
    state: State = State.RUNNING  # its state
    stage: str = ""  # the current activity, in words
    done: int = 0  # finished units of work
    total: int = 0  # all units of work
    counted: int = 0  # how much of the stage is done, in `unit`
    whole: int = 0  # size of the stage; 0 = it isn't counted
    unit: str = ""  # what is counted: "passages", "questions", "bytes"
    # Estimated remaining seconds of the kinds of work seen so far; None = unknown yet
    eta_s: float | None = None
    pid: int = field(default_factory=os.getpid)  # the process
    started_at: datetime = field(default_factory=now)  # when this process began
    updated_at: datetime = field(default_factory=now)  # when this was written
    message: str = ""  # why it stopped; "" while it runs and after it finished
    facts: Mapping[str, Any] = field(default_factory=dict)  # data specific to this kind of work (JSON)

    @property
    def share(self) -> float:
        """Share of the units of work that is done, including the current one, 0 to 1."""
        done = self.done + (self.counted / self.whole if self.whole else 0.0)
        return min(1.0, done / max(1, self.total))

    @property
    def so_far(self) -> str:
        """Progress within the stage: ``128 of 1,400 passages``, or "" if it isn't counted."""
        return f"{self.counted:,} of {self.whole:,} {self.unit}" if self.whole else ""


S = TypeVar("S", bound=JobStatus)


def read_status(path: Path, kind: type[S], *, alive: bool) -> S | None:
    """Read the status in a file.

    Args:
        alive: Whether the work's process existed a moment ago.

    Returns:
        The status, with state `KILLED` if it says that it runs but does not; None if there is none.
    """
    written = read_json(path)
    if written is None:
        return None
    known = {field.name: written[field.name] for field in fields(kind) if field.name in written}
    try:
        for name in ("started_at", "updated_at"):
            known[name] = datetime.fromisoformat(known[name]).astimezone(UTC)
        status = kind(**{**known, "state": State(known["state"])})
    except (KeyError, TypeError, ValueError):
        return None
    if status.state is State.RUNNING and not alive:
        return replace(status, state=State.KILLED, message="Its process ended without a word.")
    return status


class Tracker(Generic[S]):
    """Counts units of work, estimates the remaining time, and reports both.

    Args:
        path: The file to keep up to date; None = no file.
        told: Called after every unit of work, and once more at the end.
        facts: Returns fields of the status for every report.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        status: S,
        *,
        path: Path | None = None,
        told: Callable[[S], None] | None = None,
        facts: Callable[[], Mapping[str, Any]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.status = status
        self._path, self._told, self._facts, self._clock = path, told, facts, clock
        self._left: dict[str, int] = {}
        self._took: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self._kind = ""
        self._since = clock()
        self._written = self._since - _EVERY_S

    def expect(self, units: Mapping[str, int]) -> None:
        """Announce how many units of each kind of work there will be."""
        self._left = dict(units)
        self.status = replace(self.status, total=self.status.done + sum(units.values()))

    def begin(self, kind: str, words: str) -> None:
        """Start a unit of work."""
        self._kind, self._since = kind, self._clock()
        self.tell(stage=words, eta_s=self._eta(0.0), counted=0, whole=0, unit="")

    def within(self, done: int, whole: int, unit: str, **changes: Any) -> None:  # noqa: ANN401
        """Record how much of the current unit is done; if `whole` is 0, nothing is counted."""
        if self._clock() - self._written >= _EVERY_S:  # called after every query
            eta_s = self._eta(done / whole if whole else 0.0)
            self.tell(eta_s=eta_s, counted=done, whole=whole, unit=unit, **changes)

    def end(self, units: int = 1, *, took: bool = True) -> None:
        """End the current unit; `units` − 1 more of its kind are not needed."""
        if took:
            seen = self._took[self._kind]
            seen[0] += 1
            seen[1] += self._clock() - self._since
        self._left[self._kind] = max(0, self._left.get(self._kind, 0) - units)
        self.status = replace(self.status, done=min(self.status.total, self.status.done + units))

    def did(self, kind: str, units: int) -> None:
        """Count units of a kind finished in parallel since the last call, or since the last unit began."""
        seen = self._took[kind]
        seen[0] += units
        seen[1] += self._clock() - self._since
        self._since = self._clock()
        self.skip(kind, units)

    def skip(self, kind: str, units: int) -> None:
        """Count units of a kind that are not needed."""
        self._kind = kind
        self.end(units, took=False)

    def close(self, state: State, message: str = "", **changes: Any) -> S:  # noqa: ANN401
        """Report the end."""
        stage = "finished" if state is State.FINISHED else self.status.stage
        ended = {"state": state, "message": message, "stage": stage, "eta_s": None}
        self.tell(**ended, counted=0, whole=0, unit="", **changes)
        return self.status

    def tell(self, **changes: Any) -> None:  # noqa: ANN401 - fields of the status
        """Report the status with some fields changed."""
        self.status = replace(self.status, updated_at=now(), **self._facts(), **changes)
        self._written = self._clock()
        if self._path is not None:
            with suppress(OSError):  # a full disk must not end work that goes elsewhere
                values = asdict(self.status).items()
                plain = {name: at.isoformat() if isinstance(at, datetime) else at for name, at in values}
                write_json(self._path, plain)
        if self._told is not None:
            self._told(self.status)

    def _eta(self, share: float) -> float | None:
        left, known = dict(self._left), list[float]()
        if share > 0:
            known.append((self._clock() - self._since) * (1 - share) / share)
            left[self._kind] = left.get(self._kind, 1) - 1
        for kind, units in left.items():
            count, seconds = self._took.get(kind, (0, 0.0))
            if count:
                known.append(units * seconds / count)
        return round(sum(known), 1) if known else None


@dataclass(frozen=True, slots=True)
class Launch:
    """Work that was started."""

    folder: Path  # its folder
    name: str  # what it does, in words
    pid: int  # its process
    arguments: tuple[str, ...] = ()  # the arguments it was started with, to start it again

    def status(self) -> JobStatus:
        """Return its progress; killed if its process ended without a word, or reported its end elsewhere."""
        alive = not process.ended(self.pid)  # checked first: it may report its end at any moment
        began = datetime.fromtimestamp(int(self.folder.name) / 1e9, tz=UTC)
        silent = JobStatus(name=self.name, pid=self.pid, started_at=began, updated_at=began)
        status = read_status(self.folder / STATUS, JobStatus, alive=alive)
        if alive or (status is not None and status.state is not State.KILLED):
            return status or silent
        words = process.last_words(self.folder / _PRINTED)
        tracker = Tracker(status or silent)
        return tracker.close(State.FAILED if words else State.KILLED, words or "The process ended early.")

    def cancel(self, *, wait_s: float) -> None:
        """Cancel the work, by force after a number of seconds."""
        process.stop(self.pid, wait_s=wait_s)
        status = self.status()
        if status.state in (State.RUNNING, State.KILLED):
            Tracker(status, path=self.folder / STATUS).close(State.CANCELLED)

    @property
    def seen(self) -> bool:
        """Whether somebody has seen how it ended."""
        return (self.folder / _SEEN).exists()

    def see(self) -> None:
        """Record that somebody has seen how it ended."""
        (self.folder / _SEEN).touch()


def new_folder(parent: Path) -> Path:
    """Create the folder of new work; of older folders the last twenty stay."""
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
) -> Launch:
    """Start work, or restart it if its folder has ended work.

    Args:
        folder: From `new_folder`, with whatever the process needs.
        command: Arguments after ``python -m core``.
        arguments: Record of how it was started.
    """
    for left in (STATUS, _SEEN):
        (folder / left).unlink(missing_ok=True)
    pid = process.start(command, folder / _PRINTED, environ)
    write_json(folder / _BEGUN, {"pid": pid, "name": name, "arguments": list(arguments)})
    return Launch(folder, name, pid, tuple(arguments))


def jobs(parent: Path) -> list[Launch]:
    """Return the started work, the newest first."""
    return [
        Launch(folder, str(begun["name"]), int(begun["pid"]), tuple(begun["arguments"]))
        for folder in _folders(parent)
        if (begun := read_json(folder / _BEGUN)) is not None
    ]


def _folders(parent: Path) -> list[Path]:
    return sorted(parent.iterdir(), reverse=True) if parent.is_dir() else []
