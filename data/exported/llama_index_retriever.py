"""The stack of stack.json as a retriever of LlamaIndex: ``build().retrieve("a question")``."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from retriever import build as ask_of


class StackRetriever(BaseRetriever):
    """Asks the stack; the id of a passage is that of its node."""

    def __init__(self, k: int | None = None) -> None:
        super().__init__()
        self._ask, self._k = ask_of(), k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        text = query_bundle.query_str
        found = self._ask(text) if self._k is None else self._ask(text, self._k)
        return [
            NodeWithScore(node=TextNode(id_=hit["id"], text=hit["text"]), score=hit["score"]) for hit in found
        ]


def build(k: int | None = None) -> StackRetriever:
    """The retriever, of as many passages as the stack ranks, or of k."""
    return StackRetriever(k)
