"""A Streamlit server in a process of its own, and the browser that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.paths import ROOT
from tests import warm

APP = ROOT / "app.py"
CHROMIUM_ARGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_START_S = 120.0
_STOP_S = 10.0


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        url: Its address, without a slash at the end.
        log: File that collects what it prints.
        pid: Its process.
    """

    url: str
    log: Path
    pid: int


def find_chromium() -> str | None:
    """The Chromium to drive: ``CHROMIUM`` of the environment, else the first one installed."""
    named = os.environ.get("CHROMIUM")
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return named or next((path for path in found if path), None)


@contextmanager
def serve(log: Path, *, port: int = 0, **environment: str) -> Iterator[Server]:
    """Run the dashboard until the block ends, forked from a process that has imported everything.

    Args:
        log: File that takes its output.
        port: Where it listens; 0 = where nobody else does.
        environment: Variables to set for it, such as ``CLQ_STORE``.

    Raises:
        RuntimeError: If it ends or stays silent instead of answering; the message carries its output.
    """
    port = port or free_port()
    log.touch()
    process = warm.process(_served, port, {**os.environ, **environment}, log)
    try:
        yield answering(port, log, process.pid or 0, process.is_alive)
    finally:
        process.terminate()
        process.join(_STOP_S)
        process.kill()
        process.join()


def _served(port: int, environ: Mapping[str, str], log: Path) -> None:
    from streamlit.web.cli import main

    warm.become(environ, log, log)
    sys.argv = ["streamlit", "run", str(APP), "--server.port", str(port)]
    main(prog_name="streamlit")


@contextmanager
def serve_cold(log: Path, *, app: Path = APP, files: int = 0, **environment: str) -> Iterator[Server]:
    """Run an app until the block ends, by a command.

    Args:
        log: File that takes its output.
        app: The script.
        files: The most files that it may have open; 0 for what is usual.
        environment: Variables to set for it, such as ``CLQ_STORE``.

    Raises:
        RuntimeError: If it ends or stays silent instead of answering; the message carries its output.
    """
    port = free_port()
    limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
    command = [*limit, sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)]
    with _running(command, port, log, environment) as server:
        yield server


@contextmanager
def serve_many(log: Path, store: Path, processes: int) -> Iterator[Server]:
    """Run the dashboard by several processes until the block ends; see `serve_cold`."""
    port = free_port()
    command = [sys.executable, "-m", "core", "--store", str(store), "ui", "--no-browser"]
    command += ["--port", str(port), "--processes", str(processes)]
    with _running(command, port, log, {}) as server:
        yield server


@contextmanager
def _running(command: list[str], port: int, log: Path, environment: Mapping[str, str]) -> Iterator[Server]:
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield answering(port, log, process.pid, lambda: process.poll() is None)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port of this machine that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answering(port: int, log: Path, pid: int, lives: Callable[[], bool]) -> Server:
    """Wait until a server answers.

    Raises:
        RuntimeError: If it ends or stays silent; the message carries its output.
    """
    server = Server(f"http://localhost:{port}", log, pid)
    end = time.monotonic() + _START_S
    while time.monotonic() < end and lives():
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2) as answer:  # noqa: S310
                if answer.status == 200:
                    return server
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"The server did not start:\n{server.log.read_text()}")
