"""Names of rerankers, those without a vendor, and those of optional packages."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from core.errors import ProviderError, UnknownNameError
from core.providers.calls import Keys
from core.providers.config import ModelConfig
from core.providers.rerank import BY_CHAT, RERANKERS, make_reranker, reranker_config

MINE = ModelConfig(provider="openai", model="qwen", name="mine", base_url="http://127.0.0.1:9/v1")
CROSS = ModelConfig(provider="sentence-transformers", model="some/cross-encoder")


def test_names_lead_to_models():
    assert reranker_config("rerank-2.5") == ("", RERANKERS["rerank-2.5"])
    assert reranker_config("rebel-two-turn:mine", {"mine": MINE}) == ("rebel-two-turn", MINE)
    assert reranker_config("cross", {"cross": CROSS}) == ("", CROSS)
    assert reranker_config(CROSS) == ("", CROSS)
    own = {"relevance:odd": CROSS}  # a name of one's own wins
    assert reranker_config("relevance:odd", own) == ("", CROSS)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rerank-9", r"No reranker 'rerank-9'.*rebel-one-turn:<chat model>"),
        ("", r"No reranker ''"),
        ("psychic:gpt-4o-mini", r"No reranker 'psychic:gpt-4o-mini'"),
        ("relevance", r"No chat model ''"),
        ("relevance:gpt-0", r"No chat model 'gpt-0'.*gpt-4o-mini"),
        (MINE, r"No provider of rerankers 'openai'.*cohere, fake, late-interaction, none, onnx"),
    ],
)
def test_unknown_names_list_what_there_is(name: Any, says: str):
    with pytest.raises(UnknownNameError, match=says):
        make_reranker(name)


def test_every_known_model_can_be_planned_without_keys_and_packages():
    for name in [*RERANKERS, *(f"{way}:gpt-4o-mini" for way in BY_CHAT)]:
        made = make_reranker(name, keys=Keys({}, ()), ready=False)
        assert made.name == name
        assert made.pointwise == (not (name in ("none", "bm25", "tf-idf", "rebel-rules") or "-turn:" in name))
        assert all(each.item == made.item for each in made.expected(10, [100, 200]))
        made.close()


def test_none_keeps_the_order():
    reply = make_reranker("none").rerank("q", ["a", "b", "c"])
    assert reply.value.order.tolist() == [0, 1, 2]
    assert (reply.usage, reply.ms) == ((), 0.0)


def test_the_fake_one_counts_shared_words():
    passages = ["cats", "long cats sleep", "", "How LONG do cats sleep?"]
    reply = make_reranker("fake").rerank("how long do cats sleep", passages)
    np.testing.assert_allclose(reply.value.scores, [0.2, 0.6, 0, 1])
    assert reply.value.order.tolist() == [3, 1, 0, 2]
    assert [each.unit for each in reply.usage] == ["cpu_ms"]
    assert make_reranker("fake").rerank("?", ["a", "b"]).value.scores.tolist() == [0, 0]


def test_bm25_weighs_rare_words_among_the_candidates():
    """Thesis, equation 3.1 by hand: cats is in 2 of 3, sleep in 1; lengths 2, 2 and 4, their mean 8/3."""
    reply = make_reranker("bm25").rerank("Cats sleep", ["cats purr", "Sleep well", "dogs bark at cats"])
    cats, sleep = math.log(1.5 / 2.5 + 1), math.log(2.5 / 1.5 + 1)

    def damped(length: int) -> float:
        return 2.5 / (1 + 1.5 * (0.25 + 0.75 * length * 3 / 8))

    np.testing.assert_allclose(reply.value.scores, [cats * damped(2), sleep * damped(2), cats * damped(4)])
    assert reply.value.order.tolist() == [1, 0, 2]


def test_tf_idf_takes_shares_of_a_passage():
    """Thesis, equation 3.2 by hand; a word that all candidates hold tells nothing."""
    passages = ["cats sleep", "cats cats dogs", "cats"]
    reply = make_reranker("tf-idf").rerank("cats dogs sleep sleep", passages)
    np.testing.assert_allclose(reply.value.scores, [2 * math.log(3) / 2, math.log(3) / 3, 0])
    assert make_reranker("tf-idf").rerank("?!", passages).value.scores.tolist() == [0, 0, 0]
    assert make_reranker("bm25").rerank("cats", ["", ""]).value.scores.tolist() == [0, 0]


class StandIn:
    """What we use of a cross-encoder, as the package's documentation has it."""

    def __init__(self, name: str, device: str | None) -> None:
        assert device in (None, "cuda")
        if name == "missing":
            raise OSError("no such model")

    def predict(self, sentences: Sequence[tuple[str, str]], **options: Any) -> np.ndarray:
        assert options == {"batch_size": 32, "show_progress_bar": False}
        return np.array([len(query) - len(passage) for query, passage in sentences], dtype=np.float32)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sentence_transformers")
    module.CrossEncoder = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("stand_in")
def test_sentence_transformers():
    reply = make_reranker(CROSS.model_copy(update={"device": "cuda"})).rerank("four", ["a", "four", "ab"])
    assert reply.value.scores.tolist() == [3, 0, 2]
    assert reply.value.order.tolist() == [0, 2, 1]
    with pytest.raises(ProviderError, match="cannot load the model: no such model"):
        make_reranker(CROSS.model_copy(update={"model": "missing"}))


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ProviderError, match=r"needs the package sentence-transformers.*pip install"):
        make_reranker(CROSS)
