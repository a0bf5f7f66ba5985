"""A server that may open few files serves any number of visitors, and again those that it turned away."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.client import Session, visiting
from tests.server import serve_cold

LIMIT = 256
PROC = Path("/proc")


async def _load(url: str, served: Callable[[bool], Awaitable[object]] | None = None) -> bool:
    """Open a page and stay for as long as ``served`` takes, which is told whether it was."""
    try:
        async with asyncio.timeout(30), Session(url):
            if served is not None:
                await served(True)
            return True
    except (OSError, TimeoutError, EOFError):
        if served is not None:
            await served(False)
        return False


async def _crowd(url: str, visitors: int) -> None:
    """More visitors at once than there are files for, until each is in or turned away, for 10 s at most."""
    leave, known = asyncio.Event(), asyncio.Semaphore(0)

    async def served(stays: bool) -> None:
        known.release()
        if stays:
            await leave.wait()

    crowd = [asyncio.create_task(_load(url, served)) for _ in range(visitors)]
    with suppress(TimeoutError):
        async with asyncio.timeout(10):
            for _ in crowd:
                await known.acquire()
    leave.set()
    await asyncio.gather(*crowd, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None or not PROC.is_dir(), reason="needs prlimit and /proc")
def test_few_files_are_enough_for_many_visitors(demo_store: Path, tmp_path: Path) -> None:
    with serve_cold(tmp_path / "log", files=LIMIT, CLQ_STORE=str(demo_store)) as server:

        def handles() -> int:
            return len(list((PROC / str(server.pid) / "fd").iterdir()))

        pages = [f"{server.url}/{page}" for page in ("", "decision", "latency", "queries", "library")]
        loads = [visiting(_load(pages[number % len(pages)])) for number in range(120)]
        assert all(loads)
        assert handles() < LIMIT / 2
        visiting(_crowd(server.url, 100))
        assert visiting(_load(server.url)), "a visitor who comes when the crowd has left is served"
        assert handles() < LIMIT
