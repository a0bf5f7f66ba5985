"""The demo with filters: each question is asked within a package or a module; results are shipped.

They were measured by `tools/demo/filtered.py`, as those of `demo_docs` are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from core.filters import parse
from core.importers import load
from core.paths import DEMO
from core.pipeline import demo, demo_docs
from core.records import Batch, Collection, GoldenSet
from core.tables import TABLES, frame

COLLECTION_ID, GOLDEN_SET_ID = "docs-tenants", "docs-tenants-graded"
FILTERS, RESULTS = DEMO / "filters.jsonl", DEMO / "filtered"
PERMISSION = "package"
"""The field that says what an asker may see."""


def collection() -> Collection:
    """Return the collection: the passages and questions of `docs-search`, with filters."""
    return replace(
        demo.collection(),
        collection_id=COLLECTION_ID,
        name="Docstrings, filtered by package and module",
        notes="The texts, questions and grades of docs-search. Askers see one package or one module of it;"
        " package is marked as a permission. See data/demo/README.md.",
    )


def golden_set() -> GoldenSet:
    """Return the grades of `docs-search`; what lies outside of a filter is set aside when they are read."""
    graded = demo_docs.golden_sets()[0]
    name = "Docstrings by package and module, graded"
    return replace(graded, golden_set_id=GOLDEN_SET_ID, collection_id=COLLECTION_ID, name=name)


def known(passage_id: str) -> Mapping[str, str]:
    """Return the fields of a passage: its package, and its module or class, else the package again."""
    parts = passage_id.split(".")
    return {"package": parts[0], "module": ".".join(parts[: 2 if len(parts) > 2 else 1])}


def texts() -> Batch:
    """Return the collection with its texts, questions, grades, metadata and filters, without results."""
    here = pl.lit(COLLECTION_ID)
    passages = demo.passages().with_columns(collection_id=here)
    fields = [json.dumps(known(name), sort_keys=True) for name in passages["passage_id"]]
    asked = [json.loads(line) for line in FILTERS.read_text(encoding="utf-8").splitlines()]
    filters = [parse(each["filter"], FILTERS.name).text for each in asked]
    judged = pl.concat([demo.judgements(), demo_docs.later()])
    frames = {
        "passages": passages,
        "queries": demo_docs.queries().with_columns(collection_id=here),
        "judgements": judged.with_columns(golden_set_id=pl.lit(GOLDEN_SET_ID)),
        "passage_metadata": passages.select("collection_id", "passage_id", metadata=pl.Series(fields)),
        "query_filters": pl.DataFrame(
            {"query_id": [each["query_id"] for each in asked], "filter": filters}
        ).select(here.alias("collection_id"), "query_id", "filter"),
        "fields": frame(
            "fields", [{"collection_id": COLLECTION_ID, "field": PERMISSION, "permission": True}]
        ),
    }
    frames = {name: rows.select(list(TABLES[name])) for name, rows in frames.items()}
    return Batch(collections=(collection(),), golden_sets=(golden_set(),), frames=frames)


def shipped() -> Batch:
    """Return the workspace with its results."""
    held, measured = texts(), load([RESULTS])
    return replace(held, runs=measured.runs, frames={**held.frames, **measured.frames})
