"""Processes of this program: some outlive the page that started them, others share work.

The former are identified by their process ids. After a reboot an id may belong to another process. If
the system shows command lines, a process counts as ours only if it runs this program.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from core.paths import PACKAGE

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_PROGRAM = ("-m", __name__.partition(".")[0])  # our own, whatever its name where it is installed
_OURS = b"\0" + "\0".join(_PROGRAM).encode() + b"\0"
_PRINTED = 2_000
_children: dict[int, subprocess.Popen[bytes]] = {}
Others = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a task for every block, and returns its results in the order of the blocks."""
_EVERY_S = 0.2


def start(arguments: Sequence[str], printed: Path, environ: Mapping[str, str] | None = None) -> int:
    """Start ``python -m core`` with these arguments in a new session, and return its process id."""
    with printed.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            [sys.executable, *_PROGRAM, *arguments],
            cwd=PACKAGE.parent,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    return process.pid


def ended(pid: int) -> bool:
    """Return whether a process started here, or by another dashboard, is gone."""
    child = _children.get(pid)
    if child is not None:
        return child.poll() is not None  # polling also reaps it
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return True  # none, or not one of ours
    try:
        return _OURS not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # a system that does not show command lines


def stop(pid: int, *, wait_s: float = 0.0) -> None:
    """Ask a process to end; a child that has not ended in time is killed (0 = do not wait)."""
    if ended(pid):
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGTERM)
    child = _children.get(pid)
    if child is None or not wait_s:
        return
    try:
        child.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def last_words(printed: Path) -> str:
    """Return a process's last output, starting at its error, or "" if there is none."""
    try:
        text = printed.read_bytes()[-_PRINTED:].decode("utf-8", "replace")
    except OSError:
        return ""
    return text[text.rfind("error:") :].strip() if "error:" in text else ""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(
    task: Callable[[T], R], blocks: Sequence[T], workers: int, gather: Callable[[Iterable[R]], S]
) -> S:
    """Run a task for every block, on several processes if possible.

    Args:
        task: The function; it, its argument and its result can be sent to another process.
        workers: The maximum number of processes, including this one.
        gather: Takes the results, in the order of the blocks.
    """
    workers = min(workers, len(blocks))
    if workers > 1 and _others:
        return gather(_others[-1](task, blocks))
    if workers > 1 and not multiprocessing.current_process().daemon:
        try:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(workers, context, initializer=_end_with_parent) as pool:
                return gather(pool.map(task, blocks))
        except BrokenProcessPool:
            pass  # processes cannot be started here (a script from standard input, a sandbox): one is enough
    return gather(map(task, blocks))


_others: list[Others] = []


@contextmanager
def spread_over(others: Others) -> Iterator[None]:
    """Let another function distribute the work of `spread` while the block runs."""
    _others.append(others)
    try:
        yield
    finally:
        _others.remove(others)


def _end_with_parent() -> None:
    """End a worker when its parent has ended for any reason: it would wait for work forever."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class Stopped(Exception):  # noqa: N818 - it is no error
    """Somebody asked the work to stop."""


class Watch:
    """Looks for requests to stop while the block runs.

    Args:
        asked: Whether the caller wants it to stop.
        file: A file whose existence is also a request.
        interrupt: Ends waits in progress, once somebody asked.
    """

    def __init__(self, asked: Callable[[], bool], file: Path, interrupt: Callable[[], None]) -> None:
        self._asked, self._file, self._interrupt = asked, file, interrupt
        self._stop, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether somebody asked the work to stop."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise `Stopped` if somebody asked the work to stop."""
        if self._stop.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Wait; raise `Stopped` as soon as somebody asks the work to stop."""
        self._stop.wait(max(0.0, seconds))
        self.check()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            if self._asked() or self._file.exists():
                self._stop.set()
                self._interrupt()
                return
            self._over.wait(_EVERY_S)


@contextmanager
def asked_to_stop(then: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that is set when the process is told to end; `then` is also called, and may raise."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def told(_number: int, _frame: FrameType | None) -> None:
        asked.set()
        then()

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, before)
