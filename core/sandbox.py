"""Run scripts in separate processes with bounds on memory and time, so that no input can end the server.

A script imports nothing from this project, so that it starts at once. The process runs this file first, which
sets the bound and then becomes the script.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LONG_S = 5.0
"""After an answer that took longer, the process ends: it may hold much memory, and a restart is quicker."""


def run_bounded(
    script: Path, *words: str, memory: int, seconds: float, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a script to its end.

    Args:
        script: A Python file with a ``__main__`` part.
        words: Its arguments.
        memory: Bytes of address space that it may use.
        seconds: How long it may take.
        given: Its standard input.

    Raises:
        subprocess.TimeoutExpired: If it takes longer; it is then ended.
    """
    command = _command(script, memory, *words)
    return subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)  # noqa: S603


class Bounded:
    """A script that answers requests, one line of JSON each; its process starts with the first request.

    It ends after being idle for a while, after a slow answer, or with this process, and starts
    again with the next request.

    Args:
        script: A Python file that answers every line of its input with a line.
        memory: Bytes of address space that it may use.
        seconds: How long an answer may take.
        idle_s: Seconds without a request after which it ends.
    """

    def __init__(self, script: Path, *, memory: int, seconds: float, idle_s: float = 30.0) -> None:
        self._command = _command(script, memory)
        self._seconds, self._idle_s = seconds, idle_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._ending: threading.Timer | None = None

    def ask(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer to a request.

        Raises:
            ChildProcessError: If the process ended instead of answering: at its bounds, or by a fault of a
                library; the next request starts a new one.
        """
        with self._lock:
            if self._ending is not None:
                self._ending.cancel()
            process, asked = self._begun(), time.monotonic()
            watch = threading.Timer(self._seconds, process.kill)
            watch.start()
            try:
                line = self._asked(process, json.dumps(request))
            finally:
                watch.cancel()
            if not line.endswith("\n"):
                self._end()
                raise ChildProcessError("It takes more memory or time than is allowed.")
            if time.monotonic() - asked > _LONG_S:
                self._end()
                return dict(json.loads(line))
            self._ending = threading.Timer(self._idle_s, self.close)
            self._ending.daemon = True
            self._ending.start()
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _begun(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(  # noqa: S603 - own script
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self._process

    def _asked(self, process: subprocess.Popen[str], request: str) -> str:
        """Return the line that it answers; without a line end if it ended before."""
        if process.stdin is None or process.stdout is None:
            return ""
        try:
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:
            return ""

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def out_of_memory(ended: subprocess.CompletedProcess[bytes]) -> bool:
    """Return whether a process seems to have ended because it reached its memory bound."""
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    return ended.returncode < 0 or ":" not in last or "MemoryError" in last or "memory allocation" in last


def _command(script: Path, memory: int, *words: str) -> list[str]:
    return [sys.executable, "-I", __file__, str(memory), str(script), *words]


def _bound(most: int) -> None:
    """Bound the memory of this process, if the system supports such a bound."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (OSError, ValueError):  # a system that offers the bound but does not enforce it
        return


if __name__ == "__main__":
    _bound(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
