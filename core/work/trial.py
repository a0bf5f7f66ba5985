"""The trial reader's answers to the demo's questions, with and without the passages that answer them.

It repeats a sentence and never refuses: it shows how pages present readers, and is no evidence on a model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.pipeline import demo_names
from core.pipeline.evaluate import merged
from core.pipeline.evaluate.session import Site
from core.prices import PriceBook
from core.records import Batch
from core.store import Store
from core.work.readers.job import ReaderJob
from core.work.readers.run import Left, ReaderSpec, run_job
from core.work.readers.stored import read

_READER = {
    "runs": ["BM25, K = 50"],
    "models": ["fake"],
    "prompts": ["short"],
    "k": [1, 3],
    "modes": ["top_k", "none", "no_gold", "gold", "harm_after", "harm_before"],
    "scorers": ["f1", "right_refusal", "no_wrong_refusal", "abstention"],
    "golden_set": demo_names.GOLDEN_SET_ID,
}
_CITING = {"prompts": ["grounded"], "modes": ["top_k"], "scorers": ["citation_precision", "citation_recall"]}


def answered(batches: Sequence[Batch], book: PriceBook) -> Batch:
    """Have the trial reader answer the questions that name nothing, in a temporary store."""
    made: list[Batch] = []

    def store_results(batch: Batch) -> Left:
        made.append(batch)
        return Left()

    with tempfile.TemporaryDirectory(prefix="clq-answers-") as folder:
        store = Store.open(Path(folder) / "store")
        with store.write("texts and rankings") as writer:
            for batch in batches:
                writer.add(batch)
        for name, reader in {"trial": _READER, "citing": {**_READER, **_CITING}}.items():
            spec = {"name": name, "collection": {"stored": demo_names.COLLECTION_ID}, "reader": reader}
            job, _ = read(store.read(), ReaderSpec.model_validate(spec), {"list": book}, to_run=True)
            run_job(_plain(job), store_results=store_results, site=Site(work=Path(folder)))
    return merged(made)


def _plain(job: ReaderJob) -> ReaderJob:
    """Return the job without the questions that name something."""
    replays = [
        replace(
            each, ranked={query: ids for query, ids in each.ranked.items() if query[0] != demo_names.NAMED}
        )
        for each in job.material.replays
    ]
    return replace(job, material=replace(job.material, replays=tuple(replays)))
