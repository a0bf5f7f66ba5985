"""The stack of stack.json as a component of Haystack: ``build().run(query="a question")["documents"]``."""

from __future__ import annotations

from haystack import Document, component
from retriever import build as ask_of


@component
class StackRetriever:
    """Asks the stack; the id of a passage is that of its document."""

    def __init__(self, k: int | None = None) -> None:
        self._ask, self._k = ask_of(), k

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Return the best passages for a query."""
        found = self._ask(query) if self._k is None else self._ask(query, self._k)
        return {
            "documents": [Document(id=hit["id"], content=hit["text"], score=hit["score"]) for hit in found]
        }


def build(k: int | None = None) -> StackRetriever:
    """The component, of as many passages as the stack ranks, or of k."""
    return StackRetriever(k)
