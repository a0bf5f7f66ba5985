"""Exporters that write batches of records in formats of the field; one function and one line per format.

Nothing here reads a store: the caller gathers a batch. What a format cannot hold is left out and reported.

* TREC: ``runs/<run>.run`` (``qid Q0 docid rank score tag``) and ``qrels/<golden set>.qrels``.
* ranx: ``runs/<run>.json`` and ``qrels/<golden set>.json``, each {query: {passage: number}}.
* BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv`` of one collection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import polars as pl

from core.errors import InputError, UnknownNameError
from core.files import target
from core.importers import Import, export
from core.records import Batch
from core.tables import TABLES

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """Files of an export, and what could not be included."""

    counts: Mapping[str, int] = field(default_factory=dict)  # rows by kind
    notes: tuple[str, ...] = ()  # decisions, and what the format cannot hold, as sentences


def rows_of(batch: Batch, table: str) -> pl.DataFrame:
    """Return the rows of a table of the batch; an empty frame if it has none."""
    rows = batch.frames.get(table)
    return pl.DataFrame(schema=TABLES[table]) if rows is None else rows.lazy().collect()


def file_names(ids: Iterable[str]) -> dict[str, str]:
    """Return a safe and unique file name, without ending, for every id."""
    names: dict[str, str] = {}
    for one_id in ids:
        name = re.sub(r"[^\w.-]+", "-", one_id).strip("-.")[:_LONGEST_NAME].strip("-.") or "unnamed"
        taken = {known.lower() for known in names.values()}  # some file systems ignore case
        tried, number = name, 2
        while tried.lower() in taken:
            tried, number = f"{name}-{number}", number + 1
        names[one_id] = tried
    return names


def scored(batch: Batch, *, fractions: bool = False) -> tuple[pl.DataFrame, int]:
    """Return the final rankings with scores in rank order, under trec_eval's rule too.

    trec_eval reads scores in single precision, sorts by them, and breaks ties by descending passage id. A run
    keeps its scores if they decrease strictly, in single precision, down every ranking; otherwise all its
    scores become length of the ranking + 1.5 − rank.
    """
    rows = rows_of(batch, "rankings").filter(pl.col("stage") == "final").sort("run_id", "query_id", "rank")
    of_list = ["run_id", "query_id"]
    single = pl.col("score").cast(pl.Float32)
    falls = single.is_finite() & (single < single.shift(1).over(of_list)).fill_null(value=True)
    keeps = falls.fill_null(value=False).all().over("run_id")
    if fractions:
        keeps &= (pl.col("score") != pl.col("score").round()).any().over("run_id")
    marked = rows.with_columns(keeps.alias("keeps"))
    new = pl.len().over(of_list) + 1.5 - pl.col("rank").rank("ordinal").over(of_list)
    score = pl.when("keeps").then(pl.col("score")).otherwise(new.cast(pl.Float64))
    replaced = marked.filter(~pl.col("keeps"))["run_id"].n_unique()
    return marked.select(*of_list, "rank", "passage_id", score.alias("score")), replaced


def given_grades(batch: Batch) -> pl.DataFrame:
    """Return golden_set_id, query_id, passage_id and the original grade, if known for a whole golden set."""
    rows = rows_of(batch, "judgements").sort("golden_set_id", "query_id", "passage_id")
    known = pl.col("raw").is_not_null().all().over("golden_set_id")
    grade = pl.when(known).then(pl.col("raw")).otherwise(pl.col("grade").cast(pl.Int16))
    return rows.select("golden_set_id", "query_id", "passage_id", grade.alias("grade"))


def mappings(batch: Batch) -> tuple[str, ...]:
    """Describe how the exported grades became 1..5 here, unless they were unchanged."""
    changed = [golden_set for golden_set in batch.golden_sets if golden_set.mapping != "1-5"]
    return tuple(
        f"Grades of {one.golden_set_id} are as given; here they count as {one.mapping}." for one in changed
    )


def parted(rows: pl.DataFrame, owner: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each owner, with a file name for it."""
    names = file_names(rows[owner].unique(maintain_order=True))
    for (of,), part in rows.partition_by(owner, as_dict=True, maintain_order=True).items():
        yield names[str(of)], part


def as_runs(
    batch: Batch, name: str, grades: pl.DataFrame, rankings: pl.DataFrame, replaced: str
) -> WrittenExport:
    """Write a format of runs and qrels; `replaced`: the note about new scores, if there are any."""
    notes = [*mappings(batch), *not_held(batch, ("rankings", "judgements"), name)]
    pools = rows_of(batch, "rankings").filter(pl.col("stage") == "pool").height
    if pools:
        notes.append(f"{pools:,} rows of candidate pools are left out: a {name} run is one ranking.")
    counts = {"runs": rankings["run_id"].n_unique(), "rankings": rankings.height}
    return WrittenExport({**counts, "judgements": grades.height}, (*notes, *([replaced] if replaced else ())))


def not_held(batch: Batch, held: Iterable[str], name: str) -> tuple[str, ...]:
    """Describe the parts of the batch that the format cannot hold."""
    kept = set(held)
    rest = [
        f"{rows.lazy().select(pl.len()).collect().item():,} {table}"
        for table, rows in batch.frames.items()
        if table not in kept
    ]
    return (f"{name} cannot hold, so left out: {', '.join(rest)}.",) if rest else ()


