"""Processes forked from one that has imported everything: real ones, to be killed, that begin at once."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.paths import ROOT

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.imported"])


def process(target: Callable[..., object], *arguments: object) -> multiprocessing.context.ForkServerProcess:
    """Start a function in a process of its own; its server does nothing but fork, and has no threads."""
    started = _CONTEXT.Process(target=target, args=arguments)
    started.start()
    return started


class Child:
    """A function in a process of its own, whose output is kept; used as `subprocess.Popen` is."""

    def __init__(self, environ: Mapping[str, str], does: Callable[..., object], *arguments: object) -> None:
        self._told = [Path(tempfile.mkstemp(suffix=f"-{kind}")[1]) for kind in ("out", "err")]
        self._process = process(_child, dict(environ), self._told, does, arguments)
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, a signal as a negative number; None = it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code."""
        return self.returncode

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def communicate(self) -> tuple[str, str]:
        """Wait for its end; what it printed, and what it said on standard error."""
        self._process.join()
        printed, said = (path.read_text() for path in self._told)
        for path in self._told:
            path.unlink()
        return printed, said


def command(arguments: Sequence[str], environ: Mapping[str, str], folder: Path = ROOT) -> Child:
    """Start `python -m core …` in a folder."""
    return Child(environ, _command, list(arguments), folder)


def _command(arguments: list[str], folder: Path) -> None:
    from core.cli.app import app

    os.chdir(folder)
    sys.argv = ["python -m core", *arguments]
    app(prog_name="python -m core")


def _child(
    environ: Mapping[str, str], told: list[Path], does: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    become(environ, *told)
    does(*arguments)


def become(environ: Mapping[str, str], out: Path, err: Path) -> None:
    """In a forked process: be as one that was started with this environment and these files."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    for number, path in enumerate((Path(os.devnull), out, err)):
        os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), number)
