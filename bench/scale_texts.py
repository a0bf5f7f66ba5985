"""BM25 over many short passages: how fast they are indexed and searched, against bm25s called directly.

``python -m bench scale_texts --passages 100000`` for fewer than a million. Texts have 8 to 40 words
of a vocabulary that follows Zipf's law. Either side builds and searches in a process of its own; the peer is
bm25s with its own tokeniser and index. The peak of memory is that of the process with its texts, without
the processes that share the analysis of the passages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.children import Case, Found, in_a_process, memory, peak_gib, row, timed, turns

PASSAGES, QUERIES, DEPTH = 1_000_000, 100, 100
VOCABULARY = 200_000
BLOCK = 50_000


def texts(passages: int, seed: int = 3) -> Iterator[str]:
    """Draw short passages."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = np.array([_word(number) for number in range(VOCABULARY)])
    for start in range(0, passages, BLOCK):
        lengths = rng.integers(8, 41, min(BLOCK, passages - start))
        drawn = words[np.searchsorted(share, rng.random(int(lengths.sum())) * share[-1])].tolist()
        ends = np.cumsum(lengths).tolist()
        yield from (" ".join(drawn[end - n : end]) for n, end in zip(lengths.tolist(), ends, strict=True))


def _word(number: int) -> str:
    return "".join("etaoinshrdlu"[int(digit, 12)] for digit in np.base_repr(number + 12, 12))


def _asked(corpus: list[str]) -> list[str]:
    """The first words of some passages."""
    return [" ".join(text.split()[:6]) for text in corpus[:: max(1, len(corpus) // QUERIES)]][:QUERIES]


def here(_: Path, passages: int) -> Found:
    """Build and search with the product."""
    from core.pipeline.index.bm25 import Bm25Index

    corpus = list(texts(passages))
    queries = _asked(corpus)
    build_s, index = timed(lambda: Bm25Index(corpus))
    return {
        "build_s": build_s,
        **turns({"s": lambda: index.search_batch(queries, DEPTH)}),
        "peak": peak_gib(),
    }


def peer(_: Path, passages: int) -> Found:
    """Build and search with bm25s alone."""
    import bm25s
    import Stemmer

    corpus, stemmer = list(texts(passages)), Stemmer.Stemmer("english")
    queries = _asked(corpus)

    def terms(of: list[str]) -> Any:
        return bm25s.tokenize(of, stopwords="en", stemmer=stemmer, show_progress=False)

    def build() -> bm25s.BM25:
        index = bm25s.BM25(method="lucene", backend="numpy")
        index.index(terms(corpus), show_progress=False)
        return index

    build_s, index = timed(build)
    searched = turns({"s": lambda: index.retrieve(terms(queries), k=DEPTH, show_progress=False)})
    return {"build_s": build_s, **searched, "peak": peak_gib()}


CASES: dict[str, Case] = {"bm25": here, "bm25 peer": peer}


def run(passages: int = PASSAGES) -> list[dict[str, Any]]:
    """Measure and compare.

    Args:
        passages: Size of the corpus.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; rates: ratio = here / peer;
        memory: limit / here.
    """
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = (in_a_process(__name__, case, Path(name), passages) for case in CASES)
    what = f"bm25, {passages:,} short passages"
    rates = passages / ours["build_s"], passages / theirs["build_s"]
    asked = min(QUERIES, passages)
    searched = asked / ours["s"], asked / theirs["s"]
    return [
        row(f"{what}: tokenise and build", rates[0], "passages/s", "bm25s", rates[1]),
        row(f"{what}: {asked} queries, K = {DEPTH}", searched[0], "queries/s", "bm25s", searched[1]),
        memory(what, ours["peak"]),
        row(f"{what}: peak memory of the peer", theirs["peak"], "GiB", "–", None),
    ]
