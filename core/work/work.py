"""Paid work of one kind: its specification, plan, start, run into a store, resumption and description.

Reloading or closing a dashboard ends no process. Each leaves "<folder>/launched/<nanoseconds>" with its
specification, its process id and its output; it writes its number into the status of its work, which
links the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import polars as pl
from pydantic import BaseModel

from core import jobs
from core.files import write_json
from core.pipeline.evaluate.folder import Folder, State, Status, folders
from core.pipeline.evaluate.session import Result, Site
from core.pipeline.own.version import refuse_code
from core.pipeline.sweep import load_as
from core.pipeline.sweep.model import SweepSpec
from core.pipeline.sweep.plan import Bill
from core.pipeline.sweep.problems import Problem
from core.prices import PriceBook
from core.store import Snapshot, Store
from core.work import paid

J = TypeVar("J")
J_co = TypeVar("J_co", covariant=True)
P = TypeVar("P", bound=Bill)
R = TypeVar("R", bound=Result)
_LAUNCHED = "launched"


@dataclass(frozen=True, slots=True)
class StartedWork:
    """Work that was started, from here or elsewhere."""

    name: str  # Name of its folder; for a process that has none yet, of its launch
    status: Status  # Its progress
    folder: Folder | None  # Its folder; None if it has none yet, or ended before having one

    def cancel(self) -> None:
        """Ask it to stop; finished parts stay, and it can be resumed."""
        if self.folder is not None:
            self.folder.stop.touch()
        else:
            jobs.stop(self.status.pid)


class Read(Protocol[J_co]):
    """Reads a specification."""

    def __call__(
        self,
        snapshot: Snapshot,
        spec: Any,  # noqa: ANN401 - of the kind's own model
        books: Mapping[str, PriceBook],
        *,
        to_run: bool,
    ) -> tuple[J_co, list[Problem]]:
        """Return the job, and remarks for its owner; refuse what cannot work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[J, P, R]):
    """A kind of paid work."""

    noun: str  # What one item is called: "evaluation"
    kept: str  # What remains of an interrupted one
    folder: str  # For all such work, beside the store
    begins: tuple[str, ...]  # The command that starts one without asking, before its specification
    resumes: tuple[str, ...]  # The command that resumes one, before its name
    model: type[BaseModel]  # Its specification

    read: Read[J]  # Reads a specification
    plan: Callable[[J, Sequence[Problem]], P]  # Estimates its cost; spends nothing
    run: Callable[[Store, J, Site], R]  # Run it, or resume it, and store its results

    size_of: Callable[[P], str]  # Describes the amount of work
    costs: Callable[[P], str]  # Describes its cost; "" if `size_of` includes it
    button: Callable[[P], str]  # Label of the button that starts one
    in_store: bool = True  # Whether its results are in the store, in its collection
    progress: Callable[[Status], str] = paid.progress  # Describes the progress of one
    ended: Callable[[Status], str]  # Describes how one ended
    table: Callable[[Sequence[tuple[str, Status]]], pl.DataFrame]  # A table of all of them, by name

    def work_of(self, store: Path) -> Path:
        """Return the folder of all such work whose results go into a store."""
        return store.absolute().parent / self.folder

    def begin(self, text: str, store: Path, options: Sequence[str] = (), *, own: bool = False) -> None:
        """Start work in a separate process; its paths are relative to the current folder.

        Args:
            store: Store for its results.
            options: Of the command, besides the fixed ones.
            own: Whether custom pipelines may run: their code, and requests to their addresses.

        Raises:
            InputError: If there are custom pipelines and they may not run; nothing was started.
            SpecError: If the text isn't a valid specification; nothing was started.
        """
        read = load_as(self.model, text + "\n")
        if isinstance(read, SweepSpec) and not own:
            refuse_code(read.own, "A specification that is not its user's own")
        spec = read.model_dump(mode="json", exclude_none=True)
        launch = jobs.new_folder(self.work_of(store) / _LAUNCHED)
        write_json(launch / "spec.json", spec)
        self._start(launch, spec["name"], store, (*self.begins, *options, str(launch / "spec.json")))

    def resume(self, one: StartedWork, store: Path) -> None:
        """Resume stopped work where it ran."""
        launch = jobs.new_folder(self.work_of(store) / _LAUNCHED)
        where = ("--on", one.status.on) if one.status.on else ()
        self._start(launch, one.status.name, store, (*self.resumes, one.name, *where))

    def _start(self, launch: Path, name: str, store: Path, command: Sequence[str]) -> None:
        whole = store.absolute()
        jobs.begin(launch, name, ["--store", str(whole), *command], arguments=[whole.name])

    def known(self, store: Path) -> list[StartedWork]:
        """Return all started for a store, newest first; a process without a folder is starting, or failed.

        Another store in the same folder has its own. Work of an earlier release, which noted no store, counts
        unless its target isn't here.
        """
        work, name = self.work_of(store), store.absolute().name
        begun = [
            StartedWork(folder.path.name, status, folder)
            for folder in folders(work)
            if (status := folder.status()) is not None
        ]
        pids = {one.status.pid for one in begun}
        early = [
            StartedWork(job.folder.name, _early(job_status), None)
            for job in jobs.jobs(work / _LAUNCHED)
            if job.arguments in ((), (name,))
            if job.pid not in pids and (job_status := job.status()).state is not State.KILLED
        ]
        mine = [one for one in begun if self._fills(store, one.status)]
        return sorted([*early, *mine], key=lambda one: one.status.started_at, reverse=True)

    def _fills(self, store: Path, status: Status) -> bool:
        """Return whether work was started for a store; if that was renamed, its contents identify it."""
        store = store.absolute()
        if store.name in status.stores:
            return True
        if any((store.parent / name).is_dir() for name in status.stores):
            return False
        stored = status.collection_id if status.runs_done and self.in_store else ""
        return not stored or stored in _held(store, Store(store).revision())


@lru_cache(16)
def _held(store: Path, revision: int) -> frozenset[str]:
    """Return the collections of a store, including deleted ones."""
    snapshot = Store(store).read(revision)
    return frozenset(
        [*snapshot.collections()["collection_id"], *snapshot.collections(removed=True)["collection_id"]]
    )


def _early(status: jobs.JobStatus) -> Status:
    values = {field.name: getattr(status, field.name) for field in fields(status)}
    return Status(**{**values, "stage": "reading the corpus" if status.state is State.RUNNING else ""})
