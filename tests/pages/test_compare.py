"""The compare page: what its controls do, what a click opens, what it says where nothing can be paired."""

from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.importers import Options, Upload, load
from core.store import Store
from core.ui.settings import ALL
from core.views.queries.words import MEANS
from core.work.imports.imports import store_import
from tests.pages.conftest import OpenPage
from tests.pages.reading import (
    answer,
    assert_sound,
    details,
    everything,
    figure,
    figures,
    go,
    rows,
    unescaped,
)
from tests.stores import Lab
from tests.views.made import BOOK

HYBRID, SPARSE = "BM25 ⊕ fake 16 d", "BM25"


def names(store: Path) -> list[str]:
    scope = Scope("python-docs", "python-docs-graded")
    table = stack_table(Store.open(store).read(), scope, Quality("RA-nWG", 10), Latency(), BOOK)
    return table["name"].to_list()


def sides(app: AppTest) -> pl.DataFrame:
    """Quality, latency and cost side by side."""
    return listed(app, "axis")


def flips(app: AppTest) -> pl.DataFrame:
    """The single queries of the pair that is looked at closely."""
    return listed(app, "outcome")


def comparisons(app: AppTest) -> pl.DataFrame:
    """All comparisons with every column."""
    app.toggle(key="more_differences").set_value(True).run()
    return listed(app, "second")


def listed(app: AppTest, column: str) -> pl.DataFrame:
    """The first table with a column of that name."""
    tables = (rows(app, place) for place in range(len(app.dataframe)))
    return next(table for table in tables if column in table.columns)


@pytest.mark.slow
def test_two_stacks_are_compared_with_interval_test_and_n(open_page: OpenPage, demo_store: Path):
    assert {HYBRID, SPARSE} <= set(names(demo_store))
    app = open_page(demo_store, "compare", stack=SPARSE, vs=HYBRID)
    assert_sound(app, "Compare")
    assert not any(each.icon == ":material/link_off:" for each in app.warning)
    said = answer(app)
    assert said.startswith("A is")
    for words in ("RA-nWG@10", "n = 64"):
        assert words in said
    assert details(app) == f"A: {SPARSE} · B: {HYBRID}"
    assert "paired randomisation test" in everything(app)
    row = comparisons(app).row(0, named=True)
    assert (row["second"], row["first"]) == (SPARSE, HYBRID)
    assert row["wins"] + row["ties"] + row["losses"] == row["n"] == 64
    assert row["low"] <= row["difference"] <= row["high"]
    top = sides(app)
    assert top["axis"].to_list() == ["quality", "latency", "cost"]
    assert top["difference"][0] == row["difference"]
    assert top["low"][1] <= top["difference"][1] <= top["high"][1], "latencies are paired too"


@pytest.mark.slow
def test_links_of_earlier_releases_still_open(open_page: OpenPage, demo_store: Path):
    chosen = names(demo_store)[:3]
    app = open_page(demo_store, "compare", cmp=chosen)
    assert_sound(app, "Compare")
    assert not [each.value for each in app.warning], chosen
    assert [app.session_state[key] for key in ("stack", "vs", "also")] == [*chosen[:2], chosen[2:]]
    assert comparisons(app)["first"].to_list() == chosen[1:]
    gone = open_page(demo_store, "compare", cmp=[chosen[0], "no such stack"])
    assert "no such stack" in gone.warning[0].value


@pytest.mark.slow
def test_to_exchange_the_stacks_turns_the_sign(open_page: OpenPage, demo_store: Path):
    forth = comparisons(open_page(demo_store, "compare", stack=SPARSE, vs=HYBRID)).row(0, named=True)
    back = comparisons(open_page(demo_store, "compare", stack=HYBRID, vs=SPARSE)).row(0, named=True)
    assert forth["difference"] == pytest.approx(-back["difference"])
    assert forth["p"] == back["p"]
    assert (forth["wins"], forth["losses"]) == (back["losses"], back["wins"])


@pytest.mark.slow
def test_every_pair_is_a_larger_family(open_page: OpenPage, demo_store: Path):
    chosen = names(demo_store)[:4]
    address = {"stack": chosen[0], "vs": chosen[1], "also": chosen[2:]}
    app = open_page(demo_store, "compare", **address)
    assert comparisons(app)["first"].to_list() == chosen[1:]
    assert "Holm-adjusted over these 3" in everything(app)
    app = open_page(demo_store, "compare", **address, each="every pair")
    assert_sound(app)
    assert comparisons(app).height == 6
    assert sides(app).height == 9, "the first with every other one"
    assert "Holm-adjusted over these 6" in everything(app)
    texts = [each["text"] for drawn in figures(app) for each in drawn["layout"].get("annotations", [])]
    assert f"{chosen[0]} against {chosen[1]}" in [label.replace("<br>", " ") for label in texts]
    wanted = f"{chosen[2]} against {chosen[3]}"
    app.selectbox(key="pair").set_value(wanted).run()
    assert_sound(app)
    assert "queries C wins" in unescaped(everything(app))


