"""Whether a recorded decision to stay with the stack that runs still holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from core.analysis.moves.switching import stay_or_move
from core.analysis.workspace.view import View
from core.providers.ends import ends_of
from core.views.words.moving import line

Finding = tuple[str, str, str, str]


def stays(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a record says of the move if it says to stay, else None."""
    said = data.get("stay_or_switch")
    return said if isinstance(said, Mapping) and said.get("answer") == "stay" else None


def stale(said: Mapping[str, Any], asked: View, today: date | None = None) -> Iterator[Finding]:
    """Yield why a decision to stay no longer holds.

    Args:
        said: What the record says of the move.
        asked: The workspace of today, with the record's question.
        today: The date of today.

    Yields:
        "gone": the stack that runs is no longer there; "retires": a model of it has ended, or an end was
        announced that the record does not know; "switch": the rule says so now.
    """
    was = str(said.get("incumbent"))
    if asked.running_row is None:
        yield "gone", was, "", "no run of the stack that runs today is in the workspace"
        return
    day = datetime.now(UTC).date() if today is None else today
    known = {str(end.get("model")) for end in said.get("retires") or () if isinstance(end, Mapping)}
    for end in ends_of(json.loads(asked.table["spec"][asked.running_row])):
        if end.retires <= day or end.model not in known:
            now = f"{end.model} ends on {end.retires.isoformat()}"
            yield "retires", was, now, "it has ended" if end.retires <= day else "announced since"
            break
    move = stay_or_move(asked)
    if move is not None and move.verdict.answer == "switch" and move.to is not None:
        yield "switch", was, str(move.to["name"]), move.verdict.why


def holding(asked: View) -> str:
    """Say that a decision to stay holds, with the numbers of today."""
    move, row = stay_or_move(asked), asked.running_row
    if move is not None:
        return f"Holds: {line(move, asked.quality.name)}"
    return "" if row is None else f"Holds: Stay with {asked.table['name'][row]}: no other stack is there."
