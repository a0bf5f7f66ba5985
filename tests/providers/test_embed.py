import logging
import socket
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from core.errors import ClqError, InputError, UnknownNameError
from core.providers.base import Purpose, Reply
from core.providers.embed import Embedder, Vectors, make_embedder, unit_rows

TEXTS = ["read a parquet file", "", "plot", "read a csv file " * 40, "Group by and sum"]


class Recorder(Embedder):
    """Gives every text its length, and remembers its batches."""

    name, dim, full_dim, batch_items, normalised = "recorder", 1, 1, 2, False

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.purposes: list[Purpose] = []

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        self.batches.append(list(texts))
        self.purposes.append(purpose)
        return Reply(np.array([[len(text)] for text in texts], dtype=np.float32))


class Broken(Recorder):
    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:  # noqa: ARG002
        return Reply(np.zeros((len(texts) + 1, self.dim), dtype=np.float32))


def test_the_base_batches_and_keeps_the_order():
    embedder = Recorder()
    assert embedder.embed(TEXTS)[:, 0].tolist() == [len(text) for text in TEXTS]
    assert [len(batch) for batch in embedder.batches] == [2, 2]  # nothing is asked about the empty text
    assert embedder.embed([]).shape == (0, 1)


def test_a_wrong_count_of_vectors_is_an_error():
    with pytest.raises(ClqError, match=r"recorder returned vectors of shape \(2, 1\) for 1 texts"):
        Broken().embed_query("x")


@pytest.mark.parametrize(("name", "dim"), [("fake", 16), ("wordllama", 64), ("wordllama", 256)])
def test_every_embedder_keeps_its_promises(name: str, dim: int):
    embedder = make_embedder(name, dim)
    vectors = embedder.embed(TEXTS)
    assert (embedder.name, vectors.shape, vectors.dtype) == (name, (len(TEXTS), dim), np.float32)
    assert embedder.normalised
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1, 1], atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query(TEXTS[0]).value, vectors[0], atol=1e-6)
    np.testing.assert_array_equal(make_embedder(name, dim).embed(TEXTS), vectors)


@pytest.mark.parametrize("dim", [64, 128])
def test_a_shortened_wordllama_equals_the_small_one(dim: int):
    small = make_embedder("wordllama", dim)
    full = make_embedder("wordllama", small.full_dim)
    shortened = unit_rows(full.embed(TEXTS)[:, :dim])
    np.testing.assert_allclose(shortened, small.embed(TEXTS), atol=1e-6)


def test_similar_texts_are_near():
    for name in ("wordllama", "fake"):
        cat, kitten, invoice = make_embedder(name, 128).embed(
            ["a cat sat", "the cat slept", "unpaid invoice"]
        )
        assert cat @ kitten > cat @ invoice


@pytest.mark.parametrize(
    ("name", "dim", "error", "says"),
    [
        ("word2vec", 64, UnknownNameError, "No embedder 'word2vec'.*embed-v4.0"),
        ("wordllama", 100, InputError, "64, 128, 256"),
        ("fake", 0, InputError, "1 or more"),
    ],
)
def test_refusals(name: str, dim: int, error: type[ClqError], says: str):
    with pytest.raises(error, match=says):
        make_embedder(name, dim)


def test_wordllama_needs_no_network(monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    make_embedder("wordllama", 64).embed_query("offline")


def test_loading_wordllama_leaves_the_root_logger_alone():
    script = (
        "import logging; from core.providers.embed import make_embedder; make_embedder('wordllama', 64);"
        "root = logging.getLogger(); print(root.level, root.handlers)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [str(logging.WARNING), "[]"]
