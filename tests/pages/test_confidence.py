"""The page that says how sure the choice is: the rule in the link, limits, who pays for the resampling."""

from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from core.views.confidence import data
from core.views.confidence.noise import QUICK, Noise, noise
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, rows


@pytest.mark.slow
def test_the_rule_of_the_link_decides(open_page: OpenPage, demo_store: Path):
    by_quality = open_page(demo_store, "confidence")
    by_cost = open_page(demo_store, "confidence", rule="lowest cost", floor="0.1", noise="off")
    for app, resamples in ((by_quality, "500"), (by_cost, "2,000")):  # with and without judge noise
        assert_sound(app, "Confidence")
        assert not app.warning
        shown = rows(app)
        assert shown.filter(status="chosen").height == 1
        assert shown["p_best"].sum() == pytest.approx(100.0, abs=2.0)  # percent; equal stacks are one row
        assert shown["p_best"].is_sorted(descending=True)
        assert f"{resamples} resamples of " in everything(app)
        assert ("with judge noise" in everything(app)) == (app is by_quality)
    assert (
        rows(by_cost).filter(status="chosen")["cost"].item()
        == rows(by_cost).filter(p_feasible=100.0)["cost"].min()
    )


@pytest.mark.slow
def test_what_the_limits_exclude_is_listed_with_by_how_much(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "confidence", ws="clq-paper", sla="500")
    assert answer(app).startswith("How often ")
    assert "is unknown: no results per query" in answer(app)
    app = open_page(published_store, "confidence/what flips it", ws="clq-paper", sla="500")
    excluded = rows(app, -1)
    over = excluded.filter(excluded["unit"] == "ms").drop_nulls("by")
    assert over.height
    assert over["by"].is_sorted()
    assert any("latency" in reason and "unknown" in reason for reason in excluded["reason"])


@pytest.mark.slow
def test_other_pages_do_not_pay_for_the_resampling(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    drawings: list[int] = []

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("resampled")

    def counted(*given: Any, resamples: int, **named: Any) -> Noise | None:
        drawings.append(resamples)
        return noise(*given, resamples=resamples, **named)

    st.cache_resource.clear()  # what other tests left would hide that somebody asks
    monkeypatch.setattr(data, "shares", refuse)
    monkeypatch.setattr(data, "noise", counted)
    for page in ("what_if", "decision"):
        assert_sound(open_page(demo_store, page, floor="0.123"))
    assert drawings == [QUICK]  # Decision says last of all what judge noise does, by a quick drawing
    monkeypatch.setattr(data, "joint_sample", refuse)
    st.cache_resource.clear()
    for page in ("what_if", "decision"):
        assert_sound(open_page(demo_store, page, floor="0.123", noise="off"))


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
def test_the_first_page_says_whether_judge_noise_is_in(open_page: OpenPage, demo_store: Path):
    for asked, label in (({}, "Confidence, with judge noise"), ({"noise": "off"}, "Confidence")):
        app = open_page(demo_store, "decision", ws="python-docs", **asked)
        assert_sound(app)
        (firm,) = [each for each in app.metric if each.label.startswith("Confidence")]
        assert firm.label == label
        assert firm.value
        assert bool(firm.help) == (not asked)
