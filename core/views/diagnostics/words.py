"""What the page on diagnostics says."""

from __future__ import annotations

NOTHING = "Nothing was diagnosed yet."
