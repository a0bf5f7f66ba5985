"""From judged passages whose places are known to spans."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from core.tables import TABLES, frame

_KEY = ("golden_set_id", "query_id", "source", "start_char", "end_char")


@dataclass(frozen=True, slots=True)
class Anchored:
    """Judgements as spans.

    Attributes:
        spans: Frame of `TABLES["spans"]`.
        unplaced: The judgements of passages whose place is not known, frame of `TABLES["judgements"]`.
    """

    spans: pl.DataFrame
    unplaced: pl.DataFrame


def anchor(judgements: pl.DataFrame, chunks: pl.DataFrame) -> Anchored:
    """Anchor judgements of passages to the characters that those cover.

    With the chunks of a chunker this carries what was judged chunk by chunk over to other chunkers; with
    those of "none" what was judged document by document: every chunk of a document then has its grade.

    Args:
        judgements: Frame of `TABLES["judgements"]`.
        chunks: Frame of `TABLES["chunks"]` with the places of the passages.

    Returns:
        A span per judgement; of passages that cover the same characters the highest grade.
    """
    places = chunks.select("passage_id", "source", "start_char", "end_char")
    placed = judgements.join(places, on="passage_id", how="inner", maintain_order="left")
    best = placed.sort("grade", descending=True, maintain_order=True).unique(_KEY, keep="first").sort(_KEY)
    return Anchored(
        frame("spans", best.select(list(TABLES["spans"])).to_dict()),
        judgements.join(places, on="passage_id", how="anti", maintain_order="left"),
    )
