"""The manifest of an evaluation and of its runs: what is needed to repeat them, and how two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from core.pipeline import environment
from core.pipeline.evaluate.job import Job
from core.records import JsonMap, canonical_json, short_hash

ABSENT = "—"
_PACKAGES = (
    *environment.PACKAGES,
    *("cohere", "fastembed", "onnxruntime", "openai", "sentence-transformers", "tokenizers", "voyageai"),
)


def described() -> JsonMap:
    """Where it runs: the machine and the versions of everything that can change results or times."""
    return environment.describe(_PACKAGES)


def evaluation_manifest(job: Job, machine: JsonMap) -> JsonMap:
    """What is needed to repeat an evaluation, as JSON."""
    return {
        "evaluation": {"id": job.evaluation_id, "name": job.name, "nonce": job.nonce},
        "sweep": dict(job.spec),
        "collection": job.collection_id,
        "stacks": [dict(stack.spec) for stack in job.stacks],
        "hashes": hashes(job),
        "protocol": dict(job.protocol.plain()),
        "budget_usd": job.budget_usd,
        "versions": dict(machine["packages"]),
        "python": machine["python"],
    }


def hashes(job: Job) -> dict[str, str]:
    """Of the passages, the questions, the golden set and the price book."""
    corpora = {
        "corpus" if chunking is None else f"corpus {chunking}": corpus.hash
        for chunking, corpus in job.corpora.items()
    }
    prices = short_hash(*(canonical_json(_plain(asdict(price))) for price in job.book.prices))
    return {**corpora, **job.hashes, "queries": job.queries_hash, f"prices {job.book.name}": prices}


def diff(one: JsonMap, other: JsonMap) -> pl.DataFrame:
    """What differs between two manifests.

    Returns:
        key (with dots), one and other as JSON text, `ABSENT` where a manifest lacks the key; sorted.
    """
    left, right = dict(_flat(one)), dict(_flat(other))
    rows = [
        (key, left.get(key, ABSENT), right.get(key, ABSENT))
        for key in sorted({*left, *right})
        if left.get(key) != right.get(key)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("key", "one", "other"), pl.String), orient="row")


def _flat(value: object, path: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, (*path, str(name)))
    else:
        yield ".".join(path), canonical_json({"": value})[4:-1]


def _plain(values: Mapping[str, Any]) -> JsonMap:
    return {
        name: value if isinstance(value, int | float | str) else str(value) for name, value in values.items()
    }
