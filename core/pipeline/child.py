"""Processes of this program that outlive the page that started them, known by their numbers.

After a restart of the machine a number may be another process's. Where the system tells command lines, a
process counts as ours only if it runs this program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from core.paths import ROOT

_PROGRAM = ("-m", "core")
_OURS = b"\0" + "\0".join(_PROGRAM).encode() + b"\0"
_PRINTED = 2_000
_children: dict[int, subprocess.Popen[bytes]] = {}


def start(arguments: Sequence[str], printed: Path, environ: Mapping[str, str] | None = None) -> int:
    """Start the command line in a session of its own.

    Args:
        arguments: What follows ``python -m core``.
        printed: Takes what it prints.
        environ: Variables to set besides those of this process.

    Returns:
        Its number.
    """
    with printed.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            [sys.executable, *_PROGRAM, *arguments],
            cwd=ROOT,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    return process.pid


def ended(pid: int) -> bool:
    """Whether a process that was started here, or by another dashboard, is no longer there."""
    child = _children.get(pid)
    if child is not None:
        return child.poll() is not None  # asking also lets the system forget it
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return True  # none, or not one of ours
    try:
        return _OURS not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # a system that does not tell


def stop(pid: int, *, wait_s: float = 0.0) -> None:
    """Ask a process to end; a child that does not within the time is killed.

    Args:
        pid: Its number.
        wait_s: How long to wait; 0 = not at all, and nothing is killed.
    """
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
    """What a process said last, from its error on; empty where it told none."""
    try:
        text = printed.read_bytes()[-_PRINTED:].decode("utf-8", "replace")
    except OSError:
        return ""
    return text[text.rfind("error:") :].strip() if "error:" in text else ""
