"""The compare page: what its controls do, what a click opens, what it says where nothing can be paired."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import Store
from core.ui.comparing import ALL
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import stack_table
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, details, everything, figure, rows, unescaped
from tests.stores import Lab
from tests.views.made import BOOK

HYBRID, SPARSE = "BM25 ⊕ fake 16 d, K = 50", "BM25, K = 50"


def names(store: Path) -> list[str]:
    scope = Scope("python-docs", "python-docs-graded")
    table = stack_table(Store.open(store).read(), scope, Quality("RA-nWG", 10), Latency(), BOOK)
    return table["name"].to_list()


def test_two_stacks_are_compared_with_interval_test_and_n(open_page: OpenPage, demo_store: Path):
    assert {HYBRID, SPARSE} <= set(names(demo_store))
    app = open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])
    assert_sound(app, "Compare")
    assert not any(each.icon == ":material/link_off:" for each in app.warning)
    said = answer(app)
    assert HYBRID in said
    assert SPARSE in said
    assert "RA-nWG@10" in said
    assert "n = 64" in said
    assert "paired randomisation test" in details(app)
    row = rows(app).row(0, named=True)
    assert row["wins"] + row["ties"] + row["losses"] == row["n"] == 64
    assert row["low"] <= row["difference"] <= row["high"]


def test_to_exchange_the_stacks_turns_the_sign(open_page: OpenPage, demo_store: Path):
    forth = rows(open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])).row(0, named=True)
    back = rows(open_page(demo_store, "compare", cmp=[HYBRID, SPARSE])).row(0, named=True)
    assert forth["difference"] == pytest.approx(-back["difference"])
    assert forth["p"] == back["p"]
    assert (forth["wins"], forth["losses"]) == (back["losses"], back["wins"])


def test_every_pair_is_a_larger_family(open_page: OpenPage, demo_store: Path):
    chosen = names(demo_store)[:4]
    app = open_page(demo_store, "compare", cmp=chosen)
    assert rows(app)["second"].to_list() == chosen[1:]
    assert "Holm-adjusted over these 3" in details(app)
    app = open_page(demo_store, "compare", cmp=chosen, each="every pair")
    assert_sound(app)
    assert rows(app).height == 6
    assert "Holm-adjusted over these 6" in details(app)
    labels = [each["text"] for each in figure(app)["layout"]["annotations"]]
    assert labels[0] == f"{chosen[1]}<br>against {chosen[0]}"
    wanted = f"{chosen[3]} against {chosen[2]}"
    app.selectbox(key="pair").set_value(wanted).run()
    assert_sound(app)
    assert wanted in [unescaped(each.value) for each in app.subheader]


def test_the_tolerance_moves_wins_to_ties_and_nothing_else(open_page: OpenPage, demo_store: Path):
    strict = rows(open_page(demo_store, "compare", cmp=[SPARSE, HYBRID], tol="0")).row(0, named=True)
    loose = rows(open_page(demo_store, "compare", cmp=[SPARSE, HYBRID], tol="0.5")).row(0, named=True)
    assert loose["ties"] > strict["ties"]
    for name in ("difference", "low", "high", "p", "n"):
        assert loose[name] == strict[name]


def test_bca_moves_the_interval_and_nothing_else(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", cmp=[SPARSE, HYBRID], ci="BCa")
    assert_sound(app)
    assert "BCa interval" in details(app)
    corrected = rows(app).row(0, named=True)
    plain = rows(open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])).row(0, named=True)
    assert (corrected["low"], corrected["high"]) != (plain["low"], plain["high"])
    assert corrected["p"] == plain["p"]


def chart_of(app: AppTest, kind: str) -> int:
    """The place of a chart on the page, by a word of its axis titles."""
    for place in range(len(app.get("plotly_chart"))):
        if kind in str(figure(app, place)["layout"]["xaxis"]["title"]["text"]):
            return place
    raise AssertionError(kind)


def test_a_click_on_a_query_opens_it_on_the_queries_page(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])
    listed = rows(app, 1)
    app.session_state["_go_to_query"] = (listed["query_id"][0], HYBRID, SPARSE)  # what a click leaves behind
    app.run()
    assert_sound(app, "Queries")
    assert app.session_state["q"] == listed["query_id"][0]
    assert app.session_state["stack"] == HYBRID
    assert app.session_state["vs"] == SPARSE
    assert listed["text"][0] in everything(app)
    app.switch_page("pages/compare.py").run()
    assert_sound(app, "Compare")
    assert app.session_state["cmp"] == [SPARSE, HYBRID], "the choice is still there on the way back"


def test_the_marks_of_queries_carry_their_rows(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])
    listed = rows(app, 1)
    spec = figure(app, chart_of(app, f"of {SPARSE}"))
    counts = {trace["name"].split(" ")[0]: int(trace["name"].split("(")[1][:-1]) for trace in spec["data"]}
    assert sum(counts.values()) == 64
    assert counts == dict(listed["outcome"].value_counts().iter_rows())


def test_a_change_is_compared_over_all_of_its_pairs(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", change="BM25 leg: without BM25 → with BM25")
    assert_sound(app)
    assert not any(each.icon == ":material/link_off:" for each in app.warning)
    assert "BM25 leg: without BM25 → with BM25 moves RA-nWG@10 by " in everything(app)
    effects = rows(app, len(app.dataframe) - 1)
    assert effects.height == 4
    assert (effects["before"] == "fake 16 d, K = 50").sum() == 1
    app.selectbox(key="change").set_value("index: flat → hnsw-f32").run()
    assert_sound(app)
    assert "index: flat → hnsw-f32 moves" in everything(app)


def test_a_single_stack_gets_a_second_one(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", cmp=[HYBRID])
    assert_sound(app)
    assert "choose a second stack to change that" in everything(app)
    assert rows(app)["first"].to_list() == [HYBRID]


def test_stacks_without_queries_are_left_out_by_name(open_page: OpenPage, tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}, "q2": {"a": 4, "b": 5}}).ask({"q1": "one", "q2": "two"})
    lab.run("first", final={"q1": "ab", "q2": "ab"}).run("second", final={"q1": "ba", "q2": "b"})
    lab.run("means", figures=[{"measure": "RA-nWG", "k": 10, "value": 0.5, "n": 2}])
    lab.write(tmp_path / "store")
    app = open_page(tmp_path / "store", "compare", cmp=["first", "means", "second"], figs=ALL)
    assert_sound(app)
    assert next(each.value for each in app.warning).startswith("Without per-query data, so left out: means")
    assert rows(app).select("first", "second").rows() == [("first", "second")]
    assert "No two stacks with per-query data differ in exactly one part" in everything(app)


def test_published_figures_cannot_be_paired_and_the_page_says_so(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "compare")
    assert_sound(app, "Compare")
    assert "came without per-query data" in answer(app)
    assert "Import rankings with their judgements" in details(app)
    assert [link.proto.label for link in app.main.get("page_link")] == ["Import rankings"]
    assert not app.get("plotly_chart")


def test_a_choice_of_another_workspace_does_not_carry_over(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "compare", cmp=[SPARSE, HYBRID])
    app.selectbox(key="ws").set_value("clq-paper").run()
    assert_sound(app, "Compare")
    assert "came without per-query data" in answer(app)
    app.selectbox(key="ws").set_value("python-docs").run()
    assert_sound(app, "Compare")
    assert "RA-nWG@10" in answer(app)


def test_a_difference_that_judging_more_could_turn_says_so(open_page: OpenPage, tmp_path: Path):
    ids = [f"q{n}" for n in range(1, 11)]
    lab = Lab().judge({name: {"a": 5, "b": 1} for name in ids}).ask(dict.fromkeys(ids, "?"))
    lab.run("found", final=dict.fromkeys(ids, "ab")).run("unjudged", final=dict.fromkeys(ids, "xy"))
    lab.run("bad", final=dict.fromkeys(ids, "b")).write(tmp_path / "store")
    app = open_page(tmp_path / "store", "compare", cmp=["found", "unjudged", "bad"])
    assert_sound(app)
    assert rows(app)["if_judged"].round(3).to_list() == [0.333, -1.0]
    warned = unescaped(everything(app))
    assert "Judging more could overturn 1 of 2 comparisons" in warned
    app = open_page(tmp_path / "store", "queries", stack="found", vs="unjudged")
    assert "unjudged would lead by 0.333 RA-nWG@10" in unescaped(everything(app))
    app = open_page(tmp_path / "store", "queries", stack="found", vs="bad")
    assert "Judging more could overturn" not in unescaped(everything(app))
