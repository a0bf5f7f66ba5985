"""Twenty visitors who each move the SLA slider once a second for half a minute, beside a bare page.

One process serves them first, then two.

A visitor speaks the websocket as a browser does and waits until the server has sent the whole page again; it
asks for the next move a second after the last, or at once when the answer took longer. Drawing is not part of
it. The peer runs after the product, alone on the machine too.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests import many_stacks
from tests.client import Session
from tests.server import serve_cold, serve_many

STACKS = 1_000
VISITORS = 20
SECONDS = 30.0
EVERY = 1.0
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


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ms, ratio = peer / here.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
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
    value, peer = (1000 * float(np.percentile(taken, percentile)) for taken in (here, bare))
    return {
        "name": f"{VISITORS} sessions, {STACKS:,} stacks, {name} of {len(here)} moves",
        "value": value,
        "unit": "ms",
        "peer": f"bare Streamlit and Plotly page, {STACKS:,} points, {len(bare)} moves",
        "peer_value": peer,
        "ratio": peer / value,
    }
