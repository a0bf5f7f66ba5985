"""An evaluation with paid models; imported before processes that are killed are forked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import openai  # noqa: F401 - loaded once for all processes
import polars as pl
import voyageai.client  # noqa: F401

from core.pipeline.evaluate import Job, Outcome, Protocol, corpus_of, results, run_job
from core.pipeline.evaluate.folder import Folder, State, folders
from core.pipeline.evaluate.session import Site
from core.prices import Price, PriceBook
from core.providers.calls import Limits
from core.providers.config import ModelConfig
from core.records import Batch, Collection, Stack
from core.store import Snapshot, Store
from core.store.doctor import examine
from tests.pipeline.corpora import WORDS, passages, queries, random_texts
from tests.vendors import keys_for

QUESTIONS = [
    f"{one} {other}" for one in ("sort a frame", "lazy mean", "join rows", "plot") for other in WORDS[:4]
]
AT_ONCE = 2
"""Batches of the corpus that are under way together; queries are asked one after the other."""
USD_PER_TOKEN = 0.001


def job(url: str, *, attempts: int = 2, size: int = 15, **changes: Any) -> Job:
    """Four stacks of two paid models over `size` passages, asked about `size` / 3 questions at most."""
    limits = Limits(concurrency=AT_ONCE, attempts=attempts)
    common = {"key_env": "KEY", "limits": limits}
    models = {
        "embedder": ModelConfig(
            provider="openai", model="e", name="embedder", base_url=f"{url}/openai/v1", dims=(8, 16),
            matryoshka=True, batch_items=3, **common,
        ),
        "reranker": ModelConfig(
            provider="voyage", model="r", name="reranker", base_url=f"{url}/voyage/v1", **common
        ),
    }  # fmt: skip
    texts = [f"{text} number {at}" for at, text in enumerate(random_texts(size, seed=3))]
    asked = queries(QUESTIONS[: size // 3])
    setup = Batch(
        collections=(Collection(collection_id="c", name="C"),),
        frames={"passages": passages(texts), "queries": asked},
    )
    return Job(
        **{
            "name": "paid",
            "collection_id": "c",
            "corpora": {None: corpus_of(passages(texts))},
            "queries": asked,
            "stacks": stacks(),
            "setup": setup,
            "models": models,
            "protocol": Protocol(repeats=2),
            "book": book(),
            **changes,
        }
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


def work(
    folder: Path, url: str, key: str, asked: Job | None = None, *, before: Any = None, **options: Any
) -> Outcome:
    """Run the evaluation or what is left of it, into a store."""
    store = Store.open(folder / "store")

    def sink(batch: Batch) -> None:
        with store.write("evaluate") as writer:
            writer.add(batch)

    held = store.read().runs()["run_id"].to_list()
    keys = keys_for(url, KEY=key)
    whole = asked or job(url)
    site = Site(work=folder / "evaluations", keys=keys, **options)
    return run_job(whole, sink, site=site, held=held, before=before)


def work_much(folder: Path, url: str, key: str, on: str = "") -> Outcome:
    """Run one that takes long enough to be killed many times."""
    return work(folder, url, key, job(url, size=60, budget_usd=1_000.0), on=on)


def many(url: str, count: int) -> Job:
    """So many stacks of two paid models, each with requests of its own."""
    reranked = {"mode": "dense", "embedder": "embedder", "index": "flat", "reranker": "reranker"}
    kinds = [Stack({**reranked, "dim": dim, "candidates": 1 + at}) for at in range(count) for dim in (8, 16)]
    return job(url, size=max(15, count), budget_usd=1_000.0, stacks=kinds[:count])


def work_one_by_one(folder: Path, url: str, key: str, count: int) -> Outcome:
    """Run many stacks in a process of its own, each stored when it has finished, as those that take long."""
    results._EVERY_S = 0.0
    return work(folder, url, key, many(url, count))


def folder_of(folder: Path) -> Folder:
    """Where the one evaluation of a folder is."""
    (found,) = folders(folder / "evaluations")
    return found


def require_same(one: Path, other: Path) -> None:
    """Two evaluations ended with the same; only times differ."""
    stores = [Store.open(folder / "store") for folder in (one, other)]
    assert examine(stores[1]).sound
    reads = [store.read() for store in stores]
    ids = reads[0].runs()["run_id"].sort().to_list()
    assert reads[1].runs()["run_id"].sort().to_list() == ids
    tables: dict[str, Callable[[Snapshot], pl.DataFrame]] = {
        "final": lambda read: read.rankings(ids),
        "pool": lambda read: read.rankings(ids, stage="pool"),
        "paid": lambda read: read.usage(ids).filter(pl.col("unit") != "cpu_ms"),
        "timed": lambda read: read.timings(ids).drop("ms"),
        "signals": lambda read: read.signals(ids),
    }
    for name, table in tables.items():
        left, right = (table(read).sort(pl.all()) for read in reads)
        assert left.equals(right), name
    status = folder_of(other).status()
    assert status is not None
    assert (status.state, status.runs_done) == (State.FINISHED, len(ids))
