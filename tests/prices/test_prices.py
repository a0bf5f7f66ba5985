from datetime import date
from pathlib import Path

import pytest

from core.errors import ClqError, PriceError, UnknownNameError
from core.paths import PRICES
from core.prices import UNITS, Price, PriceBook, load_books, own_folder

GOOD = """
provider = "acme"
[[price]]
item = "m"
unit = "input_tokens"
price = 2
per = 1_000_000
currency = "USD"
source = "a page"
looked_up = 2026-11-01
confirmed = true
"""


def price(**changes):
    base = {
        "item": "m",
        "provider": "acme",
        "unit": "input_tokens",
        "price": 2.0,
        "per": 1e6,
        "currency": "USD",
        "source": "a page",
        "looked_up": date(2026, 11, 1),
        "confirmed": True,
    }
    return Price(**{**base, **changes})


def test_shipped_books_are_complete():
    books = load_books(PRICES)
    assert set(books) == {"list", "clq-paper"}
    assert {p.provider for p in books["list"].prices} == {"voyage", "cohere", "openai", "local"}
    for entry in (entry for book in books.values() for entry in book.prices):
        assert entry.unit in UNITS
        assert entry.source
        assert entry.currency == "USD"
        assert entry.confirmed or entry.note, f"{entry.item}: unconfirmed without a reason"


def test_every_shipped_file_is_read():
    read = {p.provider for book in load_books(PRICES).values() for p in book.prices}
    assert len(read) == len(list(PRICES.glob("*.toml")))


def test_defaults(tmp_path: Path):
    (tmp_path / "acme.toml").write_text(GOOD, encoding="utf-8")
    book = load_books(tmp_path)["list"]
    found = book.find("m", "input_tokens")
    assert (found.price, found.each, found.valid_from, found.note) == (2.0, 2e-6, None, "")
    assert book.find("m", "output_tokens") is None
    assert [item for item, _ in book.newest] == ["m"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("= 2\n", "= -2\n"), "-2 is not an amount"),
        (("= 2\n", "= nan\n"), "nan is not an amount"),
        (("= 2\n", "= true\n"), "price = True has the wrong type"),
        (("= 2\n", '= "2"\n'), "price = '2' has the wrong type"),
        (("per = 1_000_000", "per = 0"), "0 is not an amount"),
        (('"input_tokens"', '"tokens"'), "Unknown unit 'tokens'"),
        (("confirmed = true", ""), "Missing key 'confirmed'"),
        (("confirmed = true", "confirmed = true\nsince = 2020-01-01"), "Unknown key 'since'"),
        (('"a page"', '""'), "source is empty"),
    ],
)
def test_malformed_entry_names_file_and_entry(tmp_path: Path, change, says):
    (tmp_path / "acme.toml").write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(PriceError) as caught:
        load_books(tmp_path)
    assert caught.value.where == "acme.toml, entry 1 (m)"
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("provider = ", "Not readable as TOML"),
        ("", "no provider"),
        ('provider = "a"', "no [[price]]"),
        ('provider = "a"\nprice = [1]', "not a table"),
    ],
)
def test_malformed_file_is_named(tmp_path: Path, text, says):
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PriceError, match=r"bad\.toml") as caught:
        load_books(tmp_path)
    assert says in str(caught.value)


def test_two_prices_of_one_date_are_refused(tmp_path: Path):
    entry = GOOD.split("[[price]]")[1]
    (tmp_path / "acme.toml").write_text(f"{GOOD}[[price]]{entry}", encoding="utf-8")
    with pytest.raises(PriceError, match="two prices"):
        load_books(tmp_path)


OWN = GOOD.replace("provider", 'book = "our contract"\nextends = "list"\nprovider').replace(
    'item = "m"', 'item = "rerank-2.5"'
)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("CLQ_PRICES", str(folder))
    return folder


def test_own_books_stand_beside_the_shipped_ones_and_take_over_what_they_do_not_price(own: Path):
    (own / "acme.toml").write_text(OWN, encoding="utf-8")
    books = load_books()
    assert set(books) == {"list", "clq-paper", "our contract"}
    ours = books["our contract"]
    assert ours.find("rerank-2.5", "input_tokens").each == 2e-6
    assert ours.find("rerank-2.5", "input_tokens").provider == "acme"
    assert ours.find("voyage-3.5", "input_tokens") == books["list"].find("voyage-3.5", "input_tokens")
    assert books["list"].find("rerank-2.5", "input_tokens").price == 0.05
    assert "our contract" not in load_books(PRICES)


