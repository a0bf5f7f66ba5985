"""TREC: ``runs/<run>.run`` (``qid Q0 docid rank score tag``) and ``qrels/<golden set>.qrels``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from core.exporters.base import (
    Written,
    file_names,
    given_grades,
    mappings,
    not_held,
    refuse_ids,
    rows_of,
    scored,
)
from core.importers.target import target
from core.records import Batch

_BLANK = r"\s|^$"
_COMMENT = "^#"


def write(batch: Batch, path: Path) -> Written:
    """Write rankings and judgements as TREC files.

    Args:
        batch: What to write.
        path: A new folder, or a file that ends in ``.zip``.

    Raises:
        InputError: The path exists or cannot be written; an id has blanks, which separate the fields.
    """
    rankings, replaced = scored(batch)
    grades = given_grades(batch)
    for rows in (rankings, grades):
        for column in ("query_id", "passage_id"):
            refuse_ids(rows, column, _BLANK, "has a blank, and TREC files separate their fields by blanks")
        refuse_ids(rows, "query_id", _COMMENT, "begins with #, as comments do")
    with target(path) as folder:
        _runs(folder / "runs", rankings)
        _qrels(folder / "qrels", grades)
    notes = [*mappings(batch), *not_held(batch, ("rankings", "judgements"), "TREC")]
    pools = rows_of(batch, "rankings").filter(pl.col("stage") == "pool").height
    if pools:
        notes.append(f"{pools:,} rows of candidate pools are left out: a TREC run is one ranking.")
    if replaced:
        notes.append(
            f"{replaced} runs have new scores that fall with the rank: their own have ties, gaps or another "
            "order, and trec_eval orders by score."
        )
    counts = {"runs": rankings["run_id"].n_unique(), "rankings": rankings.height}
    return Written({**counts, "judgements": grades.height}, tuple(notes))


def _runs(folder: Path, rankings: pl.DataFrame) -> None:
    names = file_names(rankings["run_id"].unique(maintain_order=True))
    for (run_id,), rows in rankings.partition_by("run_id", as_dict=True, maintain_order=True).items():
        name, rank = names[str(run_id)], pl.col("rank").rank("ordinal").over("query_id")
        fields = (
            "query_id",
            pl.lit("Q0").alias("iter"),
            "passage_id",
            rank,
            "score",
            pl.lit(name).alias("tag"),
        )
        _write(folder / f"{name}.run", rows.select(fields))


def _qrels(folder: Path, grades: pl.DataFrame) -> None:
    names = file_names(grades["golden_set_id"].unique(maintain_order=True))
    for (golden,), rows in grades.partition_by("golden_set_id", as_dict=True, maintain_order=True).items():
        fields = ("query_id", pl.lit("0").alias("iter"), "passage_id", "grade")
        _write(folder / f"{names[str(golden)]}.qrels", rows.select(fields))


def _write(file: Path, rows: pl.DataFrame) -> None:
    file.parent.mkdir(exist_ok=True)
    rows.write_csv(file, include_header=False, separator=" ", quote_style="never")
