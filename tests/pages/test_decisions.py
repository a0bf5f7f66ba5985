"""What the sidebar's limits, measures and the address do to the pages."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.decide.rules import Constraints, decide
from core.paths import PRICES
from core.prices import load_books
from core.records import Batch, Collection
from core.store import Snapshot, Store
from core.views.text import cost_unit
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, figure, live, rows, stacks, strip

PAPER = Scope("clq-paper")
DEMO = Scope("python-docs", "python-docs-graded")


def table(path: Path, scope: Scope, quality: str = "RA-nWG", k: int = 10) -> pl.DataFrame:
    snapshot = Store.open(path).read()
    return stack_table(snapshot, scope, Quality(quality, k), Latency(), load_books(PRICES)["list"])


def snapshot_of(path: Path) -> Snapshot:
    return Store.open(path).read()


def bright(app: AppTest) -> int:
    """How many marks of the chart are within the limits."""
    return sum(
        len(trace["text"])
        for trace in figure(app)["data"]
        if "text" in trace and trace["marker"]["opacity"] > 0.5
    )


def test_the_sla_changes_marks_table_and_heading(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision")
    before, loose = answer(app), bright(app)
    app.number_input(key="sla_ms").set_value(520.0).run()
    assert_sound(app)
    assert answer(app) != before
    assert strip(app)["values"]["sla_ms"] == 520

    whole = table(published_store, PAPER)
    decision = decide(whole, Constraints(sla_ms=520.0))
    assert decision.chosen is not None
    assert answer(app).startswith(f"Best so far: {whole['name'][decision.chosen]};")
    assert 0 < bright(app) < loose
    shown = stacks(app)
    assert shown["outcome"][0] == "chosen"
    dear = shown.filter((pl.col("latency_ms") > 520) & pl.col("quality").is_not_null())
    assert dear["outcome"].str.ends_with("ms over the SLA").all()
    assert shown.filter(pl.col("latency_ms") <= 520)["outcome"].str.contains("SLA").sum() == 0


def test_a_typed_limit_is_exact(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", sla_ms="510.5", budget="2.5")
    assert_sound(app)
    assert strip(app)["values"] | {"min_quality": None} == {
        "sla_ms": 510.5,
        "budget": 2.5,
        "min_quality": None,
    }
    assert app.query_params["sla_ms"] == "510.5"


@pytest.mark.parametrize(
    ("asked", "kept", "budget"),
    [
        ("2.5", "2.5per1k", 2.5),  # as earlier releases wrote it
        ("2.50", "2.5per1k", 2.5),
        ("2500per1M", "2500per1M", 2.5),
        ("0.2per1M", "0.2per1M", 0.0002),
        ("5.1", "5.1per1k", 5.1),  # beyond every cost, and a limit still
    ],
)
def test_a_budget_says_its_unit_and_old_links_mean_what_they_meant(
    open_page: OpenPage, published_store: Path, asked: str, kept: str, budget: float
):
    app = open_page(published_store, "decision", ws="clq-paper", budget=asked)
    assert_sound(app)
    assert not app.warning
    assert app.session_state["budget"] == kept
    assert app.query_params["budget"] == kept
    assert strip(app)["values"]["budget"] == budget
    again = open_page(published_store, "decision", ws="clq-paper", budget=kept)
    assert (strip(again)["values"], answer(again)) == (strip(app)["values"], answer(app))


@pytest.mark.parametrize("asked", ["cheap", "2,5", "-1", "2.5per1", "1e12", "nan", "$2", "2.5 per 1k"])
def test_a_budget_that_cannot_be_read_is_named(open_page: OpenPage, published_store: Path, asked: str):
    app = open_page(published_store, "decision", ws="clq-paper", budget=asked)
    assert_sound(app)
    assert strip(app)["values"]["budget"] is None
    (said,) = [each.value for each in app.warning]
    assert f"budget “{asked}” (no amount such as 2.5per1k or 0.2per1M)" in said.replace("\\", "")
    assert "budget" not in app.query_params


def test_budget_and_floor_exclude_with_every_reason(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", budget="2", min_quality="0.75")
    assert_sound(app)
    assert not app.warning
    whole = table(published_store, PAPER)
    decision = decide(whole, Constraints(budget=2.0, min_quality=0.75, costs_said=cost_unit(whole)))
    assert f"of {decision.feasible.sum()} stacks within the limits" in answer(app)
    reasons = dict(decision.excluded().select("run_id", "reason").iter_rows())
    kept = {"chosen", "runner-up", "frontier of cost, latency and quality", "within the limits"}
    assert set(stacks(app)["outcome"]) - kept <= {*reasons.values()}
    assert any("over the budget" in each for each in stacks(app)["outcome"])


def test_limits_that_nothing_meets_name_the_nearest_misses(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", sla_ms="100", min_quality="0.99")
    assert_sound(app)
    assert answer(app).startswith("No stack meets these limits; Nearest")
    assert "ms over the SLA" in answer(app)
    assert "under the quality floor" in answer(open_page(published_store, "decision", min_quality="0.99"))
    assert not app.main.metric


def test_an_address_that_cannot_be_followed_shows_defaults_and_says_so(open_page: OpenPage, demo_store: Path):
    app = open_page(
        demo_store,
        "decision",
        m="<b>nope</b>",
        k="ten",
        sla_ms="fast",
        min_quality="7",
        ws="elsewhere",
        colour="[x](javascript:alert(1))",
        rev="999",
        stack="gone",
        unheard="1",
    )
    assert_sound(app)
    notice = app.warning[0].value
    assert "Not followed" in notice
    for word in ("measure", "cutoff", "SLA", "quality floor", "workspace", "data revision", "selected stack"):
        assert word in notice
    assert "unheard" in notice
    assert "<b>" not in notice
    assert "[x](" not in notice
    assert "RA-nWG@10" in answer(app)
    assert app.session_state["ws"] == DEMO.collection_id
    app.run()
    assert not app.warning  # said once


def test_an_address_that_can_be_followed_says_nothing(open_page: OpenPage, published_store: Path):
    app = open_page(
        published_store,
        "decision",
        m="N-Recall4+",
        k="30",
        sla_ms="900",
        min_quality="0.5",
        jitter="10",
        colour="reranker",
        size="candidates",
    )
    assert_sound(app)
    assert not app.warning
    assert "N-Recall4+@30" in answer(app)
    assert app.session_state["sla_ms"] == 900


@pytest.mark.slow
def test_a_pinned_revision_says_so_and_moves_on_with_one_click(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", ws="python-docs", rev="1")
    assert_sound(app)
    assert not app.warning
    assert app.info[0].value == "Pinned to revision 1; 1 newer revision of this workspace since."
    button = next(each for each in app.button if each.label == "Show the newest data")
    button.click().run()
    assert_sound(app)
    assert not [each for each in app.info if "Pinned" in each.value]


@pytest.mark.parametrize(("page", "said"), [("decision", []), ("library", ["1 newer revision since."])])
def test_revisions_of_other_workspaces_are_not_newer_data_of_this_one(
    open_page: OpenPage, demo_store: Path, page: str, said: list[str]
):
    app = open_page(demo_store, page, ws="python-docs", rev="2")
    assert_sound(app)
    pinned = [each.value for each in app.info if "Pinned" in each.value]
    assert pinned == [f"Pinned to revision 2; {words}" for words in said]


def test_the_first_revision_has_a_collection_but_no_runs_yet(open_page: OpenPage, demo_store: Path):
    for page in ("decision", "headroom", "curves", "queries"):
        app = open_page(demo_store, page, rev="1")
        assert_sound(app)
        assert "Pinned to revision 1" in app.info[0].value


@pytest.mark.slow
def test_a_link_that_pins_the_revision_restores_the_view(open_page: OpenPage, demo_store: Path):
    asked = {"m": "N-Recall5", "k": "20", "min_quality": "0.2", "colour": "mode"}
    app = open_page(demo_store, "decision", **asked)
    again = open_page(demo_store, "decision", **asked, rev=str(Store.open(demo_store).revision()))
    assert_sound(again)
    assert not again.warning
    assert answer(again) == answer(app)
    assert again.session_state["colour"] == "mode"


@pytest.mark.slow
def test_another_workspace_forgets_the_settings_of_the_last(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", k="25", min_quality="0.3", sla_ms="0.01")
    assert app.session_state["sla_ms"] == 0.01
    app.selectbox(key="ws").set_value("clq-paper").run()
    assert_sound(app)
    assert app.session_state["k"] == 10
    limits = {key: value for key, value in strip(app)["values"].items() if value is not None}
    assert limits == {"sla_ms": 600.0, "budget": 2.5}, "those of its own"


@pytest.mark.slow
def test_a_workspace_that_is_come_back_to_has_its_limits_again(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", ws="clq-paper", sla_ms="600", budget="2.5")
    app.selectbox(key="ws").set_value(DEMO.collection_id).run()
    assert set(strip(app)["values"].values()) == {None}
    app.number_input(key="sla_ms").set_value(0.3).run()
    app.selectbox(key="ws").set_value("clq-paper").run()
    assert_sound(app)
    assert strip(app)["values"] == {"sla_ms": 600, "budget": 2.5, "min_quality": None}
    app.selectbox(key="ws").set_value(DEMO.collection_id).run()
    assert app.number_input(key="sla_ms").value == 0.3


@pytest.mark.slow
def test_a_choice_of_runs_narrows_every_number(open_page: OpenPage, demo_store: Path):
    names = table(demo_store, DEMO)["name"].to_list()
    app = open_page(demo_store, "decision", runs=names[:2])
    assert_sound(app)
    assert not app.warning
    assert set(live(app)["drawing"]["names"].values()) <= set(names[:2])
    assert set(stacks(app)["stack"]) == set(names[:2])


@pytest.mark.slow
def test_a_click_on_a_mark_selects_its_stack(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision")
    traces = [trace for trace in figure(app)["data"] if "customdata" in trace]
    whole = table(demo_store, DEMO)
    numbers = whole.select("quality", "latency_ms", "cost").unique().height
    assert sum(len(trace["text"]) for trace in traces) == numbers
    app.session_state["stack"] = whole["name"][3]  # which a click sets
    app.run()
    assert_sound(app)
    assert "selected" in [trace["name"] for trace in figure(app)["data"]]
    assert whole["name"][3] in everything(app)


def test_p95_below_sixty_queries_is_unknown_and_not_zero(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", on="p95")
    assert_sound(app)
    assert "Latency p95 unknown" in answer(app)


def test_headroom_asks_for_one_convention_and_warns_when_mixed(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "headroom")
    assert rows(app)["pool"].n_unique() == 1
    mixed = open_page(demo_store, "headroom", pool="all conventions")
    assert_sound(mixed)
    assert "everal pool conventions" in everything(mixed)
    assert rows(mixed)["pool"].n_unique() == 3, "of a ranking without a reranker the deepest"


@pytest.mark.slow
def test_headroom_without_a_ceiling_says_so(open_page: OpenPage, many_store: Path):
    app = open_page(many_store, "headroom")
    assert_sound(app)
    assert answer(app) == "No stack here has a PROC for RA-nWG@10."


@pytest.mark.parametrize("page", ["decision"])
def test_a_near_miss_is_let_in_by_its_button(open_page: OpenPage, published_store: Path, page: str):
    app = open_page(published_store, page, sla_ms="500", budget="2.5")
    assert "0.610" in answer(app)
    app.button(key="near_0").click().run()
    assert_sound(app)
    assert app.number_input(key="sla_ms").value == 510
    assert float(app.query_params["sla_ms"]) == 510
    assert strip(app)["values"]["sla_ms"] == 510
    assert "0.805" in answer(app)


@pytest.mark.slow
def test_t_is_a_quality_like_any_other(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", m="T")
    assert_sound(app, "Decision")
    assert "T@10" in answer(app)
    assert_sound(open_page(demo_store, "curves", m="T_u"))


def test_published_stacks_are_compared_by_the_papers_own_latency_in_one_click(
    open_page: OpenPage, published_store: Path
):
    app = open_page(published_store, "decision", sla_ms="500", budget="2.5")
    app.button(key="near_scope").click().run()
    assert_sound(app)
    assert app.query_params["lat"] == "rerank"
    assert "0.805" in answer(app)
    assert "337 ms" in answer(app)
    assert "near_scope" not in [button.key for button in app.button]


def test_a_limit_on_what_nobody_knows_is_not_dropped(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "decision", sla_ms="20", on="p99")
    assert_sound(app)
    assert app.number_input(key="sla_ms").value == 20.0
    assert "No stack here has a known latency" in everything(app)
    assert app.title[0].value.startswith("No stack here")


@pytest.mark.parametrize("page", ["decision", "library"])
def test_an_older_pointer_is_told(open_page: OpenPage, published_store: Path, tmp_path: Path, page: str):
    copy = shutil.copytree(published_store, tmp_path / "store")
    store, first = Store.open(copy), (copy / "CURRENT").read_bytes()
    with store.write("test") as writer:
        writer.add(Batch(collections=(Collection(collection_id="new", name="New"),)))
    words = f"You see revision {store.revision() - 1}, but {store.revision()} is stored."
    assert words not in everything(open_page(copy, page))
    (copy / "CURRENT").write_bytes(first)
    assert words in everything(open_page(copy, page))
