"""The routing page: its controls, what they leave in the address, and where there is nothing to route."""

from pathlib import Path

import pytest

from core.views.what_if.data import OF_MY_CHOICE
from core.views.what_if.simulator import NAMES
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figures, rows
from tests.views.what_if import routed


@pytest.fixture(scope="module")
def reranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a reranker at K = 5 and 20."""
    return routed.write(tmp_path_factory.mktemp("page") / "s", (5, 20)).path


def all_columns(app):
    app.toggle(key="more_routing").set_value(True).run()
    return rows(app)


@pytest.mark.slow
def test_without_a_reranker_it_begins_with_two_stacks(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "what_if/routing")
    assert_sound(app)
    assert app.selectbox(key="fam").value == OF_MY_CHOICE
    assert "goes through both stacks" in everything(app)
    ways = all_columns(app)
    assert ways["way"].to_list()[2:4] == [NAMES["routed"], NAMES["optimistic"]]
    assert ways["n"].unique().to_list() == [64]
    assert len(figures(app)) == 1


@pytest.mark.slow
def test_a_depth_that_nothing_reads_is_nothing_to_route_between(open_page: OpenPage, demo_store: Path):
    """Neither at a cutoff within the smaller K nor at one beyond it: the stack is one row either way."""
    app = open_page(demo_store, "what_if/routing", k="50")
    assert app.selectbox(key="fam").options == [OF_MY_CHOICE]
    stacks = set(app.multiselect(key="among").options)
    assert not [name for name in stacks if "K = " in name]
    app.selectbox(key="k").set_value(10).run()
    assert_sound(app)
    assert set(app.multiselect(key="among").options) == stacks


@pytest.mark.slow
def test_replays_a_threshold_of_ones_own_and_an_axis(open_page: OpenPage, reranked: Path):
    app = open_page(
        reranked,
        "what_if/routing",
        k="5",
        ks=["K = 10 (replayed)", "K = 20"],
        thrby="my own",
        rx="mean latency (ms)",
    )
    assert_sound(app)
    assert not app.warning
    ways = all_columns(app)
    assert ways["way"].to_list()[:2] == ["always 10 candidates", "always 20 candidates"]
    assert ways["latency_basis"].to_list()[:2] == ["modelled", "measured"]
    assert NAMES["own"] in ways["way"].to_list()
    assert app.selectbox(key="rx").value == "mean latency (ms)"
    before = ways.row(4)
    slider = app.slider(key="thr")
    slider.set_value(slider.max).run()
    assert_sound(app)
    assert rows(app).row(4) != before


@pytest.mark.slow
def test_three_depths_and_a_tag(open_page: OpenPage, reranked: Path):
    app = open_page(
        reranked,
        "what_if/routing",
        k="5",
        ks=["K = 5", "K = 10 (replayed)", "K = 20"],
        sig="tag “type” of the query",
    )
    assert_sound(app)
    assert not app.warning
    assert rows(app)["way"].len() == 7
    assert app.selectbox(key="sig").value == "tag “type” of the query"
    app.selectbox(key="sig").set_value("score entropy of the pool").run()
    app.segmented_control(key="thrby").set_value("my own").run()
    assert_sound(app)
    slider = app.slider(key="thr2")
    assert isinstance(slider.value, tuple)
    ends = {"low": slider.min, "high": slider.max, "step": slider.step}
    assert all(len(f"{end:.12g}") <= 9 for end in ends.values()), f"an address would not bring back {ends}"


def test_one_stack_is_not_enough(open_page: OpenPage, reranked: Path):
    app = open_page(reranked, "what_if/routing", k="5", ks=["K = 5"])
    assert_sound(app)
    assert answer(app) == "Choose two or three depths to route RA-nWG@5 between."


def test_published_averages_cannot_be_routed(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "what_if/routing")
    assert answer(app) == "No stack here has rankings to route RA-nWG@10 by."


@pytest.mark.slow
def test_queries_may_be_sent_to_a_rewrite(open_page: OpenPage, tmp_path: Path):
    store = routed.write_rewritten(tmp_path / "s").path
    app = open_page(store, "what_if/routing", k="3", fam="BM25, K = 10 · noise 4, rewritten or not")
    assert_sound(app)
    assert app.multiselect(key="ks").value == ["as typed", "rules"]
    app.session_state["aside_How it routes"] = True  # opened
    app.run()
    assert any("margin" in each for each in app.selectbox(key="sig").options)
    ways = rows(app)
    assert ways["way"].to_list()[:2] == ["always as typed", "always rules"]
    assert "is rewritten and searched again" in everything(app)
