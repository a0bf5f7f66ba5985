"""Late interaction over a tiny encoder made here, against the same sums in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import InputError
from core.providers.config import ModelConfig
from core.providers.rerank import make_reranker
from tests.providers import tiny_onnx

WORDS = ["the", "flow", "heat", "wing", "of", "over", "a", "plate"]
DIM = 8


def reranker(folder: Path, **changes: object):
    return make_reranker(ModelConfig(provider="late-interaction", model="tiny", path=folder, **changes))


def tokens(text: str, most: int = 512) -> np.ndarray:
    ids = tiny_onnx.tokenizer(WORDS).encode(text).ids
    if len(ids) > most:
        ids = [*ids[: most - 1], ids[-1]]
    given = tiny_onnx.hidden(ids, tiny_onnx.table(WORDS, DIM))
    return given / np.linalg.norm(given, axis=1, keepdims=True)


@pytest.mark.parametrize("most", [512, 4])
def test_the_score_is_the_mean_of_the_largest_cosines(tmp_path: Path, most: int):
    folder = tiny_onnx.write(tmp_path, WORDS, DIM)
    passages = ["the wing", "heat", "flow of heat over a plate"]
    reply = reranker(folder, max_tokens=most).rerank("heat flow", passages)
    query = tokens("heat flow", most)
    expected = [(query @ tokens(passage, most).T).max(axis=1).mean() for passage in passages]
    np.testing.assert_allclose(reply.value.scores, expected, rtol=1e-4)
    assert reply.details["truncated"] == (1 if most == 4 else 0)


def test_a_text_beside_longer_ones_scores_the_same(tmp_path: Path):
    made = reranker(tiny_onnx.write(tmp_path, WORDS, DIM))
    alone = made.rerank("heat", ["the wing"]).value.scores[0]
    beside = made.rerank("heat", ["the wing", "flow of heat over a plate"]).value.scores[0]
    assert alone == pytest.approx(beside, rel=1e-4)


def test_an_encoder_that_gives_one_vector_a_text_is_refused(tmp_path: Path):
    folder = tiny_onnx.write(tmp_path, WORDS, DIM, pooled=True)
    with pytest.raises(InputError, match="one vector per text, none per token"):
        reranker(folder)
