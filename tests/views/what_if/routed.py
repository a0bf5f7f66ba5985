"""A store whose stacks have a reranker, measured by the product's own pipeline at several depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from core.analysis.workspace.scope import Scope
from core.pipeline.evaluate import Job, Protocol, corpus_of, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep.expand import grid
from core.pipeline.sweep.model import Axes
from core.providers.config import ModelConfig
from core.records import Batch, Collection, GoldenSet, Stack
from core.store import Store
from core.tables import frame
from tests.pipeline.corpora import passages, queries, random_texts

ROUTED = Scope("c", "gold")
DENSE = {"mode": "dense", "embedder": "fake", "dim": 16, "index": "flat", "reranker": "fake"}
QUESTIONS = 24


def write(
    path: Path,
    depths: Sequence[int],
    *,
    deepest: bool = False,
    rerankers: Sequence[str] = ("fake",),
    models: Mapping[str, ModelConfig] | None = None,
) -> Store:
    """Run rerankers at some depths of a dense search; grades are drawn at random.

    Args:
        path: Where the store is made.
        depths: Candidate depths, a run each.
        deepest: Ask the reranker at the deepest only, so that the others have no latency.
        rerankers: By name.
        models: That no catalogue has.
    """
    texts = passages(random_texts(60, seed=7))
    asked = queries(random_texts(QUESTIONS, seed=8))
    each = [{**DENSE, "reranker": name, "candidates": depth} for name in rerankers for depth in depths]
    stacks = [Stack(spec) for spec in each]
    job = Job(
        name="routed",
        collection_id="c",
        corpora={None: corpus_of(texts)},
        queries=asked,
        stacks=stacks,
        models=models or {},
        protocol=Protocol(repeats=1, warm_up=0, deepest=deepest),
    )
    random = np.random.default_rng(3)
    graded = [
        {"golden_set_id": "gold", "query_id": query, "passage_id": passage, "grade": grade, "raw": grade}
        for query in asked["query_id"]
        for passage in random.choice(texts["passage_id"].to_numpy(), 25, replace=False).tolist()
        for grade in (int(random.integers(1, 6)),)
    ]
    tags = asked.with_columns(pl.Series("tags", [[f"type={'ab'[at % 2]}"] for at in range(QUESTIONS)]))
    setup = Batch(
        collections=(Collection(collection_id="c", name="C"),),
        golden_sets=(GoldenSet(golden_set_id="gold", collection_id="c", name="Gold"),),
        frames={
            "queries": tags,
            "passages": texts,
            "judgements": frame("judgements", [{**row, "judge": None} for row in graded]),
        },
    )
    store = Store.open(path)
    _add(store, setup)
    run_job(job, lambda batch: _add(store, batch), site=Site(work=path.parent / "work"))
    return store


def write_rewritten(path: Path) -> Store:
    """Ask BM25 for numbered passages with and without small talk, and with and without a rewrite of it."""
    texts = passages([f"{text} mentions number {at}" for at, text in enumerate(random_texts(60, seed=7))])
    asked = queries([f"what is number {at} about" for at in range(QUESTIONS)])
    both = {"noise": [0, 4], "embedder": {"name": "fake", "dim": [16]}, "candidates": 10}
    stacks = [
        *grid(Axes.model_validate({**both, "mode": "sparse", "rewrite": ["none", "rules"]})),
        *grid(Axes.model_validate({**both, "mode": "dense"})),
    ]
    job = Job(
        name="rewriting", collection_id="c", corpora={None: corpus_of(texts)}, queries=asked, stacks=stacks,
        protocol=Protocol(repeats=1, warm_up=0),
    )  # fmt: skip
    graded = [
        {
            "golden_set_id": "gold",
            "query_id": query,
            "passage_id": passage,
            "grade": 5,
            "raw": 5,
            "judge": None,
        }
        for query, passage in zip(asked["query_id"], texts["passage_id"], strict=False)
    ]
    store = Store.open(path)
    _add(
        store,
        Batch(
            collections=(Collection(collection_id="c", name="C"),),
            golden_sets=(GoldenSet(golden_set_id="gold", collection_id="c", name="Gold"),),
            frames={"queries": asked, "passages": texts, "judgements": frame("judgements", graded)},
        ),
    )
    run_job(job, lambda batch: _add(store, batch), site=Site(work=path.parent / "work"))
    return store


def _add(store: Store, batch: Batch) -> None:
    with store.write("test") as writer:
        writer.add(batch)
