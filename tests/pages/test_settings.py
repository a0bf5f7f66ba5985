"""Settings stand behind one button that counts what differs; where a page has none, what was set is kept."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, go


def labels(app: AppTest) -> list[str]:
    return [popover.proto.popover.label for popover in app.get("popover")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "label"),
    [
        ({}, "Settings"),
        ({"sla_ms": "0.2", "stack": "BM25, K = 20"}, "Settings"),
        ({"k": "20"}, "Settings · 1"),
        ({"k": "20", "m": "nDCG", "on": "p95", "alpha": "0.5"}, "Settings · 3"),
        ({"k": "10", "on": "p50", "book": "list"}, "Settings"),
    ],
)
def test_the_button_counts_what_differs_from_the_defaults(
    open_page: OpenPage, demo_store: Path, address: dict[str, str], label: str
):
    assert label in labels(open_page(demo_store, "decision", **address))


@pytest.mark.slow
def test_one_click_goes_back_to_the_defaults(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", k="20", alpha="0.5", on="p95", sla_ms="0.2")
    assert "Settings · 3" in labels(app)
    next(button for button in app.button if button.label == "Back to defaults").click().run()
    assert_sound(app)
    assert "Settings" in labels(app)
    kept = {key: app.session_state[key] for key in ("k", "alpha", "on", "sla_ms")}
    assert kept == {"k": 10, "alpha": 1.0, "on": "p50", "sla_ms": 0.2}


@pytest.mark.slow
def test_what_was_set_outlives_pages_that_do_not_show_it(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", k="20", sla_ms="0.2")
    for page in ("library", "golden", "headroom"):
        go(app, page).run()
        assert_sound(app)
    assert (app.session_state["k"], app.session_state["sla_ms"]) == (20, 0.2)
    assert app.number_input(key="sla_ms").value == 0.2
