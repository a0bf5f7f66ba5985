"""What the controls of a page itself do: the calculator's inputs, the query list, the stacks of a chart."""

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.store import Store
from core.views.curves.page import X_AXES
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figure, opening, rows
from tests.stores import Lab
from tests.views.made import BOOK


def names(store: Path) -> list[str]:
    scope = Scope("python-docs", "python-docs-graded")
    table = stack_table(Store.open(store).read(), scope, Quality("RA-nWG", 10), Latency(), BOOK)
    return table["name"].to_list()


@pytest.mark.parametrize(("candidates", "dollars"), [(50, 1.25), (100, 2.5), (150, 3.75), (200, 5.0)])
def test_the_calculator_answers_the_papers_prices(
    open_page: OpenPage, empty_store: Path, candidates: int, dollars: float
):
    app = open_page(
        empty_store, "cost", rer="rerank-2.5", cand=str(candidates), tokc="500", emb="none", gen="none"
    )
    assert_sound(app)
    assert answer(app).endswith(", all for the reranker call.")
    assert f"Cost per 1,000 queries ${dollars:.2f}" in opening(app)
    paper = next(frame.value for frame in app.dataframe if "rerank-2.5" in frame.value.columns)
    assert paper.set_index(paper.columns[0]).loc[candidates, "rerank-2.5"] == pytest.approx(dollars)


@pytest.mark.slow
def test_curves_against_what_is_sent(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "curves", kx=X_AXES["usd_per_1k"], kgen="gpt-5")
    assert_sound(app)
    table = next(
        frame.value for frame in app.dataframe if "tokens" in frame.value.columns and "k" in frame.value
    )
    assert (table["usd_per_1k"].dropna() > 0).all()
    cut = rows(open_page(demo_store, "curves/cutoff methods", kgen="gpt-5"))
    assert {"max-gap", "gmm", "everything"} <= set(cut["way"])
    alone = open_page(demo_store, "curves", kx=X_AXES["usd_per_1k"])
    assert alone.session_state["kx"] == X_AXES["k"]  # nobody to pay


def test_more_queries_cost_more_a_month_and_the_same_each(open_page: OpenPage, empty_store: Path):
    app = open_page(empty_store, "cost", queries="1000")
    each, month, *_ = (card.value for card in app.main.metric)
    app.number_input(key="queries").set_value(2000).run()
    assert_sound(app)
    assert app.main.metric[0].value == each
    assert app.main.metric[1].value != month


@pytest.mark.slow
def test_a_second_stack_turns_scores_into_differences(open_page: OpenPage, demo_store: Path):
    first, second = names(demo_store)[0], names(demo_store)[-1]
    app = open_page(demo_store, "queries", stack=first)
    assert_sound(app)
    assert first in answer(app)
    assert "delta" not in rows(app).columns
    app.selectbox(key="vs").set_value(second).run()
    assert_sound(app)
    assert second in everything(app)
    shown = rows(app)
    known = shown.filter(pl.col("delta").is_not_null())
    assert known["delta"].to_list() == pytest.approx((known["score"] - known["other"]).to_list())


@pytest.mark.slow
def test_search_and_tag_narrow_the_queries(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "queries")
    whole = rows(app)
    app = open_page(demo_store, "queries", find="cache")
    assert_sound(app)
    found = rows(app)
    assert 0 < found.height < whole.height
    assert found["text"].str.to_lowercase().str.contains("cache").all()
    nothing = open_page(demo_store, "queries", find="no such words anywhere")
    assert_sound(nothing)
    assert answer(nothing)


def test_a_query_of_the_address_is_shown_with_its_question(open_page: OpenPage, demo_store: Path):
    snapshot = Store.open(demo_store).read()
    query = snapshot.queries("python-docs").row(7, named=True)
    app = open_page(demo_store, "queries", q=query["query_id"])
    assert_sound(app)
    assert not app.warning
    assert query["text"] in everything(app)


@pytest.mark.slow
def test_picked_stacks_have_a_line_each_beside_the_chosen_one(open_page: OpenPage, demo_store: Path):
    def drawn(app) -> list[str]:
        shown = [trace["name"] for trace in figure(app)["data"] if trace.get("name")]
        return [name for name in shown if "PROC" not in name]

    decided = drawn(open_page(demo_store, "curves"))[0]
    picked = [name for name in names(demo_store) if name != decided][:3]
    app = open_page(demo_store, "curves", curves=picked)
    assert_sound(app)
    assert not app.warning
    assert drawn(app) == [decided, *picked]
    app.multiselect(key="curves").set_value(picked[:1]).run()
    assert_sound(app)
    assert drawn(app) == [decided, *picked[:1]]


@pytest.mark.slow
def test_a_query_is_shown_as_people_type_it(open_page: OpenPage, tmp_path: Path):
    made = Lab().ask({"q1": "where do cats sleep"}).judge({"q1": {"p": 5, "x": 1}})
    made.run("clean", final={"q1": ["p", "x"]}, spec={"name": "s"})
    for way in ("noise", "typo"):
        made.run(way, final={"q1": ["x", "p"]}, spec={"name": "s", "perturb": {way: 1}})
    made.write(tmp_path / "store")
    app = open_page(tmp_path / "store", "queries", folded=True)
    assert_sound(app, "Queries")
    assert app.button_group(key="typed").options == ["noise 1", "typo 1"]
    app.button_group(key="typed").set_value("typo 1").run()
    assert_sound(app)
    assert not any(each.value == "**Typo 1**" for each in app.markdown)
    app.session_state["fold_Both rankings"] = True  # what a click leaves behind
    app.run()
    assert_sound(app)
    assert any(each.value == "**Typo 1**" for each in app.markdown)
