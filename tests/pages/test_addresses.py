"""Addresses that nobody meant: whatever stands in one, the page opens with defaults and says so once."""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest

from core.ui.state import SETTINGS, unreadable
from core.views.pages import GROUPS
from core.views.pages import PAGES as PAGES_OF
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES, TITLES, everything, page_of

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
ODD = ("1e9", "-1e9", "0", "-0", "1e-99", "a\nb", "<b>", "100|200", "a:b:c", "'; --", "None", "p95", "latest")


@pytest.mark.parametrize(
    ("key", "texts", "refused"),
    [
        *[("queries", [text], True) for text in BAD],
        *[("floor", [text], False) for text in ("0", "-0", "0.5", "1e9", "-1e-05", "10E3")],
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
    (said,) = [each.value for each in app.warning if "could not be followed" in each.value]
    settings = PAGES_OF[page.partition("/")[0]].group != "Data"
    assert said.count("latency percentile" if settings else "workspace “") == 1


def test_nothing_that_is_empty_reaches_a_page():
    assert set(unreadable({key: [""] for key in SETTINGS})) == set(SETTINGS)


def test_it_is_said_once(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency", on="", queries="1e999")
    assert "could not be followed" in everything(app)
    assert "could not be followed" not in everything(app.run())


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
    "sla": "700",
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
