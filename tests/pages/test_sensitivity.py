"""The sensitivity page: limits move the choice in every cell, other measures are replaced and named."""

import re
from pathlib import Path

import pytest

from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figure, figures, opening, rows


def test_the_choice_and_the_order_are_followed_through_the_grid(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "confidence/other weights")
    assert_sound(app, "Confidence")
    said = answer(app)
    assert "24 settings" in said
    assert "RA-nWG@10" in opening(app)
    assert "n = 64" in said
    assert re.search(r"Same order ≥ [01]\\?\.\d\d\n(.+\n)*.*Kendall's tau-b of 5 stacks", opening(app))
    assert "best stacks" in everything(app)
    heat = figure(app)["data"][0]
    assert heat["type"] == "heatmap"
    assert len(heat["text"]) == 4
    assert len(heat["text"][0]) == 6
    cells = rows(app, 1)  # no pair swaps, so that none is listed
    assert "None of 3 pairs" in everything(app)
    assert set(cells.columns) >= {"alpha", "cap4", "cap3", "quality", "rank", "chosen"}


def test_a_limit_changes_the_choice_in_the_cells(open_page: OpenPage, demo_store: Path):
    free = answer(open_page(demo_store, "confidence/other weights"))
    app = open_page(demo_store, "confidence/other weights", min_quality="0.99")
    assert_sound(app)
    assert answer(app).startswith("No stack is within the limits as usual")
    assert answer(app) != free
    assert "– = none" in everything(app)


@pytest.mark.slow
def test_a_measure_without_weights_is_replaced_and_named(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "confidence/other weights", m="N-Recall4+", k="20")
    assert_sound(app)
    assert "RA-nWG@20" in opening(app)
    assert "N-Recall4+@20 has no such weights" in everything(app)


@pytest.mark.slow
def test_one_stack_can_be_followed(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "confidence/other weights", stack="BM25 ⊕ fake 16 d")
    assert_sound(app)
    assert not app.warning
    listed = rows(app)  # its twin with another index is the other of the two
    row = listed.filter(listed["stack"].str.starts_with("BM25 ⊕ fake 16 d")).row(0, named=True)
    assert row["stack"].endswith("(+1 equal)")
    start = figure(app, 1)["data"][0]["text"][2][4]
    assert start == f"{row['quality']:.3f}<br>#{row['rank']}"


@pytest.mark.parametrize("address", [{}, {"k": "10"}])
def test_published_figures_cannot_be_scored_again_and_the_page_says_so(
    open_page: OpenPage, published_store: Path, address: dict[str, str]
):
    app = open_page(published_store, "confidence/other weights", **address)
    assert_sound(app, "Confidence")
    assert "came without per-query data" in answer(app)
    assert not figures(app)
