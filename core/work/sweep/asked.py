"""The corpus in which answers of a custom pipeline, and passages under other names, are looked up."""

from __future__ import annotations

from core.analysis.export import StoreShelf
from core.pipeline.evaluate.job import Corpus, named_corpus
from core.store import Snapshot


def asked_corpus(snapshot: Snapshot, collection_id: str) -> Corpus:
    """Return the passages of a stored collection; they are documents if others hold their chunks."""
    chunks = StoreShelf(snapshot).chunks(collection_id).get("chunks")
    return named_corpus(snapshot.passages(collection_id), chunks)
