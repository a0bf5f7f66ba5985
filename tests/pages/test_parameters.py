"""The parameters of the chosen measure: among the settings, in the address, on every page."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.workspace.scope import Quality
from core.metrics import REGISTRY
from core.store import Store
from core.ui.address.state import SETTINGS
from core.views.link import parameter_key
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, opening
from tests.views.made import DEMO, table

KEYS = {
    key for info in REGISTRY.values() for param in info.params if (key := parameter_key(param)) is not None
}


@pytest.mark.slow
def test_moving_alpha_scores_again_and_travels_in_the_link(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision")
    usual = answer(app)
    app.slider(key="alpha").set_value(0.0).run()
    app.slider(key="cap4").set_value(0.75).run()
    assert_sound(app)
    assert answer(app) != usual
    assert "RA-nWG@10(alpha=0,cap4=0.75)" in answer(app)
    best = table(Store.open(demo_store).read(), DEMO, Quality("RA-nWG(alpha=0,cap4=0.75)", 10))[
        "quality"
    ].max()
    assert f"{best:.3f}" in answer(app)
    again = open_page(demo_store, "decision", alpha="0", cap4="0.75")
    assert answer(again) == answer(app)
    assert not again.warning


@pytest.mark.parametrize(
    "page", ["decision", "headroom", "curves", "queries", "compare", "confidence/other weights", "golden"]
)
def test_every_page_shows_the_measure_with_its_parameters(open_page: OpenPage, demo_store: Path, page: str):
    app = open_page(demo_store, page, alpha="0.5")
    assert_sound(app)
    assert "RA-nWG@10(alpha=0.5)" in opening(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "drawn"),
    [
        ("N-Recall4+", set()),
        ("F", {"mix", "rel"}),
        ("RBP", {"p", "rel"}),
        ("P", {"rel"}),
        ("RA-nWG", {"alpha", "cap4", "cap3"}),
        ("nDCG", {"gain"}),
    ],
)
def test_only_what_the_measure_has_is_drawn(
    open_page: OpenPage, demo_store: Path, measure: str, drawn: set[str]
):
    app = open_page(demo_store, "decision", m=measure)
    assert_sound(app)
    shown = {each.key for each in (*app.slider, *app.selectbox)} & set(KEYS)
    assert shown == drawn


def test_published_figures_have_no_parameters(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision")
    assert not {each.key for each in app.slider} & set(KEYS)


def test_a_value_out_of_range_is_told(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", alpha="9")
    assert_sound(app)
    assert app.warning[0].value.replace("\\", "") == "Not followed: alpha “9” (out of range here)."


def test_every_parameter_has_one_key_with_one_range_and_default():
    offered = {}
    for info in REGISTRY.values():
        for param in info.params:
            key = parameter_key(param)
            if key:
                assert offered.setdefault(key, param) == param or param.name == "alpha"
                assert (offered[key].low, offered[key].high, offered[key].default) == (
                    param.low,
                    param.high,
                    param.default,
                )
    assert set(offered) == set(KEYS)
    assert set(KEYS) <= set(SETTINGS)
