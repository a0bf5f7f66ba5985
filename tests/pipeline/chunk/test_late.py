"""Late chunking: vectors of chunks from the tokens of whole documents."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from core.errors import InputError
from core.pipeline.chunk import chunk, late_vectors, vectors_of
from core.pipeline.documents.formats import Content
from core.providers.embed import make_embedder
from core.providers.embed.base import TokenEmbedder, TokenVectors
from tests.pipeline.chunk.texts import WHOLE, frame_of

SPANS = np.array([[0, 3], [4, 8], [8, 9]])
TOKENS = np.array([[1, 0], [0, 1], [3, 4]], dtype=np.float32)


def mean(vectors):
    return vectors.mean(axis=0)


@pytest.mark.parametrize(
    ("chunk_span", "expected"),
    [
        ((0, 3), [1, 0]),
        ((0, 8), [0.5, 0.5]),
        ((2, 5), [0.5, 0.5]),  # a token that is cut counts on both sides
        ((8, 9), [3, 4]),
        ((0, 9), [4 / 3, 5 / 3]),
        ((3, 4), [0, 0]),  # between two tokens
    ],
)
def test_means_over_the_tokens_of_a_chunk(chunk_span, expected):
    found = late_vectors(TOKENS, SPANS, np.array([chunk_span]), mean)
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


def test_every_token_has_a_span():
    with pytest.raises(ValueError, match="3 token vectors, 2 spans"):
        late_vectors(TOKENS, SPANS[:2], SPANS, mean)
    assert late_vectors(TOKENS, SPANS, np.empty((0, 2), dtype=np.int64), mean).shape == (0, 2)


class Words(TokenEmbedder):
    """One token per word; its vector is its place in the document, so that context shows."""

    name, dim, full_dim = "words", 2, 2

    def embed_batch(self, texts, purpose):
        raise NotImplementedError

    def embed_tokens(self, text):
        spans = [match.span() for match in re.finditer(r"\w+", text)]
        vectors = np.array([(place, 1) for place in range(len(spans))], dtype=np.float32).reshape(-1, 2)
        return TokenVectors(vectors, np.array(spans, dtype=np.int64).reshape(-1, 2))

    def pooled(self, vectors):
        return mean(vectors)


def test_a_whole_collection():
    documents = frame_of(Content("One two. Three four five."), Content("Six."))
    cut = chunk(documents, {"method": "paragraph", "size": 16, "late": True}, collection=WHOLE)
    shuffled = cut.chunks.reverse()
    seen = []
    found = vectors_of(documents, shuffled, Words(), on_document=lambda *far: seen.append(far))
    assert found.tolist() == [[0, 1], [2, 1]]
    assert found.dtype == np.float32
    assert seen == [(1, 2), (2, 2)]


def test_what_cannot_be_embedded_late():
    documents = frame_of(Content("One two."))
    cut = chunk(documents, {"method": "sentence"}, collection=WHOLE)
    with pytest.raises(InputError, match="fake gives no vectors of tokens"):
        vectors_of(documents, cut.chunks, make_embedder("fake", 8))
    with pytest.raises(InputError, match="'d0' is not there"):
        vectors_of(documents.clear(), cut.chunks, Words())
    assert vectors_of(documents, cut.chunks.clear(), Words()).shape == (0, 2)
    assert isinstance(cut.chunks, pl.DataFrame)
