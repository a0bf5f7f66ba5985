"""The latency page and the sidebar's latency: end-to-end, percentiles, charts."""

from pathlib import Path

import pytest

from core.analysis.workspace.figures.latencies import PASSES, SHARED
from core.report.page import flat
from core.views.blocks import Text
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figures, go, opening, rows
from tests.pages.test_places import said

SPEED = {"lat": "end-to-end", "gbase": "100", "gin": "50", "gout": "1", "gchunk": "2", "gtok": "500",
         "gprompt": "0", "gans": "100"}  # fmt: skip


@pytest.mark.slow
def test_stages_are_drawn_and_percentiles_told(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency", shape="box")
    assert_sound(app)
    assert [each.value for each in app.main.metric][2] == "withheld"
    assert "n = 64" in opening(app)
    assert [shown["data"][0]["type"] for shown in figures(app)] == ["bar", "box"]
    assert {"sparse", "total"} <= set(rows(app)["stage"])
    assert "give the reader's speed" in everything(open_page(demo_store, "latency/generator"))


@pytest.mark.slow
def test_end_to_end_is_unknown_until_a_speed_is_given(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency", lat="end-to-end")
    assert_sound(app)
    assert answer(app) == "None of 5 stacks has a known latency."
    assert "Unknown until you type its speed" in everything(app)
    app.number_input(key="gin").set_value(50.0).run()
    assert "Type both" in everything(app)


@pytest.mark.slow
def test_end_to_end_with_a_typed_speed_is_modelled_everywhere(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency", **SPEED)
    assert_sound(app)
    assert not app.warning
    assert "n = 64 · modelled" in opening(app)
    told = rows(app, 1)
    assert set(told["basis"]) == {"modelled"}
    assert (told["p50"] > 250).all()
    added = rows(open_page(demo_store, "latency/generator", **SPEED))
    assert added["added"].unique().to_list() == [250.0]
    go(app, "decision").run()
    assert_sound(app)
    app.toggle(key="more_stacks").set_value(True).run()
    assert set(rows(app)["latency_basis"]) == {"modelled"}


def test_the_papers_break_is_said(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "latency")
    assert_sound(app)
    assert "rerank-2.5 over voyage-3.5 leaves its line from K = 150 on" in everything(app)
    assert "n = 15 · published" in opening(app)


def test_indexes_are_read_from_the_whole_store(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "latency/indexes")
    assert_sound(app)
    assert answer(app).startswith("No stand-alone index benchmark yet")


def test_how_passes_count_is_said_on_this_page_alone(open_page: OpenPage, demo_store: Path):
    how = f"{PASSES} {SHARED}"
    assert how in everything(open_page(demo_store, "latency", ws="python-docs"))
    decided = " ".join(block.words for block in flat(said(demo_store, "decision", "python-docs").blocks)
                       if isinstance(block, Text))  # fmt: skip
    assert "Timed on" in decided
    assert PASSES not in decided
