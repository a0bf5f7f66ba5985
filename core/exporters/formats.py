"""Formats of the field, written.

* TREC: ``runs/<run>.run`` (``qid Q0 docid rank score tag``) and ``qrels/<golden set>.qrels``.
* ranx: ``runs/<run>.json`` and ``qrels/<golden set>.json``, each {query: {passage: number}}.
* BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv`` of one collection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from core.errors import InputError
from core.exporters.base import (
    Written,
    as_runs,
    given_grades,
    mappings,
    not_held,
    parted,
    refuse_ids,
    rows_of,
    scored,
)
from core.files import target
from core.records import Batch

_BLANK = r"\s|^$"
_COMMENT = "^#"


def write_trec(batch: Batch, path: Path) -> Written:
    """Write rankings and judgements as TREC files."""
    rankings, replaced = scored(batch)
    grades = given_grades(batch)
    for rows in (rankings, grades):
        for column in ("query_id", "passage_id"):
            refuse_ids(rows, column, _BLANK, "has a blank, and TREC files separate their fields by blanks")
        refuse_ids(rows, "query_id", _COMMENT, "begins with #, as comments do")
    rank = pl.col("rank").rank("ordinal").over("query_id")
    with target(path) as folder:
        for name, rows in parted(rankings, "run_id"):
            named = rows.with_columns(rank, iteration=pl.lit("Q0"), tag=pl.lit(name))
            run = named.select("query_id", "iteration", "passage_id", "rank", "score", "tag")
            _table(folder / "runs" / f"{name}.run", run)
        for name, rows in parted(grades, "golden_set_id"):
            qrels = rows.select("query_id", pl.lit("0").alias("iteration"), "passage_id", "grade")
            _table(folder / "qrels" / f"{name}.qrels", qrels)
    said = (
        f"{replaced} runs have new scores that fall with the rank: their own have ties, gaps or another "
        "order, and trec_eval orders by score."
    )
    return as_runs(batch, "TREC", grades, rankings, said if replaced else "")


def _table(file: Path, rows: pl.DataFrame) -> None:
    file.parent.mkdir(exist_ok=True)
    rows.write_csv(file, include_header=False, separator=" ", quote_style="never")


def write_ranx(batch: Batch, path: Path) -> Written:
    """Write rankings and judgements as ranx files."""
    rankings, replaced = scored(batch, fractions=True)
    grades = given_grades(batch)
    with target(path) as folder:
        _scores(folder / "runs", rankings, "run_id", "score")
        _scores(folder / "qrels", grades, "golden_set_id", "grade")
    said = (
        f"{replaced} runs have new scores that fall with the rank: ranx orders by score." if replaced else ""
    )
    return as_runs(batch, "ranx", grades, rankings, said)


def _scores(folder: Path, rows: pl.DataFrame, owner: str, number: str) -> None:
    for name, part in parted(rows, owner):
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.json").open("w", encoding="utf-8") as file:
            lists = part.group_by("query_id", maintain_order=True).agg("passage_id", number)
            for place, (query, passages, numbers) in enumerate(lists.iter_rows()):
                scores = json.dumps(dict(zip(passages, numbers, strict=True)), ensure_ascii=False)
                file.write(f"{',' if place else '{'}\n{json.dumps(query, ensure_ascii=False)}: {scores}")
            file.write("\n}\n")


_SPLIT = "test"


def write_beir(batch: Batch, path: Path) -> Written:
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
        file = folder / f"{_SPLIT if alone else name}.tsv"
        shown.write_csv(file, separator="\t", quote_style="never")
