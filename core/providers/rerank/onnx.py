"""A local ONNX cross-encoder: reads the query and a passage together and gives one number for the pair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from core.errors import InputError
from core.providers.config import ModelConfig
from core.providers.onnx_folder import OnnxFolder, open_folder
from core.providers.remote import Wiring
from core.providers.rerank.base import Scores
from core.providers.rerank.places import LocalReranker
from core.records import JsonMap

_QUERY_SHARE = 2  # a query that fills more than half of the model's length is cut, too


class OnnxReranker(LocalReranker):
    """A cross-encoder folder with one output per pair, or two of which the second means "relevant".

    Scores are the model's own numbers (logits), not probabilities. A pair beyond the model's length loses the
    end of the passage; of a query that takes more than half of the length, too, the longer text loses first.
    The details count the pairs that were cut.
    """

    provider = "onnx"
    batch_items = 32

    def __init__(self, config: ModelConfig, wiring: Wiring) -> None:
        if config.path is None:
            raise InputError("A local model needs its folder.", where=config.name, do="Set path.")
        self._config, self._path = config, config.path
        self.name, self.journal = config.name, wiring.journal
        self.batch_items = config.batch_items or self.batch_items

    @cached_property
    def _opened(self) -> tuple[OnnxFolder, Any]:
        folder = open_folder(self._path, self._config.max_tokens, self._config.device)
        return folder, folder.tokenizer()

    def ready(self) -> None:
        """Open the folder, and see that it is a cross-encoder."""
        self.score("a", ["b"])

    def params(self) -> JsonMap:
        """The files and the length."""
        folder, _ = self._opened
        return {"files": folder.digest, "length": folder.max_tokens}

    def score(self, query: str, passages: Sequence[str]) -> tuple[Scores, dict[str, Any]]:
        """The model's numbers, and how many pairs were cut."""
        folder, tokenizer = self._opened
        tokenizer.no_truncation()
        asked = len(tokenizer.encode(query).ids)
        fits = asked <= folder.max_tokens // _QUERY_SHARE
        tokenizer.enable_truncation(
            max_length=folder.max_tokens, strategy="only_second" if fits else "longest_first"
        )
        encodings = tokenizer.encode_batch([(query, passage) for passage in passages])
        outputs = folder.run(encodings)
        cut = sum(bool(each.overflowing) for each in encodings)
        return _logits(outputs, len(passages), str(folder.path)), {"truncated": cut}


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
