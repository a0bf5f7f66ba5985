"""The page that says how sure the choice is: the rule in the link, limits, who pays for the resampling."""

from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from core.analysis.workspace import sure
from core.ui import cache
from core.views.confidence import data
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, rows


@pytest.mark.slow
def test_the_rule_of_the_link_decides(open_page: OpenPage, demo_store: Path):
    by_quality = open_page(demo_store, "confidence")
    by_cost = open_page(demo_store, "confidence", rule="lowest cost", min_quality="0.1", noise="off")
    for app, draws, good in (
        (by_quality, "500", "within 0.01 of the best"),  # with judge noise
        (by_cost, "10,000", "within 1 % of the cheapest"),
    ):
        assert_sound(app, "Confidence")
        assert not app.warning
        asked = rows(app)
        assert asked["chance"].is_between(0, 100).all()
        shown = rows(app, 1)
        assert shown.filter(status="chosen").height == 1
        assert shown["p_best"].is_between(0, 100).all()  # percent
        assert shown["p_best"].is_sorted(descending=True)
        assert f"{draws} repeats draw " in everything(app)
        assert answer(app).partition(";")[0].endswith(" % of resamples.")
        assert good in answer(app)
        assert ("with judge noise" in everything(app)) == (app is by_quality)
    assert (
        rows(by_cost, 1).filter(status="chosen")["cost"].item()
        == rows(by_cost, 1).filter(p_feasible=100.0)["cost"].min()
    )


@pytest.mark.slow
def test_what_the_limits_exclude_is_listed_with_by_how_much(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "confidence", ws="clq-paper", sla_ms="500")
    assert answer(app).startswith("How sure ")
    assert "is unknown: there are no results per query" in answer(app)
    app = open_page(published_store, "confidence/what flips it", ws="clq-paper", sla_ms="500")
    excluded = rows(app, -1)
    over = excluded.filter(excluded["unit"] == "ms").drop_nulls("by")
    assert over.height
    assert over["by"].is_sorted()
    assert any("latency" in reason and "unknown" in reason for reason in excluded["reason"])


@pytest.mark.slow
def test_pages_share_one_drawing_and_only_confidence_counts_every_stack(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    drawings: list[str] = []

    def counting(name: str) -> None:
        whole = getattr(sure, name)

        def counted(*given: Any, **named: Any) -> Any:
            drawings.append(name)
            return whole(*given, **named)

        monkeypatch.setattr(sure, name, counted)

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("counted for every stack")

    cache.forget()  # what other tests left would hide that somebody asks
    st.cache_resource.clear()
    st.cache_data.clear()
    counting("noise")
    counting("beliefs")
    with monkeypatch.context() as patch:
        patch.setattr(data, "shares", refuse)
        for page in ("decision", "what_if"):
            assert_sound(open_page(demo_store, page, min_quality="0.123"))
    assert_sound(open_page(demo_store, "confidence", min_quality="0.123"))
    assert sorted(drawings) == ["beliefs", "noise"], "one number, drawn once"


@pytest.mark.slow
def test_what_to_judge_next_is_handed_over_and_what_others_judged_stands_beside(
    open_page: OpenPage, demo_store: Path
):
    app = open_page(demo_store, "confidence/worth measuring more")
    assert_sound(app, "Confidence")
    (button,) = [each for each in app.button if each.label.startswith("Judge these")]
    assert button.label == "Judge these 20 next"
    assert app.selectbox(key="with").value == "python-docs-second"
    frames = [each.value for each in app.dataframe]
    (waiting,) = [rows for rows in frames if "saved" in rows]
    assert len(waiting) == 20
    assert (waiting["chance"] >= 0).all()
    (beside,) = [rows for rows in frames if "after" in rows]
    assert {"best before", "best after"} <= set(", ".join(beside["is"]).split(", "))
    assert not [
        each
        for each in open_page(demo_store, "confidence/worth measuring more", write="none").button
        if each.label.startswith("Judge these")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"noise": "off"}])
def test_the_first_page_says_whether_judge_noise_is_in(
    open_page: OpenPage, demo_store: Path, asked: dict[str, str]
):
    app = open_page(demo_store, "decision", ws="python-docs", **asked)
    assert_sound(app)
    (firm,) = [each for each in app.metric if each.label.startswith("Confidence")]
    assert firm.label == "Confidence"
    assert firm.value.endswith("%")
    app.session_state["firm"] = True  # opens what it rests on
    app.run()
    said = "without sight of the first grades"
    assert (said in everything(app)) == (not asked)
