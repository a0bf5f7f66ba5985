"""Progress of an import: a bar on a terminal, and a small file for the dashboard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from core.errors import ClqError, refusal
from core.importers import Import, Progress
from core.jobs import State, Status, Tracker, asked_to_stop
from core.views.add.changed import ChangedError
from core.views.add.imports import came, collection_of
from core.views.add.words import summary


class Teller:
    """Told how far an import is; keeps it to itself."""

    def __call__(self, now: Progress) -> None:
        """It got further."""

    def done(self, made: Import, *, fresh: bool, sentence: str) -> None:
        """It ended well."""

    def failed(self, error: BaseException) -> None:
        """It ended with an error, or was cancelled."""


class OnTerminal(Teller):
    """A bar with bytes and rows."""

    def __init__(self, shown: Bar) -> None:
        self._shown = shown
        self._task = shown.add_task("reading", total=None, rows=0)

    def __call__(self, now: Progress) -> None:
        """Move the bar; what comes after reading has no known end."""
        total = now.total if now.stage == "reading" else None
        self._shown.update(self._task, description=now.stage, completed=now.read, total=total, rows=now.rows)


class InFile(Teller):
    """Tells by the state file that the dashboard reads."""

    def __init__(self, tracker: Tracker[Status]) -> None:
        self._tracker = tracker

    def __call__(self, now: Progress) -> None:
        """Tell the stage, and the bytes and rows so far unless that was done a moment ago."""
        if now.stage != self._tracker.status.stage:
            self._tracker.begin(now.stage, now.stage)
        self._tracker.within(now.read, now.total, "bytes", facts={"rows": now.rows})

    def done(self, made: Import, *, fresh: bool, sentence: str) -> None:
        """Tell what was taken."""
        facts = {"fresh": fresh, "more": summary(made), "collection": collection_of(made), "came": came(made)}
        self._tracker.close(State.FINISHED, sentence, facts=facts)

    def failed(self, error: BaseException) -> None:
        """Tell why, in words that a user can read."""
        if isinstance(error, KeyboardInterrupt):
            self._tracker.close(State.CANCELLED, "Cancelled; the store is as it was.")
            return
        changed = [str(each) for each in error.changes] if isinstance(error, ChangedError) else []
        said = error if isinstance(error, ClqError) else refusal(error)
        words = str(said or f"It failed: {type(error).__name__}. Nothing was written.")
        self._tracker.close(State.FAILED, words, facts={"changed": changed})


@contextmanager
def reporting(status: Path | None, name: str) -> Iterator[Teller]:
    """Tell how far an import is: in a file, on a terminal, or nobody where standard error is none."""
    if status is not None:
        teller = InFile(Tracker(Status(name=name), path=status))
        with asked_to_stop(_interrupt):
            try:
                yield teller
            except BaseException as error:
                teller.failed(error)
                raise
    elif sys.stderr.isatty():
        rows, left = TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), rows, left)
        with Bar(*columns, console=Console(stderr=True), transient=True) as shown:
            yield OnTerminal(shown)
    else:
        yield Teller()


def _interrupt() -> None:
    """A request to end is answered as Ctrl-C is: what was begun is undone."""
    raise KeyboardInterrupt
