"""ranx: ``runs/<run>.json`` and ``qrels/<golden set>.json``, each {query: {passage: number}}."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from core.exporters.base import Written, as_runs, given_grades, parted, scored
from core.importers.target import target
from core.records import Batch


def write(batch: Batch, path: Path) -> Written:
    """Write rankings and judgements as ranx files."""
    rankings, replaced = scored(batch, fractions=True)
    grades = given_grades(batch)
    with target(path) as folder:
        _write(folder / "runs", rankings, "run_id", "score")
        _write(folder / "qrels", grades, "golden_set_id", "grade")
    said = (
        f"{replaced} runs have new scores that fall with the rank: ranx orders by score." if replaced else ""
    )
    return as_runs(batch, "ranx", grades, rankings, said)


def _write(folder: Path, rows: pl.DataFrame, owner: str, number: str) -> None:
    for name, part in parted(rows, owner):
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.json").open("w", encoding="utf-8") as file:
            lists = part.group_by("query_id", maintain_order=True).agg("passage_id", number)
            for place, (query, passages, numbers) in enumerate(lists.iter_rows()):
                scores = json.dumps(dict(zip(passages, numbers, strict=True)), ensure_ascii=False)
                file.write(f"{',' if place else '{'}\n{json.dumps(query, ensure_ascii=False)}: {scores}")
            file.write("\n}\n")
