"""Batches of records out, in formats of the field; one function per format and one line here.

Nothing here reads a store: the caller gathers a batch. What a format cannot hold is left out and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import UnknownNameError
from core.exporters.formats import Written, write_beir, write_ranx, write_trec
from core.importers import Import, export
from core.records import Batch

__all__ = ["FORMATS", "Written", "write"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: what people read, what it holds, and its writer."""

    title: str
    holds: str
    write: Callable[[Batch, Path], Written]


def _own(batch: Batch, path: Path) -> Written:
    """Write a batch in the own format; `core.importers` reads it back as it was."""
    export(batch, path)
    return Written(Import.of(batch).taken)


FORMATS: Mapping[str, Format] = {
    "own": Format("CLQ Explorer export", "everything, as it is", _own),
    "trec": Format("TREC runs and qrels", "final rankings and judgements", write_trec),
    "beir": Format("BEIR folder", "passages, queries and judgements of one collection", write_beir),
    "ranx": Format("ranx runs and qrels (JSON)", "final rankings and judgements", write_ranx),
}


def write(batch: Batch, path: Path, name: str) -> Written:
    """Write a batch in a format.

    Args:
        batch: What to write.
        path: A new folder, or a file that ends in ``.zip``.
        name: One of `FORMATS`.

    Raises:
        UnknownNameError: If there is no such format.
        InputError: If the batch or the path cannot be used.
    """
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return FORMATS[name].write(batch, path)
