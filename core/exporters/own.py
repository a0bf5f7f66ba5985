"""The own format, which holds everything; see `core.importers.formats.own`."""

from __future__ import annotations

from pathlib import Path

from core.exporters.base import Written
from core.importers import Import
from core.importers import export as write_own
from core.records import Batch


def write(batch: Batch, path: Path) -> Written:
    """Write a batch in the own format; `core.importers` reads it back as it was.

    Raises:
        InputError: The path exists or cannot be written.
    """
    write_own(batch, path)
    held = Import(
        collections=batch.collections, golden_sets=batch.golden_sets, runs=batch.runs, frames=batch.frames
    )
    return Written(held.taken)
