"""A server of one's own, as slow as it is: calls begin small, grow, shrink, are halved; nothing is lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ProviderError
from core.providers.calls import Caller, Journal, Limits, caller_for
from core.providers.chat import make_chat
from core.providers.config import ModelConfig, place_of
from core.providers.embed import RemoteEmbedder, make_embedder
from core.providers.embed import batches as sizing
from core.providers.embed.batches import FIRST_TOKENS, QUICK_S, SLOW_S, Sizes, batches
from core.providers.rerank import make_reranker
from tests.vendors import Step, Vendors, answers

TEXTS = [f"text number {at:03} about wings" for at in range(250)]
TOKENS = 8.0  # of each


def spent(tokens_per_s: float, sizes: Sizes, calls: int = 40) -> list[float]:
    """Tokens of the calls that a server of that speed is sent."""
    sent = []
    for _ in range(calls):
        tokens = sizes.room()[1]
        assert tokens is not None
        sent.append(tokens)
        sizes.took(tokens, tokens / tokens_per_s)
    return sent


@pytest.mark.parametrize("tokens_per_s", [30.0, 300.0, 3_000.0, 30_000.0, 3_000_000.0])
def test_calls_settle_between_quick_and_slow(tokens_per_s: float):
    sent = spent(tokens_per_s, Sizes((2048, 300_000)))
    assert sent[0] == FIRST_TOKENS
    assert all(after <= 2 * before for before, after in itertools.pairwise(sent))
    took = sent[-1] / tokens_per_s
    assert took <= SLOW_S
    assert took >= QUICK_S / 2 or sent[-1] == 300_000


@pytest.mark.slow
@given(
    most=st.none() | st.floats(1, 1e6),
    told=st.lists(st.tuples(st.sampled_from(["took", "most"]), st.floats(1, 1e6), st.floats(0, 600))),
)
def test_what_was_too_much_is_never_tried_again(most: float | None, told: list[tuple[str, float, float]]):
    sizes = Sizes((100, most))
    ceiling, items = most or np.inf, 100
    for kind, tokens, value in told:
        if kind == "took":
            sizes.took(tokens, value)
        else:
            sizes.at_most(int(value), tokens)
            ceiling, items = min(ceiling, tokens), min(items, max(1, int(value)))
        room = sizes.room()
        assert room[0] == items
        assert room[1] is not None
        assert 1 <= room[1] <= ceiling


def test_room_is_asked_for_every_batch():
    rooms: Iterator[tuple[int, float | None]] = iter([(1, None), (2, None), (9, 10), (9, 20)])
    made = batches([f"{at:05}" for at in range(9)], lambda: next(rooms), len)
    assert [len(batch) for batch in made] == [1, 2, 2, 4]


class Client:
    """What of a server's answers arrived here."""

    def __init__(self, embedder: RemoteEmbedder) -> None:
        self.sent: list[int] = []
        self.arrived: Counter[str] = Counter()
        send = embedder.send

        def watched(texts: list[str], *purpose: Any) -> Any:
            self.sent.append(len(texts))
            received = send(texts, *purpose)
            self.arrived.update(texts)
            return received

        embedder.send = watched  # type: ignore[method-assign]


def connected(
    vendors: Vendors, journal: Path | None = None, *, timeout_s: float = 20.0, **changes: Any
) -> RemoteEmbedder:
    limits = Limits(timeout_s=timeout_s, attempts=3, **changes.pop("limits", {}))
    config = ModelConfig(
        provider="openai", model="own", dims=(384,), base_url=vendors.openai, limits=limits, **changes
    )
    made = make_embedder(config, journal=Journal(journal) if journal else None)
    assert isinstance(made, RemoteEmbedder)
    return made


@pytest.mark.parametrize("limits", [{}, {"concurrency": 4}], ids=["one by one", "four at once"])
def test_calls_to_a_server_of_ones_own_begin_small_and_grow(
    vendors: Vendors, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
):
    monkeypatch.setattr(sizing, "FIRST_TOKENS", 4 * TOKENS)
    told: list[tuple[int, int]] = []
    with connected(vendors, limits=limits) as embedder:
        client = Client(embedder)
        found = embedder.embed(TEXTS, on_batch=lambda *far: told.append(far))
    np.testing.assert_allclose(found, [answers.vector(text, 384) for text in TEXTS], atol=1e-6)
    assert embedder.concurrency == limits.get("concurrency", 1)
    assert client.sent[0] == 4
    assert max(client.sent) >= 32
    assert len(client.sent) < 30
    assert set(client.arrived.values()) == {1}
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[0] == (4, 250)
    assert told[-1] == (250, 250)


