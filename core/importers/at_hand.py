"""Documents that are at hand while files are read: those of the caller, and those of the same offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.importers.base import Documents, Import, Options
from core.tables import Frame


@dataclass(frozen=True)
class _Brought:
    """Passages of an import, and behind them what the caller has."""

    passages: Frame
    ids: frozenset[str]
    behind: Documents | None

    def __call__(self, collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
        if collection_id not in self.ids:
            return texts(self.behind, collection_id, sources)
        own = (pl.col("collection_id") == collection_id) & pl.col("passage_id").is_in(list(sources))
        rows = self.passages.lazy().filter(own).collect()
        return rows.select(source="passage_id", text=pl.col("text").fill_null(""))


def texts(documents: Documents | None, collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
    """The named documents of a collection; none where nobody has any."""
    if documents is None:
        return pl.DataFrame(schema={"source": pl.String, "text": pl.String})
    return documents(collection_id, sources)


def with_brought(options: Options, made: Import) -> Options:
    """The options with the passages of an import among the documents at hand."""
    passages = made.frames.get("passages")
    if passages is None:
        return options
    ids = frozenset(passages.lazy().select(pl.col("collection_id").unique()).collect().to_series())
    return replace(
        options,
        documents=_Brought(passages, ids, options.documents),
        known_collections=options.known_collections | ids,
    )
