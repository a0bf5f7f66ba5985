"""The cost calculator as a visitor gets it: a stack's recorded cost, the corpus, and books of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.prices.book import Price
from core.prices.write import write_book
from core.store import Store
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything, go, heading, press, rows, unescaped
from tests.prices.test_price_import import TODAY


def test_the_cost_that_a_stack_recorded_is_labelled(open_page: OpenPage, demo_store: Path):
    runs = Store(demo_store).read().runs("python-docs")
    app = open_page(demo_store, "cost", base=runs["label"][0])
    assert not app.exception
    assert "As recorded" not in everything(app), "the same amount as that of the calculator"
    assert "assumed price, machine time, " in everything(app)
    assert "A machine costs $36.06 a month; 1,000,000 queries keep it busy for " in everything(app)
    assert "This busy time is worth $" in everything(app)
    assert "per million queries (measured)" in everything(app)


def test_a_cost_that_is_known_in_part_stands_beside_the_modelled_one(
    open_page: OpenPage, published_store: Path
):
    app = open_page(published_store, "cost", ws="clq-paper")
    assert_sound(app)
    assert heading(app).startswith("$1.251 per 1,000 queries, modelled; recorded: ≥ $0.0012")


def test_the_corpus_is_part_of_the_bill(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "cost", npas="1000000", spread="10000000", swing="10")
    assert not app.exception
    assert "Embedding the corpus costs $30.00 once, spread over 10,000,000 queries." in everything(app)
    assert "± 10 % takes it from" in everything(app)
    stages = next(frame.value for frame in app.dataframe if "stage" in frame.value.columns)
    assert list(stages["stage"]) == ["embed", "rerank", "embed-corpus", "index", "storage"]


@pytest.mark.slow
def test_a_book_of_ones_own_can_be_chosen_and_is_read_anew(
    open_page: OpenPage, published_store: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("CLQ_PRICES", str(tmp_path))
    price = Price(
        item="rerank-2.5",
        provider="voyage",
        unit="input_tokens",
        price=0.03,
        per=1e6,
        currency="USD",
        source="our contract",
        looked_up=TODAY,
        confirmed=True,
    )
    write_book(tmp_path, "our contract", [price], extends="list")
    app = open_page(published_store, "cost", book="our contract")
    assert not app.exception
    assert number(app) == "$0.7512"
    assert "book our contract" in everything(app)
    assert app.selectbox(key="book").value == "our contract"


def test_a_broken_book_is_named_and_nothing_is_lost(
    open_page: OpenPage, published_store: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("CLQ_PRICES", str(tmp_path))
    (tmp_path / "mine.toml").write_text('book = "mine"\nprovider = ', encoding="utf-8")
    app = open_page(published_store, "cost")
    assert not app.exception
    assert "mine" in app.error[0].value


def number(app, place=0):
    return unescaped(app.metric[place].value)


def field(app, item="rerank-2.5", unit="input_tokens"):
    return app.number_input(key=f"_price_field_{item}:{unit}")


def cost_of(app, stack):
    table = rows(app)
    return table.filter(table["name"] == stack)["cost"][0]


@pytest.mark.slow
def test_a_price_is_halved_and_doubled_and_typed(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "cost", cand="50")
    assert (field(app).value, number(app)) == (0.05, "$1.251")
    press(app, "×½")  # the first price of the page is of the embedding
    app.button(key="_price_field_rerank-2.5:input_tokens×½").click().run()
    assert (field(app).value, number(app)) == (0.025, "$0.6256")
    app.button(key="_price_field_rerank-2.5:input_tokens×2").click().run()
    field(app).set_value(0.1).run()
    assert number(app) == "$2.501"
    assert "price" not in app.query_params, "a what-if stays on the page until it is used"


@pytest.mark.slow
def test_changed_prices_travel_into_the_decision_and_back(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "cost")
    field(app).set_value(0.025).run()
    press(app, "Use these prices in the decision")
    assert app.query_params["price"] == "voyage/rerank-2.5:0.025"
    assert "1 price changed" in everything(app)
    go(app, "confidence").run()
    assert_sound(app)
    assert app.query_params["price"] == "voyage/rerank-2.5:0.025"
    assert "rerank-2.5: $0.05 → $0.025 per 1,000,000 input tokens" in everything(app)
    press(app, "Back to the book's prices")
    assert "price" not in app.query_params
    assert "price changed" not in everything(app)


def test_a_link_brings_its_prices_and_nothing_else(open_page: OpenPage, published_store: Path):
    app = open_page(
        published_store, "cost", price=["voyage/rerank-2.5:0.025", "voyage/rerank-2.5:nan", "<b>:1"]
    )
    assert_sound(app)
    assert field(app).value == 0.025
    assert app.query_params["price"] == "voyage/rerank-2.5:0.025"
    assert "Not followed" in everything(app)


@pytest.mark.slow
def test_prices_that_are_tried_outlive_the_page_and_say_what_would_be_chosen(
    open_page: OpenPage, published_store: Path
):
    app = open_page(published_store, "cost")
    recorded = number(app, 2)
    field(app).set_value(0.025).run()
    assert number(app, 2) == recorded, "what was recorded stays at the book's prices"
    assert "With these prices the choice" in everything(app)
    go(app, "confidence").run()
    assert "price changed" not in everything(app)
    go(app, "cost").run()
    assert field(app).value == 0.025
    press(app, "Back to the book's prices")
    assert field(app).value == 0.05
    assert "With these prices the choice" not in everything(app)
