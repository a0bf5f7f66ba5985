"""Readers behind a local HTTP server on two small stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from core.pipeline.evaluate.session import Result, Site
from core.pipeline.sweep import load_as
from core.prices import Price, PriceBook
from core.providers.chat.fake import made_answer
from core.records import Batch, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame
from core.work.readers import stored
from core.work.readers.job import ReaderJob
from core.work.readers.kind import READERS
from core.work.readers.run import ReaderSpec, run_job
from tests import stores
from tests.vendors import keys_for
from tests.work.golden import built

RANKED = {
    "r-a": {"q1": ["p0", "p5", "p3"], "q2": ["p1", "p8", "p9"], "q3": ["p2", "p4", "p6"]},
    "r-b": {"q1": ["p0", "p3", "p6"], "q2": ["p1", "p8", "p4"], "q3": ["p9", "copy", "empty"]},
}
GOLD = {"q1": "p0", "q2": "p1", "q3": "p2"}
ANSWERS = {"q1": ["sort a frame by rows"], "q2": ["the mean of rows", "mean"], "q3": ["a chart"]}
SPEC = """
name = "asked"
collection = "c"
prices = "fake"
[reader]
runs = ["r-a", "r-b"]
models = ["reader"]
k = [1, 2]
"""


def store_of(folder: Path) -> Store:
    """A store with two runs, a golden set and gold answers."""
    return Store.open(stores.filled(folder / "store", "asked", _write))


def _write(path: Path) -> None:
    store = built.store_of(path.parent)
    runs = tuple(
        Run(run_id=name, collection_id="c", stack=Stack({"mode": name}), label=name, origin=Origin.RUN)
        for name in RANKED
    )
    rankings = [
        {"run_id": name, "query_id": query, "stage": "final", "rank": rank, "passage_id": passage}
        for name, ranked in RANKED.items()
        for query, passages in ranked.items()
        for rank, passage in enumerate(passages, 1)
    ]
    graded = [
        {"golden_set_id": "g", "query_id": query, "passage_id": passage, "grade": 5, "raw": 5}
        for query, passage in GOLD.items()
    ]
    golds = [
        {"collection_id": "c", "query_id": query, "answer": answer}
        for query, answers in ANSWERS.items()
        for answer in answers
    ]
    rows = {"rankings": rankings, "judgements": graded, "gold_answers": golds}
    with store.write("import") as writer:
        writer.add(
            Batch(
                golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="g"),),
                runs=runs,
                frames={table: frame(table, some) for table, some in rows.items()},
            )
        )


def answer(body: Mapping[str, Any]) -> str:
    """What the server's models say: as the fake one does."""
    system, user = (str(each["content"]) for each in body["messages"])
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return made_answer(user, schema, cites="[1]" in system)


def models(url: str, **limits: Any) -> dict[str, Any]:
    """Configurations of models at an address."""
    return {
        name: {
            "provider": "openai", "base_url": f"{url}/openai/v1", "key_env": "KEY",
            "limits": {"concurrency": 4, "attempts": 3, **limits},
            "tokenizer": "o200k_base", "chat": {"json_mode": "schema"},
        }
        for name in ("reader", "second", "judge")
    }  # fmt: skip


def job(store: Store, url: str = "http://nowhere", text: str = SPEC, **limits: Any) -> ReaderJob:
    """A job whose models are at an address."""
    spec = load_as(ReaderSpec, f"{text}\n")
    spec = spec.model_validate(
        {**spec.model_dump(exclude_none=True, exclude={"models"}), "models": models(url, **limits)}
    )
    made, _ = stored.read(store.read(), spec, {"fake": book()}, to_run=False)
    return made


def book() -> PriceBook:
    """Prices of the models."""
    told = {"provider": "fake", "looked_up": date(2026, 11, 1), "confirmed": True, "source": "here"}
    prices = [
        Price(item=item, unit=unit, price=price, per=1e6, currency="USD", **told)
        for item in ("reader", "second", "judge")
        for unit, price in (("input_tokens", 1.0), ("output_tokens", 4.0))
    ]
    return PriceBook("fake", tuple(prices))


def ask(store: Store, of: ReaderJob, url: str = "http://nowhere", **options: Any) -> Result:
    """Have them answer into the store."""
    shared, keys = store.path.parent / "evaluations", keys_for(url, KEY="key")
    site = Site(work=READERS.work_of(store.path), shared=shared, keys=keys, **options)
    return run_job(of, store_results=lambda batch: stored.store_results(store, batch), site=site)


def counts(store: Store, table: str = "answers", *by: str) -> dict[tuple[Any, ...], int]:
    """How many answers, or scores, each block has."""
    rows = getattr(store.read(), table)(list(RANKED))
    by = by or ("run_id", "reader", "mode", "k")
    return {tuple(key): count for *key, count in rows.group_by(by).len().iter_rows()}


def scores(store: Store, scorer: str) -> pl.DataFrame:
    """The scores of one scorer."""
    return store.read().answer_scores(list(RANKED)).filter(scorer=scorer)
