"""Tables and texts of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return text for a table's cell or a list's line: nothing in it ends the cell or is read as HTML."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """Return a text as code, or "" if it is empty."""
    return f"`{text}`" if text else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; texts in backticks keep their `<`."""
    lines = [heads, ["---"] * len(heads), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |".replace("  |", " |") for line in lines)


def _cell(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part.replace("|", "\\|") if part.startswith("`") else cell_keeping(part) for part in parts)


def cell_keeping(text: str) -> str:
    """Return text like `cell`, with the blanks at both ends, which separate it from the code beside it."""
    inner = cell(text)
    before, after = text[:1].isspace(), text[-1:].isspace()
    return f"{' ' if before else ''}{inner}{' ' if after and inner else ''}"
