"""Addresses that nobody meant: whatever stands in one, the page opens with defaults and says so once."""

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.number_format import dollars_per_1k
from core.ui.address.state import SETTINGS, UNMOVED, same, unreadable
from core.views import added
from core.views.blocks import Answer, section
from core.views.link import written
from core.views.pages import GROUPS
from core.views.pages import PAGES as PAGES_OF
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES, TITLES, go, page_of, unescaped

ENDLESS = "9" * 5_000
BAD = (
    "",
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "1_000",
    "²",
    "٣",
    ENDLESS,
    "0x10",
    "1e10",
    "-",
    "\u202e1",
    "\x00",
)
"""Values that no number may have."""
UNHEARD = ("min quality", "k[]", "<b>", "utm", "\x00", "rw9", "SLA")
"""Keys that no setting has."""
ODD = ("1e9", "-1e9", "0", "-0", "1e-99", "a\nb", "<b>", "100|200", "a:b:c", "'; --", "None", "p95", "latest")


@pytest.mark.parametrize(
    ("key", "texts", "refused"),
    [
        *[("queries", [text], True) for text in BAD],
        *[("min_quality", [text], False) for text in ("0", "-0", "0.5", "1e9", "-1e-05", "10E3")],
        *[("on", [text], not 0 < len(text) <= 2_000) for text in BAD],
        ("thr2", ["0.1", "0.9"], False),
        ("thr2", ["0.1", "1e999"], True),
        ("runs", ["a", ""], True),
        ("rev", ["latest"], False),
        ("rev", [ENDLESS], True),
        ("jitter", ["latest"], True),
        ("of nobody", [""], False),
    ],
)
def test_values_that_no_widget_could_be_given(key: str, texts: Sequence[str], refused: bool):
    assert unreadable({key: texts}) == [key] * refused


def refused(app: AppTest) -> str:
    """What the page says of its address that it does not follow; empty where it follows all."""
    said = [unescaped(each.value) for each in app.warning if each.value.startswith("Not followed: ")]
    return said[0].removeprefix("Not followed: ").removesuffix(".") if said else ""


FIRST = [pages[0].name for pages in GROUPS.values()]


@pytest.mark.parametrize(
    ("value", "page"),
    [
        *[("", page) for page in FIRST],  # no setting may be empty: whatever the page, it sees defaults
        *[(("1e999", "a\nb")[at % 2], page) for at, page in enumerate(PAGES)],
    ],
)
def test_every_setting_with_a_value_that_makes_no_sense(
    open_page: OpenPage, store_of: Callable[[str], Path], page: str, value: str
):
    app = open_page(store_of(page), page, **dict.fromkeys(SETTINGS, value))
    assert not app.exception
    assert page_of(app).title == TITLES[page]
    assert refused(app).count("workspace “") == 1


def test_nothing_that_is_empty_reaches_a_page():
    assert set(unreadable({key: [""] for key in SETTINGS})) == set(SETTINGS)


