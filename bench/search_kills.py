"""A search with paid models, killed -9 and begun again: ``python -m bench.search_kills [TIMES]``; by hand.

Counts are the vendor's. Nothing is timed, so that the search comes to the same however often it is killed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from core.files import read_json
from core.pipeline.evaluate import Job, Outcome, Protocol
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.search.evaluation import searching
from core.pipeline.search.propose import quiet
from core.prices import Price, PriceBook
from core.providers.base import LOCAL_ITEM
from core.records import Batch, GoldenSet, Stack
from core.tables import frame
from tests.pipeline.evaluate import kills, paid
from tests.pipeline.evaluate.vendor import vendor

HOW = {"trials": 24, "rounds": [4, 8, 12], "seed": 3, "measure": "nDCG@5", "level": 0.9, "margin": 0.01}


def stacks() -> list[Stack]:
    """Stacks that differ in what they pay for: 72."""
    dense = {"mode": "dense", "embedder": "embedder", "index": "flat"}
    fused = [{"method": "rrf", "constant": constant, "depth": 20} for constant in (10, 60)]
    hybrids = [{**dense, "mode": "hybrid", "sparse": "bm25", "fusion": fusion} for fusion in fused]
    return [
        Stack({**path, "dim": dim, "reranker": reranker, "candidates": k})
        for path, dim, reranker, k in product(
            (dense, *hybrids), (8, 16), ("none", "reranker"), (3, 5, 8, 10, 15, 20)
        )
    ]


def job(url: str) -> Job:
    """A search among them, in which passages that share words with a question are answers to it."""
    asked = paid.job(url, size=60, stacks=stacks(), protocol=Protocol(repeats=0), budget_usd=1_000.0)
    corpus = asked.corpora[None]
    graded = []
    for query, question in asked.queries.select("query_id", "text").iter_rows():
        shared = corpus.texts.str.count_matches(rf"\b({question.replace(' ', '|')})\b")
        for passage, words in zip(corpus.passage_ids, shared, strict=True):
            graded.append((query, passage, 1 + min(4, words)))
    names = ("golden_set_id", "query_id", "passage_id", "grade")
    columns = zip(*(("g", *each) for each in graded), strict=True)
    judged = frame("judgements", dict(zip(names, columns, strict=True)))
    held = asked.setup
    setup = Batch(
        collections=held.collections,
        golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="g"),),
        frames={**held.frames, "judgements": judged},
    )
    spec = {"axes": [{"method": "search"}], "search": HOW}
    return replace(asked, setup=setup, spec=spec, book=_book(asked.book))


def _book(book: PriceBook) -> PriceBook:
    """With a machine that costs nothing, for its time is never the same."""
    free = Price(item=LOCAL_ITEM, unit="cpu_hour", price=0.0, per=1.0, currency="USD", source="here",
                 provider="here", looked_up=date(2026, 11, 1), confirmed=True)  # fmt: skip
    return PriceBook(book.name, (*book.prices, free))


def work(folder: Path, url: str, key: str) -> Outcome:
    """Search, or do what is left of it."""
    asked = job(url)
    return paid.work(folder, url, key, asked, before=searching(asked))


def trials(folder: Path) -> int:
    """How many trials the study of a search has, opened as optuna-dashboard does; -1 = none is there yet."""
    held = list((folder / "evaluations").glob("*/study.sqlite"))
    if not held:
        return -1
    with quiet() as package:
        storage = package.storages.RDBStorage(f"sqlite:///{held[0]}")
        studies = storage.get_all_studies()
        count = sum(storage.get_n_trials(study._study_id) for study in studies) if studies else -1
        storage.engine.dispose()
    return count


def killed(folder: Path, times: int) -> dict[str, Any]:
    """Search without a break, and killed so often; what was paid, once equal results are seen."""
    draw, left = np.random.default_rng(2028), []
    with vendor(folder, delay_s=0.004) as server:
        work(folder / "whole", server.url, "whole")
        needed = server.paid("whole")
        every = len(server.requests("whole"))
        attempts = kills.kill_until_done(
            work,
            folder / "killed",
            server,
            draw,
            times,
            calls=2 * every // (times + 1),
            later_s=0.3,
            after=lambda: left.append(trials(folder / "killed")),
        )
        bought = sum((server.paid(key) for key in attempts), Counter[str]())
        billed = (server.billed() - server.billed("whole")) * paid.USD_PER_TOKEN
    paid.require_same(folder / "whole", folder / "killed")
    found = [read_json(paid.folder_of(folder / name).search) for name in ("whole", "killed")]
    assert found[0] == found[1], "the search came to something else"
    with closing(Receipts(paid.folder_of(folder / "killed").receipts)) as receipts:
        told = {"told": receipts.again, "settled": receipts.settled, "lost": receipts.lost}
    return {
        "kills": list(attempts.values()).count(True),
        "begun": found[0]["begun"],
        "dropped": found[0]["dropped"],
        "needed": needed.total(),
        "never asked": (needed - bought).total(),
        "paid again": (bought - needed).total(),
        "billed": billed,
        **told,
        "trials of the study after each": left,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(killed(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 10))
