"""CLQ Explorer: cost, latency and quality of retrieval stacks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.api import (
        Added,
        Confidence,
        Decision,
        Gate,
        Measured,
        Page,
        Results,
        Stack,
        Workspace,
        measure,
        open,  # noqa: A004
        run,
    )

__version__ = "0.2.0"
__all__ = [
    "Added",
    "Confidence",
    "Decision",
    "Gate",
    "Measured",
    "Page",
    "Results",
    "Stack",
    "Workspace",
    "measure",
    "open",
    "run",
]
_PARTS = ("prices", "errors")
"""Subpackages that are also part of the library's public interface."""


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load the library on first use, so that commands and the dashboard do not wait for it."""
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        return getattr(import_module(f"{__name__}.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
