"""Evaluations as processes of their own, so that a dashboard that is reloaded or closed does not end them.

Each leaves "<evaluations>/launched/<nanoseconds>" with its specification, its process and what that printed.
A process writes its number into the status of its evaluation, so that one finds the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.files import read_json, write_json
from core.pipeline import child
from core.pipeline.evaluate.folder import EVALUATIONS, Folder, folders
from core.pipeline.evaluate.status import State, Status
from core.pipeline.sweep import load

_LAUNCHED = "launched"
_KEPT = 20
_PRINTED = "printed.txt"


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
    launch = _new(store)
    write_json(launch / "spec.json", spec.model_dump(mode="json", exclude_none=True))
    _start(launch, spec.name, store, ["run", "--yes", str(launch / "spec.json")])


def resume(known: Known, store: Path) -> None:
    """Let an evaluation that was stopped go on."""
    _start(_new(store), known.status.name, store, ["resume", known.name])


def cancel(known: Known) -> None:
    """Ask an evaluation to stop; what has finished stays, and it can be resumed."""
    if known.folder is not None:
        known.folder.stop.touch()
    else:
        child.stop(known.status.pid)


def known(store: Path) -> list[Known]:
    """Every evaluation of a store, newest first."""
    work = work_of(store)
    found = [
        Known(each.path.name, status, each) for each in folders(work) if (status := each.status()) is not None
    ]
    pids = {each.status.pid for each in found}
    early = [
        each for path in _launches(work) if (each := _early(path)) is not None and each.status.pid not in pids
    ]
    return sorted([*early, *found], key=lambda each: each.status.started_at, reverse=True)


def _new(store: Path) -> Path:
    work = work_of(store) / _LAUNCHED
    for old in _launches(work.parent)[_KEPT:]:
        for file in old.iterdir():
            file.unlink(missing_ok=True)
        old.rmdir()
    made = work / str(time.time_ns())
    made.mkdir(parents=True)
    return made


def _launches(work: Path) -> list[Path]:
    parent = work / _LAUNCHED
    return sorted(parent.iterdir(), reverse=True) if parent.is_dir() else []


def _start(launch: Path, name: str, store: Path, arguments: Sequence[str]) -> None:
    pid = child.start(["--store", str(store.absolute()), *arguments], launch / _PRINTED)
    write_json(launch / "process.json", {"pid": pid, "name": name})


def _early(launch: Path) -> Known | None:
    """A process that has no evaluation yet: it begins, or it failed before; None once it ended well."""
    told = read_json(launch / "process.json")
    if told is None:
        return None
    began = datetime.fromtimestamp(int(launch.name) / 1e9, tz=UTC)
    status = Status(
        evaluation_id="",
        name=str(told["name"]),
        stage="reading the corpus",
        pid=int(told["pid"]),
        started_at=began,
        updated_at=began,
    )
    if not child.ended(status.pid):
        return Known(launch.name, status, None)
    words = child.last_words(launch / _PRINTED)
    if not words:
        return None
    failed = Status(
        evaluation_id="",
        name=status.name,
        state=State.FAILED,
        pid=status.pid,
        started_at=began,
        updated_at=began,
        message=words,
    )
    return Known(launch.name, failed, None)
