"""Page Readers: what the passages are worth to the answer, on single answers and without any."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.workspace.choices import LACKS, lacking
from core.importers.formats.published.readers import published_readers
from core.store import Store
from core.views.pages import PAGES
from core.views.readers.scores import NO_CURVE
from core.views.readers.sections import NO_JOINT
from tests.pages.conftest import OpenPage
from tests.pages.reading import (
    answer,
    assert_sound,
    details,
    everything,
    figure,
    follow,
    opening,
    press,
    rows,
    unescaped,
)


@pytest.mark.parametrize("place", PAGES["readers"].places[:3])
def test_a_section_answers_with_n_a_chart_and_a_table(open_page: OpenPage, answered_store: Path, place: str):
    app = open_page(answered_store, place)
    assert_sound(app, "Readers")
    assert "f1" in (said := f"{answer(app)} {details(app)}") or "gold" in said
    assert figure(app)["data"]
    assert rows(app).height
    there = {widget.key for widget in [*app.number_input, *app.selectbox]}
    assert {"m", "sla_ms"} <= there


def test_the_cards_are_of_the_best_curve(open_page: OpenPage, answered_store: Path):
    app = open_page(answered_store, "readers")
    assert [unescaped(card.value) for card in app.main.metric] == ["39.0", "+19.0", "0.179", "k = 2"]
    assert "n = 40" in opening(app)


def test_rules_and_choices_hold(open_page: OpenPage, answered_store: Path):
    app = open_page(answered_store, "readers", near="2", readers="steady", answered="sparse", rdx="tokens")
    assert_sound(app)
    depths = rows(app)
    assert depths.height == 1
    assert [trace["name"] for trace in figure(app)["data"] if trace.get("showlegend")] == [
        "steady",
        "closed book",
        "k*",
    ]
    assert "k = 3, 7" in everything(app)
    follow(app, "Run the k that RSS needs")
    assert_sound(app, "Run")
    assert app.session_state["sec"] == "readers"


def test_without_answers_it_is_dimmed_and_leads_on(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "readers")
    assert_sound(app, "Readers")
    assert lacking("python-docs", "answers") in everything(app)
    assert [link.proto.label for link in app.main.get("page_link")] == ["Add results", "Run"]
    links = {link.proto.page: link.proto.label for link in app.sidebar.get("page_link")}
    assert LACKS["answers"] in links["readers"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "click", "leads"),
    [
        ("Acc|Hit, query by query", press, ("Queries", "m", "Acc|Hit")),
        ("Which measure foretells the answers", follow, ("Measures", "sec", "predicting answers")),
    ],
)
def test_it_leads_to_what_other_pages_make_of_the_answers(
    open_page: OpenPage,
    answered_store: Path,
    label: str,
    click: Callable[[AppTest, str], AppTest],
    leads: tuple[str, str, str],
):
    app = open_page(answered_store, "readers")
    click(app, label)
    title, key, value = leads
    assert_sound(app, title)
    assert app.session_state[key] == value


@pytest.mark.parametrize(
    ("sec", "shown"),
    [("joint k", "k = "), ("generators", "is best by f1"), ("rerankers", "No judge has scored both")],
)
def test_the_other_sections_answer(open_page: OpenPage, answered_store: Path, sec: str, shown: str):
    app = open_page(answered_store, "readers", sec=sec)
    assert_sound(app, "Readers")
    assert shown in answer(app)


@pytest.mark.slow
def test_a_stack_is_chosen_by_dollars_per_correct_answer(open_page: OpenPage, answered_store: Path):
    app = open_page(answered_store, "decision", m="Answer", k="5", costper="correct answer", correct="0.2")
    assert_sound(app, "Decision")
    cards = {card.label: card.value for card in app.main.metric}
    assert "Cost per 1,000 correct answers" in cards
    assert next(widget for widget in app.number_input if widget.key == "correct").value == 0.2


@pytest.mark.slow
@pytest.mark.parametrize("sec", ["by depth", "with and without gold", "matrix", "joint k"])
def test_answers_of_an_unknown_number_of_passages_lead_to_generators(
    open_page: OpenPage, tmp_path: Path, sec: str
):
    store = Store.open(tmp_path / "store")
    with store.write("published") as writer:
        writer.add(published_readers())
    app = open_page(store.path, "readers", ws="thesis-generators", sec=sec)
    assert answer(app) == (NO_JOINT if sec == "joint k" else NO_CURVE)
    next(button for button in app.button if button.label == "Generators side by side").click().run()
    assert_sound(app, "Readers")
    assert "best over" in answer(app)
    baseline = next(widget for widget in app.selectbox if widget.key == "genbase")
    assert baseline.value == "GPT-4 Omni · P1 · T = 0.2"  # of the thesis, §7.4.1
    assert "+35.9 against GPT-4 Omni" in details(app)
