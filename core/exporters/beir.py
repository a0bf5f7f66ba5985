"""BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv`` of one collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from core.errors import InputError
from core.exporters.base import Written, given_grades, mappings, not_held, parted, refuse_ids, rows_of
from core.importers.target import target
from core.records import Batch

SPLIT = "test"


def write(batch: Batch, path: Path) -> Written:
    """Write a collection with its queries and judgements; several golden sets become splits."""
    wholes = [each.collection_id for each in batch.collections if each.part_of is None]
    if len(wholes) != 1:
        raise InputError(
            f"A BEIR folder holds one collection, not {len(wholes)}: {', '.join(wholes[:8]) or 'none'}.",
            do="Name one, for example --collection NAME.",
        )
    own = pl.col("collection_id") == wholes[0]
    passages = rows_of(batch, "passages").filter(own).sort("passage_id")
    queries = rows_of(batch, "queries").filter(own).sort("query_id")
    sets = [each.golden_set_id for each in batch.golden_sets if each.part_of is None]
    grades = given_grades(batch).filter(pl.col("golden_set_id").is_in(sets))
    for column in ("query_id", "passage_id"):
        refuse_ids(grades, column, r"[\t\r\n\"]", "has a tab, quote or line break, which a .tsv cannot hold")
    with target(path) as folder:
        _lines(folder / "corpus.jsonl", map(_passage, passages.iter_rows(named=True)))
        _lines(folder / "queries.jsonl", map(_query, queries.iter_rows(named=True)))
        _qrels(folder / "qrels", grades)
    held = ("passages", "queries", "judgements")
    notes = [*mappings(batch), *not_held(batch, held, "BEIR")]
    counts = {"passages": passages.height, "queries": queries.height, "judgements": grades.height}
    return Written(counts, tuple(notes))


def _passage(row: Mapping[str, object]) -> dict[str, object]:
    metadata = {"source": row["source"]} if row["source"] else {}
    return {"_id": row["passage_id"], "title": row["title"] or "", "text": row["text"], "metadata": metadata}


def _query(row: Mapping[str, object]) -> dict[str, object]:
    tags = row["tags"] if isinstance(row["tags"], list) else []
    named = dict(str(tag).split("=", 1) for tag in tags if "=" in str(tag))
    return {"_id": row["query_id"], "text": row["text"], "metadata": named}


def _lines(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    with file.open("w", encoding="utf-8") as sink:
        for row in rows:
            sink.write(json.dumps(row, ensure_ascii=False) + "\n")


def _qrels(folder: Path, grades: pl.DataFrame) -> None:
    alone = grades["golden_set_id"].n_unique() == 1
    for name, rows in parted(grades, "golden_set_id"):
        folder.mkdir(exist_ok=True)
        shown = rows.select(
            pl.col("query_id").alias("query-id"),
            pl.col("passage_id").alias("corpus-id"),
            pl.col("grade").alias("score"),
        )
        file = folder / f"{SPLIT if alone else name}.tsv"
        shown.write_csv(file, separator="\t", quote_style="never")
