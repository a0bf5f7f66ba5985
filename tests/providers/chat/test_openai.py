"""OpenAI-compatible chat through the real client, pointed at a local server that speaks the wire format."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import BudgetError, ProviderError, UnknownNameError
from core.prices import load_books
from core.providers.calls import Caller, Journal, Keys, Limits
from core.providers.chat import CHATS, Chat, chat_config, make_chat
from core.providers.config import ChatOptions, ModelConfig
from core.records import Basis
from tests.providers.calls.made import Ledger
from tests.vendors import Step, Vendors, keys_for

KEY = "sk-THISisTHEkey0123456789"
ENDPOINT = "openai/chat"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}


@contextmanager
def connected(
    vendors: Vendors,
    *,
    name: str = "gpt-4o-mini",
    key: str = KEY,
    journal: Journal | None = None,
    meter: Any = None,
    slept: list[float] | None = None,
    limits: Limits | None = None,
    **changes: Any,
) -> Iterator[Chat]:
    limits = limits or Limits()
    told = {"base_url": vendors.openai, "key_env": "OPENAI_API_KEY", "limits": limits, **changes}
    config = CHATS[name].model_copy(update=told)
    waits = [] if slept is None else slept
    caller = Caller(
        limits,
        name=name,
        clock=lambda: time.monotonic() + sum(waits),
        sleep=waits.append,
        rng=lambda: 1.0,
    )
    keys = keys_for(vendors.url, OPENAI_API_KEY=key)
    with make_chat(config, keys=keys, journal=journal, meter=meter, caller=caller) as chat:
        yield chat


def test_a_message_is_answered_and_measured(vendors: Vendors):
    with connected(vendors) as chat:
        reply = chat.complete("Be brief.", "What is up?", max_tokens=20)
        assert (chat.name, chat.item, chat.local) == ("gpt-4o-mini", "gpt-4o-mini", False)
    assert reply.value == "I read: What is up?"
    (body,) = vendors.state.requests
    assert [(each["role"], each["content"]) for each in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "What is up?"),
    ]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("gpt-4o-mini", 20, 0.0)
    assert "response_format" not in body
    assert [(each.item, each.unit, each.basis) for each in reply.usage] == [
        ("gpt-4o-mini", "input_tokens", Basis.MEASURED),
        ("gpt-4o-mini", "output_tokens", Basis.MEASURED),
    ]
    assert sum(each.amount or 0 for each in reply.usage) == vendors.state.usage[ENDPOINT]
    characters, speed = reply.details["characters"], reply.details["chars_per_second"]
    assert characters == len(reply.value)
    assert speed == pytest.approx(1000 * characters / reply.ms)
    assert reply.details["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("options", "there", "missing"),
    [
        (ChatOptions(), {"max_tokens": 20, "temperature": 0.3}, ["response_format", "max_completion_tokens"]),
        (ChatOptions(json_mode="object"), {"response_format": {"type": "json_object"}}, []),
        (
            ChatOptions(json_mode="schema"),
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
                }
            },
            [],
        ),
        (
            ChatOptions(temperature=False, answer_limit="max_completion_tokens", thinking_tokens=100),
            {"max_completion_tokens": 120},
            ["temperature", "max_tokens", "response_format"],
        ),
    ],
)
def test_only_what_is_configured_is_sent(
    vendors: Vendors, options: ChatOptions, there: dict, missing: list[str]
):
    with connected(vendors, chat=options) as chat:
        chat.complete("s", "u", max_tokens=20, temperature=0.3, json_schema=SCHEMA)
    (body,) = vendors.state.requests
    assert {name: body[name] for name in there} == there
    assert not set(missing) & set(body)


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([Step.error(429, "7")], [7.7]),
        ([Step.error(500)], [1.0]),
        ([Step.error(503), Step.error(502)], [1.0, 2.0]),
        ([Step("malformed")], [1.0]),
        ([Step("drop")], [1.0]),
    ],
    ids=["429", "500", "503 502", "malformed", "drop"],
)
def test_what_passes_is_tried_again(vendors: Vendors, steps: list[Step], waits: list[float]):
    vendors.script(ENDPOINT, *steps)
    slept: list[float] = []
    with connected(vendors, slept=slept) as chat:
        reply = chat.complete("s", "u", max_tokens=20)
    assert reply.value == "I read: u"
    assert reply.attempts == len(steps) + 1 == vendors.state.calls[ENDPOINT]
    assert slept == pytest.approx(waits)


def test_a_timeout_is_tried_again_and_counted_as_spent(vendors: Vendors):
    with connected(vendors) as warm:
        warm.complete("s", "the client is loaded before the clock runs", max_tokens=5)
    ledger = Ledger()
    vendors.script(ENDPOINT, Step("timeout", seconds=1.0))
    with connected(vendors, meter=ledger, limits=Limits(timeout_s=0.3)) as chat:
        reply = chat.complete("s", "u", max_tokens=20)
    assert reply.attempts >= 2
    assert ledger.spent > sum(each.amount or 0 for each in reply.usage)
    assert ledger.reserved == 0


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Step.error(401), "auth"),
        (Step.error(400, message="no such model"), "refused"),
        (Step.error(429, message="You exceeded your current quota"), "quota"),
        (Step.error(429, "9999"), "busy"),
        (Step.error(400, message="too many tokens: the maximum is 3"), "too large"),
    ],
)
def test_what_does_not_pass_is_an_error_at_once(vendors: Vendors, step: Step, kind: str):
    vendors.script(ENDPOINT, step)
    with connected(vendors) as chat, pytest.raises(ProviderError) as raised:
        chat.complete("s", "u", max_tokens=20)
    assert (raised.value.kind, raised.value.where) == (kind, "gpt-4o-mini")
    assert vendors.state.calls[ENDPOINT] == 1
    assert KEY not in "".join(traceback.format_exception(raised.value)) + repr(raised.value)


def test_answers_are_recalled(vendors: Vendors, tmp_path: Path):
    journal, ledger = Journal(tmp_path / "replies.sqlite"), Ledger()
    with connected(vendors, journal=journal, meter=ledger) as chat:
        first = chat.complete("s", "u", max_tokens=20)
        again = chat.complete("s", "u", max_tokens=20)
        assert vendors.state.calls[ENDPOINT] == 1
        assert (again.value, again.usage, again.ms, again.details) == (
            first.value,
            first.usage,
            first.ms,
            first.details,
        )
        assert (first.fresh, again.fresh) == (True, False)
        for other in (
            chat.complete("s", "u", max_tokens=21),
            chat.complete("s2", "u", max_tokens=20),
            chat.complete("s", "u2", max_tokens=20),
            chat.complete("s", "u", max_tokens=20, temperature=0.5),
            chat.complete("s", "u", max_tokens=20, extra="repeat 2"),
        ):
            assert other.fresh
    assert ledger.spent == vendors.state.usage[ENDPOINT]
    journal.close()
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_the_budget_is_asked_first(vendors: Vendors):
    ledger = Ledger(most=30)
    with connected(vendors, meter=ledger) as chat, pytest.raises(BudgetError):
        chat.complete("s", "u", max_tokens=20)  # 20 for the answer, and the texts with what is around them
    assert vendors.state.calls[ENDPOINT] == 0


def test_no_reservation_is_smaller_than_the_bill(vendors: Vendors):
    class Watching(Ledger):
        def settle(self, reservation: Any, amounts: Any) -> None:
            assert sum(each.amount for each in amounts) <= reservation
            super().settle(reservation, amounts)

    with connected(vendors, meter=Watching(), tokenizer=None) as chat:
        for text in ("naïve 東京 📈", "x", "The <|endoftext|> of it", "a" * 2000):
            chat.complete(text, text, max_tokens=300)


def test_usage_that_is_not_told_is_estimated(vendors: Vendors):
    vendors.script(ENDPOINT, Step("no usage"))
    with connected(vendors) as chat:
        reply = chat.complete("s", "u", max_tokens=20)
        assert {each.basis for each in reply.usage} == {Basis.MODELLED}
        assert reply.usage[1].amount == chat.count_tokens(reply.value)


def test_a_server_without_keys_gets_none(vendors: Vendors):
    config = ModelConfig(provider="openai", model="qwen", base_url=vendors.openai)
    with make_chat(config, keys=Keys({"OPENAI_API_KEY": KEY}, ())) as chat:
        chat.complete("s", "u", max_tokens=20)
    assert vendors.state.requests[0]["key"] == "none"


def test_a_missing_key_is_named_unless_it_is_only_planned():
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        make_chat("gpt-4o-mini", keys=Keys({}, ()))
    planned = make_chat("gpt-4o-mini", keys=Keys({}, ()), ready=False)
    assert [each.amount for each in planned.expected(100, 10)] == [100, 10]
    planned.close()


def test_names():
    mine = ModelConfig(provider="openai", model="qwen", name="mine", base_url="http://127.0.0.1:9/v1")
    assert chat_config("mine", {"mine": mine}) is mine
    assert chat_config(mine) is mine
    assert chat_config("gpt-5-mini").chat.answer_limit == "max_completion_tokens"
    with pytest.raises(UnknownNameError, match=r"No chat model 'yours'.*gpt-4o-mini.*mine"):
        chat_config("yours", {"mine": mine})
    with pytest.raises(UnknownNameError, match=r"provider of chat models 'voyage'.*fake, openai"):
        chat_config(mine.model_copy(update={"provider": "voyage"}))


def test_every_known_model_has_a_price():
    book = load_books()["list"]
    for name, config in CHATS.items():
        if config.provider == "openai":
            assert book.find(config.price_item, "input_tokens"), name
            assert book.find(config.price_item, "output_tokens"), name