def test_it_is_said_once(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency", on="", queries="1e999")
    assert refused(app) == "latency percentile “” (no value); queries per month “1e999” (no number)"
    app.session_state[UNMOVED] = True  # as where the page hears that the window is a phone's
    assert refused(app.run()), "nobody has done anything since"
    assert not refused(app.run())


NEAR = "unknown, nearest is "


@pytest.mark.parametrize(
    ("page", "asked", "said"),
    [
        ("decision", {"min_robust": "0.9", "min_answer_rate": "0.9"}, ""),  # nobody measured it
        ("decision", {"budget": "abc"}, "budget “abc” (no amount such as 2.5per1k or 0.2per1M)"),
        ("library", {"budget": "NaN"}, "budget “NaN” (no amount such as 2.5per1k or 0.2per1M)"),
        ("decision", {"sla_ms": "NaN", "correct": "abc"},
         "SLA “NaN”, score of a correct answer “abc” (no number)"),
        ("cost", {"correct": "0.7"}, "score of a correct answer “0.7” (not asked here)"),
        *[(page, {"rule": "nope"},
           "what is best “nope” (one of: highest quality, lowest cost, lowest latency)")
          for page in ("decision", "confidence", "library")],
        ("decision", {"rule": "lowest cost"}, ""),  # page Confidence asks
        ("decision", {"take": "nobody"}, "stack taken by hand “nobody” (does not exist here)"),
        ("decision", {"curves": "x"}, "stacks in the chart “x” (not asked here)"),
        ("decision", {"slq": "5", "xyzzy": "1"}, f"“slq” ({NEAR}sla_ms); “xyzzy” (unknown)"),
        ("decision", {"k[]": "5"}, "“k[]” (unknown)"),
        ("decision", {"sla_ms": ["5", "7"]}, "SLA “5, 7” (does not exist here)"),
        ("library", {"rev": "999"}, "data revision “999” (does not exist here)"),
        ("library", {"rev": "latest"}, ""),
        ("decision", {"m": "x" * 100_000}, f"measure “{'x' * 18}…{'x' * 11}” (no value)"),
        ("decision", {"y" * 100_000: "1"}, f"“{'y' * 18}…{'y' * 11}” (unknown)"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_named_with_the_reason(
    open_page: OpenPage, demo_store: Path, page: str, asked: dict[str, str], said: str
):
    assert refused(open_page(demo_store, page, **asked)) == said


def test_what_a_page_cannot_tell_is_told_by_the_next(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "library", m="nope", on="p95", k="10")
    assert not refused(app)
    assert refused(go(app, "decision").run()) == "measure “nope” (does not exist here)"
    assert not refused(go(app, "cost").run())


def followed(key: str, asked: Sequence[str], held: Sequence[str]) -> bool:
    """A setting holds what was asked; an amount without a unit is per 1,000 queries."""
    if key in SETTINGS and SETTINGS[key].money and len(asked) == len(held) == 1:
        return dollars_per_1k(asked[0]) == dollars_per_1k(held[0])
    return same(asked, held)


@pytest.mark.slow
@pytest.mark.parametrize("page", FIRST)
def test_every_key_is_followed_or_named(open_page: OpenPage, demo_store: Path, page: str):
    """Of 75 addresses of each page; the keys are those that are declared, so that a new one is among them."""
    rng = np.random.default_rng(zlib.crc32(page.encode()))
    keys, texts = [*SETTINGS, *UNHEARD], [*BAD, *ODD, "0.9", "nope", "x" * 100_000]
    for drawn in np.array_split(rng.permutation(keys), 75):
        address = {str(key): rng.choice(texts, rng.integers(1, 3)).tolist() for key in drawn}
        app = open_page(demo_store, page, **address)
        assert not app.exception, address
        said, waiting = refused(app), app.session_state["_asked"]
        for key, asked in address.items():
            held = app.session_state[key] if key in app.session_state else None  # noqa: SIM401
            named = f"{SETTINGS[key].word} “" if key in SETTINGS else f"“{key}”"
            assert named in said or key in waiting or followed(key, asked, written(held)), (address, said)


@pytest.mark.parametrize("seed", range(20))
def test_addresses_drawn_at_random(open_page: OpenPage, demo_store: Path, seed: int):
    rng = np.random.default_rng(seed)
    keys = rng.permutation(list(SETTINGS))[: rng.integers(1, 30)]
    address = {str(key): rng.choice(BAD + ODD, rng.integers(1, 4)).tolist() for key in keys}
    page = PAGES[seed % len(PAGES)]
    app = open_page(demo_store, page, **address)
    assert not app.exception
    assert page_of(app).title == TITLES[page]


@pytest.mark.parametrize("page", FIRST)
def test_what_takes_a_number_is_declared_as_one(open_page: OpenPage, demo_store: Path, page: str):
    """Of the settings that end-to-end latency asks for; for those of every place see test_places.py."""
    app = open_page(demo_store, page, lat="end-to-end")
    asked = {widget.key for widget in [*app.number_input, *app.slider]} & set(SETTINGS)
    assert "gbase" in asked or PAGES_OF[page].group == "Data"
    assert all(SETTINGS[key].number for key in asked)


ASKED = {
    "ws": "clq-paper",
    "sla_ms": "700",
    "budget": "3per1k",
    "jitter": "50",
    "price": "voyage/rerank-2.5:0.04",
}


@pytest.mark.parametrize("page", FIRST)
def test_an_address_and_its_links_keep_what_the_page_has_no_field_for(
    open_page: OpenPage, demo_store: Path, page: str
):
    app = open_page(demo_store, page, **ASKED)
    assert app.query_params == ASKED
    links = [parse_qs(link.proto.query_string) for link in app.sidebar.get("page_link")]
    assert links == [{key: [text] for key, text in ASKED.items()}] * len(PAGES_OF)
    assert not app.selectbox(key="ws").proto.query_param_key, "a browser would write to the address too"


@pytest.mark.parametrize("page", FIRST)
def test_another_workspace_leaves_its_settings_out(open_page: OpenPage, demo_store: Path, page: str):
    app = open_page(demo_store, page, **ASKED, on="p95", noise="off")
    app.selectbox(key="ws").set_value("python-docs").run()
    asked = {key: text for key, text in app.query_params.items() if key in {*ASKED, "on", "noise"}}
    assert asked == {key: ASKED[key] for key in ("jitter", "price")} | {"ws": "python-docs"}
    app.selectbox(key="ws").set_value("clq-paper").run()
    assert app.query_params == ASKED, "limits that were set there come back"


@section("slowest", "Which stacks take long?")
def slowest(view, ask):
    yield Answer(f"{ask.number('Latency at least (ms)', 'acme_ms', 0.0, 0.0):g} ms or more.")


@pytest.mark.parametrize(("text", "answered"), [("5", "5 ms or more."), ("much", "0 ms or more.")])
def test_an_address_may_answer_what_a_plug_in_asks(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, text: str, answered: str
):
    monkeypatch.setattr(added, "added", lambda page: (slowest,) if page == "latency" else ())
    app = open_page(demo_store, "latency/slowest", acme_ms=text)
    assert unescaped(app.title[0].value) == answered
    assert ["acme_ms" in unescaped(said.value) for said in app.warning] == [True] * (text == "much")
