"""ranx: ``runs/<run>.json`` and ``qrels/<golden set>.json``, each {query: {passage: number}}."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from core.exporters.base import Written, file_names, given_grades, mappings, not_held, rows_of, scored
from core.importers.target import target
from core.records import Batch


def write(batch: Batch, path: Path) -> Written:
    """Write rankings and judgements as ranx files.

    Args:
        batch: What to write.
        path: A new folder, or a file that ends in ``.zip``.

    Raises:
        InputError: The path exists or cannot be written.
    """
    rankings, replaced = scored(batch, fractions=True)
    grades = given_grades(batch)
    with target(path) as folder:
        _write(folder / "runs", rankings, "run_id", "score")
        _write(folder / "qrels", grades, "golden_set_id", "grade")
    notes = [*mappings(batch), *not_held(batch, ("rankings", "judgements"), "ranx")]
    pools = rows_of(batch, "rankings").filter(pl.col("stage") == "pool").height
    if pools:
        notes.append(f"{pools:,} rows of candidate pools are left out: a ranx run is one ranking.")
    if replaced:
        notes.append(f"{replaced} runs have new scores that fall with the rank: ranx orders by score.")
    counts = {"runs": rankings["run_id"].n_unique(), "rankings": rankings.height}
    return Written({**counts, "judgements": grades.height}, tuple(notes))


def _write(folder: Path, rows: pl.DataFrame, owner: str, number: str) -> None:
    names = file_names(rows[owner].unique(maintain_order=True))
    for (of,), part in rows.partition_by(owner, as_dict=True, maintain_order=True).items():
        folder.mkdir(exist_ok=True)
        with (folder / f"{names[str(of)]}.json").open("w", encoding="utf-8") as file:
            lists = part.group_by("query_id", maintain_order=True).agg("passage_id", number)
            for place, (query, passages, numbers) in enumerate(lists.iter_rows()):
                scores = json.dumps(dict(zip(passages, numbers, strict=True)), ensure_ascii=False)
                file.write(f"{',' if place else '{'}\n{json.dumps(query, ensure_ascii=False)}: {scores}")
            file.write("\n}\n")
