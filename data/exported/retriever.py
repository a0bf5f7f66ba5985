"""A retrieval stack chosen with CLQ Explorer, without that program: stack.json and passages.jsonl.

python retriever.py "a question"
from retriever import build; build()("a question", 10) → [{"id": …, "score": …, "text": …}]
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Ranking = tuple[np.ndarray, np.ndarray]  # positions of passages, best first, and their scores
_WORDS = re.compile(r"(?u)\b\w\w+\b")


def top_k(passages: np.ndarray, scores: np.ndarray, k: int) -> Ranking:
    """The best, equal scores in the order of the passages."""
    order = np.argsort(-scores, kind="stable")[:k]
    return passages[order], scores[order]


class Sparse:
    """BM25 of bm25s, with the words that the stack counts."""

    def __init__(self, texts: list[str], told: dict[str, Any]) -> None:
        import bm25s  # noqa: PLC0415 - a dense stack needs none
        import Stemmer  # noqa: PLC0415

        self._told = told
        self._stop_words = set(told["stop_words"])
        self._fold = {int(code): letter for code, letter in told["fold"].items()}
        self._stemmer = Stemmer.Stemmer(told["stemmer"], 0) if told["stemmer"] else None
        self._index = bm25s.BM25(k1=told["k1"], b=told["b"], method="lucene", backend="numpy")
        self._index.index([self.terms(text) for text in texts], create_empty_token=False, show_progress=False)

    def terms(self, text: str) -> list[str]:
        """Words in lower case, without stop words, stemmed."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text).replace("\u02bc", "'")
        for written, meant in self._told["spelling"]:
            text = text.replace(written, meant)
        words = [word for word in _WORDS.findall(text.lower()) if word not in self._stop_words]
        stems = self._stemmer.stemWords(words) if self._stemmer else words
        return [stem if stem.isascii() else stem.translate(self._fold) for stem in stems]

    def __call__(self, query: str, k: int) -> Ranking:
        """The best passages that share a word with the query."""
        ids = self._index.get_tokens_ids(self.terms(query))
        if not ids:
            return np.empty(0, dtype=int), np.empty(0)
        scores = self._index.get_scores_from_ids(ids)
        matching = np.flatnonzero(scores > 0)
        return top_k(matching, scores[matching], k)


class Dense:
    """Vectors of wordllama, compared one by one."""

    def __init__(self, texts: list[str], told: dict[str, Any]) -> None:
        import wordllama  # noqa: PLC0415 - a sparse stack needs none

        folder, self._dim = Path(wordllama.__file__).parent, told["dim"]
        load = wordllama.WordLlama.load
        self._model = load(dim=256, trunc_dim=self._dim, cache_dir=folder, disable_download=True)
        whole = load(dim=256, trunc_dim=256, cache_dir=folder, disable_download=True)
        self._vectors = self._unit(self._unit(whole.embed(texts, norm=False, batch_size=16))[:, : self._dim])

    @staticmethod
    def _unit(vectors: Any) -> np.ndarray:
        rows = np.asarray(vectors, dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths != 0)

    def __call__(self, query: str, k: int) -> Ranking:
        """The nearest passages by cosine."""
        vector = self._unit(self._model.embed([query], norm=False))[0]
        return top_k(np.arange(len(self._vectors)), self._vectors @ vector, k)


def fused(legs: list[Ranking], k: int, told: dict[str, Any]) -> Ranking:
    """Rankings fused by reciprocal ranks."""
    ranked = [passages[: told["depth"]] for passages, _ in legs]
    factors = told.get("weights") or [1.0] * len(ranked)
    parts = zip(factors, ranked, strict=True)
    weights = np.concatenate([one / (told["constant"] + 1.0 + np.arange(len(leg))) for one, leg in parts])
    passages, positions = np.unique(np.concatenate(ranked), return_inverse=True)
    scores = np.zeros(len(passages))
    np.add.at(scores, positions, weights)
    return top_k(passages, scores, k)


def build(folder: Path = HERE) -> Callable[..., list[dict[str, Any]]]:
    """Read the stack and its passages; return what answers a question."""
    told = json.loads((folder / "stack.json").read_text(encoding="utf-8"))
    lines = (folder / "passages.jsonl").read_text(encoding="utf-8").split("\n")
    passages = [json.loads(line) for line in lines if line]
    texts = [each["text"] for each in passages]
    sparse = Sparse(texts, told["bm25"]) if told["bm25"] else None
    dense = Dense(texts, told["dense"]) if told["dense"] else None

    def ask(query: str, k: int = told["k"]) -> list[dict[str, Any]]:
        """The best passages for a question."""
        depth = told["fusion"]["depth"] if told["fusion"] else k
        legs = [leg(query, depth) for leg in (sparse, dense) if leg is not None]
        found, scores = fused(legs, k, told["fusion"]) if told["fusion"] else legs[0]
        return [
            {"id": passages[at]["id"], "score": float(score), "text": passages[at]["text"]}
            for at, score in zip(found, scores, strict=True)
        ]

    return ask


if __name__ == "__main__":
    for hit in build()(" ".join(sys.argv[1:]), 10):
        sys.stdout.write(f"{hit['score']:.4f}  {hit['id']}  {hit['text'][:80]!r}\n")
