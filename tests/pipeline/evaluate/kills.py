"""Evaluations with paid models that are killed -9 at random moments and begun again until they finish."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from tests import warm
from tests.pipeline.evaluate.vendor import Vendor

Work = Callable[[Path, str, str], object]
"""Given a folder, the vendor's address and the key to come with, does what is left of an evaluation."""


def kill_until_done(
    work: Work,
    folder: Path,
    server: Vendor,
    draw: np.random.Generator,
    kills: int,
    *,
    calls: int = 5,
    later_s: float = 0.02,
    after: Callable[[], None] = lambda: None,
) -> dict[str, bool]:
    """Start, kill, start again until it finishes; the key of each process and whether it was killed.

    Each is killed after fewer requests than `calls` of its own, and at most `later_s` later; `after` looks at
    what it left.
    """
    attempts: dict[str, bool] = {}
    while True:
        key = f"attempt-{len(attempts)}"
        process = warm.process(work, folder, server.url, key)
        if sum(attempts.values()) < kills:
            _wait(process, server, key, int(draw.integers(0, calls)), float(draw.uniform(0, later_s)))
            process.kill()
        process.join()
        attempts[key] = process.exitcode == -9
        assert process.exitcode in (-9, 0)
        after()
        if process.exitcode == 0:
            return attempts


def _wait(process: BaseProcess, server: Vendor, key: str, calls: int, later_s: float) -> None:
    """Until a moment of its life: after some requests, and a little later."""
    while process.is_alive() and len(server.requests(key)) < calls:
        time.sleep(0.005)
    time.sleep(later_s)
