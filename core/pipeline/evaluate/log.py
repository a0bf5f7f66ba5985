"""What happened when in an evaluation: one JSON object a line, without keys."""

from __future__ import annotations

import json
from pathlib import Path

from core.providers.calls import redact
from core.records import now


class Log:
    """Appends to a file; a line is on its way to the disk when `write` returns.

    Args:
        path: The file; made on first use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, **facts: object) -> None:
        """Add a line: the time, what happened, and facts about it (JSON)."""
        line = json.dumps({"at": now().isoformat(), "event": event, **facts}, ensure_ascii=False, default=str)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(redact(line) + "\n")
