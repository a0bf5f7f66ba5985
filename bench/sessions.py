"""Crowds of visitors, beside a bare page in the same run.

Fifty open the first page at once; twenty move the SLA slider once a second for half a minute; one alone costs
so much processor a visit and a move; with `--soak 3000` visitors of all pages come and go for so many runs,
and memory is looked at. A browser then says how long a move and a first visit of each page last there.

A visitor speaks the websocket as a browser does and waits until the server has sent the whole page; one who
moves asks for the next move a second after the last, or at once when the answer took longer. Drawing is not
part of it. One process serves them, then two; the peer runs after the product, alone on the machine too.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import first_visits, repaint
from bench.cpu import faster
from bench.demo import ADDRESS, demo
from core.ui.behind import DEAR
from core.views.pages import PAGES
from tests import many_stacks
from tests.client import Session
from tests.server import serve_cold, serve_many

STACKS, MOST = 1_000, 10_000
VISITORS = 20
SECONDS = 30.0
EVERY = 1.0
CROWD = 50
WARM, QUIET, BEHIND = 6, 5.0, 15.0
MOVED, REPAINTS = 30, 12
MOVES, AT_ONCE, EARLY = 3, 4, 300
_BARE = Path(__file__).with_name("bare_app.py")
_LABEL = "SLA"
_MANY = f"?ws={many_stacks.COLLECTION}&sla_ms=500"
_PEER = "bare Streamlit and Plotly page"


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


async def _first(url: str) -> float:
    begin = time.perf_counter()
    async with Session(url):
        return time.perf_counter() - begin


async def _crowd(url: str, pid: int) -> tuple[list[float], float]:
    """Open a page by all at once.

    Returns:
        Seconds of each of the crowd that was served, and MB grown.
    """
    held = memory(pid)
    answers = await asyncio.gather(*(_first(url) for _ in range(CROWD)), return_exceptions=True)
    await asyncio.sleep(QUIET)
    return [each for each in answers if isinstance(each, float)], memory(pid) - held


async def _alone(url: str, pid: int, lowest: float, step: float) -> tuple[float, float]:
    """Return milliseconds of processor of a visit and of a move to a limit not seen before, of one alone."""
    for _ in range(WARM):
        await _first(url)
    async with Session(url) as session:
        for move in range(WARM):
            await session.move(_LABEL, lowest + step * move)
    await asyncio.sleep(QUIET)
    before = processor(pid)
    for _ in range(WARM):
        await _first(url)
    visit = (processor(pid) - before) / WARM
    async with Session(url) as session:
        before = processor(pid)
        for move in range(MOVED):
            await session.move(_LABEL, lowest + step * (WARM + move))
        return 1000 * visit, 1000 * (processor(pid) - before) / MOVED


async def _stay(url: str, page: str, number: int) -> int:
    """Visit a page, move a limit where it has one, and leave; the runs that this took."""
    async with Session(f"{url}/{page}{ADDRESS}") as session:
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
        folder = Path(name)
        rows = [*_pages(folder, soak), *_moves(folder)]
    whole = [row for row in repaint.run((STACKS,), REPAINTS) if "p50" in row["name"]]
    return [*rows, *whole, *first_visits.run()]


def _pages(folder: Path, soak: int) -> Iterator[dict[str, Any]]:
    with serve_cold(folder / "demo.log", CLQ_STORE=demo(folder)) as server:
        url, pid = f"{server.url}/{ADDRESS}", server.pid
        asyncio.run(_first(url))
        time.sleep(BEHIND)  # in which what other pages need is worked out
        dear = {}
        for page in DEAR:
            before = processor(pid)
            asyncio.run(_first(f"{server.url}/{page}{ADDRESS}"))
            dear[page] = processor(pid) - before
        visit, move = asyncio.run(_alone(url, pid, 15.0, 0.7))
        here, grown = asyncio.run(_crowd(url, pid))
        early, late = asyncio.run(_soak(server.url, pid, soak)) if soak else (0.0, 0.0)
    with serve_cold(folder / "bare.log", app=_BARE, BARE_POINTS="30") as server:
        bare_visit, bare_move = asyncio.run(_alone(server.url, server.pid, 15.0, 5.0))
        bare, bare_grown = asyncio.run(_crowd(server.url, server.pid))
    p95, bare_p95 = (float(np.percentile(taken, 95)) for taken in (here, bare))
    peer = f"{_PEER}, {len(bare)} of {CROWD}"
    yield faster(f"{CROWD} first visits at once, p95 of {len(here)} served", p95, peer, bare_p95)
    yield faster(f"memory grown by {CROWD} first visits", grown, peer, bare_grown, "MB")
    yield faster("processor of one first visit", visit, _PEER, bare_visit, "ms")
    yield faster("processor of a move", move, _PEER, bare_move, "ms")
    for page, seconds in dear.items():
        yield faster(f"processor of a process's first {PAGES[page].title}", seconds, "", None)
    if soak:
        yield faster(f"memory after {soak:,} runs of all pages", late, f"after {EARLY}", early, "MB")


def _moves(folder: Path) -> Iterator[dict[str, Any]]:
    store = folder / "store"
    many_stacks.seed(store, STACKS)
    with serve_cold(folder / "bare.log", app=_BARE, BARE_POINTS=str(STACKS)) as server:
        _, bare_move = asyncio.run(_alone(server.url, server.pid, 300.0, 5.0))
        bare = asyncio.run(_visits(server.url))
    with serve_cold(folder / "one.log", CLQ_STORE=str(store)) as server:
        _, move = asyncio.run(_alone(f"{server.url}/{_MANY}", server.pid, 301.0, 0.7))
        one = asyncio.run(_visits(f"{server.url}/{_MANY}"))
    with serve_many(folder / "two.log", store, 2) as server:
        two = asyncio.run(_visits(f"{server.url}/{_MANY}"))
    many_stacks.seed(folder / "most", MOST)
    with serve_cold(folder / "most.log", CLQ_STORE=str(folder / "most")) as server:
        _, most = asyncio.run(_alone(f"{server.url}/{_MANY}", server.pid, 301.0, 0.7))
    for count, here in ((STACKS, move), (MOST, most)):
        yield faster(f"processor of a move, {count:,} stacks", here, _PEER, bare_move, "ms")
    for processes, taken in (("1 process", one), ("2 processes", two)):
        for percentile in (50, 95):
            yield _row(processes, percentile, taken, bare)


def _row(processes: str, percentile: int, here: list[float], bare: list[float]) -> dict[str, Any]:
    value, peer_value = (1000 * float(np.percentile(taken, percentile)) for taken in (here, bare))
    asked = round(VISITORS * SECONDS / EVERY)
    what = (
        f"{VISITORS} visitors, {processes}, {STACKS:,} stacks, p{percentile} of {len(here)} of {asked} moves"
    )
    return faster(what, value, f"{_PEER}, {len(bare)} moves", peer_value, "ms")
