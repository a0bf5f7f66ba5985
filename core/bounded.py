"""Runs a script in a process of its own, with bounds on memory and time: what it works on ends no server.

The script imports nothing of this project, so that it begins at once. This file is also what the process
runs first: it sets the bound, then becomes the script.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path


def run_bounded(
    script: Path, *words: str, memory: int, seconds: float, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a script to its end.

    Args:
        script: A Python file with a ``__main__`` part.
        words: Its arguments.
        memory: Bytes of address space that it may take.
        seconds: How long it may take.
        given: Its standard input.

    Raises:
        subprocess.TimeoutExpired: If it takes longer; it is ended then.
    """
    command = [sys.executable, "-I", __file__, str(memory), str(script), *words]
    return subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)  # noqa: S603


def out_of_memory(ended: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether a process seems to have ended because it may take no more memory."""
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    return ended.returncode < 0 or ":" not in last or "MemoryError" in last or "memory allocation" in last


def _bound(most: int) -> None:
    """Bound the memory of this process; where the system knows no such bound there is none."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (OSError, ValueError):  # a system that names the bound and does not keep it
        return


if __name__ == "__main__":
    _bound(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
