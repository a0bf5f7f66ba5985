"""The three ways to draw the frontier, with the same answer and the same table behind."""

from pathlib import Path

import pytest

from core.views.decision.space import VIEWS
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, figure, live_charts, rows

KINDS = {VIEWS[1]: "scatter3d", VIEWS[2]: "parcoords"}


@pytest.mark.parametrize("view", VIEWS[1:])
def test_another_view_of_the_same_stacks(open_page: OpenPage, published_store: Path, view: str):
    flat = open_page(published_store, "decision", ws="clq-paper", sla="600")
    app = open_page(published_store, "decision", ws="clq-paper", sla="600", view=view)
    assert_sound(app, "Decision")
    assert answer(app) == answer(flat)
    assert {trace["type"] for trace in figure(app)["data"]} == {KINDS[view]}
    assert not live_charts(app)
    assert rows(app).equals(rows(flat))


def test_the_papers_form_of_the_frontier_is_in_the_link(open_page: OpenPage, published_store: Path):
    usual = open_page(published_store, "decision", ws="clq-paper")
    weak = open_page(published_store, "decision", ws="clq-paper", form="weak (the paper's)")
    assert_sound(weak, "Decision")
    assert rows(weak)["frontier"].sum() > rows(usual)["frontier"].sum()
