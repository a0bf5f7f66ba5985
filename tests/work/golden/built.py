"""Small builds with a judge behind a local HTTP server; imported before processes to be killed are forked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import openai  # noqa: F401 - loaded once for all processes
import polars as pl

from core.pipeline.evaluate.session import Result, Site
from core.pipeline.sweep import parse_as
from core.prices import Price, PriceBook
from core.providers.chat.ask import find_marked
from core.records import Batch, Collection
from core.store import Store
from core.tables import frame
from core.work.golden import stored
from core.work.golden.job import GoldenJob
from core.work.golden.kind import GOLDEN
from core.work.golden.run import run_job
from core.work.golden.spec import GoldenSpec
from tests import stores
from tests.vendors import keys_for

QUESTIONS = {"q1": "sort a frame", "q2": "mean of rows", "q3": "plot a chart"}
TEXTS = {
    **{f"p{at}": f"{words}, text number {at}" for at, words in enumerate(
        ("sort a frame by rows", "the mean of rows", "plot a chart", "join a frame", "a chart of the mean",
         "sort rows", "nothing of it", "frame", "rows and rows", "plot the mean of a frame")
    )},
    "copy": "sort a frame by rows, text number 0",
    "empty": "",
}  # fmt: skip
SPEC = """
name = "judged"
collection.stored = "c"
prices = "fake"
[golden]
[[golden.pool]]
stack = { sparse = "bm25" }
depth = 6
[[golden.pool]]
stack = { embedder = "fake", dim = 16 }
depth = 4
[golden.judge]
models = ["judge"]
"""
Answer = Callable[[Mapping[str, Any]], str]


def grade_of(question: str, passage: str) -> int:
    """What the judge thinks: by shared words, and a little by chance."""
    asked, told = set(question.split()), set(passage.replace(",", "").split())
    chance = hashlib.blake2b(f"{question}|{passage}".encode(), digest_size=1).digest()[0] % 2
    return min(5, 1 + len(asked & told) + chance)


def facts_of(question: str) -> list[str]:
    """What the model takes for the facts of an answer: the longer words."""
    return sorted({word for word in question.split() if len(word) > 2})


def texts_of(body: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The question and the passages of a request, the first of each label."""
    shown: dict[str, str] = {}
    for label, text in find_marked(str(body["messages"][-1]["content"])):
        shown.setdefault(label, text)
    return shown["question"], [text for label, text in shown.items() if label.startswith("passage")]


def judge(body: Mapping[str, Any]) -> str:
    """A judge that does as it is told."""
    question, passages = texts_of(body)
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if "nuggets" in properties:
        return json.dumps({"nuggets": [{"text": word, "importance": "vital"} for word in facts_of(question)]})
    if "supported" in properties:
        shown = dict(find_marked(str(body["messages"][-1]["content"])))
        facts = [text for label, text in shown.items() if label.startswith("fact")]
        return json.dumps(
            {"supported": [at for at, fact in enumerate(facts, 1) if fact in passages[0].split()]}
        )
    if "order" in body["response_format"]["json_schema"]["schema"]["properties"]:
        best = sorted(range(len(passages)), key=lambda at: (-grade_of(question, passages[at]), passages[at]))
        return json.dumps({"order": [at + 1 for at in best]})
    return json.dumps({"grade_1_5": grade_of(question, passages[0])})


def store_of(
    folder: Path, questions: Mapping[str, str] = QUESTIONS, texts: Mapping[str, str] = TEXTS
) -> Store:
    """A store with a collection and no golden set."""
    parts = {"queries": ("query_id", questions), "passages": ("passage_id", texts)}
    frames = {
        table: frame(
            table, {"collection_id": ["c"] * len(rows), key: list(rows), "text": list(rows.values())}
        )
        for table, (key, rows) in parts.items()
    }
    batch = Batch(collections=(Collection(collection_id="c", name="C"),), frames=frames)
    key = f"built {dict(questions)} {dict(texts)}"
    return Store.open(stores.filled(folder / "store", key, lambda path: stores.add(path, batch, "import")))


def job(store: Store, url: str, text: str = SPEC, **limits: Any) -> GoldenJob:
    """A build whose judge is at an address."""
    told = {"concurrency": 4, "attempts": 3, **limits}
    models = {
        name: {
            "provider": "openai", "base_url": f"{url}/openai/v1", "key_env": "KEY", "limits": told,
            "tokenizer": "o200k_base", "chat": {"json_mode": "schema"},
        }
        for name in ("judge", "second")
    }  # fmt: skip
    spec = parse_as(GoldenSpec, f"{text}\n[models]\n")
    spec = spec.model_validate({**spec.model_dump(exclude_none=True, exclude={"models"}), "models": models})
    made, _ = GOLDEN.read(store.read(), spec, {"fake": book()}, to_run=False)
    return made


def book() -> PriceBook:
    told = {"provider": "fake", "looked_up": date(2026, 11, 1), "confirmed": True, "source": "here"}
    prices = [
        Price(item=item, unit=unit, price=price, per=1e6, currency="USD", **told)
        for item in ("judge", "second")
        for unit, price in (("input_tokens", 1.0), ("output_tokens", 4.0))
    ]
    return PriceBook("fake", tuple(prices))


def build(store: Store, asked: GoldenJob, url: str, key: str = "key", **options: Any) -> Result:
    """Build into the store."""

    def sink(batch: Batch) -> None:
        with store.write("golden") as writer:
            writer.add(batch)

    shared, keys = store.path.parent / "evaluations", keys_for(url, KEY=key)
    site = Site(work=GOLDEN.work_of(store.path), shared=shared, keys=keys, **options)
    return run_job(
        asked, sink=sink, store_results=lambda batch: stored.store_results(store, batch), site=site
    )


def grades(store: Store, golden_set_id: str) -> dict[tuple[str, str], int]:
    rows = store.read().judgements(golden_set_id).select("query_id", "passage_id", "grade").rows()
    return {(query, passage): grade for query, passage, grade in rows}


def same(one: Store, other: Store, golden_set_id: str) -> bool:
    """Whether both have the same golden set, times of calls apart."""
    mine, theirs = one.read(), other.read()
    acts = [each.gradings(golden_set_id).drop("at", "seconds").sort(pl.all()) for each in (mine, theirs)]
    return (
        mine.judgements(golden_set_id).equals(theirs.judgements(golden_set_id))
        and mine.orders(golden_set_id).equals(theirs.orders(golden_set_id))
        and acts[0].equals(acts[1])
    )
