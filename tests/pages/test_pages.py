"""Every page: it says what it tells, and answers; see test_workspaces.py for the kinds of store."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.analysis.workspace.choices import LACKS, lacking
from core.cli.app import app as command
from core.ui.show import ROWS_SHOWN
from tests.pages.conftest import OpenPage
from tests.pages.reading import (
    FIRST,
    PAGES,
    PAGES_OF,
    TITLES,
    answer,
    assert_sound,
    everything,
    figure,
    go,
    opening,
    rows,
)
from tests.pages.test_places import FORMS, WITHOUT_NUMBERS
from tests.stores import Lab
from tests.views.made import DEMO

BARE = [
    place for page in PAGES_OF.values() if any(each.bare for each in page.drawn()) for place in page.places
]
"""Places of pages with a section that does without a workspace, so that each section asks for its own."""
NEEDS_RESULTS = [place for place in PAGES if place in {*FIRST, *BARE, *FORMS} - WITHOUT_NUMBERS]


@pytest.mark.parametrize(
    "page", ["decision", "confidence", "what_if", "confidence/worth measuring more", "headroom", "curves"]
)
def test_published_figures_come_with_their_n(open_page: OpenPage, published_store: Path, page: str):
    assert "n = 50" in opening(open_page(published_store, page))


@pytest.mark.parametrize(("page", "need"), [("queries", "rankings"), ("golden", "judgements")])
def test_a_page_that_the_workspace_cannot_fill_is_dimmed_and_leads_to_one_that_can(
    open_page: OpenPage, demo_store: Path, page: str, need: str
):
    app = open_page(demo_store, page, ws="clq-paper")
    assert_sound(app, TITLES[page])
    assert app.title[0].value == TITLES[page]
    assert lacking("clq-paper", need) in everything(app)
    links = {link.proto.page: link.proto.label for link in app.sidebar.get("page_link")}
    assert LACKS[need] in links[page]
    assert links["headroom"] == "Headroom"
    app.button(key="fills").click().run()
    assert_sound(app, TITLES[page])
    assert app.session_state["ws"] == DEMO.collection_id
    assert "RA-nWG@10" in opening(app)


@pytest.mark.slow
def test_the_first_visit_shows_a_trade_off_and_a_hint(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, first=True)
    assert_sound(app, "Decision")
    assert {key: app.session_state[key] for key in ("ws", "sla_ms", "budget")} == {
        "ws": "clq-paper", "sla_ms": 600.0, "budget": "2.5per1k",
    }  # fmt: skip
    (got,) = [button for button in app.sidebar.button if button.label == "Got it"]
    got.click().run()
    assert "Got it" not in [button.label for button in app.sidebar.button]
    assert app.session_state["ws"] == "clq-paper"
    assert open_page(demo_store, first=True, k="20").session_state["ws"] == DEMO.collection_id
    named = open_page(demo_store, first=True, ws="clq-paper")
    limits = (named.number_input(key="sla_ms").value, named.text_input(key="budget").value)
    assert limits == (None, None), "an address says all of its limits, so that a reload answers the same"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["confidence", "what_if", "cost", "latency"])
def test_a_bare_address_of_any_page_begins_with_the_limits_of_the_first(
    open_page: OpenPage, demo_store: Path, page: str
):
    app = open_page(demo_store, page, first=True)
    assert_sound(app, TITLES[page])
    assert (app.query_params["ws"], app.query_params["sla_ms"]) == ("clq-paper", "600")


@pytest.mark.slow
def test_a_workspace_of_the_demo_is_first_chosen_with_limits_that_tell(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, first=True, ws=DEMO.collection_id)
    app.sidebar.selectbox(key="ws").set_value("clq-paper").run()
    assert (app.query_params["sla_ms"], app.query_params["budget"]) == ("600", "2.5per1k")
    app.number_input(key="sla_ms").set_value(None).run()
    assert "sla_ms" not in app.query_params, "a limit that was lifted stays so after a reload"


@pytest.mark.slow
def test_the_shipped_demo_is_what_opens_first(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    assert CliRunner().invoke(command, ["--store", str(store), "demo"]).exit_code == 0
    app = open_page(store, first=True)
    assert_sound(app, "Decision")
    assert {key: app.session_state[key] for key in ("ws", "sla_ms", "budget")} == {
        "ws": "docs-search", "sla_ms": 10.0, "budget": None,
    }  # fmt: skip
    assert answer(app).startswith("Ship BM25 ⊕ MiniLM")
    assert any(button.label == "Take it" for button in app.button), "faster ones are offered"
    app.number_input(key="sla_ms").set_value(3.0).run()
    assert answer(app).startswith("Ship BM25 ⊕ wordllama")
    assert any(button.label.startswith("Set SLA ") for button in app.button), "a better stack is named"
    for page in ("readers", "queries", "golden", "diagnostics", "diagnostics/noise"):
        shown = open_page(store, page, ws="docs-search")
        assert_sound(shown)
        assert "fills" not in [button.key for button in shown.button], f"{page} has something to show"


@pytest.mark.parametrize("page", NEEDS_RESULTS)
def test_a_page_on_an_empty_store_says_what_to_do(open_page: OpenPage, empty_store: Path, page: str):
    app = open_page(empty_store, page)
    assert_sound(app, TITLES[page])
    assert "The store is empty" in app.info[0].value
    assert "Load the demo" in [button.label for button in app.button]
    assert [link.proto.label for link in app.main.get("page_link")] == ["Add results", "Run"]


@pytest.mark.parametrize("page", ["cost", "add", "golden/questions", "run"])
def test_pages_that_need_no_results_work_on_an_empty_store(open_page: OpenPage, empty_store: Path, page: str):
    app = open_page(empty_store, page)
    assert_sound(app, TITLES[page])
    assert answer(app)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["decision"])
def test_rankings_without_judgements_have_no_quality(open_page: OpenPage, tmp_path: Path, page: str):
    Lab().ask({"q1": "one"}).run("a", final={"q1": ["p1"]}).write(tmp_path / "store")
    app = open_page(tmp_path / "store", page)
    assert answer(app).startswith("No decision yet")
    links = (link.proto.label for link in app.main.get("page_link"))
    ways = {*(button.label for button in app.button), *links}
    assert {"Judge by hand", "Generate with an LLM", "Import qrels"} <= ways


EVIDENCE = {
    "nothing judged": ({"q1": {"x": 5, "y": 4}}, "people", True),
    "one of two found": ({"q1": {"p1": 5, "y": 4}}, "people", False),
    "one judged passage, found among ten": ({"q1": {"p3": 5}}, "people", False),
    "made up": ({"q1": {"p1": 5, "p2": 3, "p3": 1}}, "fake", True),
    "made up in part": ({"q1": {"p1": 5, "p2": 3, "p3": 1}}, "fake, people", False),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", EVIDENCE)
def test_nothing_is_decided_without_evidence(open_page: OpenPage, tmp_path: Path, case: str):
    grades, judge, undecided = EVIDENCE[case]
    lab = Lab().ask({"q1": "one"}).judge(grades, by=judge)
    lab.run("a", final={"q1": [f"p{at}" for at in range(1, 11)]}).write(tmp_path / "store")
    app = open_page(tmp_path / "store", "decision")
    assert_sound(app)
    assert answer(app).startswith("No decision yet") is undecided
    assert ("0.000" in everything(app)) is False


@pytest.mark.slow
def test_ten_thousand_stacks_are_drawn_as_a_density(open_page: OpenPage, many_store: Path):
    app = open_page(many_store, "decision")
    assert_sound(app, "Decision")
    density = [trace for trace in figure(app)["data"] if trace["type"] == "heatmap"]
    assert [trace["name"] for trace in density] == ["feasible (10,000)"]
    assert rows(app).height == ROWS_SHOWN
    assert "One of 3 that averages show as equal; chosen by lower cost." in everything(app)


@pytest.mark.parametrize("page", [place for place in PAGES if place in {*FIRST, *BARE}])
def test_a_store_that_cannot_be_opened_is_an_error_without_traceback(
    open_page: OpenPage, tmp_path: Path, page: str
):
    file = tmp_path / "store"
    file.write_text("not a store")
    app = open_page(file, page)
    assert not app.exception
    assert len(app.error) == 1
    assert len(app.title) == 1


@pytest.mark.slow
def test_pages_of_one_session_share_the_sidebar(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision")
    app.selectbox(key="m").set_value("N-Recall4+").run()
    for page in FIRST[1:-1]:
        go(app, page).run()
        assert_sound(app, TITLES[page])
        assert app.session_state["m"] == "N-Recall4+"
    go(app, "decision").run()
    assert "N-Recall4+@10" in answer(app)


def test_the_front_door_is_the_decision(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store)
    assert_sound(app, "Decision")
    assert answer(app).startswith(("Ship ", "Best so far: ", "No clear winner: "))
