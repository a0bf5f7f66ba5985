"""Rewrites of queries: by name, by rules, by a chat model with its fall-back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ProviderError, UnknownNameError
from core.pipeline.query.denoise import denoise, hygiene
from core.pipeline.query.rewrite import REWRITES, ChatRewrite, make_rewrite, read_query, rewrite_config
from core.providers.calls import Journal, Keys
from core.providers.chat import CHATS, FakeChat
from core.providers.chat.ask import find_marked
from core.records import Basis
from tests.vendors import Step, serve

NOISY = "Hello!  Quick question: can forests\tregulate the climate? 🙏"
MARK = "0123456789ab"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("none", NOISY),
        ("hygiene", "Hello! Quick question: can forests regulate the climate? 🙏"),
        ("rules", "can forests regulate the climate?"),
    ],
)
def test_without_a_model(name: str, text: str):
    made = make_rewrite(name)
    reply = made.rewrite(NOISY)
    assert (made.name, made.local, reply.value) == (name, True, text)
    assert reply.details == {"changed": text != NOISY}
    (used,) = reply.usage
    assert (used.item, used.unit, used.basis) == ("local-cpu", "cpu_ms", Basis.MEASURED)
    assert reply.ms >= 0
    assert made.expected(NOISY)[0].amount is None


def test_rules_that_leave_nothing_fall_back_to_the_cleaned_query():
    reply = make_rewrite("rules").rewrite("Hello  there!")
    assert reply.value == "Hello there!"
    assert reply.details == {"changed": True, "fallback": "nothing but small talk"}
    assert make_rewrite("rules").rewrite("").value == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("magic", r"No rewrite 'magic'.*chat:<chat model>.*hygiene.*none.*rules"),
        ("chat", r"No chat model ''"),
        ("chat:gpt-0", r"No chat model 'gpt-0'.*gpt-4o-mini"),
    ],
)
def test_unknown_names_list_what_there_is(name: str, says: str):
    with pytest.raises(UnknownNameError, match=says):
        make_rewrite(name)


def test_names():
    assert all(rewrite_config(name) is None for name in REWRITES)
    assert rewrite_config("chat:gpt-4o-mini") is CHATS["gpt-4o-mini"]
    planned = make_rewrite("chat:gpt-4o-mini", keys=Keys({}, ()), ready=False)
    assert (planned.name, planned.item, planned.local) == ("chat:gpt-4o-mini", "gpt-4o-mini", False)
    assert [each.unit for each in planned.expected(NOISY)] == ["input_tokens", "output_tokens"]
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        make_rewrite("chat:gpt-4o-mini", keys=Keys({}, ()))


def test_a_chat_model_restates_the_question():
    chat = FakeChat(["Do forests regulate the climate?"])
    reply = ChatRewrite(chat).rewrite(NOISY)
    assert reply.value == "Do forests regulate the climate?"
    assert reply.details["changed"]
    assert "fallback" not in reply.details
    ((system, user),) = chat.asked
    assert find_marked(user) == [("question", hygiene(NOISY))]
    assert "forests" not in system
    assert [each.unit for each in reply.usage] == ["input_tokens", "output_tokens"]


@pytest.mark.parametrize(
    ("answers", "text", "reason", "turns"),
    [
        (["", "forests and climate"], "forests and climate", None, 2),
        (["a\nb", "forests and climate"], "forests and climate", None, 2),
        (["x" * 1000, "forests and climate"], "forests and climate", None, 2),
        (["", ""], None, "it is empty", 2),
        (["line\nline", "still\ntwo lines"], None, "more than one line", 2),
        (["x" * 1000, "y" * 1000], None, "longer than 200 characters", 2),
        (["{", '{"question": "x"}'], None, 'no text "query"', 2),
        (['{"query": 3}', '{"query": ""}'], None, "it is empty", 2),
        (["?", "!!"], None, "it is empty", 2),
    ],
)
def test_an_answer_that_cannot_be_used_falls_back(
    answers: list[str], text: str | None, reason: str | None, turns: int
):
    chat = FakeChat([*answers, "never asked"])
    reply = ChatRewrite(chat).rewrite(NOISY)
    assert reply.value == (text or hygiene(NOISY))
    assert (reason or "") in reply.details.get("fallback", "")
    assert ("fallback" in reply.details) == (reason is not None)
    assert len(chat.asked) == reply.attempts == turns


def test_a_query_without_a_word_is_not_asked_about():
    chat = FakeChat()
    for query in ("", " \n", "?!", "🙏"):
        reply = ChatRewrite(chat).rewrite(query)
        assert (reply.value, reply.details["fallback"]) == (hygiene(query), "it holds no word")
        assert (reply.fresh, reply.usage) == (False, ())
    assert chat.asked == []


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("forests climate", "forests climate"),
        ("  forests\u00a0climate \n", "forests climate"),
        ('"forests climate"', "forests climate"),
        ("« forêts et climat »", "forêts et climat"),
        ("Query: forests climate", "forests climate"),
        ("<think>They want…</think>\nforests climate", "forests climate"),
        ("```\nforests climate\n```", "forests climate"),
        ('{"query": "forests climate"}', "forests climate"),
        ('```json\n{"query": "forests\\nclimate"}\n```', "forests climate"),
        ('what does "NaN" mean', 'what does "NaN" mean'),
    ],
)
def test_answers_are_read(answer: str, query: str):
    reading = read_query(answer, "forests", MARK)
    assert (reading.value, reading.problem) == (query, "")


def test_an_answer_that_repeats_the_marks_is_none():
    reading = read_query(f"<question {MARK}> forests", "forests", MARK)
    assert (reading.value, reading.problem) == ("", "it repeats the marks")


@given(st.text() | st.text(alphabet='{}"query: \n', max_size=40), st.text(max_size=80))
def test_whatever_a_model_says_something_can_be_searched(answer: str, query: str):
    reply = ChatRewrite(FakeChat([answer, answer])).rewrite(query)
    assert reply.value == hygiene(reply.value)
    assert len(reply.value) <= max(200, 2 * len(hygiene(query)))
    assert reply.value or not any(each.isalnum() for each in query)
    if "fallback" in reply.details:
        assert reply.value == hygiene(query)


@pytest.mark.slow
def test_through_the_real_client(tmp_path: Path):
    def write(body: dict) -> str:
        """A model that follows the rules, as far as our own rules can."""
        (question,) = (text for _, text in find_marked(body["messages"][-1]["content"]))
        return json.dumps({"query": denoise(question)})

    journal = Journal(tmp_path / "replies.sqlite")
    with serve(chat=write) as vendors:
        chat = CHATS["gpt-4o-mini"].model_copy(update={"base_url": vendors.openai, "name": "mini"})
        made = make_rewrite("chat:mini", models={"mini": chat}, keys=Keys({}, ()), journal=journal)
        reply = made.rewrite(NOISY)
        again = made.rewrite(NOISY)
        repeated = made.rewrite(NOISY, extra="repeat 2")
        assert made.name == "chat:mini"
        assert reply.value == again.value == "can forests regulate the climate?"
        assert (reply.fresh, again.fresh, repeated.fresh) == (True, False, True)
        assert vendors.state.calls["openai/chat"] == 2
        used = sum(each.amount or 0 for each in (*reply.usage, *repeated.usage))
        assert used == vendors.state.usage["openai/chat"]
        assert {each.basis for each in reply.usage} == {Basis.MEASURED}
        assert reply.ms > 0
        made.close()
    journal.close()


def test_a_vendor_that_fails_is_an_error_and_no_fall_back():
    with serve() as vendors:
        vendors.always("openai/chat", Step.error(401))
        chat = CHATS["gpt-4o-mini"].model_copy(update={"base_url": vendors.openai})
        made = make_rewrite("chat:m", models={"m": chat}, keys=Keys({}, ()))
        with pytest.raises(ProviderError) as raised:
            made.rewrite(NOISY)
        assert raised.value.kind == "auth"
        made.close()
