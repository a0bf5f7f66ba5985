"""Pages are computed in turns, which nobody can keep for long; short messages leave at once."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.paths import ROOT
from core.ui.serving import Imports, Turns, everything, send_at_once

LONG_S = 3600.0


def test_turns_come_one_after_another() -> None:
    turns = Turns(LONG_S)
    under_way, most, done = 0, 0, []
    guard = threading.Lock()

    def page(number: int) -> None:
        nonlocal under_way, most
        with turns.take():
            with guard:
                under_way += 1
                most = max(most, under_way)
            threading.Event().wait(0.001)
            with guard:
                under_way -= 1
                done.append(number)

    with ThreadPoolExecutor(20) as visitors:
        list(visitors.map(page, range(200)))
    assert most == 1
    assert sorted(done) == list(range(200))


def test_who_takes_too_long_goes_on_beside_the_next() -> None:
    turns = Turns(0.05)
    left = threading.Event()
    with ThreadPoolExecutor(3) as visitors:

        def slow() -> None:
            with turns.take():
                assert left.wait(30)

        def quick() -> str:
            with turns.take():
                return "drawn"

        waiting = visitors.submit(slow)
        assert [visitors.submit(quick).result(30) for _ in range(3)] == ["drawn"] * 3
        assert not waiting.done()
        left.set()
        waiting.result(30)
        assert visitors.submit(quick).result(30) == "drawn"


def test_imports_let_visitors_go_before_and_wait_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    imports, arrived = Imports(), threading.Event()
    seen: list[str] = []

    def imported(name: str) -> None:
        seen.append(name)
        if name == "a":
            arrived.set()
            while not imports._waiting:
                threading.Event().wait(0.001)

    monkeypatch.setattr("core.ui.serving.importlib.import_module", imported)
    with imports.halted():
        pass  # nothing is imported yet: nobody waits
    thread = imports.begin(["a", "b"])
    assert arrived.wait(30)
    with imports.halted():
        seen.append("visitor")
        threading.Event().wait(0.01)
        seen.append("visitor")
    thread.join(30)
    assert seen == ["core.ui.serving", "a", "visitor", "visitor", "b"]


def test_pages_do_not_wait_for_a_module_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Imports()
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: said.append(given.exc_type))
    imports.begin(["no_such_module_anywhere"]).join(30)
    with imports.halted():
        assert said == [ModuleNotFoundError]


def test_everything_names_modules_once_and_the_frame_first() -> None:
    names = list(everything())
    assert names[0] == "core.ui.shell"
    assert {"core.views.pages", "core.ui.access", "plotly.graph_objects"} <= set(names)


def test_a_page_that_fails_passes_the_turn_on() -> None:
    turns = Turns(LONG_S)
    with pytest.raises(ZeroDivisionError), turns.take():
        raise ZeroDivisionError
    with turns.take():
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="handles are not files there")
def test_connections_send_at_once() -> None:
    with socket.socket(socket.AF_INET) as listening:  # as Streamlit binds it
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        send_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


_THREADS = """
from pathlib import Path
import tests.imported
print([name for task in Path("/proc/self/task").glob("*/comm")
       if (name := task.read_text().strip()).removeprefix("polars-").isdigit()])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="threads are read from /proc")
def test_imports_compute_nothing() -> None:
    """A process forked after them would wait for ever for Polars' threads, which it does not have."""
    told = subprocess.run(
        [sys.executable, "-c", _THREADS], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert told.stdout == "[]\n"
