"""Paid work of one kind: how it is asked for, planned, begun, done into a store, resumed and put in words.

No dashboard that is reloaded or closed ends a process. Each leaves "<folder>/launched/<nanoseconds>" with its
specification, its process and what that printed; it writes its number into the status of its work, so that
one finds the other.
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
class Known:
    """Work that was begun, from here or elsewhere."""

    name: str  # Name of its folder; of a process that has not got that far, of its launch
    status: Status  # How far it is
    folder: Folder | None  # Its folder; None when it ended, or still is, before having one

    def cancel(self) -> None:
        """Ask it to stop; what has finished stays, and it can be resumed."""
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
        """Return what it names, and what its owner should know; refuse what cannot work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[J, P, R]):
    """Kind of paid work."""

    noun: str  # What one is called: "evaluation"
    kept: str  # What becomes of one that is interrupted
    folder: str  # Of all such work, beside the store
    begins: tuple[str, ...]  # The command that begins one unasked, without its specification
    resumes: tuple[str, ...]  # The command that lets one go on, without its name
    model: type[BaseModel]  # Its specification

    read: Read[J]  # What a specification names
    plan: Callable[[J, Sequence[Problem]], P]  # What it takes; spends nothing
    run: Callable[[Store, J, Site], R]  # Do it, or what is left of it, and land what it yields

    size_of: Callable[[P], str]  # What will be done, in words
    costs: Callable[[P], str]  # What that costs, in words; empty where `size_of` says it
    button: Callable[[P], str]  # Names the button that begins one
    lands: bool = True  # Whether what it yields stands in the store, in its collection
    progress: Callable[[Status], str] = paid.progress  # How far one is, in words
    ended: Callable[[Status], str]  # How one ended, in words
    table: Callable[[Sequence[tuple[str, Status]]], pl.DataFrame]  # All of them, by name

    def work_of(self, store: Path) -> Path:
        """Return the folder of all such work whose results go into a store."""
        return store.absolute().parent / self.folder

    def begin(self, text: str, store: Path, options: Sequence[str] = (), *, own: bool = False) -> None:
        """Start one as a process of its own; its paths are relative to the current folder.

        Args:
            store: Where its results go.
            options: Of the command, besides those that it always has.
            own: Whether custom pipelines may run: their code, and requests to their addresses.

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
        whole = store.absolute()
        jobs.begin(launch, name, ["--store", str(whole), *command], arguments=[whole.name])

    def known(self, store: Path) -> list[Known]:
        """Return all that were begun for a store, newest first; a process without a folder begins, or failed.

        Another store in the same folder has its own. Work of an earlier release, which noted no store, counts
        unless what it filled is not here.
        """
        work, name = self.work_of(store), store.absolute().name
        begun = [
            Known(folder.path.name, status, folder)
            for folder in folders(work)
            if (status := folder.status()) is not None
        ]
        pids = {one.status.pid for one in begun}
        early = [
            Known(job.folder.name, _early(job_status), None)
            for job in jobs.jobs(work / _LAUNCHED)
            if job.arguments in ((), (name,))
            if job.pid not in pids and (job_status := job.status()).state is not State.KILLED
        ]
        mine = [one for one in begun if self._fills(store, one.status)]
        return sorted([*early, *mine], key=lambda one: one.status.started_at, reverse=True)

    def _fills(self, store: Path, status: Status) -> bool:
        """Tell whether work was begun for a store; one that was renamed since is known by what it holds."""
        store = store.absolute()
        if store.name in status.stores:
            return True
        if any((store.parent / name).is_dir() for name in status.stores):
            return False
        landed = status.collection_id if status.runs_done and self.lands else ""
        return not landed or landed in _held(store, Store(store).revision())


@lru_cache(16)
def _held(store: Path, revision: int) -> frozenset[str]:
    """Return the collections of a store, deleted ones too."""
    snapshot = Store(store).read(revision)
    return frozenset(
        [*snapshot.collections()["collection_id"], *snapshot.collections(removed=True)["collection_id"]]
    )


def _early(status: jobs.Status) -> Status:
    values = {field.name: getattr(status, field.name) for field in fields(status)}
    return Status(**{**values, "stage": "reading the corpus" if status.state is State.RUNNING else ""})
