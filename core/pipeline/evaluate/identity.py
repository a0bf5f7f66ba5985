"""What the names of a specification stand for, as far as it could change results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType

from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.steps import NONE, Identities
from core.pipeline.query.rewrite import make_rewrite, rewrite_config
from core.providers.base import Amount
from core.providers.config import ModelConfig
from core.providers.embed import embedder_config
from core.providers.rerank import make_reranker, reranker_config
from core.records import JsonMap, short_hash

_MATTERS = (
    "provider",
    "model",
    "cut",
    "normalised",
    "base_url",
    "input_types",
    "prefixes",
    "max_tokens",
    "pooling",
)
"""What of a model's configuration decides what it answers."""
LOCAL = ("wordllama", "fake", "onnx", "fastembed", "sentence-transformers")
"""Providers of embedders that run here, so that nothing is paid."""
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


def identities(job: Job) -> Identities:
    """What the names in a job's stacks stand for."""
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
    )


def billed(job: Job) -> list[tuple[str, str]]:
    """Item and unit of everything that a job's models are paid by."""
    found: dict[tuple[str, str], None] = {}
    for stack in job.stacks:
        spec = stack.spec
        if spec.get("embedder"):
            config = embedder_config(job.models.get(spec["embedder"], spec["embedder"]))
            if config.provider not in LOCAL:
                found[config.price_item, "input_tokens"] = None
        used: list[Amount] = []
        if spec.get("reranker", NONE) != NONE:
            reranker = make_reranker(spec["reranker"], models=job.models, ready=False)
            used += () if reranker.local else reranker.expected(1, [1])
        if spec.get("rewrite", NONE) != NONE:
            rewrite = make_rewrite(spec["rewrite"], models=job.models, ready=False)
            used += () if rewrite.local else rewrite.expected("?")
        found |= dict.fromkeys((each.item, each.unit) for each in used)
    return list(found)


def model_identity(config: ModelConfig) -> JsonMap:
    """What of a model decides what it answers: its configuration, files and packages."""
    told = config.model_dump(mode="json", include=set(_MATTERS), exclude_defaults=True)
    package = _PACKAGES.get(config.provider)
    if package:
        told["packages"] = _versions((package,))
    if config.path is not None:
        told["files"] = _files(config.path)
    return told


def _files(folder: Path) -> str:
    """Identifies the files of a local model by name, size and time, without reading gigabytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return short_hash(*(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
