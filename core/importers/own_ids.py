"""Queries that are themselves passages, and retrieve themselves (BEIR's identical ids: ArguAna, Quora).

The asker knows the passage that carries the id of the query. If most queries of a run find their own, the
import says so, and drops these passages on request; the passages behind them move up.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.importers.base import Import, LeftOut
from core.importers.read.ordering import OwnIds
from core.tables import Frame, Pieces

_MOST = 0.5  # Share of queries from which on equal ids are not a coincidence of numbering
_RANKING = ("run_id", "query_id", "stage")


def without_own(imported: Import, own_ids: OwnIds) -> Import:
    """Drop passages that carry the id of their query if asked to; otherwise report that there are some."""
    rankings = imported.frames.get("rankings")
    if rankings is None:
        return imported
    if own_ids == "drop":
        same = pl.col("query_id") == pl.col("passage_id")
        own = rankings.lazy().filter(same).select(*_RANKING, own="rank").collect()
        left = LeftOut(own.height, "ranked passages with the id of their query") if own.height else None
        return replace(
            imported,
            frames={**imported.frames, "rankings": _moved_up(rankings, own)},
            left_out=(*imported.left_out, *([left] if left else [])),
        )
    said = own_words(imported)
    return (
        replace(imported, notes=(*imported.notes, f"{said}; --own-ids drop leaves these out."))
        if said
        else imported
    )


def own_words(imported: Import) -> str:
    """Return a sentence on how many queries retrieve their own id, or "" if few enough to be chance."""
    rankings = imported.frames.get("rankings")
    if rankings is None:
        return ""
    queries, same = pl.col("query_id"), pl.col("query_id") == pl.col("passage_id")
    counted = rankings.lazy().select(found=queries.filter(same).n_unique(), asked=queries.n_unique())
    found, asked = counted.collect().row(0)
    if not found or found < _MOST * asked:
        return ""
    return f"{found:,} of {asked:,} queries retrieve the passage of their own id"


def _moved_up(rankings: Frame, own: pl.DataFrame) -> Frame:
    """Return rankings without a query's own passages, moving the passages behind each up by one rank."""

    def kept(rows: pl.LazyFrame) -> pl.LazyFrame:
        behind = (pl.col("rank") > pl.col("own")).fill_null(value=False).cast(pl.Int32)
        return (
            rows.join(own.lazy(), on=_RANKING, how="left", maintain_order="left")
            .filter(pl.col("query_id") != pl.col("passage_id"))
            .with_columns(rank=pl.col("rank") - behind)
            .drop("own")
        )

    if isinstance(rankings, Pieces):
        return Pieces(tuple(map(kept, rankings.frames)))
    return kept(rankings.lazy())
