"""How one process serves many visitors: imports, open files, sockets, and whose turn it is."""

from __future__ import annotations

import importlib
import os
import pkgutil
import socket
import stat
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

import streamlit as st
from PIL import Image
from streamlit import runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager

from core.extras import installed
from core.plugins import own_modules
from core.ui.address.reads import read_one_by_one
from core.ui.delivery import deliver_together
from core.ui.garbage import Garbage
from core.ui.moves import run_alone

_PACKAGES = ("core.ui", "core.views", "core.pipeline.sweep")
_LIBRARIES = (
    *(
        "pandas",
        "pandas.io.formats.style",
        "pyarrow.pandas_compat",
        "pyarrow.vendored.version",
        "narwhals._interchange.dataframe",
    ),
    *("plotly.graph_objects", "plotly.io._utils", "plotly.offline"),
    *("streamlit.dataframe.lazy_df_adapters", "streamlit.material_icon_names"),
    *("scipy.stats", "scipy.optimize", "scipy.signal", "sklearn.mixture", "kneed"),
)
"""Modules that pages would import only as they run."""
_MANY = 65_536
_OWN_HANDLES = 128
_LEAST, _MOST = 4, 128
_EACH = 8
_PATIENCE_S = 1.0  # Seconds that imports give way to visitors


def everything() -> Iterator[str]:
    """Yield the names of all modules that a page may need, the frame's first: seconds in total."""
    yield "core.ui.shell"
    yield from (name for name in _LIBRARIES if installed(name.partition(".")[0]))
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            yield module.name
    yield from own_modules("clq.sections")


def import_everything() -> None:
    """Import everything that a page may need, in this thread."""
    for name in everything():
        importlib.import_module(name)


class Imports:
    """Imports modules in a separate thread, one after another, and gives way to visitors.

    Libraries with cyclic imports are exposed half imported if two threads import them at
    once. So scripts and imports alternate until everything is loaded, hidden by a browser's first second.
    """

    def __init__(self) -> None:
        self._free = Condition()
        self._busy, self._waiting, self._done = False, 0, True

    def begin(self, names: Iterable[str], then: Callable[[], object] = lambda: None) -> Thread:
        """Start importing modules; the thread ends when all are loaded or one has failed, after `then`."""
        self._done = False
        thread = Thread(target=self._run, args=(iter(names), then), name="imports", daemon=True)
        thread.start()
        return thread

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Pause the imports while the block runs, and block other scripts' imports."""
        if self._done:
            yield
            return
        with self._free:
            self._waiting += 1
            self._free.wait_for(lambda: not self._busy)
            self._waiting -= 1
            self._busy = True
        try:
            yield
        finally:
            self._leave()

    def _run(self, names: Iterator[str], then: Callable[[], object]) -> None:
        name: str | None = __name__
        try:
            while name is not None:
                with self._free:
                    self._free.wait_for(lambda: not self._waiting, _PATIENCE_S)
                    self._free.wait_for(lambda: not self._busy)
                    self._busy = True
                try:
                    importlib.import_module(name)
                    name = next(names, None)
                finally:
                    self._leave()
        finally:
            self._done = True
            then()

    def _leave(self) -> None:
        with self._free:
            self._busy = False
            self._free.notify_all()


IMPORTS = Imports()
"""The imports of this process."""


@asynccontextmanager
async def ready(_app: st.App) -> AsyncIterator[None]:
    """Start importing everything, and leave finding the pages to `st.navigation`.

    Until a session has run `st.navigation`, Streamlit takes the files in pages/ for pages of the older kind:
    the first visitor of a server would get a deep link without app.py around it.
    """
    PagesManager.uses_pages_directory = False
    Image.preinit()
    IMPORTS.begin(everything(), _imported)
    send_at_once()
    deliver_together()
    read_one_by_one()
    run_alone()
    yield


def _imported() -> None:
    from core.ui.shell import BEHIND  # noqa: PLC0415 - which imports this

    GARBAGE.settle()
    BEHIND.begin()


def send_at_once() -> None:
    """Let connections send a short message without waiting for the previous one to arrive, up to 40 ms.

    Streamlit binds its socket in a way that asyncio doesn't recognise as TCP; options of a listening socket
    apply to its connections.
    """
    for handle in Path("/dev/fd").glob("*"):  # empty if the system has no such folder
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(handle.name)).st_mode):
                with socket.socket(fileno=os.dup(int(handle.name))) as listening:
                    if listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@st.cache_resource(show_spinner=False)
def bound_handles() -> int:
    """Keep departed visitors from exhausting the process's open files.

    Streamlit keeps each of the last 128 for two minutes, with three open files each; at a limit of 256 the
    eighty-fifth visitor was refused, and as nobody could connect any more, none was forgotten either. So the
    limit is raised as far as the system allows, and fewer are kept if it stays low.
    """
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return _MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    spare = _MANY if soft == resource.RLIM_INFINITY else soft - _OWN_HANDLES
    kept = min(_MOST, max(_LEAST, spare // _EACH))
    if kept < _MOST and runtime.exists():
        with suppress(AttributeError):  # another release of Streamlit, with other internals
            manager: Any = runtime.get_instance()._session_mgr
            manager._session_storage = MemorySessionStorage(kept)
    return kept


class Turns:
    """A queue of threads, each of which has the turn until it is done or its time is up.

    Python computes in one thread at a time: twenty pages in parallel, waiting for each other at every
    step of Polars, cost nearly twice the CPU time of twenty in a row, and all are late.

    Args:
        seconds: How long a turn blocks the next one; a longer one continues beside it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._waiting: deque[Condition] = deque()
        self._holder: Condition | None = None
        self._until = 0.0
        self._here, self._left = 0, time.monotonic()  # threads with a turn or waiting; when the last left

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and pass it on at the end."""
        me = Condition(self._lock)
        with self._lock:
            self._here += 1
            self._waiting.append(me)
            while self._waiting[0] is not me or not self._free():
                first = self._waiting[0] is me
                me.wait(max(0.0, self._until - time.monotonic()) if first else None)
            self._waiting.popleft()
            self._holder, self._until = me, time.monotonic() + self._seconds
            self._wake()
        try:
            yield
        finally:
            with self._lock:
                self._here, self._left = self._here - 1, time.monotonic()
                if self._holder is me:
                    self._holder = None
                    self._wake()

    def rest(self, seconds: float) -> None:
        """Wait until nobody has had a turn or waited for one for this long."""
        while (left := self._left + seconds - time.monotonic() if not self._here else seconds) > 0:
            time.sleep(left)

    def _free(self) -> bool:
        return self._holder is None or time.monotonic() >= self._until

    def _wake(self) -> None:
        """Make the first in the queue check again, as it is now first or the turn is free."""
        if self._waiting:
            self._waiting[0].notify()


TURNS = Turns(0.25)
"""The turns of this process's pages."""


@contextmanager
def taking_turns() -> Iterator[None]:
    """Let a page be drawn in its turn, with the imports paused."""
    with IMPORTS.halted(), TURNS.take():
        yield


GARBAGE = Garbage(TURNS.take)
"""The garbage collector of this process."""