def refuse_ids(rows: pl.DataFrame, column: str, pattern: str, what: str) -> None:
    """Refuse ids that the format cannot hold."""
    bad = rows.filter(pl.col(column).str.contains(pattern))[column]
    if len(bad):
        problem = f"The {column.replace('_', ' ')} {bad[0][:80]!r} {what}."
        raise InputError(problem, do="Export the own format, which holds any id.")


def write_trec(batch: Batch, path: Path) -> WrittenExport:
    """Write rankings and judgements as TREC files."""
    rankings, replaced = scored(batch)
    grades = given_grades(batch)
    for rows in (rankings, grades):
        for column in ("query_id", "passage_id"):
            refuse_ids(rows, column, r"\s|^$", "has a blank, and TREC files separate their fields by blanks")
        refuse_ids(rows, "query_id", "^#", "begins with #, as comments do")
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


def write_ranx(batch: Batch, path: Path) -> WrittenExport:
    """Write rankings and judgements as ranx files."""
    rankings, replaced = scored(batch, fractions=True)
    grades = given_grades(batch)
    with target(path) as folder:
        _scores(folder / "runs", rankings, "run_id", "score")
        _scores(folder / "qrels", grades, "golden_set_id", "grade")
    said = f"{replaced} runs have new scores that fall with the rank: ranx orders by score."
    return as_runs(batch, "ranx", grades, rankings, said if replaced else "")


def _scores(folder: Path, rows: pl.DataFrame, owner: str, number: str) -> None:
    for name, part in parted(rows, owner):
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.json").open("w", encoding="utf-8") as file:
            lists = part.group_by("query_id", maintain_order=True).agg("passage_id", number)
            for place, (query, passages, numbers) in enumerate(lists.iter_rows()):
                scores = json.dumps(dict(zip(passages, numbers, strict=True)), ensure_ascii=False)
                file.write(f"{',' if place else '{'}\n{json.dumps(query, ensure_ascii=False)}: {scores}")
            file.write("\n}\n")


def write_beir(batch: Batch, path: Path) -> WrittenExport:
    """Write a collection with its queries and judgements; several golden sets become splits."""
    wholes = [collection.collection_id for collection in batch.collections if collection.part_of is None]
    if len(wholes) != 1:
        raise InputError(
            f"A BEIR folder holds one collection, not {len(wholes)}: {', '.join(wholes[:8]) or 'none'}.",
            do="Name one, for example --collection NAME.",
        )
    own = pl.col("collection_id") == wholes[0]
    passages = rows_of(batch, "passages").filter(own).sort("passage_id")
    queries = rows_of(batch, "queries").filter(own).sort("query_id")
    sets = [golden_set.golden_set_id for golden_set in batch.golden_sets if golden_set.part_of is None]
    grades = given_grades(batch).filter(pl.col("golden_set_id").is_in(sets))
    for column in ("query_id", "passage_id"):
        refuse_ids(grades, column, r"[\t\r\n\"]", "has a tab, quote or line break, which a .tsv cannot hold")
    with target(path) as folder:
        with (folder / "corpus.jsonl").open("w", encoding="utf-8") as sink:
            for row in passages.iter_rows(named=True):
                metadata = {"source": row["source"]} if row["source"] else {}
                _line(sink, row["passage_id"], row["text"], metadata, title=row["title"] or "")
        with (folder / "queries.jsonl").open("w", encoding="utf-8") as sink:
            for row in queries.iter_rows(named=True):
                tags = dict(tag.split("=", 1) for tag in row["tags"] or () if "=" in tag)
                _line(sink, row["query_id"], row["text"], tags)
        alone = grades["golden_set_id"].n_unique() == 1
        for name, rows in parted(grades, "golden_set_id"):
            file = folder / "qrels" / f"{'test' if alone else name}.tsv"
            file.parent.mkdir(exist_ok=True)
            columns = {"query-id": "query_id", "corpus-id": "passage_id", "score": "grade"}
            rows.select(**columns).write_csv(file, separator="\t", quote_style="never")
    counts = {"passages": passages.height, "queries": queries.height, "judgements": grades.height}
    return WrittenExport(counts, (*mappings(batch), *not_held(batch, counts, "BEIR")))


def _line(sink: TextIO, own: str, text: str, metadata: Mapping[str, str], **more: str) -> None:
    row = {"_id": own, **more, "text": text, "metadata": metadata}
    sink.write(json.dumps(row, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: its title, its contents, and its writer."""

    title: str
    holds: str
    write: Callable[[Batch, Path], WrittenExport]


def _own(batch: Batch, path: Path) -> WrittenExport:
    export(batch, path)
    return WrittenExport(Import.of(batch).taken)


FORMATS: Mapping[str, ExportFormat] = {
    "own": ExportFormat("CLQ Explorer export", "everything, as it is", _own),
    "trec": ExportFormat("TREC runs and qrels", "final rankings and judgements", write_trec),
    "beir": ExportFormat("BEIR folder", "passages, queries and judgements of one collection", write_beir),
    "ranx": ExportFormat("ranx runs and qrels (JSON)", "final rankings and judgements", write_ranx),
}


def write(batch: Batch, path: Path, name: str) -> WrittenExport:
    """Write a batch in a format.

    Args:
        path: A new folder, or a file that ends in ``.zip``.
        name: One of `FORMATS`.

    Raises:
        UnknownNameError: If there is no such format.
        InputError: If the batch or the path cannot be used.
    """
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return FORMATS[name].write(batch, path)
