"""The vendors' wire formats: a request's body in, the body of a good answer out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.vendors import answers, chat

Body = Mapping[str, Any]
DIMS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "embed-v4.0": 1536}


@dataclass(frozen=True)
class Answer:
    """A good answer.

    Attributes:
        results: One JSON value per result, in the order they are sent.
        texts: What is counted as done.
        units: What would be billed.
        wrap: Makes the body from the results.
    """

    results: list[Any]
    texts: list[str]
    units: float
    wrap: Callable[[list[Any], bool], dict[str, Any]]


def _encoded(body: Body, vector: Any) -> Any:
    if body.get("encoding_format") == "base64":
        return base64.b64encode(vector.tobytes()).decode()
    return [float(value) for value in vector]


def _texts(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _embeddings(
    dim: int, vocabulary: str, usage: Callable[[int], dict[str, int]]
) -> Callable[[Body], Answer]:
    def answer(body: Body) -> Answer:
        texts = _texts(body["input"])
        size = body.get("output_dimension") or body.get("dimensions") or DIMS.get(body["model"], dim)
        results = [
            {"object": "embedding", "index": at, "embedding": _encoded(body, answers.vector(text, size))}
            for at, text in enumerate(texts)
        ]
        tokens = answers.count(vocabulary, texts)

        def wrap(data: list[Any], with_usage: bool) -> dict[str, Any]:
            made = {"object": "list", "data": data, "model": body["model"]}
            return {**made, "usage": usage(tokens)} if with_usage else made

        return Answer(results, texts, tokens, wrap)

    return answer


def voyage_rerank(body: Body) -> Answer:
    query, passages = body["query"], body["documents"]
    tokens = len(passages) * answers.count("voyage3_base", [query]) + answers.count("voyage3_base", passages)

    def wrap(data: list[Any], with_usage: bool) -> dict[str, Any]:
        made = {"object": "list", "data": data, "model": body["model"]}
        return {**made, "usage": {"total_tokens": tokens}} if with_usage else made

    return Answer(_ranked(query, passages, body.get("top_k")), _pairs(query, passages), tokens, wrap)


def cohere_embed(body: Body) -> Answer:
    texts = list(body["texts"])
    size = (
        body.get("output_dimension") or DIMS.get(body["model"]) or (384 if "light" in body["model"] else 1024)
    )
    tokens = answers.count("estimate", texts)

    def wrap(data: list[Any], with_usage: bool) -> dict[str, Any]:
        billed = {"input_tokens": tokens} if with_usage else {}
        return {
            "id": "made-here",
            "response_type": "embeddings_by_type",
            "embeddings": {"float": data},
            "texts": texts,
            "meta": {"api_version": {"version": "2"}, "billed_units": billed},
        }

    return Answer([[float(x) for x in answers.vector(text, size)] for text in texts], texts, tokens, wrap)


def cohere_rerank(body: Body) -> Answer:
    query, passages = body["query"], list(body["documents"])
    units = answers.search_units(query, passages)

    def wrap(data: list[Any], with_usage: bool) -> dict[str, Any]:
        billed = {"search_units": units} if with_usage else {}
        return {"id": "made-here", "results": data, "meta": {"billed_units": billed}}

    return Answer(_ranked(query, passages, body.get("top_n")), _pairs(query, passages), units, wrap)


def openai_chat(body: Body, write: Callable[[Body], str] = chat.answer) -> Answer:
    text = write(body)
    asked = answers.count("o200k_base", [str(message["content"]) for message in body["messages"]])
    said = answers.count("o200k_base", [text])

    def wrap(data: list[Any], with_usage: bool) -> dict[str, Any]:
        used = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
        made = {
            "id": "made-here",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": data,
        }
        return {**made, "usage": used} if with_usage else made

    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Answer([choice], [str(body["messages"][-1]["content"])], asked + said, wrap)


def _pairs(query: str, passages: Sequence[str]) -> list[str]:
    return [f"{query}\x1f{passage}" for passage in passages]


def _ranked(query: str, passages: Sequence[str], top: int | None) -> list[Any]:
    """As the vendors do: best first, so that a client must put the scores back into its own order."""
    scores = [
        {"index": at, "relevance_score": answers.relevance(query, text)} for at, text in enumerate(passages)
    ]
    ordered = sorted(scores, key=lambda each: (-each["relevance_score"], each["index"]))
    return ordered[:top] if top else ordered


ENDPOINTS: dict[str, tuple[str, Callable[[Body], Answer]]] = {
    "/voyage/v1/embeddings": (
        "voyage/embeddings",
        _embeddings(1024, "voyage3_base", lambda tokens: {"total_tokens": tokens}),
    ),
    "/voyage/v1/rerank": ("voyage/rerank", voyage_rerank),
    "/cohere/v2/embed": ("cohere/embed", cohere_embed),
    "/cohere/v2/rerank": ("cohere/rerank", cohere_rerank),
    "/openai/v1/embeddings": (
        "openai/embeddings",
        _embeddings(384, "cl100k_base", lambda tokens: {"prompt_tokens": tokens, "total_tokens": tokens}),
    ),
    "/openai/v1/chat/completions": ("openai/chat", openai_chat),
}
"""Path to the endpoint's short name and its answer."""


def error(vendor: str, message: str) -> dict[str, Any]:
    """The body of an error in the vendor's form."""
    if vendor == "voyage":
        return {"detail": message}
    if vendor == "cohere":
        return {"id": "made-here", "message": message}
    return {"error": {"message": message, "type": "made_here", "code": None}}
