"""The page of scenarios: Table 8 of the paper, one's own scenarios in the link, targets."""

from pathlib import Path

import polars as pl
import pytest

from core.importers.formats.published import read_figures
from core.prices.cost import QUERY_TOKENS
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figures, opening, rows
from tests.views.made import BOOK

TABLE_8 = read_figures().filter(pl.col("table") == 8)


def test_table_8_on_the_page(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "what_if", ws="clq-paper")
    assert_sound(app, "What if")
    app.toggle(key="more_scenarios").set_value(True).run()
    shown = rows(app)
    for name in TABLE_8["note"].unique():
        printed = TABLE_8.filter(note=name)
        row = shown.filter(scenario=name).row(0, named=True)

        def value(metric: str, k: int | None = None, printed: pl.DataFrame = printed) -> float:
            return printed.filter(pl.col("metric") == metric, pl.col("k").eq_missing(k))["value"].item()

        embedding = 1000 * QUERY_TOKENS * BOOK.find(row["embedder"], "input_tokens").each
        assert round(row["cost"] - embedding, 6) == value("rerank_usd_per_1k_queries")
        assert round(row["rerank_ms"], 6) == value("rerank_ms_p50")
        for column, metric, k in (
            ("N-Recall4+@10", "n_recall_4plus", 10),
            ("RA-nWG@10", "ra_nwg", 10),
            ("RA-nWG@30", "ra_nwg", 30),
        ):
            assert row[f"{column} in words"] == f"{value(metric, k):.3f}, n = 50"


@pytest.mark.slow
def test_ones_own_scenario_is_added_by_the_form_and_by_the_link(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "what_if", ws="clq-paper", scen="Fast: quality, sla 700")
    assert rows(app).filter(scenario="Fast").height == 1
    app.text_input(key="_scen_name").set_value("Cheap")
    app.selectbox(key="_scen_rule").set_value("lowest cost")
    app.number_input(key="_scen_min_quality").set_value(0.7)
    next(button for button in app.button if button.label.startswith("Add")).click().run()
    assert_sound(app, "What if")
    assert app.session_state["scen"] == "Fast: quality, sla_ms 700; Cheap: cost, min_quality 0.7"
    assert rows(app)["scenario"].to_list()[-2:] == ["Fast", "Cheap"]


def test_what_cannot_be_read_is_said_and_the_rest_stays(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "what_if", ws="clq-paper", scen="**x**: best")
    assert_sound(app, "What if")
    assert "n = 50" in opening(app)
    assert "Your scenarios are left out." in everything(app)
    app = open_page(published_store, "what_if/latency targets", ws="clq-paper", slas="soon")
    assert_sound(app, "What if")
    assert "n = 50" in answer(app)
    assert "“soon” is not a latency" in everything(app)


def test_targets_of_the_link_share_axes_and_legend(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "what_if/latency targets", ws="clq-paper", slas="600, 800")
    assert_sound(app, "What if")
    assert rows(app)["sla_ms"].to_list() == [600.0, 800.0]
    assert len(figures(app)) == 1
