"""The Cranfield collection, imported as BEIR from a folder beside the repository that few machines have."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import polars as pl

from core.importers import Import, Options, load
from core.paths import ROOT

FOLDER = Path(os.environ.get("CLQ_SHARED", ROOT.parent / "shared")) / "collections" / "cranfield"
COLLECTION = "cranfield"
SPLIT = "test_without_source_doc"


@lru_cache(maxsize=1)
def imported() -> Import:
    """Corpus, queries and grades 2..5, as the importer reads them."""
    return load([FOLDER], Options(collection_id=COLLECTION, split=SPLIT))


def table(name: str) -> pl.DataFrame:
    """One of the imported tables."""
    return imported().frames[name].lazy().collect()


def pairs(name: str) -> pl.DataFrame:
    """A file of query and passage ids as it is, without the importer."""
    read = pl.read_csv(FOLDER / name, separator="\t", infer_schema=False)
    return read.rename({"query-id": "query_id", "corpus-id": "passage_id"})


def judged() -> dict[str, dict[str, int]]:
    """Query → passage → grade, without the importer."""
    found: dict[str, dict[str, int]] = {}
    for query, passage, grade in pairs(f"qrels/{SPLIT}.tsv").iter_rows():
        found.setdefault(query, {})[passage] = int(grade)
    return found


def without_source_documents(rankings: pl.DataFrame) -> pl.DataFrame:
    """Take from every ranking the paper that its question was asked from, and close the gap."""
    kept = rankings.join(pairs("source_documents.tsv"), on=["query_id", "passage_id"], how="anti")
    rank = pl.col("rank").rank("ordinal").over("run_id", "query_id", "stage").cast(pl.Int32)
    return kept.with_columns(rank=rank)
