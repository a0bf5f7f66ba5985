"""A stack that can be asked: query text in, ranking and time per stage out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns

from core.pipeline.bm25 import Bm25Index
from core.pipeline.dense import DenseIndex
from core.pipeline.fuse import reciprocal_rank_fusion
from core.pipeline.hits import Hits
from core.providers.embed import Embedder


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query brought.

    Attributes:
        hits: The ranking.
        stage_ns: Nanoseconds on the monotonic clock, per stage, in the order they ran.
    """

    hits: Hits
    stage_ns: Mapping[str, int]


class Retriever(ABC):
    """One leg or a combination of legs."""

    @abstractmethod
    def answer(self, text: str, k: int) -> Answer:
        """Search for a query as asked; nothing is cached between calls.

        Args:
            text: The query.
            k: How many passages at most, ≥ 1.
        """


@dataclass(frozen=True, slots=True)
class SparseRetriever(Retriever):
    """BM25; stage ``sparse`` covers the analysis of the query and the search."""

    index: Bm25Index

    def answer(self, text: str, k: int) -> Answer:
        """Search for a query; see `Retriever.answer`."""
        start = perf_counter_ns()
        hits = self.index.search(text, k)
        return Answer(hits, {"sparse": perf_counter_ns() - start})


@dataclass(frozen=True, slots=True)
class DenseRetriever(Retriever):
    """Stage ``embed`` turns the query into a vector, stage ``retrieve`` searches the index."""

    embedder: Embedder
    index: DenseIndex

    def answer(self, text: str, k: int) -> Answer:
        """Search for a query; see `Retriever.answer`."""
        start = perf_counter_ns()
        vector = self.embedder.embed_query(text).value
        embedded = perf_counter_ns()
        hits = self.index.search(vector, k)
        return Answer(hits, {"embed": embedded - start, "retrieve": perf_counter_ns() - embedded})


@dataclass(frozen=True, slots=True)
class FusedRetriever(Retriever):
    """Reciprocal rank fusion of legs that run one after the other; stage ``fuse`` is the fusion itself.

    Attributes:
        legs: What is fused; their stages must have different names.
        constant: Constant of the fusion.
        depth: How deep every leg searches, whatever is asked of the fusion.
    """

    legs: tuple[Retriever, ...]
    constant: int
    depth: int

    def answer(self, text: str, k: int) -> Answer:
        """Search for a query; see `Retriever.answer`."""
        answers = [leg.answer(text, self.depth) for leg in self.legs]
        start = perf_counter_ns()
        hits = reciprocal_rank_fusion(
            [answer.hits for answer in answers], k, constant=self.constant, depth=self.depth
        )
        fused = perf_counter_ns() - start
        stages = {stage: ns for answer in answers for stage, ns in answer.stage_ns.items()}
        return Answer(hits, {**stages, "fuse": fused})
