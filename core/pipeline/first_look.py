"""The first look: stacks with a real trade-off over the demo's texts and questions, shipped as results.

They were measured by `tools/demo/stacks.py`, which says how; data/demo/README.md says on what.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.importers import load
from core.paths import DEMO
from core.pipeline import demo
from core.records import Batch, Collection, GoldenSet

COLLECTION_ID, GOLDEN_SET_ID = "docs-search", "docs-search-graded"
RESULTS = DEMO / "measured"


def collection() -> Collection:
    """Return the collection: the passages and questions of the demo."""
    return replace(
        demo.collection(),
        collection_id=COLLECTION_ID,
        name="Search in Python documentation",
        notes="The texts and questions of python-docs, searched by an encoder and a reranker too; measured"
        " once and shipped as results. See data/demo/README.md.",
    )


def golden_set() -> GoldenSet:
    """Return its judgements: those of the demo, whose pools had neither the encoder nor the reranker."""
    return replace(
        demo.golden_set(),
        golden_set_id=GOLDEN_SET_ID,
        collection_id=COLLECTION_ID,
        name="Search in Python documentation, graded",
        notes="The grades of python-docs-graded. What only the encoder or the reranker brings is unjudged,"
        " and counts as not relevant: their qualities are lower bounds. See data/demo/README.md.",
    )


def batch() -> Batch:
    """Return the whole workspace: texts, questions, grades, right answers, and what was measured."""
    here, graded = pl.lit(COLLECTION_ID), pl.lit(GOLDEN_SET_ID)
    measured = load([RESULTS])
    frames = {
        "passages": demo.passages().with_columns(collection_id=here),
        "queries": demo.queries().with_columns(collection_id=here),
        "gold_answers": demo.gold_answers().with_columns(collection_id=here),
        "judgements": demo.judgements().with_columns(golden_set_id=graded),
        **measured.frames,
    }
    return Batch(collections=(collection(),), golden_sets=(golden_set(),), runs=measured.runs, frames=frames)
