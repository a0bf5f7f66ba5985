"""Section Build of Golden sets: the form, its specification, its plan, and what it cannot judge."""

from pathlib import Path

import pytest

from core.pipeline.sweep import parse_as
from core.store import Store
from core.work.golden.form import lacks
from core.work.golden.spec import GoldenSpec
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything
from tests.work.golden import built


@pytest.mark.slow
def test_the_plan_follows_the_form(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "golden", ws="python-docs", sec="build")
    assert_sound(app, "Golden sets")
    assert answer(app) == "Let a model grade your passages; a person checks a sample."
    assert not [each for each in app.button if each.key == "build_now"], "nobody judges yet"
    app.multiselect(key="golden_sources").set_value(["BM25", "runs of this workspace"])
    app.number_input(key="golden_depth").set_value(5)
    app.multiselect(key="golden_judges").set_value(["fake"]).run()
    assert_sound(app)
    spec = parse_as(GoldenSpec, app.text_area[0].value)
    assert (spec.collection.stored, spec.golden.judge.models) == ("python-docs", ("fake",))
    assert [each.depth for each in spec.golden.pool] == [5, 5]
    assert spec.golden.pool[1].runs == ("workspace",)
    button = app.button(key="build_now")
    assert button.label.startswith("Judge ")
    assert not button.disabled
    assert "64 questions" in everything(app)


@pytest.mark.slow
def test_a_judge_without_a_key_can_be_planned_but_not_begun(
    open_page: OpenPage, demo_store: Path, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    app = open_page(demo_store, "golden", ws="python-docs", sec="build")
    app.multiselect(key="golden_sources").set_value(["BM25"])
    app.number_input(key="golden_depth").set_value(3)
    app.multiselect(key="golden_judges").set_value(["gpt-4o-mini"]).run()
    assert "OPENAI_API_KEY" in app.error[0].value.replace("\\", "")
    assert app.button(key="build_now").disabled


def test_texts_without_judgements_can_be_judged(open_page: OpenPage, tmp_path: Path):
    store = built.store_of(tmp_path)
    app = open_page(store.path, "golden", ws="c", sec="build")
    assert_sound(app, "Golden sets")
    app.multiselect(key="golden_sources").set_value(["BM25"])
    app.multiselect(key="golden_judges").set_value(["fake"]).run()
    assert not app.button(key="build_now").disabled
    assert lacks(store.read(), "c") == ""


def test_what_a_collection_lacks_is_named(demo_store: Path):
    assert lacks(Store.open(demo_store).read(), "clq-paper") == "passages and questions"
