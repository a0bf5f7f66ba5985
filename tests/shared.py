"""Things that all processes of one test session share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.files import locked

EVERY_PAGE = "CLQ_EVERY_PAGE" in os.environ
"""Whether tests over all pages take every place and store, which takes an hour of a processor; else some."""


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Build a store by the first process that asks, for all that ask; to be read only.

    Args:
        factory: Where the session's files are.
        name: Name of the store.
        build: Writes it to a path.

    Returns:
        Its path.
    """
    base = factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / f"shared-{name}"
    root.mkdir(exist_ok=True)
    with locked(root / "lock", wait=lambda: None):
        if not (root / "done").exists():
            build(root / "store")
            (root / "done").touch()
    return root / "store"
