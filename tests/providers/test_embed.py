import logging
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.arrays import Vectors
from core.errors import ClqError, InputError, UnknownNameError
from core.providers.base import Amount, Purpose, Reply, total
from core.providers.calls import Journal
from core.providers.config import ModelConfig
from core.providers.embed import EMBEDDERS, PROVIDERS, Embedder, embedder_config, make_embedder, unit_rows
from core.providers.embed.batches import batches
from core.providers.tokens import counter
from core.records import Basis

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
    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
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


@pytest.mark.slow
def test_loading_wordllama_leaves_the_root_logger_alone():
    script = (
        "import logging; from core.providers.embed import make_embedder; make_embedder('wordllama', 64);"
        "root = logging.getLogger(); print(root.level, root.handlers)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [str(logging.WARNING), "[]"]


def test_equal_texts_are_embedded_once_and_blank_ones_never():
    embedder = Recorder()
    vectors = embedder.embed(["bb", "a", "bb", " \t\n", "a", ""], Purpose.QUERY)
    assert vectors[:, 0].tolist() == [2, 1, 2, 0, 1, 0]
    assert embedder.batches == [["a", "bb"]]
    assert embedder.purposes == [Purpose.QUERY]


def test_a_blank_query_asks_nobody():
    embedder = Recorder()
    reply = embedder.embed_query("  ")
    assert (reply.value.tolist(), reply.attempts, reply.fresh, reply.usage) == ([0], 0, False, ())
    assert embedder.batches == []


def test_progress_counts_texts():
    done: list[tuple[int, int]] = []
    Recorder().embed(["aa", "b", "", "ccc", "b"], on_batch=lambda *each: done.append(each))
    assert done == [(4, 5), (5, 5)]  # the empty one and both of "b" are in the first


def test_vectors_can_be_written_elsewhere(tmp_path: Path):
    file = np.lib.format.open_memmap(tmp_path / "v.npy", mode="w+", dtype=np.float32, shape=(5, 16))
    file[:] = 7
    embedder = make_embedder("fake", 16)
    reply = embedder.embed_all(TEXTS, out=file)
    assert reply.value is file
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), embedder.embed(TEXTS))


@pytest.mark.parametrize("name", ["fake", "wordllama"])
def test_local_models_use_processor_time(name: str):
    reply = make_embedder(name, 64).embed_all(TEXTS)
    (used,) = reply.usage
    assert (used.item, used.unit, used.basis) == ("local-cpu", "cpu_ms", Basis.MEASURED)
    assert used.amount is not None
    assert used.amount >= 0
    assert reply.ms > 0
    assert reply.fresh


def test_local_models_can_use_a_journal(tmp_path: Path):
    journal = Journal(tmp_path / "replies.sqlite")
    first = make_embedder("fake", 16, journal=journal).embed_all(TEXTS)
    again = make_embedder("fake", 16, journal=journal).embed_all([*TEXTS, "new"])
    np.testing.assert_array_equal(again.value[:-1], first.value)
    assert again.details == {"calls": 1, "recalled": 4}
    assert make_embedder("fake", 32, journal=journal).embed_all(TEXTS).details["recalled"] == 0
    assert make_embedder("fake", 16, journal=journal).embed_query(TEXTS[0]).fresh  # another purpose


class Wrong(Recorder):
    normalised = True

    def embed_batch(self, texts: Sequence[str], purpose: Purpose) -> Reply[Vectors]:
        return Reply(np.full((len(texts), 1), {"long": 1.5, "nan": np.nan}[texts[0]], dtype=np.float32))


@pytest.mark.parametrize(
    ("text", "says"), [("long", "length 1.5, not 1.*normalised = false"), ("nan", "not finite")]
)
def test_vectors_are_what_they_are_said_to_be(text: str, says: str, tmp_path: Path):
    embedder = Wrong()
    embedder.journal = Journal(tmp_path / "replies.sqlite")
    with pytest.raises(ClqError, match=says):
        embedder.embed([text])
    assert len(embedder.journal) == 0  # what cannot be used is not kept


@given(
    st.lists(st.text("ab c", max_size=12), max_size=30),
    st.integers(1, 5),
    st.none() | st.integers(1, 20),
)
def test_batches_hold_every_text_once_within_the_limits(texts: list[str], items: int, tokens: int | None):
    made = list(batches(texts, lambda: (items, tokens), len))
    assert sorted(text for batch in made for text in batch) == sorted(texts)
    for batch in made:
        assert 1 <= len(batch) <= items
        assert tokens is None or len(batch) == 1 or sum(map(len, batch)) <= tokens


def test_what_is_known_of_every_named_model():
    for name, config in EMBEDDERS.items():
        assert embedder_config(name) is config
        assert config.name == name
        assert config.provider in PROVIDERS
        assert config.default_dim is not None
        assert counter(config.tokenizer)
        for dim in config.dims:
            assert config.full_dim(dim) == (max(config.dims) if config.matryoshka else dim)
    paper = EMBEDDERS["voyage-3.5"]
    assert (paper.default_dim, paper.dims, paper.full_dim(256)) == (1024, (256, 512, 1024, 2048), 2048)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"provider": "openai"}, "model"),
        ({"provider": "openai", "model": "m", "colour": 1}, "colour"),
        ({"provider": "openai", "model": "m", "dim": 0}, "dim"),
        ({"provider": "openai", "model": "m", "limits": {"concurrency": 0}}, "concurrency"),
        ({"provider": "openai", "model": "m", "pooling": "max"}, "pooling"),
    ],
)
def test_a_configuration_that_cannot_be(given: dict[str, object], says: str):
    with pytest.raises(ValidationError, match=says):
        ModelConfig.model_validate(given)


def test_names_of_a_configuration():
    plain = ModelConfig(provider="openai", model="m")
    assert (plain.name, plain.price_item, plain.default_dim) == ("m", "m", None)
    named = ModelConfig(provider="openai", model="m", name="ours", price_item="local-cpu", dims=(8, 16))
    assert (named.name, named.price_item, named.default_dim) == ("ours", "local-cpu", 16)
    with pytest.raises(UnknownNameError, match=r"No provider of embedders 'nobody'.*voyage"):
        make_embedder(ModelConfig(provider="nobody", model="m"))


def test_usage_adds_up():
    measured, modelled = Basis.MEASURED, Basis.MODELLED
    one = (Amount("a", "input_tokens", 2.0, measured), Amount("b", "search_units", 1.0, measured))
    two = (Amount("a", "input_tokens", 3.0, modelled), Amount("a", "output_tokens", None, measured))
    assert total([one, two, [Amount("a", "output_tokens", 5.0, measured)]]) == (
        Amount("a", "input_tokens", 5.0, modelled),
        Amount("b", "search_units", 1.0, measured),
        Amount("a", "output_tokens", None, measured),
    )
    assert total([]) == ()
