"""A local model must give one usable answer per text, whatever stands beside it; nothing paid is tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.errors import ClqError
from core.providers.base import Amount, Model
from core.providers.chat import Chat
from core.providers.config import ModelConfig
from core.providers.embed import Embedder
from core.providers.rerank import Reranker

_TEXTS = (
    "How is a list sorted?",
    "sorted() returns a new list; list.sort() sorts in place.",
    "A dictionary keeps the order of insertion.",
    "Read a file line by line with a for loop.",
    "naïve café — 東京",
)
_CLOSE = 1e-3  # difference of two vectors or scores that batches of other sizes may cause


def model_faults(name: str, kind: Any) -> Iterator[str]:  # noqa: ANN401 - a class of one of three bases
    """Try a model; one that lacks its key, package or files is not tried, nor is one that is paid for."""
    config = ModelConfig(provider=name, model=name)
    try:
        model = kind(config, None, {}) if issubclass(kind, Embedder) else kind(config, {})
        planned = list(_unready(model))
        yield from planned
        if planned or not model.local:
            return
        try:
            model.ready()
        except ClqError:
            return
        yield from _tried(model)
    except Exception as error:
        yield f"It raises {type(error).__name__}: {error}"


def _tried(model: Model) -> Iterator[str]:
    match model:
        case Embedder():
            yield from _embedded(model)
        case Reranker():
            yield from _reranked(model)
        case Chat():
            yield from _answered(model)


def _unready(model: Model) -> Iterator[str]:
    """Try what plans ask before there is a key."""
    if not getattr(model, "name", ""):
        yield "It has no name."
    if any(not isinstance(count := model.count_tokens(text), int) or count < 0 for text in ("", *_TEXTS)):
        yield "Its number of tokens is no whole number from 0."
    used: object = ()
    if isinstance(model, Reranker):
        used = model.expected(10.0, [20.0, 30.0])
    elif isinstance(model, Chat):
        used = model.expected(10.0, 20.0)
    if not isinstance(used, tuple) or any(not isinstance(each, Amount) for each in used):
        yield "What it expects to use is no tuple of amounts."


def _embedded(model: Embedder) -> Iterator[str]:
    together = model.embed(_TEXTS)
    if np.abs(together[::-1] - model.embed(_TEXTS[::-1])).max() > _CLOSE:
        yield "The vector of a text depends on the texts around it."
    if np.abs(together[1] - model.embed(_TEXTS[1:2])[0]).max() > _CLOSE:
        yield "The vector of a text depends on how many are embedded at once."
    if np.abs(together - together[0]).max() <= _CLOSE:
        yield "It gives different texts the same vector."


def _reranked(model: Reranker) -> Iterator[str]:
    query, *passages = _TEXTS
    before = tuple(passages)
    scores, again = (model.rerank(query, passages).value.scores for _ in range(2))
    if not np.allclose(scores, again, atol=_CLOSE, equal_nan=True):
        yield "Its score of a passage differs when asked again."
    turned = model.rerank(query, passages[::-1]).value.scores[::-1]
    if model.pointwise and not np.allclose(scores, turned, atol=_CLOSE, equal_nan=True):
        yield "It calls itself pointwise, and a score depends on the passages beside it."
    if before != tuple(passages):
        yield "It changes the passages that it is given."


def _answered(model: Chat) -> Iterator[str]:
    reply = model.complete("Answer in one sentence.", _TEXTS[0], max_tokens=40)
    answer: object = reply.value
    if not isinstance(answer, str):
        yield f"Its answer is no text, but {type(answer).__name__}."
    missing = {"characters", "chars_per_second"} - reply.details.keys()
    if missing:
        yield f"Its details lack {' and '.join(sorted(missing))}."
