"""Every format that files can be exported in. A new one is its file, its tests and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import UnknownNameError
from core.exporters import beir, own, ranx, trec
from core.exporters.base import Written
from core.records import Batch


@dataclass(frozen=True, slots=True)
class Format:
    """A format: what people read, what it holds, and its writer."""

    title: str
    holds: str
    write: Callable[[Batch, Path], Written]


FORMATS: Mapping[str, Format] = {
    "own": Format("CLQ Explorer export", "everything, as it is", own.write),
    "trec": Format("TREC runs and qrels", "final rankings and judgements", trec.write),
    "beir": Format("BEIR folder", "passages, queries and judgements of one collection", beir.write),
    "ranx": Format("ranx runs and qrels (JSON)", "final rankings and judgements", ranx.write),
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
