"""The folder of one evaluation: its specification, its measurements, its spending and its progress."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core import jobs
from core.errors import InputError, UnknownNameError
from core.files import is_locked, locked, transaction
from core.jobs import State, read_status
from core.providers.calls import redact
from core.records import now

__all__ = ["Progress", "State", "Status"]
EVALUATIONS = "evaluations"
ARTIFACTS = "artifacts"
_STAGE = "#"  # Separates a step from its stage
_NAME = re.compile(r"[^\w.-]+")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blocks (
    step TEXT NOT NULL, pass TEXT NOT NULL, ms BLOB NOT NULL, cpu_ms BLOB, waited_ms REAL NOT NULL,
    PRIMARY KEY (step, pass));
CREATE TABLE IF NOT EXISTS places (
    step TEXT NOT NULL, pass TEXT NOT NULL, place BLOB NOT NULL, PRIMARY KEY (step, pass));
CREATE TABLE IF NOT EXISTS rounds (number INTEGER PRIMARY KEY, began TEXT NOT NULL, ended TEXT);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(jobs.JobStatus):
    """Progress of an evaluation."""

    evaluation_id: str = ""  # its identity
    collection_id: str = ""  # the searched collection
    usd: float = 0.0  # dollars spent so far, resumed runs included, as far as prices are known
    usd_limit: float | None = None  # the budget; None = none
    usd_lost: float = 0.0  # maximum dollars of calls whose answers were lost
    calls_again: int = 0  # calls whose answers were lost and that were sent again
    runs_done: int = 0  # stacks whose results are stored
    runs_total: int = 0  # stacks in all
    on: str = ""  # the name of the cluster that does it, if it has one; its address is not recorded
    # Names of the stores beside the folder that it was run into; none = not recorded
    stores: Sequence[str] = field(default_factory=list)


Progress = Callable[[Status], None]  # Told about every unit of work, and once more at the end


class _In:
    """A file in the folder of an evaluation."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: Folder, _: type[Folder]) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class Folder:
    """Paths of one evaluation."""

    path: Path  # the folder, "<name>-<id>"

    @property
    def evaluation_id(self) -> str:
        """The identity of the evaluation: the last part of the folder's name."""
        return self.path.name.rpartition("-")[2]

    spec = _In("spec.json")  # the specification with its defaults filled in, paths absolute, without keys
    manifest = _In("manifest.json")  # all that is needed to repeat it
    journal = _In("journal.sqlite")  # answers of measured paid calls
    receipts = _In("ledger.sqlite")  # spending, call by call
    measured = _In("measured.sqlite")  # measured times
    answers = _In("search.sqlite")  # of a search: what stacks answered, and what was proposed
    search = _In("search.json")  # of a search: the started stacks, and why some were dropped
    study = _In("study.sqlite")  # of a search: Optuna's study
    log = _In("log.txt")  # events with their times, one JSON object per line
    lock = _In("lock")  # held by the process that runs it
    stop = _In("cancel")  # a file that asks the process to stop
    status_file = _In("status.json")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it as the only process, clearing any earlier request to stop."""
        with locked(self.lock) as free:
            if not free:
                words = f"{self.path.name} is running already, in another process."
                raise InputError(words, where=str(self.path), do="Wait for it, or cancel it.")
            self.stop.unlink(missing_ok=True)
            yield

    def status(self) -> Status | None:
        """Return the progress, or None if it never started."""
        return read_status(self.status_file, Status, alive=is_locked(self.lock))


def folder_of(work: Path, name: str, evaluation_id: str) -> Folder:
    """Return the folder of an evaluation, which need not exist."""
    readable = _NAME.sub("-", name).strip("-.")[:40].strip("-.") or "evaluation"
    return Folder(work / f"{readable}-{evaluation_id}")


def folders(work: Path) -> list[Folder]:
    """Return all evaluations that were started, newest first."""
    begun = [Folder(path.parent) for path in work.glob("*/spec.json")] if work.is_dir() else []
    return sorted(begun, key=lambda folder: folder.spec.stat().st_mtime, reverse=True)


def find(work: Path, name: str, kind: str = "evaluation") -> Folder:
    """Return the evaluation with a name.

    Args:
        name: Its identity, the name of its folder, or the beginning of that name if only one has it.
        kind: What messages call an evaluation.

    Raises:
        UnknownNameError: If there is none.
        InputError: If there are several.
    """
    known = folders(work)
    exact = [folder for folder in known if name in (folder.path.name, folder.evaluation_id)]
    matches = exact or [folder for folder in known if folder.path.name.rpartition("-")[0] == name]
    if not matches:
        raise UnknownNameError(kind, name, (folder.path.name for folder in known))
    if len(matches) > 1:
        listed = ", ".join(folder.path.name for folder in matches[:5])
        raise InputError(f"{len(matches)} {kind}s are called {name!r}: {listed}.", do="Name one by its id.")
    return matches[0]


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of one step in one pass over the queries."""

    ms: NDArray[np.float64]  # float64 [queries], milliseconds of the step itself
    cpu_ms: NDArray[np.float64] | None  # float64 [queries], milliseconds of processor time here
    waited_ms: float = 0.0  # milliseconds that all queries together waited
    place: NDArray[np.int32] | None = None  # [queries], position in the order asked, from 1; None = unknown


