"""Runs that differ in what must match are not put in one order; the page says so and offers what is sound."""

from pathlib import Path

import pytest

from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, opening, rows, stacks
from tests.stores import Lab

ALL = [f"q{number}" for number in range(1, 21)]
GRADES = {query: {f"p-{query}": 5, f"x-{query}": 1} for query in ALL}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four stacks that differ in everything that may differ."""
    path = tmp_path_factory.mktemp("mixed") / "store"
    right = {query: [f"p-{query}", f"x-{query}"] for query in ALL}
    wrong = {query: [f"x-{query}", f"p-{query}"] for query in ALL}
    lab = Lab().judge(GRADES)
    lab.run("usual", final=wrong, ms={"sparse": [10.0] * 20}, environment={"cpu": "Big"})
    lab.run(
        "half",
        final={query: right[query] for query in ALL[:12]},
        ms={"sparse": [1.0] * 12},
        environment={"cpu": "Small"},
    )
    lab.run("odd", final={query: right[query] for query in ALL[:3]})
    lab.run(
        "told",
        figures=[
            {"measure": "RA-nWG", "k": 10, "value": 0.99, "n": 100},
            {"measure": "RA-nWG", "k": 2, "value": 0.99, "n": 100},
        ],
    )
    lab.write(path)
    return path


def names(app: object) -> set[str]:
    return set(rows(app)["name"])  # type: ignore[arg-type]


@pytest.mark.slow
def test_only_what_compares_is_in_the_table(open_page: OpenPage, mixed: Path):
    app = open_page(mixed, "decision")
    assert_sound(app, "Decision")
    assert "n = 12" in answer(app)
    said = everything(app)
    for words in ("3 to 20 of 20 judged", "n = 12", "averages of an evaluation elsewhere", "2 machines"):
        assert words in said
    assert rows(app, 0)["name"].to_list() == ["odd", "told"], "what is set apart is listed"
    table = stacks(app)
    assert set(table["name"]) == {"usual", "half"}
    assert table.filter(table["name"] == "half")["latency_ms"].to_list() == [None]


def test_the_sidebar_brings_the_others_back(open_page: OpenPage, mixed: Path):
    app = open_page(mixed, "decision", cq="all queries", figs="all", env="all machines")
    assert_sound(app, "Decision")
    assert not any("Set apart" in each.label for each in app.expander)
    table = stacks(app)
    assert set(table["name"]) == {"usual", "half", "odd", "told"}
    assert table.filter(table["name"] == "half")["n"].to_list() == [20]
    assert "counts as 0 here" in everything(app)
    assert not [each for each in app.warning if "link" in each.value]


def test_another_machine_can_be_chosen(open_page: OpenPage, mixed: Path):
    app = open_page(mixed, "decision", env="Small (imported)")
    table = stacks(app)
    assert table.filter(table["name"] == "usual")["latency_ms"].to_list() == [None]
    assert table.filter(table["name"] == "half")["latency_ms"].to_list() == [1.0]


@pytest.mark.parametrize("page", ["decision", "headroom", "curves", "compare", "confidence/other weights"])
def test_every_page_that_compares_says_so(open_page: OpenPage, mixed: Path, page: str):
    app = open_page(mixed, page, k="2")
    assert_sound(app)
    assert "n = 12" in opening(app)
    assert "They are compared on n = 12." in everything(app)


@pytest.mark.parametrize("page", ["queries", "golden", "cost"])
def test_other_pages_work_on_it(open_page: OpenPage, mixed: Path, page: str):
    app = open_page(mixed, page)
    assert_sound(app)
    assert "They are compared" not in everything(app)


def test_nothing_is_said_where_all_match(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision")
    assert not app.info
    assert {each.key for each in app.selectbox}.isdisjoint({"cq", "figs", "env"})


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stacks of which one has holes on some queries, and a third golden set that judges fewer queries."""
    path = tmp_path_factory.mktemp("uneven") / "store"
    lab = Lab().judge(GRADES).judge({query: {"p": 5} for query in ALL[:11]}, "smaller")
    lab.run("judged", final={query: [f"x-{query}", f"p-{query}"] for query in ALL})
    lab.run(
        "new",
        final={query: [f"p-{query}", "hole" if n > 12 else f"x-{query}"] for n, query in enumerate(ALL)},
    )
    lab.write(path)
    return path


@pytest.mark.slow
def test_stacks_that_are_not_judged_alike(open_page: OpenPage, uneven: Path):
    app = open_page(uneven, "decision", m="P", k="2")
    assert_sound(app, "Decision")
    assert "n = 20" in answer(app)
    assert "not judged alike" not in everything(app), "what is unjudged stands on Confidence alone"
    app = open_page(uneven, "confidence", m="P", k="2")
    assert "The stacks are not judged alike: of their Top-2 0.0 % to 17.5 % is unjudged" in everything(app)
    assert "keeps the n = 11 that all judge" in everything(app)
    app = open_page(uneven, "decision", m="P", k="2", jq="all")
    assert_sound(app, "Decision")
    assert "n = 13" in answer(app)
    assert "everything is judged in every stack: n = 13. They are no random sample" in everything(app)
    assert "not judged alike" not in everything(app)
    assert not [each for each in app.warning if "link" in each.value]
    both = open_page(uneven, "decision", m="P", k="2", gq="every set")
    assert "n = 11" in answer(both)
    assert "that every golden set of the collection judges: n = 11" in everything(both)


@pytest.mark.slow
def test_figures_of_another_cutoff_or_measure_never_share_an_axis(open_page: OpenPage, tmp_path: Path):
    """Reported nDCG@10 beside computed: unknown at 5, set apart at 10; another gain is another measure."""
    lab = Lab().judge(GRADES).run("ranked", final={query: [f"p-{query}"] for query in ALL})
    lab.run("told", figures=[{"measure": "nDCG", "k": 10, "value": 0.99, "n": 20}])
    lab.run("twin", figures=[{"measure": "nDCG(gain=exponential)", "k": 10, "value": 0.98, "n": 20}])
    lab.write(tmp_path / "store")
    for k, apart in (("5", []), ("10", ["told"])):
        app = open_page(tmp_path / "store", "decision", m="nDCG", k=k)
        assert_sound(app, "Decision")
        table = stacks(app)
        known = table.filter(table["quality"].is_not_null())["name"].to_list()
        assert known == ["ranked"]
        assert ([] if not apart else rows(app, 0)["name"].to_list()) == apart


@pytest.mark.slow
def test_over_all_queries_a_single_query_that_is_not_ranked_is_unknown(open_page: OpenPage, mixed: Path):
    app = open_page(mixed, "compare", k="2", cq="all queries", cmp=["usual", "half"])
    assert_sound(app, "Compare")
    assert "n = 20" in answer(app), "differences count what is not ranked as 0, as the sidebar says"
    app = open_page(mixed, "queries", k="2", cq="all queries", stack="half")
    assert_sound(app, "Queries")
    assert "12 queries" in answer(app)
    assert "n = 12" in opening(app)
    assert "Without a score 8" in opening(app)
    assert "8 of them not ranked" in opening(app)
    assert rows(app)["score"].drop_nulls().min() == 1.0
