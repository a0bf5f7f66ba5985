"""Crowds of visitors, beside a bare page in the same run.

Fifty open the first page at once; twenty move the SLA slider once a second for half a minute; with `--soak
3000` visitors of all pages come and go for so many runs, and memory is looked at.

A visitor speaks the websocket as a browser does and waits until the server has sent the whole page; one who
moves asks for the next move a second after the last, or at once when the answer took longer. Drawing is not
part of it. One process serves them, then two; the peer runs after the product, alone on the machine too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.cpu import faster
from core.paths import ROOT
from core.views.pages import PAGES
from tests import many_stacks
from tests.client import Session
from tests.server import serve_cold, serve_many

STACKS = 1_000
VISITORS = 20
SECONDS = 30.0
EVERY = 1.0
CROWD = 50
WARM, QUIET = 6, 10.0
MOVES, AT_ONCE, EARLY = 3, 4, 300
_BARE = Path(__file__).with_name("bare_app.py")
_LABEL = "SLA"


async def _visit(url: str, number: int, taken: list[float]) -> None:
    async with Session(url) as session:
        await asyncio.sleep(EVERY * number / VISITORS)
        end, move = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            move += 1
            seconds = await session.move(_LABEL, 300.0 + 5 * ((7 * number + move) % 60))
            taken.append(seconds)
            await asyncio.sleep(max(0.0, EVERY - seconds))


async def _visits(url: str) -> list[float]:
    taken: list[float] = []
    await asyncio.gather(*(_visit(url, number, taken) for number in range(VISITORS)))
    return taken


def _demo(folder: Path) -> str:
    """Write the demo into a store; return the store."""
    store = str(folder / "demo")
    subprocess.run([sys.executable, "-m", "core", "--store", store, "demo"], check=True, cwd=ROOT)
    return store


async def _first(url: str) -> float:
    begin = time.perf_counter()
    async with Session(url):
        return time.perf_counter() - begin


async def _crowd(url: str, pid: int) -> tuple[list[float], float, float]:
    """Open a page alone a few times, then by all at once.

    Returns:
        Seconds of each of the crowd that was served, processor seconds of one alone, and MB grown.
    """
    for _ in range(WARM):
        await _first(url)
    await asyncio.sleep(QUIET)
    before = processor(pid)
    for _ in range(WARM):
        await _first(url)
    alone = (processor(pid) - before) / WARM
    held = memory(pid)
    answers = await asyncio.gather(*(_first(url) for _ in range(CROWD)), return_exceptions=True)
    await asyncio.sleep(QUIET)
    return [each for each in answers if isinstance(each, float)], alone, memory(pid) - held


async def _stay(url: str, page: str, number: int) -> int:
    """Visit a page, move a limit where it has one, and leave; the runs that this took."""
    async with Session(f"{url}/{page}?ws=docs-search&sla=20") as session:
        for move in range(MOVES):
            try:
                await session.move(_LABEL, 2.0 + (7 * number + move) % 60)
            except KeyError:
                return 1
    return 1 + MOVES


async def _soak(url: str, pid: int, runs: int) -> tuple[float, float]:
    """Visit all pages in turn; MB after 300 runs and at the end."""
    done, number, early = 0, 0, 0.0
    while done < runs:
        pages = ["" if place == 0 else page for place, page in enumerate(PAGES)]
        visits = (_stay(url, pages[(number + each) % len(pages)], number + each) for each in range(AT_ONCE))
        done += sum(await asyncio.gather(*visits))
        number += AT_ONCE
        if not early and done >= EARLY:
            early = memory(pid)
    return early, memory(pid)


def processor(pid: int) -> float:
    """Processor seconds of a process until now."""
    said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """MB that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def run(soak: int = 0) -> list[dict[str, Any]]:
    """Measure and compare.

    Args:
        soak: Runs of the soak; 0 for none.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ratio = peer / here.
    """
    with tempfile.TemporaryDirectory() as name:
        return [*_first_visits(Path(name), soak), *_moves(Path(name))]


def _first_visits(folder: Path, soak: int) -> Iterator[dict[str, Any]]:
    with serve_cold(folder / "demo.log", CLQ_STORE=_demo(folder)) as server:
        here, alone, grown = asyncio.run(_crowd(f"{server.url}/?ws=docs-search&sla=20", server.pid))
        early, late = asyncio.run(_soak(server.url, server.pid, soak)) if soak else (0.0, 0.0)
    with serve_cold(folder / "bare.log", app=_BARE, BARE_POINTS="30") as server:
        bare, bare_alone, bare_grown = asyncio.run(_crowd(server.url, server.pid))
    peer = f"bare Streamlit and Plotly page, {len(bare)} of {CROWD}"
    p95, bare_p95 = (float(np.percentile(taken, 95)) for taken in (here, bare))
    yield faster(f"{CROWD} first visits at once, p95 of {len(here)} served", p95, peer, bare_p95)
    yield faster("processor of one first visit", 1000 * alone, peer, 1000 * bare_alone, "ms")
    yield faster(f"memory grown by {CROWD} first visits", grown, peer, bare_grown, "MB")
    if soak:
        yield faster(f"memory after {soak:,} runs of all pages", late, f"after {EARLY}", early, "MB")


def _moves(folder: Path) -> list[dict[str, Any]]:
    many_stacks.seed(folder / "store", STACKS)
    address, store = f"?ws={many_stacks.COLLECTION}&sla=500", str(folder / "store")
    with serve_cold(folder / "one.log", CLQ_STORE=store) as server:
        one = asyncio.run(_visits(f"{server.url}/{address}"))
    with serve_many(folder / "two.log", Path(store), 2) as server:
        two = asyncio.run(_visits(f"{server.url}/{address}"))
    with serve_cold(folder / "bare.log", app=_BARE, BARE_POINTS=str(STACKS)) as server:
        bare = asyncio.run(_visits(server.url))
    return [
        _row(f"{processes}, p{percentile}", percentile, here, bare)
        for processes, here in (("1 process", one), ("2 processes", two))
        for percentile in (50, 95)
    ]


def _row(name: str, percentile: int, here: list[float], bare: list[float]) -> dict[str, Any]:
    value, peer_value = (1000 * float(np.percentile(taken, percentile)) for taken in (here, bare))
    what = f"{VISITORS} sessions, {STACKS:,} stacks, {name} of {len(here)} moves"
    peer = f"bare Streamlit and Plotly page, {STACKS:,} points, {len(bare)} moves"
    return faster(what, value, peer, peer_value, "ms")
