"""Methods with parameters, each from its own registry: fusions, suppressions of copies, cuts, chunkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.pipeline import chunk
from core.pipeline.chunk import CHUNKERS
from core.pipeline.cut import CUTS, cut_options
from core.pipeline.dedup import DEDUPS, dedup_options
from core.pipeline.fuse import FUSIONS, fusion_options
from core.records import JsonMap


@dataclass(frozen=True, slots=True)
class Methods:
    """A registry of methods.

    Attributes:
        names: The methods.
        read: Checks a table with "method" and its parameters, and gives it in its canonical form.
    """

    names: Iterable[str]
    read: Callable[[JsonMap], JsonMap]


METHODS: Mapping[str, Methods] = MappingProxyType(
    {
        "fusion": Methods(FUSIONS, fusion_options),
        "dedup": Methods(DEDUPS, dedup_options),
        "cut": Methods(CUTS, cut_options),
        "chunker": Methods(CHUNKERS, chunk.canonical),
    }
)
"""By the key of a stack's specification."""
