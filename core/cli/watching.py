"""Progress of an import: a bar on a terminal, and a small file for the dashboard."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from core.errors import ClqError, refusal
from core.importers import Import, Progress
from core.views.add.changed import ChangedError
from core.views.add.imports import came, collection_of, summary

_EVERY_S = 0.2


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
    """Writes it into a file that the dashboard reads.

    Args:
        path: The file; always whole, for it is written beside and moved.
        clock: Seconds that only go forward.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._last, self._stage = -_EVERY_S, ""

    def __call__(self, now: Progress) -> None:
        """Write it down, unless that was done a moment ago."""
        if now.stage == self._stage and self._clock() - self._last < _EVERY_S:
            return
        self._last, self._stage = self._clock(), now.stage
        self._write(state="running", stage=now.stage, read=now.read, total=now.total, rows=now.rows)

    def done(self, made: Import, *, fresh: bool, sentence: str) -> None:
        """Write down what was taken."""
        words = summary(made)
        self._write(
            state="done",
            fresh=fresh,
            said=sentence,
            more=words,
            collection=collection_of(made),
            came=came(made),
        )

    def failed(self, error: BaseException) -> None:
        """Write down why, in words that a user can read."""
        if isinstance(error, KeyboardInterrupt):
            self._write(state="cancelled", said="Cancelled; the store is as it was.")
        elif isinstance(error, ClqError):
            changed = [str(each) for each in error.changes] if isinstance(error, ChangedError) else []
            self._write(state="failed", said=str(error), changed=changed)
        else:
            said = refusal(error) or f"It failed: {type(error).__name__}. Nothing was written."
            self._write(state="failed", said=str(said))

    def _write(self, **facts: Any) -> None:  # noqa: ANN401
        beside = self._path.with_suffix(".new")
        with suppress(OSError):  # a disk that is full must not end an import that goes elsewhere
            beside.write_text(json.dumps(facts), encoding="utf-8")
            beside.replace(self._path)


@contextmanager
def reporting(status: Path | None) -> Iterator[Teller]:
    """Tell how far an import is: in a file, on a terminal, or nobody where standard error is none."""
    if status is not None:
        signal.signal(signal.SIGTERM, _interrupt)
        teller = InFile(status)
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


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signals are told
    """A request to end is answered as Ctrl-C is: what was begun is undone."""
    raise KeyboardInterrupt
