"""What the dashboard alone has: the forms and buttons that a section names by a `Control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

CONTROLS: Mapping[str, Callable[..., None]] = {}
"""What draws a control, by its name."""