def test_calls_to_a_slow_server_shrink(vendors: Vendors, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sizing, "FIRST_TOKENS", 32 * TOKENS)
    monkeypatch.setattr(sizing, "QUICK_S", 0.08)
    monkeypatch.setattr(sizing, "SLOW_S", 0.3)
    vendors.state.seconds_per_item = 0.012
    with connected(vendors) as embedder:
        client = Client(embedder)
        embedder.embed(TEXTS[:100])
    assert 32 <= client.sent[0] <= 40
    assert all(size <= client.sent[0] // 2 for size in client.sent[1:])
    assert set(client.arrived.values()) == {1}


@pytest.mark.slow
def test_what_times_out_is_halved_and_what_arrived_is_kept(
    vendors: Vendors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """As it was: all in one call, which can never be answered in time."""
    monkeypatch.setattr(sizing, "FIRST_TOKENS", 1e9)
    vendors.state.seconds_per_item = 0.02
    with connected(vendors, tmp_path / "replies", timeout_s=1.0) as embedder:
        client = Client(embedder)
        found = embedder.embed(TEXTS[:100])
        assert client.sent[:3] == [100, 50, 25]
        assert max(client.sent[2:]) <= 25
        assert len(client.sent) < 30
    np.testing.assert_allclose(found, [answers.vector(text, 384) for text in TEXTS[:100]], atol=1e-6)
    assert set(client.arrived.values()) == {1}
    vendors.state.seconds_per_item = 0
    with connected(vendors, tmp_path / "replies") as embedder:
        again = Client(embedder)
        np.testing.assert_array_equal(embedder.embed(TEXTS[:100]), found)
    assert again.sent == []


def test_half_of_a_batch_that_fails_for_good_leaves_the_other_half(vendors: Vendors, tmp_path: Path):
    refusal = Step.error(422, message="batch size 40 > maximum allowed batch size 32")  # as TEI says it
    vendors.script("openai/embeddings", refusal, Step(), Step.error(400, message="no"))
    with connected(vendors, tmp_path / "replies") as embedder, pytest.raises(ProviderError, match="no"):
        embedder.embed(TEXTS[:40])
    assert [len(each["input"]) for each in vendors.state.requests] == [40, 20, 20]
    with connected(vendors, tmp_path / "replies") as embedder:
        client = Client(embedder)
        embedder.embed(TEXTS[:40])
    assert client.sent == [20]
    assert set(vendors.state.texts["openai/embeddings"].values()) == {1}


def test_what_has_no_parts_is_given_more_time(vendors: Vendors):
    """A long answer on a slow processor, which would begin anew for every attempt."""
    limits = Limits(timeout_s=0.4, attempts=3)
    config = ModelConfig(provider="openai", model="chat", base_url=vendors.openai, limits=limits)
    vendors.always("openai/chat", Step("slow", seconds=0.7))
    with make_chat(config) as chat:
        chat_sleep(chat._caller)  # type: ignore[attr-defined]
        replies = [chat.complete("Be brief.", text, max_tokens=5) for text in ("one", "two")]
    assert [reply.attempts for reply in replies] == [2, 1]
    place = place_of(config)
    assert place is not None
    assert caller_for(config, place).timeout_s == 0.8


def chat_sleep(caller: Caller) -> None:
    caller._sleep = lambda _: None


@pytest.mark.parametrize(
    ("patient", "divisible", "sent", "timeout_s"),
    [(True, True, 1, 60), (False, True, 2, 60), (True, False, 6, 600), (False, False, 6, 60)],
)
def test_time_outs(patient: bool, divisible: bool, sent: int, timeout_s: float):
    caller = Caller(Limits(), sleep=lambda _: None, patient=patient)
    tried = itertools.count(1)

    def never() -> None:
        next(tried)
        raise TimeoutError

    with pytest.raises(ProviderError) as raised:
        caller.call(never, divisible=divisible)
    assert raised.value.kind == "timeout"
    assert next(tried) == sent + 1
    assert caller.timeout_s == caller.sibling().timeout_s == timeout_s


@pytest.mark.parametrize("own", [True, False], ids=["own", "vendor"])
def test_pools_that_time_out_are_halved(
    vendors: Vendors, tmp_path: Path, own: bool, monkeypatch: pytest.MonkeyPatch
):
    limits = Limits(timeout_s=1.5, concurrency=1)
    config = ModelConfig(provider="cohere", model="r", base_url=vendors.cohere, limits=limits, key_env="")
    late = Step("timeout", seconds=1.8)
    vendors.script("cohere/rerank", late)
    if not own:
        monkeypatch.setattr("core.providers.rerank.remote.RemoteReranker.too_much", lambda *_: None)
    passages = TEXTS[:48]
    with make_reranker(config, journal=Journal(tmp_path / "replies")) as reranker:
        reranker._caller._sleep = lambda _: None  # type: ignore[attr-defined]
        first = reranker.rerank("wings 007", passages)
        sizes = [len(each["documents"]) for each in vendors.state.requests]
        assert sizes == [48, 24, 24]
        vendors.script("cohere/rerank", *([] if own else [late]))
        reranker.rerank("wings 012", passages)
        sizes = [len(each["documents"]) for each in vendors.state.requests][3:]
        assert sizes == ([24, 24] if own else [48, 24, 24])
        again = reranker.rerank("wings 007", passages)
        assert len(vendors.state.requests) == (5 if own else 6)
    np.testing.assert_allclose(
        first.value.scores, [answers.relevance("wings 007", text) for text in passages]
    )
    np.testing.assert_array_equal(again.value.scores, first.value.scores)
