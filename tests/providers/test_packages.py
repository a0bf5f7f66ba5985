"""Models of optional packages; nothing is downloaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import InputError, ProviderError
from core.providers.base import Purpose
from core.providers.config import ModelConfig
from core.providers.embed import make_embedder, unit_rows
from tests.providers import tiny_onnx

WORDS = ["the", "flow", "heat", "wing", "query", ":"]
TEXTS = ["the flow of heat", "wing", "the wing"]


@pytest.mark.parametrize("provider", ["fastembed", "sentence-transformers"])
def test_a_package_that_is_not_installed(provider: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, provider.replace("-", "_"), None)
    with pytest.raises(ProviderError, match=f"needs the package {provider}.*pip install {provider}"):
        make_embedder(ModelConfig(provider=provider, model="any"))


@pytest.fixture(scope="module")
def tiny_fastembed(tmp_path_factory: pytest.TempPathFactory) -> ModelConfig:
    """A model of fastembed whose files lie in a folder."""
    fastembed = pytest.importorskip("fastembed", reason="fastembed is not installed")
    from fastembed.common.model_description import ModelSource, PoolingType

    folder = tiny_onnx.write(
        tmp_path_factory.mktemp("fastembed"),
        WORDS,
        files={
            "config.json": {"pad_token_id": 0},
            "tokenizer_config.json": {"model_max_length": 16, "pad_token": "[PAD]"},
            "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
        },
    )
    fastembed.TextEmbedding.add_custom_model(
        model="made-here/tiny",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url="http://127.0.0.1:9/none"),
        dim=8,
        model_file="model.onnx",
    )
    return ModelConfig(provider="fastembed", model="made-here/tiny", path=folder)


def test_fastembed(tiny_fastembed: ModelConfig):
    made = make_embedder(tiny_fastembed)
    onnx = make_embedder(ModelConfig(provider="onnx", model="tiny", path=tiny_fastembed.path))
    assert (made.dim, made.full_dim, made.local) == (8, 8, True)
    np.testing.assert_allclose(made.embed(TEXTS), onnx.embed(TEXTS), atol=1e-5)
    np.testing.assert_allclose(made.embed_query("heat").value, onnx.embed_query("heat").value, atol=1e-5)
    prefixed = tiny_fastembed.model_copy(update={"prefixes": {Purpose.QUERY: "query : "}})
    np.testing.assert_allclose(
        make_embedder(prefixed).embed_query("heat").value, onnx.embed_query("query : heat").value, atol=1e-5
    )


def test_fastembed_cuts_only_what_may_be_cut(tiny_fastembed: ModelConfig):
    with pytest.raises(InputError, match=r"no 4 dimensions.*one of 8"):
        make_embedder(tiny_fastembed, 4)
    cut = make_embedder(tiny_fastembed.model_copy(update={"matryoshka": True}), 4)
    assert (cut.dim, cut.full_dim) == (4, 8)
    full = make_embedder(tiny_fastembed).embed(TEXTS)
    np.testing.assert_allclose(cut.embed(TEXTS), unit_rows(full[:, :4]), atol=1e-6)


def test_fastembed_does_not_know_every_name():
    pytest.importorskip("fastembed", reason="fastembed is not installed")
    with pytest.raises(ProviderError, match="fastembed's list"):
        make_embedder(ModelConfig(provider="fastembed", model="nobody/nothing"))


class StandIn:
    """What we use of sentence-transformers, as its documentation has it."""

    asked: list[tuple[str, tuple[str, ...]]] = []  # noqa: RUF012

    def __init__(self, name: str, device: str | None) -> None:
        assert device is None
        if name == "missing":
            raise OSError("no such model")
        self.name = name

    def encode(self, sentences: Sequence[str], **options: Any) -> np.ndarray:
        return self._made("encode", sentences, options)

    def encode_query(self, sentences: Sequence[str], **options: Any) -> np.ndarray:
        return self._made("query", sentences, options)

    def encode_document(self, sentences: Sequence[str], **options: Any) -> np.ndarray:
        return self._made("document", sentences, options)

    def _made(self, how: str, sentences: Sequence[str], options: dict[str, Any]) -> np.ndarray:
        assert options["convert_to_numpy"]
        assert not options["show_progress_bar"]
        self.asked.append((how, tuple(sentences)))
        rows = [[len(text), len(how), text.count("e"), 2.0] for text in sentences]
        return np.array(rows, dtype=np.float64)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(StandIn, "asked", [])
    return StandIn


def test_sentence_transformers(stand_in: type[StandIn], tmp_path: Path):
    config = ModelConfig(provider="sentence-transformers", model="some/name", matryoshka=True, dims=(2, 4))
    made = make_embedder(config, 2)
    stand_in.asked.clear()
    vectors = made.embed(TEXTS)
    made.embed_query("heat")
    assert (made.dim, made.full_dim, vectors.dtype) == (2, 4, np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert [how for how, _ in stand_in.asked] == ["document", "query"]
    prefixed = make_embedder(config.model_copy(update={"prefixes": {Purpose.QUERY: "q: "}, "path": tmp_path}))
    prefixed.embed_query("heat")
    assert stand_in.asked[-1] == ("encode", ("q: heat",))


def test_sentence_transformers_before_version_5(stand_in: type[StandIn], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(stand_in, "encode_query")
    monkeypatch.delattr(stand_in, "encode_document")
    make_embedder(ModelConfig(provider="sentence-transformers", model="some/name")).embed_query("heat")
    assert stand_in.asked[-1] == ("encode", ("heat",))


@pytest.mark.usefixtures("stand_in")
def test_sentence_transformers_cannot_load_everything():
    with pytest.raises(ProviderError, match="cannot load the model: no such model"):
        make_embedder(ModelConfig(provider="sentence-transformers", model="missing"))
