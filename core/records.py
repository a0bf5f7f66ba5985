"""The nouns of the product, frozen and typed.

Few and small things (collections, golden sets, stacks, runs) are dataclasses. Many and uniform things
(queries, passages, judgements, rankings…) are rows of the tables that `core.tables` declares.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from core.axes import qualities
from core.tables import Frame

JsonMap = Mapping[str, Any]

WHOLE_FLOW = "syftr: the whole flow, answering included"
"""Word in a run's environment for latencies that include answering."""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "cluster": ("cluster", "cluster_id", "question_group", "query_group"),
    "document": ("document", "doc", "document_id", "doc_id", "source_document"),
    "session": ("session", "session_id", "conversation", "conversation_id", "thread_id"),
    "template": ("template", "template_id"),
    "user": ("user", "user_id"),
}
"""Kind of group of questions → names of a column, or of a tag, that gives each question's group.

Questions of one group are alike, so that each carries less information than an independent one
(metrics.md §10). If several are present, the first of these counts.
"""
_GROUP_OF = {name: kind for kind, names in GROUPS.items() for name in names}


class Origin(StrEnum):
    """How a run came to be."""

    RUN = "run"  # measured by the pipeline, on whichever machine
    IMPORT = "import"  # brought from another tool
    PUBLISHED = "published"  # printed in a paper


class Basis(StrEnum):
    """How a number was obtained; shown as a small badge beside it."""

    MEASURED = "measured"
    MODELLED = "modelled"
    PUBLISHED = "published"
    IMPORTED = "imported"


def group_kind(name: str) -> str | None:
    """Return the kind of group that a column or tag stands for, a key of `GROUPS`."""
    return _GROUP_OF.get(re.sub(r"[\W_]+", "_", name.strip().lower()))


def is_group(tag: str) -> bool:
    """Return whether a tag ("session=17") gives the group of a question, not the kind of group."""
    name, _, value = tag.partition("=")
    return bool(value) and group_kind(name) is not None


BASES: Mapping[str, str] = {
    Origin.RUN.value: Basis.MEASURED.value,
    Origin.IMPORT.value: Basis.IMPORTED.value,
    Origin.PUBLISHED.value: Basis.PUBLISHED.value,
}
"""How the numbers of a run were obtained, by its origin. A run does not say where it was measured: one of the
demo, or from another store's export, was not measured here."""


def canonical_json(value: JsonMap) -> str:
    """Return a mapping's canonical JSON: sorted keys, no spaces, no NaN. Equal mappings give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short_hash(*parts: str) -> str:
    """Return twelve hexadecimal digits that identify the parts (BLAKE2b over length-prefixed UTF-8)."""
    digest = hashlib.blake2b(digest_size=6)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def part_id(whole: str, chunking: str | None) -> str:
    """Return the id of the part of a collection or golden set that belongs to a chunking.

    A chunker's chunks of the documents of collection "c" are the passages of the part collection "c@x", where
    x names the chunking; the queries stay with "c". The judgements that the spans of golden set "g" imply
    for these chunks are the part golden set "g@x". Both are records like others, with `part_of` set.
    An empty chunking means the whole.
    """
    return whole if chunking is None else f"{whole}@{chunking}"


def now() -> datetime:
    """Return the current time in UTC, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A corpus with its queries."""

    collection_id: str  # short stable name; part of links
    name: str  # display name
    source: str = ""  # its origin, in words
    notes: str = ""  # limits, licence, anything a reader must know
    # The collection whose chunks by one chunker this one holds; its queries are there, its id
    # is "<that id>@<chunking>". None for an independent collection.
    part_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """Graded judgements of one collection."""

    golden_set_id: str  # short stable name; part of links
    collection_id: str  # the collection that it judges
    name: str  # display name
    mapping: str = "1-5"  # how raw grades became 1..5, for example "1-5" (as they are) or "binary: 0→1, 1→5"
    judge: str = ""  # who judged, in words
    notes: str = ""  # how the pool was made, limits
    # The golden set whose span grades these are, applied to the chunks of one chunker; the
    # id is "<that id>@<chunking>". None for an independent golden set.
    part_of: str | None = None
    # Golden sets that it was made from: the version before, or both judges of an adjudication
    parents: tuple[str, ...] = ()
    # How it was built: hashes of prompts, models, digest of prices, seeds, label mix, policy
    manifest: JsonMap = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Stack:
    """One retrieval configuration. Its identity is its canonical specification.

    Known keys of `spec` (all optional, others are kept): mode ("sparse", "dense", "hybrid"), sparse ("bm25"),
    embedder, dim, index ("flat", "hnsw-f32", "hnsw-int8", "int8"), fusion ({"method": "rrf", "constant": 60,
    "depth": 100}), reranker ("none" or a model), candidates (candidate depth K, the size of the pool),
    params and version (of a custom pipeline, whose mode is "own"; call or url say where it is),
    perturb (how queries were perturbed before the stack got them: to learn from, nothing to ship).
    """

    spec: JsonMap = field(hash=False)

    @property
    def stack_id(self) -> str:
        """Hash of the canonical specification."""
        return f"s-{short_hash(canonical_json(self.spec))}"

    @property
    def label(self) -> str:
        """A short name such as ``voyage-3.5 512 d + rerank-2.5, K = 50``."""
        return stack_label(self.spec)


def stack_label(spec: JsonMap) -> str:
    """Return the name of a stack, built from the axes it sets, in the product's vocabulary."""
    dense = " ".join(
        str(part)
        for part in (
            spec.get("embedder"),
            f"{spec['dim']} d" if spec.get("dim") else None,
            spec.get("index") if spec.get("index") not in (None, "flat") else None,
        )
        if part
    )
    legs = [str(spec["sparse"]).upper() if spec.get("sparse") else "", dense]
    head = " ⊕ ".join(leg for leg in legs if leg) or str(spec.get("name", "stack"))
    reranker = spec.get("reranker")
    tail = f" + {reranker}" if reranker and reranker != "none" else ""
    depth = f", K = {spec['candidates']}" if spec.get("candidates") else ""
    return " · ".join([head + tail + depth, *qualities(spec)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stack executed (or reported) once on one collection."""

    run_id: str  # stable identity; equal content gives an equal id, which detects a repeated import
    collection_id: str  # the searched collection
    stack: Stack  # the configuration
    label: str  # display name; untrusted text
    origin: Origin  # measured, imported or published
    # Named convention of the candidate pool, for example "dense@50", "bm25@100", "rrf100@100", "post-
    # rerank@50"; None if the run has no pool. Two conventions are never compared silently.
    pool: str | None = None
    # Where it ran (processor, versions, load); decides whether latencies are comparable
    environment: JsonMap = field(default_factory=dict, hash=False)
    # Everything needed to repeat it, and "cost_scope" if costs cover only some stages
    manifest: JsonMap = field(default_factory=dict, hash=False)
    created_at: datetime = field(default_factory=now)  # when it was run or reported, with zone
    # Name of the chunking whose chunks were searched; its passages are in the collection
    # "<collection_id>@<chunking>". None if the passages are the collection's own.
    chunking: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that one transaction adds; frames follow `core.tables`, lazy ones are streamed to disk."""

    collections: tuple[Collection, ...] = ()
    golden_sets: tuple[GoldenSet, ...] = ()
    runs: tuple[Run, ...] = ()
    frames: Mapping[str, Frame] = field(default_factory=dict)
    # Runs of the stacks that run today, one per collection; they mark only where nothing is marked yet
    incumbents: tuple[str, ...] = ()


Sink = Callable[[Batch], None]  # Where the pipeline puts its results; the caller connects it to a store
