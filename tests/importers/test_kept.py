import json

import pytest

from core.importers.settings import LEFT_OUT, kept

KEY = "sk-proj-abcdefgh12345678"


@pytest.mark.parametrize(
    "key",
    ["password", "api_key", "apiKey", "OPENAI_API_KEY", "db_password", "secret", "access_token", "auth.token",
     "uri", "url", "host", "user", "user_name", "connectionString", "Authorization"],
)  # fmt: skip
def test_keys_that_hold_secrets_or_addresses_keep_none(key):
    assert kept({key: "x", "model": "m"}) == {key: LEFT_OUT, "model": "m"}
    assert kept({"inner": [{key: "x"}]}) == {"inner": [{key: LEFT_OUT}]}


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_tokens", 5), ("tokenizer", "o200k"), ("token", None), ("user_prompt", "hi"),
     ("model", "hf-tiny-llama-3"), ("name", "pk-Multilingual-E5"), ("url", ""), ("keys", ["a"])],
)  # fmt: skip
def test_everything_else_stays(key, value):
    assert kept({key: value}) == {key: value}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"use {KEY}!", f"use {LEFT_OUT}!"),
        ("Bearer abc.def", LEFT_OUT),
        ("postgres://me:secret@host/db", f"postgres://{LEFT_OUT}host/db"),
        ("{not json", "{not json"),
        ('{"a":  1}', '{"a":  1}'),
    ],
)
def test_texts(text, expected):
    assert kept({"note": text}) == {"note": expected}


def test_json_within_a_text_keeps_no_secret_either():
    text = json.dumps({"llm": {"api_key": KEY}, "k": 5})
    assert json.loads(kept({"flow": text})["flow"]) == {"llm": {"api_key": LEFT_OUT}, "k": 5}


def test_numbers_that_json_cannot_hold_are_null():
    assert kept({"a": float("nan"), "b": 1e400, "c": True}) == {"a": None, "b": None, "c": True}
