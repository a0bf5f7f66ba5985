"""What the page on readers says."""

from __future__ import annotations

NOTHING = "No answer here has a score."
