"""The identity of an evaluation (whatever could change its results), and what is needed to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

import polars as pl

from core.pipeline import environment
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.steps import FILTERING, NONE, Identities
from core.pipeline.index.scope import PARTITION, filter_way
from core.pipeline.own.model import expected_usage
from core.pipeline.query.entities import names_hash
from core.pipeline.query.rewrite import make_rewrite, rewrite_config
from core.providers.chat import make_chat
from core.providers.config import ModelConfig, place_of
from core.providers.embed import embedder_config
from core.providers.rerank import make_reranker, reranker_config
from core.records import JsonMap, canonical_json, short_hash

MODELS = ("embedder", "reranker", "rewrite")  # Keys of a stack that name a model
_MATTERS = (
    "provider", "model", "cut", "normalised", "base_url", "input_types", "prefixes", "max_tokens",
    "pooling", "criteria", "rounds", "reasons",
)  # fmt: skip
"""Fields of a model's configuration that decide its answers."""
_PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "wordllama": "wordllama",
        "onnx": "onnxruntime",
        "fastembed": "fastembed",
        "sentence-transformers": "sentence-transformers",
    }
)
_ENGINES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"index": ("faiss-cpu",), "bm25": ("bm25s", "PyStemmer")}
)
ABSENT = "—"
_CLIENTS = ("cohere", "fastembed", "onnxruntime", "openai", "sentence-transformers", "tokenizers", "voyageai")


def identities(job: Job) -> Identities:
    """Return the models, corpora and versions that the names in a job's stacks stand for."""
    embedders = {(s.spec["embedder"], s.spec["dim"]) for s in job.stacks if s.spec.get("embedder")}
    configs = {name: embedder_config(job.models.get(name, name)) for name, _ in embedders}
    known = {name: model_identity(config) for name, config in configs.items()}
    for name in {stack.spec.get("reranker", NONE) for stack in job.stacks} - {NONE}:
        way, config = reranker_config(name, job.models)
        known[name] = {**model_identity(config), **({"way": way} if way else {})}
    for name in {stack.spec.get("rewrite", NONE) for stack in job.stacks} - {NONE}:
        chat = rewrite_config(name, job.models)
        known[name] = model_identity(chat) if chat else {}
    return Identities(
        corpora={chunking: corpus.hash for chunking, corpus in job.corpora.items()},
        chunkings=job.chunkings,
        models=known,
        full_dims={(name, dim): configs[name].full_dim(dim) for name, dim in embedders},
        versions={kind: _versions(packages) for kind, packages in _ENGINES.items()},
        names=names_hash(job.names),
        own={name: config.identity() for name, config in job.own.items()},
        parts=_parts(job),
        fields={chunking: corpus.fields_hash for chunking, corpus in job.corpora.items()},
    )


def _parts(job: Job) -> dict[tuple[str | None, str], str]:
    """Return the hash of the values of every field that stacks partition a corpus by."""
    ways = {filter_way(str(stack.spec.get(FILTERING, NONE))) for stack in job.stacks}
    fields = {way.field for way in ways if way.kind == PARTITION}
    return {
        (chunking, name): short_hash(*corpus.fields[name].cast(pl.String).fill_null("\0"))
        for chunking, corpus in job.corpora.items()
        for name in fields
        if corpus.fields is not None and name in corpus.fields.columns
    }


def billed(job: Job) -> list[tuple[str, str]]:
    """Return item and unit of everything that a job's models bill."""
    pairs = [(key, stack.spec.get(key, NONE)) for stack in job.stacks for key in MODELS]
    used = [billed_by(key, name, job.models) for key, name in dict.fromkeys(pairs) if name not in ("", NONE)]
    own = [(amount.item, amount.unit) for config in job.own.values() for amount in expected_usage(config)]
    return list(dict.fromkeys([*(pair for some in used for pair in some), *own]))


def billed_by(key: str, name: str, models: Mapping[str, ModelConfig]) -> list[tuple[str, str]]:
    """Return item and unit of what a model bills; nothing for a local model."""
    if key == "embedder":
        config = embedder_config(models.get(name, name))
        return [] if place_of(config) is None else [(config.price_item, "input_tokens")]
    if key == "reranker":
        reranker = make_reranker(name, models=models, ready=False)
        local, used = reranker.local, reranker.expected(1, [1])
    elif key == "chat":
        chat = make_chat(name, models=models, ready=False)
        local, used = chat.local, chat.expected(1, 1)
    else:
        rewrite = make_rewrite(name, models=models, ready=False)
        local, used = rewrite.local, rewrite.expected("?")
    return [] if local else [(amount.item, amount.unit) for amount in used]


def model_identity(config: ModelConfig) -> JsonMap:
    """Return the parts of a model that decide its answers: configuration, files and packages."""
    identity = config.model_dump(mode="json", include=set(_MATTERS), exclude_defaults=True)
    package = _PACKAGES.get(config.provider)
    if package:
        identity["packages"] = _versions((package,))
    if config.path is not None:
        # Identified by name, size and time, without reading gigabytes.
        files = sorted(path for path in config.path.rglob("*") if path.is_file())
        stats = [(path.name, path.stat()) for path in files]
        identity["files"] = short_hash(*(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats))
    return identity


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def described() -> JsonMap:
    """Describe the machine, and the versions of everything that can change results or times."""
    return environment.describe((*environment.PACKAGES, *_CLIENTS))


def evaluation_manifest(job: Job, machine: JsonMap) -> JsonMap:
    """Return all that is needed to repeat an evaluation, as JSON."""
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
    """Return hashes of the passages, the questions, the golden set and the price book."""
    corpora = {
        "corpus" if chunking is None else f"corpus {chunking}": corpus.hash
        for chunking, corpus in job.corpora.items()
    }
    listed = [
        {name: value if isinstance(value, int | float | str) else str(value) for name, value in row.items()}
        for row in map(asdict, job.book.prices)
    ]
    prices = short_hash(*map(canonical_json, listed))
    return {**corpora, **job.hashes, "queries": job.queries_hash, f"prices {job.book.name}": prices}


def diff(one: JsonMap, other: JsonMap) -> pl.DataFrame:
    """Compare two manifests.

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
