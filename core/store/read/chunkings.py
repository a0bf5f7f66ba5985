"""Chunkings: which part collection a run searched, and which part golden set judges it.

A chunker's chunks of the documents of collection "c" are the passages of the part collection "c@x", where x
names the chunking; the queries stay with "c". What follows from the spans of golden set "g" for these chunks
are the judgements of the part golden set "g@x". Both are records like others, with `part_of` set.
"""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from core.errors import InputError
from core.records import part_id


def searched(collection_id: str, chunking: str | None) -> str:
    """The collection whose passages a run ranks."""
    return part_id(collection_id, chunking) if chunking else collection_id


def judging(runs: pl.DataFrame, golden_set_id: str, parts: Ids[str]) -> dict[str, str]:
    """Per run the golden set with the judgements of the passages it ranks."""
    own = {
        run_id: part_id(golden_set_id, chunking) if chunking else golden_set_id
        for run_id, chunking in runs.select("run_id", "chunking").iter_rows()
    }
    return {run_id: name if name in parts else golden_set_id for run_id, name in own.items()}


def check_parts(kind: str, offered: Iterable[Mapping[str, Any]], known: Mapping[str, str | None]) -> None:
    """Refuse a part that could not be found again from its whole."""
    for record in offered:
        name, whole = record[f"{kind}_id"], record["part_of"]
        if whole is None:
            continue
        if whole not in known or known[whole] is not None:
            state = "is a part itself" if whole in known else "is absent"
            problem = f"It is part of {whole!r}, which {state}."
        elif not (name.startswith(part_id(whole, "")) and name != part_id(whole, "")):
            problem = f"It is part of {whole!r}, so its id is {part_id(whole, 'name of the chunking')!r}."
        else:
            continue
        raise InputError(problem, where=f"{kind.replace('_', ' ')} {name!r}", do="Nothing was written.")
