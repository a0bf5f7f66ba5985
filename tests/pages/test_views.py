"""The views of the first page: the same answer and the same table behind each."""

from pathlib import Path

import pytest

from core.views.decision.words import FORMS
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, figure, live, stacks


def test_cost_across_follows_the_limits_too(open_page: OpenPage, published_store: Path):
    flat = open_page(published_store, "decision", ws="clq-paper", sla_ms="600")
    app = open_page(published_store, "decision", ws="clq-paper", sla_ms="600", view="cost × quality")
    assert_sound(app)
    assert answer(app) == answer(flat)
    assert (live(flat)["drawing"]["across"], live(app)["drawing"]["across"]) == ("latency", "cost")
    assert stacks(app).equals(stacks(flat))


def test_parallel_axes_show_the_same_stacks(open_page: OpenPage, published_store: Path):
    flat = open_page(published_store, "decision", ws="clq-paper", sla_ms="600")
    app = open_page(published_store, "decision", ws="clq-paper", sla_ms="600", view="parallel axes")
    assert_sound(app)
    assert answer(app) == answer(flat)
    assert {trace["type"] for trace in figure(app)["data"]} == {"parcoords"}
    assert stacks(app).equals(stacks(flat))


@pytest.mark.parametrize("view", ["3-D", "parallel coordinates"])
def test_a_view_of_the_last_release_shows_a_chart(open_page: OpenPage, published_store: Path, view: str):
    app = open_page(published_store, "decision", ws="clq-paper", view=view)
    assert_sound(app)
    assert figure(app)["data"]


def test_the_papers_form_of_the_frontier_is_in_the_link(open_page: OpenPage, published_store: Path):
    usual = open_page(published_store, "decision", ws="clq-paper")
    weak = open_page(published_store, "decision", ws="clq-paper", form=FORMS[1])
    assert_sound(weak)
    on = [stacks(app)["outcome"].str.starts_with("frontier").sum() for app in (usual, weak)]
    assert on[1] > on[0]


def test_ticked_stacks_open_in_compare(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", ws="clq-paper")
    assert "compare_ticked" not in [button.key for button in app.button]
    names = stacks(app)["stack"].to_list()
    app.session_state["table_stacks"] = {"selection": {"rows": [0, 2], "columns": [], "cells": []}}
    app.run()
    assert_sound(app)
    app.button(key="compare_ticked").click().run()
    assert_sound(app, "Compare")
    assert {names[0], names[2]} <= {app.session_state["stack"], app.session_state["vs"]}
