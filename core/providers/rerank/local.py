"""Rerankers that run here: common parts, cross-encoders, late interaction, and two that need no model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.providers import base
from core.providers.base import Amount, Reply, carrying, timed
from core.providers.chat.fake import share
from core.providers.config import ModelConfig
from core.providers.onnx_folder import OnnxFolder, open_folder
from core.providers.remote import Wired
from core.providers.rerank.base import Reranker, Scores
from core.records import Basis, JsonMap

_QUERY_SHARE = 2  # A query is cut if it fills more than one part in two of the model's length


class LocalReranker(Reranker):
    """A base that times `score`; it measures the whole process, so that nothing else should be running."""

    def __init__(self, config: ModelConfig, wired: Wired) -> None:
        self._config, self.name, self.journal = config, config.name, wired.get("journal")
        self.batch_items = config.batch_items or self.batch_items

    @abstractmethod
    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Return scores, and the details of the reply; see `Reranker.score_batch`."""

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:  # noqa: ARG002
        """Score a batch, with the milliseconds of processor time that it took."""
        reply = timed(lambda: self.score(query, passages))
        return carrying(reply, *reply.value)

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:  # noqa: ARG002
        """Return processor time, which is unknown before it is measured."""
        return (Amount(self.item, "cpu_ms", None, Basis.MODELLED),)


class NoReranker(LocalReranker):
    """A reranker that keeps the order: a passage's score is minus its position; it uses no time."""

    provider = "none"
    pointwise = False
    batch_items = 1_000_000

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:  # noqa: ARG002
        """Return minus the position, counted from 0."""
        return -np.arange(len(passages), dtype=np.float64), {}

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:  # noqa: ARG002
        """Score without timing."""
        return Reply(self.score(query, passages)[0])

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:  # noqa: ARG002
        """Return nothing."""
        return ()


class FakeReranker(LocalReranker):
    """A reranker that scores passages by the share of the query's distinct words they contain, 0 to 1."""

    provider = "fake"

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Return the shares; 0 for a query without words."""
        return np.array([share(query, passage) for passage in passages], dtype=np.float64), {}


class SentenceTransformersReranker(LocalReranker):
    """A cross-encoder of sentence-transformers, by name or by folder, if the package is installed."""

    provider = "sentence-transformers"
    batch_items = 32

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - an optional package
        kind = base.optional(base.SENTENCE_TRANSFORMERS, "CrossEncoder", self.name)
        place, device = str(self._config.path or self._config.model), self._config.device
        name = base.SENTENCE_TRANSFORMERS
        return base.loaded(lambda: kind(place, device=device), name, self.name, base.CHECK)

    def ready(self) -> None:
        """Load the model."""
        self._model  # noqa: B018 - loaded by being asked for

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Return the model's own scores."""
        pairs = [(query, passage) for passage in passages]
        scores = self._model.predict(pairs, batch_size=self.batch_items, show_progress_bar=False)
        return np.asarray(scores, dtype=np.float64).reshape(-1), {}


class _FolderReranker(LocalReranker):
    """A reranker whose model is a folder of files, opened on first use."""

    def __init__(self, config: ModelConfig, wired: Wired) -> None:
        if config.path is None:
            raise InputError("A local model needs its folder.", where=config.name, do="Set path.")
        super().__init__(config, wired)
        self._path = config.path

    @cached_property
    def _opened(self) -> tuple[OnnxFolder, Any]:
        folder = open_folder(self._path, self._config.max_tokens, self._config.device)
        return folder, folder.tokenizer()

    def params(self) -> JsonMap:
        """Return the digest of the files and the length."""
        folder, _ = self._opened
        return {"files": folder.digest, "length": folder.max_tokens}


class OnnxReranker(_FolderReranker):
    """A cross-encoder in a folder with one output per pair, or two outputs, the second being "relevant".

    Scores are the model's own numbers (logits), not probabilities. A pair beyond the model's length loses the
    end of the passage; if the query takes more than half of the length, the longer text is cut first.
    The details count the pairs that were cut.
    """

    provider = "onnx"
    batch_items = 32

    def ready(self) -> None:
        """Open the folder, and check that it is a cross-encoder."""
        self.score("a", ["b"])

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Return the model's numbers, and how many pairs were cut."""
        folder, tokenizer = self._opened
        tokenizer.no_truncation()
        asked = len(tokenizer.encode(query).ids)
        fits = asked <= folder.max_tokens // _QUERY_SHARE
        tokenizer.enable_truncation(
            max_length=folder.max_tokens, strategy="only_second" if fits else "longest_first"
        )
        encodings = tokenizer.encode_batch([(query, passage) for passage in passages])
        outputs = folder.run(encodings)
        cut = sum(bool(encoding.overflowing) for encoding in encodings)
        return _logits(outputs, len(passages), str(folder.path)), {"truncated": cut}


class LateInteractionReranker(_FolderReranker):
    """An encoder in a folder whose token vectors are compared one by one (late interaction, MaxSim).

    The score of a passage is the mean over the query's tokens of the largest cosine with a token of the
    passage (Khattab and Zaharia 2020, ColBERT, §3.3, which uses the sum). Passages are encoded for each query
    and not cached, so that time grows with their number and with `max_tokens`.
    """

    provider = "late-interaction"
    batch_items = 16

    def ready(self) -> None:
        """Open the folder, and check that it gives token vectors."""
        self.score("a", ["b"])

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """Return the mean of the largest cosines, and how many passages were cut."""
        asked, _ = self._tokens([query])
        vectors, encodings = self._tokens(passages)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=bool)
        alike = np.einsum("qd,ptd->pqt", asked[0], vectors)
        best = np.where(mask[:, None, :], alike, -1.0).max(axis=2)
        cut = sum(bool(encoding.overflowing) for encoding in encodings)
        return best.mean(axis=1, dtype=np.float64), {"truncated": cut}

    def _tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Sequence[Any]]:
        """Return unit vectors [texts, tokens, size] of tokens, padded, and what was encoded."""
        folder, tokenizer = self._opened
        encodings = tokenizer.encode_batch(list(texts))
        for output in folder.run(encodings).values():
            if output.ndim == 3:
                vectors: NDArray[np.float32] = output.astype(np.float32, copy=False)
                lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
                return vectors / np.maximum(lengths, np.float32(1e-9)), encodings
        raise InputError(
            "The model gives one vector per text, none per token.",
            where=str(folder.path),
            do="Use an encoder with last_hidden_state.",
        )


def _logits(outputs: dict[str, Any], count: int, where: str) -> Scores:
    for output in outputs.values():
        rows = np.asarray(output, dtype=np.float64).reshape(count, -1)
        if rows.shape[1] == 1:
            return rows[:, 0]
        if rows.shape[1] == 2 and output.ndim == 2:
            return rows[:, 1] - rows[:, 0]
    shapes = ", ".join(f"{name} {list(output.shape)}" for name, output in outputs.items())
    raise InputError(
        f"The model gives {shapes} for {count} pairs, not one number for each.",
        where=where,
        do="Use a cross-encoder that was exported with its classification head.",
    )
