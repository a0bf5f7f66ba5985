"""The stack of stack.json as a retriever of LangChain: ``build().invoke("a question")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from retriever import build as ask_of


class StackRetriever(BaseRetriever):
    """Asks the stack; the id of a passage is that of its document."""

    ask: Callable[..., list[dict[str, Any]]]
    k: int | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        found = self.ask(query) if self.k is None else self.ask(query, self.k)
        return [
            Document(id=hit["id"], page_content=hit["text"], metadata={"score": hit["score"]})
            for hit in found
        ]


def build(k: int | None = None) -> StackRetriever:
    """The retriever, of as many passages as the stack ranks, or of k."""
    return StackRetriever(ask=ask_of(), k=k)
