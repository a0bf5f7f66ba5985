"""TREC: ``runs/<run>.run`` (``qid Q0 docid rank score tag``) and ``qrels/<golden set>.qrels``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from core.exporters.base import Written, as_runs, given_grades, parted, refuse_ids, scored
from core.importers.target import target
from core.records import Batch

_BLANK = r"\s|^$"
_COMMENT = "^#"


def write(batch: Batch, path: Path) -> Written:
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
            _write(folder / "runs" / f"{name}.run", run)
        for name, rows in parted(grades, "golden_set_id"):
            qrels = rows.select("query_id", pl.lit("0").alias("iteration"), "passage_id", "grade")
            _write(folder / "qrels" / f"{name}.qrels", qrels)
    said = (
        f"{replaced} runs have new scores that fall with the rank: their own have ties, gaps or another "
        "order, and trec_eval orders by score."
    )
    return as_runs(batch, "TREC", grades, rankings, said if replaced else "")


def _write(file: Path, rows: pl.DataFrame) -> None:
    file.parent.mkdir(exist_ok=True)
    rows.write_csv(file, include_header=False, separator=" ", quote_style="never")
