"""Rerankers that ask a chat model, through the real client: what is billed, foreseen and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ProviderError
from core.providers.calls import Journal, Keys
from core.providers.chat import CHATS
from core.providers.rerank import BY_CHAT, make_reranker
from core.records import Basis
from tests.providers.rerank.test_by_chat import PASSAGES, QUERY
from tests.vendors import Step, Vendors


@pytest.mark.parametrize("way", BY_CHAT)
def test_through_the_real_client(vendors: Vendors, way: str, tmp_path: Path):
    """By name, with the client, the server's usage, the journal and a repair after half an answer."""
    chat = CHATS["gpt-4o-mini"].model_copy(update={"base_url": vendors.openai, "name": "mini"})
    journal = Journal(tmp_path / "replies.sqlite")
    with make_reranker(f"{way}:mini", models={"mini": chat}, keys=Keys({}, ()), journal=journal) as reranker:
        reply = reranker.rerank(QUERY, PASSAGES)
        calls = vendors.state.calls["openai/chat"]
        again = reranker.rerank(QUERY, PASSAGES)
        assert vendors.state.calls["openai/chat"] == calls
        repeated = reranker.rerank(QUERY, PASSAGES, extra="repeat 2")
        assert vendors.state.calls["openai/chat"] == 2 * calls
    assert reranker.name == f"{way}:mini"
    assert reply.value.order.tolist()[:2] == [3, 0]
    assert calls == (4 if way == "relevance" else reranker.turns)
    assert reranker.turns == (2 if way.endswith("two-turn") else 1)
    assert [(each.item, each.unit, each.basis) for each in reply.usage] == [
        ("gpt-4o-mini", "input_tokens", Basis.MEASURED),
        ("gpt-4o-mini", "output_tokens", Basis.MEASURED),
    ]
    assert (
        sum(each.amount or 0 for each in (*reply.usage, *repeated.usage))
        == vendors.state.usage["openai/chat"]
    )
    assert (reply.fresh, again.fresh, repeated.fresh) == (True, False, True)
    np.testing.assert_array_equal(again.value.scores, reply.value.scores)
    assert again.usage == reply.usage
    speed = 1000 * reply.details["characters"] / reply.details["generation_ms"]
    assert reply.details["chars_per_second"] == pytest.approx(speed)
    schemas = [json.dumps(body["response_format"]) for body in vendors.state.requests]
    assert all('"strict": true' in schema for schema in schemas)


def test_what_a_prompt_is_expected_to_use_is_close(vendors: Vendors):
    chat = CHATS["gpt-4o-mini"].model_copy(update={"base_url": vendors.openai})
    for way in BY_CHAT:
        with make_reranker(f"{way}:m", models={"m": chat}, keys=Keys({}, ())) as reranker:
            passages = [f"{text} {'word ' * 300}" for text in PASSAGES]
            tokens = [chat_tokens(reranker, text) for text in passages]
            guess = reranker.expected(chat_tokens(reranker, QUERY), tokens)
            used = reranker.rerank(QUERY, passages).usage
        assert [each.unit for each in guess] == [each.unit for each in used]
        assert guess[0].amount == pytest.approx(used[0].amount, rel=0.1)


def chat_tokens(reranker: Any, text: str) -> int:
    return reranker.chat.count_tokens(text)


def test_a_vendor_that_fails_is_an_error_and_no_missing_rating(vendors: Vendors):
    vendors.always("openai/chat", Step.error(400, message="no such model"))
    chat = CHATS["gpt-4o-mini"].model_copy(update={"base_url": vendors.openai})
    with (
        make_reranker("relevance:m", models={"m": chat}, keys=Keys({}, ())) as reranker,
        pytest.raises(ProviderError, match="no such model"),
    ):
        reranker.rerank(QUERY, PASSAGES)