class Measurements:
    """Measured times, stored block by block: one step, one pass, all queries."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)

    def get(self, step: str, of: str) -> StepTimes | None:
        """Return the times of a step in a pass, or None if it was not measured."""
        row = self._db.execute(
            "SELECT ms, cpu_ms, waited_ms, place FROM blocks LEFT JOIN places USING (step, pass)"
            " WHERE step = ? AND pass = ?",
            (step, of),
        ).fetchone()
        if row is None:
            return None
        ms, cpu_ms = (None if blob is None else np.frombuffer(blob, dtype=np.float64) for blob in row[:2])
        place = None if row[3] is None else np.frombuffer(row[3], dtype=np.int32)
        return None if ms is None else StepTimes(ms, cpu_ms, float(row[2]), place)

    def put(
        self, step: str, of: str, block: StepTimes, parts: Mapping[str, StepTimes] = MappingProxyType({})
    ) -> None:
        """Write a block and the blocks of its stages, all or none."""
        named = {step: block, **{f"{step}{_STAGE}{stage}": part for stage, part in parts.items()}}
        rows = [
            (
                name,
                of,
                times.ms.tobytes(),
                times.cpu_ms if times.cpu_ms is None else times.cpu_ms.tobytes(),
                times.waited_ms,
            )
            for name, times in named.items()
        ]
        with transaction(self._db):
            self._db.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", rows)
            if block.place is not None:
                placed = (step, of, block.place.tobytes())
                self._db.execute("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", placed)

    def parts(self, step: str, of: str) -> dict[str, StepTimes]:
        """Return the times of a step's stages in a pass, by stage."""
        rows = self._db.execute(
            "SELECT step, ms FROM blocks WHERE pass = ? AND substr(step, 1, ?) = ? ORDER BY rowid",
            (of, len(step) + 1, f"{step}{_STAGE}"),
        )
        return {
            name[len(step) + 1 :]: StepTimes(np.frombuffer(ms, dtype=np.float64), None) for name, ms in rows
        }

    def begin_round(self, number: int, at: datetime) -> None:
        """Note when a round began, unless that is noted already."""
        self._db.execute(
            "INSERT OR IGNORE INTO rounds (number, began) VALUES (?, ?)", (number, at.isoformat())
        )

    def end_round(self, number: int, at: datetime) -> None:
        """Note when a round ended, unless that is noted already."""
        self._db.execute(
            "UPDATE rounds SET ended = ? WHERE number = ? AND ended IS NULL", (at.isoformat(), number)
        )

    def rounds(self) -> dict[int, tuple[datetime, datetime | None]]:
        """Return the begin and end times of the rounds that began."""
        return {
            number: (datetime.fromisoformat(began), datetime.fromisoformat(ended) if ended else None)
            for number, began, ended in self._db.execute("SELECT * FROM rounds ORDER BY number")
        }

    def close(self) -> None:
        """Release the file."""
        self._db.close()


class Log:
    """Appends to a file; when `write` returns, the line has been handed to the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, **facts: object) -> None:
        """Append a line with the time, the event, and facts about it (JSON)."""
        line = json.dumps({"at": now().isoformat(), "event": event, **facts}, ensure_ascii=False, default=str)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(redact(line) + "\n")
