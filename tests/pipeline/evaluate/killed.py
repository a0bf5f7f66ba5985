"""An evaluation with paid models, for processes that are killed; imported before they are forked."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import openai  # noqa: F401 - loaded once for all processes
import voyageai.client  # noqa: F401

from core.clq.prices import Price, PriceBook
from core.pipeline.evaluate import Job, Outcome, Protocol, corpus_of, run_job
from core.providers.calls import Keys, Limits
from core.providers.config import ModelConfig
from core.records import Batch, Collection, Stack
from core.store import Store
from tests.pipeline.corpora import WORDS, passages, queries, random_texts

QUESTIONS = [
    f"{one} {other}" for one in ("sort a frame", "lazy mean", "join rows", "plot") for other in WORDS[:4]
]
AT_ONCE = 2
"""Batches of the corpus that are under way together; queries are asked one after the other."""
USD_PER_TOKEN = 0.001


def job(url: str, *, budget_usd: float | None = 1_000.0, concurrency: int = 1) -> Job:
    limits = Limits(concurrency=AT_ONCE, attempts=2)
    models = {
        "embedder": ModelConfig(
            provider="openai", model="e", dims=(8, 16), matryoshka=True, base_url=f"{url}/openai/v1",
            key_env="KEY", batch_items=3, limits=limits,
        ),
        "reranker": ModelConfig(
            provider="voyage", model="r", base_url=f"{url}/voyage/v1", key_env="KEY", limits=limits,
        ),
    }  # fmt: skip
    texts = [f"{text} number {at}" for at, text in enumerate(random_texts(60, seed=3))]
    return Job(
        name="killed",
        collection_id="c",
        corpora={None: corpus_of(passages(texts))},
        queries=queries(QUESTIONS),
        stacks=stacks(),
        setup=Batch(
            collections=(Collection(collection_id="c", name="C"),),
            frames={"passages": passages(texts), "queries": queries(QUESTIONS)},
        ),
        models=models,
        protocol=Protocol(repeats=2, concurrency=concurrency),
        budget_usd=budget_usd,
        book=book(),
    )


def stacks() -> list[Stack]:
    dense = {"mode": "dense", "embedder": "embedder", "index": "flat"}
    hybrid = {
        **dense,
        "mode": "hybrid",
        "sparse": "bm25",
        "fusion": {"method": "rrf", "constant": 60, "depth": 20},
    }
    return [
        Stack({"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 5}),
        Stack({**dense, "dim": 8, "reranker": "none", "candidates": 5}),
        Stack({**dense, "dim": 16, "reranker": "reranker", "candidates": 5}),
        Stack({**hybrid, "dim": 16, "reranker": "reranker", "candidates": 3}),
    ]


def book() -> PriceBook:
    facts = {"unit": "input_tokens", "price": USD_PER_TOKEN, "per": 1.0, "currency": "USD", "source": "here"}
    made = {"provider": "fake", "looked_up": date(2026, 11, 1), "confirmed": True, **facts}
    return PriceBook("fake", tuple(Price(item=item, **made) for item in ("e", "r")))


def work(folder: Path, url: str, key: str, budget_usd: float | None = 1_000.0) -> Outcome:
    """Run the evaluation or what is left of it, into a store."""
    store = Store.open(folder / "store")

    def sink(batch: Batch) -> None:
        with store.write("evaluate") as writer:
            writer.add(batch)

    held = store.read().runs()["run_id"].to_list()
    keys = Keys({"KEY": key}, secrets=())
    return run_job(job(url, budget_usd=budget_usd), sink, work=folder / "evaluations", held=held, keys=keys)
