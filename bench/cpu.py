"""Processor time of a process, which other load on the machine hardly changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

TRIES = 5


def least_cpu(actions: Mapping[str, Callable[[], object]], tries: int = TRIES) -> dict[str, float]:
    """Least processor seconds (all threads) of each action, all taking turns, after one warm-up.

    Args:
        actions: What to measure, by name.
        tries: How often each one runs after its warm-up.
    """
    taken = dict.fromkeys(actions, float("inf"))
    for turn in range(tries + 1):
        for name, action in actions.items():
            start = time.process_time()
            action()
            if turn:
                taken[name] = min(taken[name], time.process_time() - start)
    return taken


def faster(name: str, value: float, peer: str, peer_value: float | None, unit: str = "s") -> dict[str, Any]:
    """A result of which less is better: ratio = peer / here."""
    ratio = None if peer_value is None else peer_value / value
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": ratio,
    }
