"""A server that may open few files serves any number of visitors, and again those that it turned away."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.client import Session
from tests.server import serve

LIMIT = 256
PROC = Path("/proc")


async def _load(url: str, stays: asyncio.Event | None = None) -> bool:
    try:
        async with asyncio.timeout(30), Session(url):
            if stays is not None:
                await stays.wait()
            return True
    except (OSError, TimeoutError, EOFError):
        return False


async def _crowd(url: str, visitors: int) -> None:
    """More visitors at once than there are files for, for a few seconds."""
    leave = asyncio.Event()
    crowd = [asyncio.create_task(_load(url, leave)) for _ in range(visitors)]
    await asyncio.sleep(10)
    leave.set()
    await asyncio.gather(*crowd, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None or not PROC.is_dir(), reason="needs prlimit and /proc")
def test_few_files_are_enough_for_many_visitors(demo_store: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", files=LIMIT, CLQ_STORE=str(demo_store)) as server:

        def handles() -> int:
            return len(list((PROC / str(server.pid) / "fd").iterdir()))

        pages = [f"{server.url}/{page}" for page in ("", "decision", "latency", "queries", "library")]
        loads = [asyncio.run(_load(pages[number % len(pages)])) for number in range(120)]
        assert all(loads)
        assert handles() < LIMIT / 2
        asyncio.run(_crowd(server.url, 100))
        assert asyncio.run(_load(server.url)), "a visitor who comes when the crowd has left is served"
        assert handles() < LIMIT
