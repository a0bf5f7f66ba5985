"""Imports as processes of their own: they can be watched and cancelled, and a closed dashboard ends none.

Each leaves ``imports/<nanoseconds>`` beside the store with its files, how far it is and what it printed. A
process that is killed has changed nothing: what it wrote becomes part of the store in one step at its end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from core import jobs
from core.errors import InputError
from core.importers import Offered, Options
from core.jobs import Job, State, Status
from core.jobs.job import STATUS
from core.views.add.changed import Choice
from core.views.add.matching import Unmatched

_FOLDER, _SCRATCH, _FILES = "imports", "scratch", "files"


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
        offered: Paths, or uploads, which are written down for the process.
        choice: What to do with things that are there with other content.
        workspace: The collection that is open; see `core.views.add.imports.read_into`.
        unmatched: What to do with what names nothing that its collection has.

    Raises:
        InputError: The folder beside the store cannot be written.
    """
    folder = jobs.new_folder(store.absolute().parent / _FOLDER)
    try:
        paths = [_placed(each, folder / _FILES / str(place)) for place, each in enumerate(offered)]
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"The upload cannot be written down: {error}.", where=str(folder)) from error
    more = [f"--unmatched={unmatched}", *([f"--workspace={workspace}"] if workspace else [])]
    return _start(folder, store, [*map(str, paths), *_flags(options), *more], choice)


def again(job: Job, store: Path, choice: Choice) -> Job:
    """Start an import that was refused once more, with a decision about changed things."""
    return _start(job.folder, store, job.arguments, choice)


def look(job: Job) -> Status:
    """How far an import is now; what was uploaded for one that is over and was not refused is forgotten."""
    status = job.status()
    if status.state in (State.FINISHED, State.CANCELLED):
        _forget(job, _FILES)
    return status


def cancel(job: Job) -> None:
    """End an import; the store is as it was."""
    job.cancel(wait_s=5)
    _forget(job, _SCRATCH)
    _forget(job, _FILES)


def open_jobs(store: Path) -> list[Job]:
    """Imports that run, or that ended without anybody having seen how; the newest first."""
    return [each for each in jobs.jobs(store.absolute().parent / _FOLDER) if not each.seen]


def see(job: Job) -> None:
    """Note that somebody has seen how an import ended, and forget what was uploaded for it."""
    _forget(job, _FILES)
    job.see()


def _forget(job: Job, part: str) -> None:
    shutil.rmtree(job.folder / part, ignore_errors=True)


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
    (folder / _SCRATCH).mkdir(exist_ok=True)
    decided = [f"--if-changed={choice}"] if choice else []
    command = ["--store", str(store), "import", *arguments, *decided, "--status", str(folder / STATUS)]
    name = ", ".join(Path(each).name for each in arguments if not each.startswith("--"))[:200]
    scratch = {"TMPDIR": str(folder / _SCRATCH)}
    return jobs.begin(folder, name, command, arguments=arguments, environ=scratch)
