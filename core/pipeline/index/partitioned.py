"""An index for each value of a field, searched as one: a query asks those that hold passages it may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.pipeline.index.bm25 import Bm25Index
from core.pipeline.index.dense import DenseIndex
from core.pipeline.index.outside import DatabaseIndex
from core.pipeline.index.saved import about_folder, new_folder
from core.pipeline.index.scope import IndexScope
from core.pipeline.ranking import Hits, top_k
from core.records import JsonMap

Index = TypeVar("Index", Bm25Index, DenseIndex | DatabaseIndex)
Positions = NDArray[np.int64]
_KIND = "partitioned index"
_PLACES = "positions.npz"


class Partitioned(Generic[Index]):
    """Indexes over the parts of a corpus.

    Args:
        parts: One per part; None = nothing of it can be found.
        positions: The positions in the corpus of each part's passages.
        by: The field whose values make the parts.
    """

    def __init__(self, parts: Sequence[Index | None], positions: Sequence[Positions], by: str) -> None:
        self.parts: tuple[Index | None, ...] = tuple(parts)
        self.positions, self._by = tuple(positions), by
        self._seen: dict[IndexScope, list[tuple[Index, Positions, IndexScope | None]]] = {}

    @property
    def _built(self) -> list[Index]:
        return [part for part in self.parts if part is not None]

    @property
    def in_database(self) -> bool:
        """Whether its indexes are tables of a database."""
        return isinstance(self._built[0], DatabaseIndex)

    @property
    def name(self) -> str:
        """The kind of its indexes."""
        first = self._built[0]
        return "bm25" if isinstance(first, Bm25Index) else first.name

    @property
    def remote(self) -> bool:
        """Whether another process answers."""
        first = self._built[0]
        return isinstance(first, DatabaseIndex) and first.remote

    @property
    def parameters(self) -> JsonMap:
        """Return the options of the indexes, and how many there are, for the manifest."""
        return {**self._built[0].parameters, "partitions": len(self.parts), "partition": self._by}

    @property
    def build_s(self) -> float:
        """Seconds of building all."""
        return sum(part.build_s for part in self._built)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all, or None if an engine does not report them."""
        sizes = [part.size_bytes for part in self._built]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def search(
        self, scope: IndexScope | None, k: int, ask: Callable[[Index, IndexScope | None], Hits]
    ) -> Hits:
        """Return the best of all parts that hold allowed passages.

        Args:
            ask: Searches one of them, among its allowed passages only if a scope is given.
        """
        found = []
        for part, positions, inner in self.asked(scope):
            hits = ask(part, inner)
            found.append(Hits(positions[hits.passages], hits.scores))
        if not found:
            return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
        passages, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(passages)
        return top_k(passages[order], scores[order], k)

    def with_options(self, options: JsonMap) -> Partitioned[Index]:
        """Return the same indexes with other search options."""
        searched = (None if isinstance(part, Bm25Index) else part for part in self.parts)
        parts = [None if part is None else part.with_options(options) for part in searched]
        return Partitioned(parts, self.positions, self._by)

    def save(self, path: Path) -> None:
        """Write the indexes beside a folder that says where their passages are."""
        about = {"by": self._by, "built": [part is not None for part in self.parts]}
        for number, part in enumerate(self.parts):
            if part is not None:
                part.save(folder_of(path.parent, number) / path.name)
        with new_folder(path, _KIND, about) as folder:
            np.savez(folder / _PLACES, *self.positions)

    @classmethod
    def load(cls, path: Path, load: Callable[[Path], Index]) -> Partitioned[Index]:
        """Open indexes written by `save`."""
        about = about_folder(path, _KIND)
        with np.load(path / _PLACES) as saved:
            positions = [saved[f"arr_{number}"] for number in range(len(about["built"]))]
        parts = [
            load(folder_of(path.parent, number) / path.name) if built else None
            for number, built in enumerate(about["built"])
        ]
        return cls(parts, positions, about["by"])

    def asked(self, scope: IndexScope | None) -> list[tuple[Index, Positions, IndexScope | None]]:
        """Return the parts to ask, with their positions, and their scope where not all of it is allowed."""
        if scope is None:
            return [(part, positions, None) for part, positions in self._pairs()]
        if scope not in self._seen:
            seen = [(part, positions, scope.within(positions)) for part, positions in self._pairs()]
            self._seen[scope] = [
                (part, positions, None if inner.allowed.all() else inner)
                for part, positions, inner in seen
                if inner.allowed.any()
            ]
        return self._seen[scope]

    def _pairs(self) -> Iterator[tuple[Index, Positions]]:
        for part, positions in zip(self.parts, self.positions, strict=True):
            if part is not None:
                yield part, positions


def folder_of(folder: Path, number: int) -> Path:
    """Return where the files of a part lie."""
    return folder / f"part-{number:05}"
