"""Facts that a judge finds in passages, as nuggets of the golden set that the grades form.

A fact is one line of text; it is vital unless it ends in "(okay)".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from core.bidi import strip_bidi_controls
from core.errors import InputError
from core.golden.book import PAIR
from core.tables import NUGGETS, TABLES, frame

OKAY = " (okay)"
"""Ends a fact that is not vital."""
LONGEST = 300  # Characters of a fact
_FACT = ("query_id", "text")


def lines_of(texts: Iterable[str], known: Iterable[str]) -> list[str]:
    """Normalise facts: one line each, without duplicates.

    Args:
        known: All other facts of the question.

    Raises:
        InputError: If a fact is too long, or the question has too many.
    """
    lines = list(dict.fromkeys(filter(None, (" ".join(strip_bidi_controls(text).split()) for text in texts))))
    if any(len(line) > LONGEST for line in lines):
        raise InputError(f"A fact is longer than {LONGEST} characters.", do="Write it in one short sentence.")
    if len({*lines, *known}) > NUGGETS:
        raise InputError(f"The question has more than {NUGGETS} facts.", do="Choose one that is there.")
    return lines


def by_query(nuggets: pl.DataFrame) -> dict[str, list[str]]:
    """Return the nuggets of every question in the judge's notation."""
    written = pl.when("vital").then("text").otherwise(pl.col("text") + OKAY)
    rows = nuggets.with_columns(written.alias("line")).group_by("query_id", maintain_order=True)
    return dict(rows.agg(pl.col("line").unique(maintain_order=True)).iter_rows())


def supported(said: pl.DataFrame, facts: Mapping[tuple[str, str], Sequence[str]], judge: str) -> pl.DataFrame:
    """Return the facts that graded passages support, in the form `together` takes.

    Args:
        said: The judge's grades, from `Book.said`.
        facts: The facts of passages, from `Book.facts`.
    """
    rows = [
        {
            "query_id": query,
            "text": line.removesuffix(OKAY),
            "vital": not line.endswith(OKAY),
            "passage_id": passage,
            "support": 1.0,
            "judge": judge,
        }
        for query, passage in said.select(PAIR).iter_rows()
        for line in facts.get((query, passage), ())
    ]
    return frame("nuggets", rows)


def together(parts: Sequence[pl.DataFrame], golden_set_id: str) -> pl.DataFrame:
    """Merge nuggets of several origins into one golden set.

    A fact is identified by its text, and vital if one origin says so; numbers follow the texts.

    Raises:
        InputError: If a question has too many.
    """
    rows = pl.concat([part.select(list(TABLES["nuggets"])) for part in parts])
    rows = rows.sort("passage_id", nulls_last=True, maintain_order=True).unique(
        [*_FACT, "passage_id"], keep="last", maintain_order=True
    )
    known = pl.col("passage_id").is_not_null().any().over(_FACT)
    rows = rows.filter(pl.col("passage_id").is_not_null() | ~known)
    number = pl.col("text").rank("dense").over("query_id") - 1
    rows = rows.with_columns(
        golden_set_id=pl.lit(golden_set_id),
        nugget=number.cast(pl.Int16),
        vital=pl.col("vital").any().over(_FACT),
    )
    if (rows["nugget"] >= NUGGETS).any():
        query = rows.filter(pl.col("nugget") >= NUGGETS)["query_id"][0]
        raise InputError(f"Query {query!r} has more than {NUGGETS} facts.", do="Take some away.")
    return rows.sort("query_id", "nugget", "passage_id")