@pytest.mark.slow
def test_the_tolerance_moves_wins_to_ties_and_nothing_else(open_page: OpenPage, demo_store: Path):
    pair = {"stack": SPARSE, "vs": HYBRID}
    strict = comparisons(open_page(demo_store, "compare", **pair, tol="0")).row(0, named=True)
    loose = comparisons(open_page(demo_store, "compare", **pair, tol="0.5")).row(0, named=True)
    assert loose["ties"] > strict["ties"]
    for name in ("difference", "low", "high", "p", "n"):
        assert loose[name] == strict[name]


@pytest.mark.slow
def test_bca_moves_the_interval_and_nothing_else(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", stack=SPARSE, vs=HYBRID, ci="BCa")
    assert_sound(app)
    assert "interval by BCa" in everything(app)
    corrected = comparisons(app).row(0, named=True)
    plain = comparisons(open_page(demo_store, "compare", stack=SPARSE, vs=HYBRID)).row(0, named=True)
    assert (corrected["low"], corrected["high"]) != (plain["low"], plain["high"])
    assert corrected["p"] == plain["p"]


def chart_of(app: AppTest, kind: str) -> int:
    """The place of a chart on the page, by a word of its axis titles."""
    for place, drawn in enumerate(figures(app)):
        if kind in str(drawn["layout"]["xaxis"]["title"]["text"]):
            return place
    raise AssertionError(kind)


@pytest.mark.slow
def test_a_click_on_a_query_opens_it_on_the_queries_page(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", stack=HYBRID, vs=SPARSE)
    query = flips(app).row(0, named=True)
    wanted = {"stack": HYBRID, "vs": SPARSE, "q": query["query_id"]}
    app.session_state["_go"] = "queries", {"q": query["query_id"]}  # what a click leaves behind
    app.run()
    assert_sound(app, "Queries")
    assert {key: app.session_state[key] for key in wanted} == wanted
    assert query["text"] in everything(app)
    go(app, "compare").run()
    assert_sound(app, "Compare")
    assert app.session_state["stack"] == HYBRID, "the choice is still there on the way back"
    assert app.session_state["vs"] == SPARSE


def test_the_marks_of_queries_carry_their_rows(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", stack=HYBRID, vs=SPARSE)
    spec = figure(app, chart_of(app, "of B"))
    counts = {trace["name"].rsplit(" (")[0]: int(trace["name"].split("(")[1][:-1]) for trace in spec["data"]}
    assert sum(counts.values()) == 64
    outcomes = dict(flips(app)["outcome"].value_counts().iter_rows())
    named = {"better": "A better", "worse": "B better", "tie": "tie"}
    assert counts == {named[outcome]: number for outcome, number in outcomes.items()}


@pytest.mark.slow
def test_a_change_is_compared_over_all_of_its_pairs(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", change="BM25 leg: without BM25 → with BM25")
    assert_sound(app)
    assert not any(each.icon == ":material/link_off:" for each in app.warning)
    assert "BM25 leg: without BM25 → with BM25 moves RA-nWG@10 by " in everything(app)
    effects = listed(app, "before")
    assert effects.height == 2
    assert (effects["before"] == "fake 16 d").sum() == 1
    app.selectbox(key="change").set_value("index: flat → hnsw-f32").run()
    assert_sound(app)
    assert "index: flat → hnsw-f32 moves" in everything(app)


@pytest.mark.slow
def test_a_single_stack_gets_a_second_one(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", stack=HYBRID)
    assert_sound(app)
    assert sides(app)["stack"].unique().to_list() == [HYBRID]
    assert sides(app)["against"][0] != HYBRID


@pytest.mark.slow
def test_a_stack_without_queries_is_compared_by_its_average(open_page: OpenPage, tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}, "q2": {"a": 4, "b": 5}}).ask({"q1": "one", "q2": "two"})
    lab.run("first", final={"q1": "ab", "q2": "ab"}).run("second", final={"q1": "ba", "q2": "b"})
    lab.run("means", figures=[{"measure": "RA-nWG", "k": 10, "value": 0.5, "n": 2}])
    lab.write(tmp_path / "store")
    app = open_page(tmp_path / "store", "compare", stack="first", vs="second", also=["means"], figs=ALL)
    assert_sound(app)
    quality = sides(app).filter(axis="quality")
    assert quality["against"].to_list() == ["second", "means"]
    assert quality["low"].is_null().to_list() == [False, True]
    assert quality["note"].to_list() == [None, "no interval: averages only"]
    assert comparisons(app).select("first", "second").rows() == [("second", "first")]
    assert "No two stacks with per-query data differ in exactly one part" in everything(app)
    app = open_page(tmp_path / "store", "compare", stack="first", vs="means", figs=ALL)
    assert_sound(app)
    assert "averages" in answer(app)
    assert "means came without per-query data" in everything(app)


def test_published_figures_are_compared_by_their_averages(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "compare", sla_ms="600", budget="2.5")
    assert_sound(app, "Compare")
    assert "no interval: averages only" in answer(app)
    assert sides(app)["difference"].null_count() == 0
    assert "no results per query" in everything(app)
    assert "Add results" in [link.proto.label for link in app.main.get("page_link")]
    assert not figures(app)


@pytest.mark.slow
def test_a_choice_of_another_workspace_does_not_carry_over(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", stack=SPARSE, vs=HYBRID)
    app.selectbox(key="ws").set_value("clq-paper").run()
    assert_sound(app, "Compare")
    assert "averages only" in answer(app)
    app.selectbox(key="ws").set_value("python-docs").run()
    assert_sound(app, "Compare")
    assert "n = 64" in answer(app)


@pytest.mark.slow
def test_identical_stacks_are_said(open_page: OpenPage, tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}, "q2": {"a": 4, "b": 5}}).ask({"q1": "one", "q2": "two"})
    lab.run("one", final={"q1": "ab", "q2": "ab"}).run("twin", final={"q1": "ab", "q2": "ab"})
    lab.write(tmp_path / "store")
    app = open_page(tmp_path / "store", "compare")
    assert_sound(app)
    assert "ranks the same passages in the same order as" in answer(app)
    assert sides(app)["verdict"][0] == "the same"


@pytest.mark.slow
def test_a_difference_that_judging_more_could_turn_says_so(open_page: OpenPage, tmp_path: Path):
    ids = [f"q{n}" for n in range(1, 11)]
    lab = Lab().judge({name: {"a": 5, "b": 1} for name in ids}).ask(dict.fromkeys(ids, "?"))
    lab.run("found", final=dict.fromkeys(ids, "ab")).run("unjudged", final=dict.fromkeys(ids, "xy"))
    lab.run("bad", final=dict.fromkeys(ids, "b")).write(tmp_path / "store")
    app = open_page(tmp_path / "store", "compare", stack="found", vs="unjudged", also=["bad"])
    assert_sound(app)
    assert comparisons(app)["if_judged"].round(3).to_list() == [-0.333, 1.0]
    warned = unescaped(everything(app))
    assert "Judging more could overturn 1 of 2 comparisons" in warned
    app = open_page(tmp_path / "store", "queries", stack="found", vs="unjudged")
    assert [button for button in app.button if button.label == MEANS], "Compare says it"
    assert "Judging more could overturn" not in unescaped(everything(app))


SCORES = "stack,query_id,nDCG@10,latency_ms\n" + "".join(
    f"{name},q{query:02},{(query * step) % 10 / 10},{10 + query}\n"
    for name, step in (("A", 3), ("B", 7))
    for query in range(20)
)
"""A row per stack and query, as notebooks write them: no rankings, no judgements."""


@pytest.fixture
def reported(tmp_path: Path) -> Path:
    store = Store.open(tmp_path / "store")
    store_import(store, load([Upload("scores.csv", SCORES.encode())], Options()), "scores.csv")
    return tmp_path / "store"


@pytest.mark.slow
def test_scores_of_queries_alone_are_compared_and_browsed(open_page: OpenPage, reported: Path):
    app = open_page(reported, "compare", stack="A", vs="B")
    assert_sound(app, "Compare")
    assert "n = 20" in answer(app)
    assert flips(app).height == 20
    assert not any("order?" in each.label for each in app.expander)
    app = open_page(reported, "queries", stack="A", vs="B", q="q03")
    assert_sound(app, "Queries")
    assert listed(app, "delta").height == 20
    assert "holes" not in listed(app, "delta").columns
    app = open_page(reported, "queries", stack="A")
    assert "between 0" in answer(app)
    app = open_page(reported, "decision")
    assert "[" in everything(app)