def test_an_entry_may_name_its_own_provider(own: Path):
    (own / "a.toml").write_text(OWN + 'provider = "other"\n', encoding="utf-8")
    assert load_books()["our contract"].find("rerank-2.5", "input_tokens").provider == "other"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('book = "our contract"', ""), "no name of a book"),
        (('book = "our contract"', 'book = "list"'), "'list' comes with the product"),
        (('book = "our contract"', 'book = "<b>x</b>"'), "cannot be the name"),
        (('book = "our contract"', 'book = ""'), "cannot be the name"),
        (('extends = "list"', 'extends = "nobody"'), "extends 'nobody', which does not exist"),
        (('extends = "list"', 'extends = "our contract"'), "extends itself"),
        (('extends = "list"', "extends = 3"), "cannot extend 3"),
    ],
)
def test_own_books_are_checked(own: Path, change, says):
    (own / "acme.toml").write_text(OWN.replace(*change), encoding="utf-8")
    with pytest.raises(PriceError) as caught:
        load_books()
    assert says in str(caught.value)


def test_own_books_may_not_extend_each_other_in_a_circle(own: Path):
    for name, other in (("a", "b"), ("b", "a")):
        text = OWN.replace("our contract", name).replace('extends = "list"', f'extends = "{other}"')
        (own / f"{name}.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PriceError, match="extends itself"):
        load_books()


def test_where_own_books_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CLQ_PRICES", raising=False)
    monkeypatch.setenv("CLQ_STORE", str(tmp_path / "a" / "store"))
    assert own_folder() == tmp_path / "a" / "price-books"
    assert own_folder(tmp_path / "b" / "store") == tmp_path / "b" / "price-books"
    assert set(load_books()) == {"list", "clq-paper"}
    monkeypatch.setenv("CLQ_PRICES", str(tmp_path / "nowhere"))
    assert own_folder(tmp_path / "b" / "store") == tmp_path / "nowhere"
    with pytest.raises(PriceError, match="no such folder"):
        load_books()


def test_the_newest_price_counts():
    old, new = price(price=1.0), price(price=3.0, valid_from=date(2026, 1, 1))
    book = PriceBook("b", (new, old))
    assert book.find("m", "input_tokens") == new
    assert PriceBook("b", (old, new)).find("m", "input_tokens") == new
    assert book.frame().select("item", "price").rows() == [("m", 3.0)]


def test_changes_make_a_new_book():
    book = PriceBook("b", (price(), price(item="n")))
    changed = book.with_changes({("m", "input_tokens"): 4.0})
    assert (changed.name, changed.title) == ("b", "b, 1 price changed")
    assert changed.digest != book.digest
    assert [price.was for price in changed.changed] == [2.0]
    assert changed.find("m", "input_tokens").each == 4e-6
    assert not changed.find("m", "input_tokens").confirmed
    assert changed.find("n", "input_tokens") == book.find("n", "input_tokens")
    assert book.with_changes({("m", "input_tokens"): 2.0}) == book
    assert book.with_changes({}) == book


def test_changes_are_checked():
    book = PriceBook("b", (price(),))
    with pytest.raises(UnknownNameError, match="m input_tokens"):
        book.with_changes({("x", "input_tokens"): 1.0})
    with pytest.raises(PriceError, match="what-if"):
        book.with_changes({("m", "input_tokens"): -1.0})


def test_changed_prices_are_written_and_read_again():
    sold = (price(), price(unit="output_tokens"), price(item="a/b:c", price=7.0))
    book = PriceBook("b", sold)
    changed = book.with_changes(
        {
            ("m", "output_tokens"): 0.025,
            ("a/b:c", "input_tokens"): 1e-7,
            ("m", "input_tokens"): 2.0,
        }
    )
    provider = sold[0].provider
    assert changed.changes == (f"{provider}/a/b:c:1e-07", f"{provider}/m:output_tokens:0.025")
    assert book.derived(changed.changes) == changed
    assert book.derived(["m:output_tokens=0.025", "a/b:c:input_tokens=1e-7"]) == changed
    assert PriceBook("b", sold[:1]).derived([f"{provider}/m:3"]).find("m", "input_tokens").price == 3.0


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "m", "m:1", "m=1", "p/m:1", "p/m:input_tokens:", "p/m:input_tokens:x", "p/m:input_tokens:-1",
        "p/m:input_tokens:nan", "p/m:input_tokens:inf", "p/m:input_tokens:1e999", "p/m:input_tokens:0x1",
        "p/m:input_tokens: 1", "p/m:input_tokens:1_0", "p/m:input_tokens:٣", "x/y:input_tokens:1",
        "p/m:input_tokens:1\n", "=1", "/:1",
    ],
)  # fmt: skip
def test_what_is_no_price_is_left_out_of_a_link_and_refused_by_a_command(text):
    book = PriceBook("b", (price(provider="p"), price(provider="p", unit="output_tokens")))
    changes, wrong = book.read_changes([text, "p/m:input_tokens:0.5"])
    assert changes == {("m", "input_tokens"): 0.5}
    assert len(wrong) == 1
    with pytest.raises(ClqError):
        book.derived([text])
