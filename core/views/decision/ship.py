"""The chosen stack handed back: the command that writes it as something that runs, or why there is none."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.paths import PROGRAM
from core.pipeline.own.config import OWN
from core.pipeline.shippable import KINDS, missing
from core.store import Snapshot


@dataclass(frozen=True)
class Shipping:
    """How a stack is handed back."""

    command: str | None  # writes it as the first of `kinds`; None where it cannot be written
    kinds: tuple[str, ...]  # as what it can be written
    sentence: str


def shipping(snapshot: Snapshot, row: Mapping[str, Any]) -> Shipping:
    """Say how the stack of a run is handed back; takes a row of the stack table."""
    spec = json.loads(row["spec"])
    if spec.get("mode") == OWN:
        place = spec.get("call") or spec.get("url")
        settings = f" with {row['params']}" if row.get("params") else ""
        return Shipping(None, (), f"It is your own pipeline and runs already: {place}{settings}.")
    lacking = {kind: missing(spec, kind) for kind in KINDS}
    kinds = tuple(kind for kind, parts in lacking.items() if not parts)
    held = dict(snapshot.collections().select("collection_id", "passages").iter_rows())
    if not kinds:
        why = ", ".join(next(iter(lacking.values())))
    elif row["chunking"] is not None:
        why = "it searches chunks of documents"
    elif not held.get(row["collection_id"]):
        why = "the store has no passages of its collection"
    else:
        command = shlex.join(["export", "stack", row["run_id"], "--as", kinds[0]])
        others = f"; --as {', '.join(kinds[1:])} writes it for these" if kinds[1:] else ""
        sentence = f"As a folder that runs without this program{others}."
        return Shipping(f"{PROGRAM} {command}", kinds, sentence)
    return Shipping(None, (), f"It cannot be written as something that runs by itself: {why}.")
