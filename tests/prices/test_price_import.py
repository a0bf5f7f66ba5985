"""Prices from LiteLLM's table, written as a book of one's own, and what a check of a book finds."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from core.errors import PriceError
from core.paths import PRICES
from core.prices import load_books
from core.prices.book import Price, PriceBook
from core.prices.litellm import read_litellm
from core.prices.write import Used, as_toml, check_book, write_book

TODAY = date(2026, 11, 22)
TABLE = {
    "sample_spec": {"litellm_provider": "one of …", "mode": "one of …", "input_cost_per_token": 0.0},
    "gpt-4o-mini": {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 1.5e-07,
        "output_cost_per_token": 6e-07,
        "input_cost_per_token_above_200k_tokens": 3e-07,
    },
    "azure/gpt-4o-mini": {
        "litellm_provider": "azure",
        "mode": "chat",
        "input_cost_per_token": 1.65e-07,
        "output_cost_per_token": 6.6e-07,
    },
    "openai/gpt-4o-mini": {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 9.0,
        "output_cost_per_token": 9.0,
    },
    "voyage/voyage-3.5": {"litellm_provider": "voyage", "mode": "embedding", "input_cost_per_token": 6e-08},
    "voyage/rerank-2.5": {"litellm_provider": "voyage", "mode": "rerank", "input_cost_per_token": 5e-08},
    "rerank-v3.5": {
        "litellm_provider": "cohere",
        "mode": "rerank",
        "input_cost_per_query": 0.002,
        "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0,
        "source": "https://cohere.com/pricing",
    },
    "ollama/free": {
        "litellm_provider": "ollama",
        "mode": "chat",
        "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0,
    },
    "half": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06},
    "painter": {"litellm_provider": "openai", "mode": "image_generation", "input_cost_per_pixel": 1e-08},
    "bad\nname": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 1e-06},
    "negative": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": -1.0},
    "wordy": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": "much"},
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "model_prices_and_context_window.json"
    path.write_text(json.dumps(TABLE), encoding="utf-8")
    return path


def test_the_table_is_mapped_to_our_units(table: Path):
    found = read_litellm(table, looked_up=TODAY)
    assert [(p.item, p.provider, p.unit, p.price, p.per) for p in found.prices] == [
        ("azure/gpt-4o-mini", "azure", "input_tokens", 0.165, 1e6),
        ("azure/gpt-4o-mini", "azure", "output_tokens", 0.66, 1e6),
        ("gpt-4o-mini", "openai", "input_tokens", 0.15, 1e6),
        ("gpt-4o-mini", "openai", "output_tokens", 0.6, 1e6),
        ("rerank-2.5", "voyage", "input_tokens", 0.05, 1e6),
        ("rerank-v3.5", "cohere", "search_units", 2.0, 1e3),
        ("voyage-3.5", "voyage", "input_tokens", 0.06, 1e6),
    ]
    assert found.skipped == {
        "a price of it is not an amount": 2,
        "it is not an embedding, reranking or text model": 1,
        "its name is not usable": 1,
        "its price is not known (0)": 1,
        "only a part of its prices is known": 1,
        "the model is there already, under another name": 1,
    }
    assert not any(price.confirmed for price in found.prices)
    notes = {price.item: price.note for price in found.prices}
    assert notes["gpt-4o-mini"] == "Imported, not confirmed. Long prompts cost other than this."
    assert notes["rerank-2.5"] == "Imported, not confirmed."
    (cohere,) = [price for price in found.prices if price.provider == "cohere"]
    assert cohere.source.endswith(", from https://cohere.com/pricing")


def test_only_some_providers(table: Path):
    found = read_litellm(table, looked_up=TODAY, providers=["voyage"])
    assert {price.provider for price in found.prices} == {"voyage"}
    with pytest.raises(PriceError, match="no provider 'acme'"):
        read_litellm(table, looked_up=TODAY, providers=["acme"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not LiteLLM's table"),
        ("{}", "not LiteLLM's table"),
        ('{"a": 1}', "not LiteLLM's table"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text, says):
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PriceError, match=says):
        read_litellm(path, looked_up=TODAY)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(PriceError, match="cannot be read"):
        read_litellm(tmp_path / "x.json", looked_up=TODAY)


def price(**changes):
    base = {
        "item": "m",
        "provider": "acme",
        "unit": "input_tokens",
        "price": 0.1,
        "per": 1e6,
        "currency": "USD",
        "source": "a page",
        "looked_up": TODAY,
        "confirmed": False,
    }
    return Price(**{**base, **changes})


def test_what_is_written_is_read_back(tmp_path: Path):
    hostile = 'q"uo\\te\x7f \'\'\' """ # [x] é'
    prices = (
        price(),
        price(item=hostile, source=hostile, note=hostile, provider=hostile),
        price(unit="gib_month", valid_from=date(2026, 1, 1), confirmed=True, price=1e-9, per=3.0),
    )
    folder = tmp_path / "price-books"
    path = write_book(folder, "our contract", prices, extends="list")
    book = load_books(PRICES, own=folder)["our contract"]
    assert book.prices[:3] == prices
    assert book.find("voyage-3.5", "input_tokens") is not None
    assert [file.name for file in folder.iterdir()] == [path.name] == ["our contract.toml"]


def test_a_book_is_not_replaced_by_accident(tmp_path: Path):
    path = write_book(tmp_path, "mine", [price()])
    with pytest.raises(PriceError, match="there already"):
        write_book(tmp_path, "mine", [price(price=2.0)])
    write_book(tmp_path, "mine", [price(price=2.0)], replace=True)
    assert "price = 2.0" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a\nb", "x" * 61, "list"])
def test_names_are_checked(tmp_path: Path, name):
    with pytest.raises(PriceError):
        write_book(tmp_path, name, [price()])
    assert list(tmp_path.iterdir()) == []


def test_a_book_that_could_not_be_read_back_changes_nothing(tmp_path: Path):
    with pytest.raises(PriceError, match="no price"):
        write_book(tmp_path, "mine", [])
    with pytest.raises(PriceError, match="two prices"):
        write_book(tmp_path, "mine", [price(), price()])
    assert list(tmp_path.iterdir()) == []
    assert as_toml("mine", [price()]).startswith('book = "mine"\nprovider = ')


def test_the_check_names_old_prices_and_what_has_none():
    book = PriceBook(
        "b",
        (
            price(item="fresh", looked_up=date(2026, 8, 24)),  # 90 days
            price(item="old", looked_up=date(2026, 8, 23)),  # 91 days
            price(item="older", looked_up=date(2025, 11, 22)),
            price(item="renewed", looked_up=date(2020, 1, 1)),
            price(item="renewed", valid_from=date(2026, 1, 1)),
            price(item="local-cpu", unit="cpu_hour"),
        ),
    )
    used = [
        Used("fresh", "input_tokens", 9),
        Used("fresh", "output_tokens", 1),
        Used("local-cpu", "cpu_ms", 5),
        Used("local-gpu", "gpu_ms", 5),
        Used("old", None, 2),
        Used("nobody", None, 2),
    ]
    assert check_book(book, used, today=TODAY).rows() == [
        ("b", "no price", "local-gpu", "gpu_hour", "5 runs use it"),
        ("b", "no price", "nobody", "", "2 runs use it; its usage is not recorded"),
        ("b", "no price", "fresh", "output_tokens", "1 run uses it"),
        ("b", "old", "older", "input_tokens", "looked up 365 days ago"),
        ("b", "old", "old", "input_tokens", "looked up 91 days ago"),
    ]
    assert check_book(book, [], today=TODAY, old_after=1000).is_empty()
