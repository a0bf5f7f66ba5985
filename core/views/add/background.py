"""Imports as processes of their own: they can be watched and cancelled, and a closed dashboard ends none.

Each leaves ``imports/<nanoseconds>`` beside the store with its files, how far it is and what it printed. A
process that is killed has changed nothing: what it wrote becomes part of the store in one step at its end.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import InputError
from core.importers import Offered, Options
from core.pipeline import child
from core.views.add.changed import Choice
from core.views.add.matching import Unmatched

_FOLDER, _STATUS, _SEEN, _PRINTED, _KEPT = "imports", "status.json", "seen", "printed.txt", 20


@dataclass(frozen=True, slots=True)
class Job:
    """An import that was begun.

    Attributes:
        folder: Its folder.
        name: What is imported, in words.
        state: "running", "done", "failed" or "cancelled".
        facts: What it told last: stage, read, total, rows; at the end said, more, collection, changed.
        arguments: How it was begun, without a decision about changed things.
    """

    folder: Path
    name: str
    state: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


def begin(
    store: Path,
    offered: Sequence[Offered],
    options: Options,
    choice: Choice | None = None,
    *,
    workspace: str | None = None,
    unmatched: Unmatched = "refuse",
) -> Job:
    """Start an import.

    Args:
        store: Where to.
        offered: Paths, or uploads, which are written down for the process.
        options: The user's decisions.
        choice: What to do with things that are there with other content.
        workspace: The collection that is open; see `core.views.add.imports.read_into`.
        unmatched: What to do with what names nothing that its collection has.

    Raises:
        InputError: The folder beside the store cannot be written.
    """
    folder = _new(store)
    try:
        paths = [_placed(each, folder / "files" / str(place)) for place, each in enumerate(offered)]
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"The upload cannot be written down: {error}.", where=str(folder)) from error
    more = [f"--unmatched={unmatched}", *([f"--workspace={workspace}"] if workspace else [])]
    return _start(folder, store, [*map(str, paths), *_flags(options), *more], choice)


def again(job: Job, store: Path, choice: Choice) -> Job:
    """Start an import that was refused once more, with a decision about changed things."""
    return _start(job.folder, store, job.arguments, choice)


def look(job: Job) -> Job:
    """How far an import is now."""
    facts = _read(job.folder / _STATUS)
    told = json.loads((job.folder / "job.json").read_text(encoding="utf-8"))
    state = str(facts.get("state", "running"))
    if state == "running" and child.ended(int(told["pid"])):
        # It may have told its end since.
        facts = _read(job.folder / _STATUS)
        state = str(facts.get("state", "running"))
        if state == "running":
            state, facts = (
                "failed",
                {"said": child.last_words(job.folder / _PRINTED) or "The process ended early."},
            )
    if state not in ("running", "failed"):
        shutil.rmtree(job.folder / "files", ignore_errors=True)
    return Job(job.folder, str(told["name"]), state, facts, tuple(told["arguments"]))


def cancel(job: Job) -> Job:
    """End an import; the store is as it was."""
    child.stop(int(_read(job.folder / "job.json")["pid"]), wait_s=5)
    shutil.rmtree(job.folder / "scratch", ignore_errors=True)
    if _read(job.folder / _STATUS).get("state", "running") == "running":
        (job.folder / _STATUS).write_text(json.dumps({"state": "cancelled"}), encoding="utf-8")
    return look(job)


def open_jobs(store: Path) -> list[Job]:
    """Imports that run, or that ended without anybody having seen how; the newest first."""
    folders = [each for each in _folders(store) if (each / "job.json").is_file()]
    return [look(Job(each, "", "running")) for each in folders if not (each / _SEEN).exists()]


def see(job: Job) -> None:
    """Note that somebody has seen how an import ended, and forget what was uploaded for it."""
    shutil.rmtree(job.folder / "files", ignore_errors=True)
    (job.folder / _SEEN).touch()


def _flags(options: Options) -> list[str]:
    given = {
        "--as": options.format,
        "--label": options.label,
        "--collection": options.collection_id,
        "--golden-set": options.golden_set_id,
        "--grades": options.grades,
        "--split": options.split,
        "--sheet": options.sheet,
        "--row": options.row,
    }
    flags = [f"{name}={value}" for name, value in given.items() if value]
    flags += ["--all-tasks"] * options.all_tasks
    flags += [f"--skip={name}" for name in sorted(options.skip)]
    flags += [f"--strip={what}={pattern}" for what, pattern in options.strip.items()]
    flags += [f"--without={name}" for name in sorted(options.without)]
    return [*flags, *(f"--column={role}={name}" for role, name in options.columns.items())]


def _placed(item: Offered, folder: Path) -> Path:
    """The path of what was offered; an upload is written to a file of its name."""
    if isinstance(item, str | os.PathLike):
        return Path(item).expanduser().absolute()
    folder.mkdir(parents=True)
    path = folder / (PurePosixPath(item.name.replace("\\", "/")).name.lstrip(".") or "upload")
    path.write_bytes(item.getvalue())
    return path


def _start(folder: Path, store: Path, arguments: Sequence[str], choice: Choice | None) -> Job:
    for left in (_STATUS, _SEEN):
        (folder / left).unlink(missing_ok=True)
    (folder / "scratch").mkdir(exist_ok=True)
    decided = [f"--if-changed={choice}"] if choice else []
    command = ["--store", str(store), "import", *arguments, *decided, "--status", str(folder / _STATUS)]
    pid = child.start(command, folder / _PRINTED, {"TMPDIR": str(folder / "scratch")})
    name = ", ".join(Path(each).name for each in arguments if not each.startswith("--"))[:200]
    job = {"pid": pid, "name": name, "arguments": list(arguments)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return Job(folder, name, "running", {}, tuple(arguments))


def _new(store: Path) -> Path:
    for old in _folders(store)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    made = store.absolute().parent / _FOLDER / str(time.time_ns())
    made.mkdir(parents=True)
    return made


def _folders(store: Path) -> list[Path]:
    parent = store.absolute().parent / _FOLDER
    return sorted(parent.iterdir(), reverse=True) if parent.is_dir() else []


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
