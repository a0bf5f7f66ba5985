"""The cost calculator as a visitor gets it: a stack's recorded cost, the corpus, and books of one's own."""

from __future__ import annotations

from pathlib import Path

from core.prices.book import Price
from core.prices.write import write_book
from core.store import Store
from tests.pages.conftest import OpenPage
from tests.prices.test_price_import import TODAY


def words(app) -> str:
    return " ".join(str(each.value).replace("\\", "") for each in [*app.markdown, *app.caption])


def test_the_cost_that_a_stack_recorded_is_labelled(open_page: OpenPage, demo_store: Path):
    runs = Store(demo_store).read().runs("python-docs")
    app = open_page(demo_store, "cost", base=runs["label"][0])
    assert not app.exception
    assert "As recorded" in words(app)
    assert "per 1,000 queries (measured)" in words(app)


def test_the_corpus_is_part_of_the_bill(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "cost", npas="1000000", spread="10000000", swing="10")
    assert not app.exception
    assert "Embedding the corpus costs $30.00 once, spread over 10,000,000 queries." in words(app)
    assert "± 10 % takes it from" in words(app)
    stages = next(frame.value for frame in app.dataframe if "stage" in frame.value.columns)
    assert list(stages["stage"]) == ["embed", "rerank", "embed-corpus", "index", "storage"]


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
    assert "$0.75 per 1,000 queries" in words(app)
    assert "book our contract" in words(app)
    assert app.selectbox(key="book").value == "our contract"


def test_a_broken_book_is_named_and_nothing_is_lost(
    open_page: OpenPage, published_store: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("CLQ_PRICES", str(tmp_path))
    (tmp_path / "mine.toml").write_text('book = "mine"\nprovider = ', encoding="utf-8")
    app = open_page(published_store, "cost")
    assert not app.exception
    assert "mine" in app.error[0].value
