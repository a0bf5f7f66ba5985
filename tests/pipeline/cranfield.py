"""The Cranfield collection as frames, read from a folder beside the repository that not every machine has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl

from core.paths import ROOT
from core.records import frame

FOLDER = Path(os.environ.get("CLQ_SHARED", ROOT.parent / "shared")) / "collections" / "cranfield"
COLLECTION = "cranfield"
GOLDEN_SET = "cranfield-utility"


def _lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def _pairs(name: str) -> pl.DataFrame:
    read = pl.read_csv(FOLDER / name, separator="\t", infer_schema=False)
    return read.rename({"query-id": "query_id", "corpus-id": "passage_id"})


def passages() -> pl.DataFrame:
    rows = _lines("corpus.jsonl")
    return frame(
        "passages",
        {
            "collection_id": [COLLECTION] * len(rows),
            "passage_id": [row["_id"] for row in rows],
            "title": [row["title"] for row in rows],
            "text": [row["text"] for row in rows],
        },
    )


def queries() -> pl.DataFrame:
    rows = _lines("queries.jsonl")
    return frame(
        "queries",
        {
            "collection_id": [COLLECTION] * len(rows),
            "query_id": [row["_id"] for row in rows],
            "text": [row["text"] for row in rows],
        },
    )


def judgements() -> pl.DataFrame:
    """Grades 2..5; the paper that a question was asked from is not judged."""
    read = _pairs("qrels/test_without_source_doc.tsv")
    grade = pl.col("score").cast(pl.Int16)
    return frame(
        "judgements",
        read.with_columns(golden_set_id=pl.lit(GOLDEN_SET), grade=grade, raw=grade).drop("score").to_dict(),
    )


def without_source_documents(rankings: pl.DataFrame) -> pl.DataFrame:
    """Take from every ranking the paper that its question was asked from, and close the gap."""
    kept = rankings.join(_pairs("source_documents.tsv"), on=["query_id", "passage_id"], how="anti")
    rank = pl.col("rank").rank("ordinal").over("run_id", "query_id", "stage").cast(pl.Int32)
    return kept.with_columns(rank=rank)
