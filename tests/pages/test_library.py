import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import Store
from tests.analysis.workspace.test_filters import CLEAN, stored
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything
from tests.stores import Lab


@pytest.fixture
def store(tmp_path: Path) -> Path:
    lab = Lab().judge({"q1": {"p": 5}})
    for run_id in ("a", "b", "c"):
        lab.run(run_id, label=f"<b>{run_id}</b>", final={"q1": ["p"]}, ms={"sparse": [1.0]})
    lab.write(tmp_path / "store")
    return tmp_path / "store"


def ticked(app: AppTest, table: str, *rows: int) -> AppTest:
    """Tick rows of a table, as a visitor's browser would."""
    app.session_state[f"table_{table}"] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return app.run()


@pytest.mark.slow
def test_deleting_asks_first_and_restoring_brings_back(open_page: OpenPage, store: Path):
    app = open_page(store, "library")
    assert_sound(app, "Library")
    assert app.button(key="delete_asked").disabled
    ticked(app, "run", 0, 2)
    asked = app.button(key="delete_asked")
    assert asked.label == "Delete 2 runs…"
    asked.click().run()
    assert "Delete 2 runs?" in everything(app)
    assert "<b>" in everything(app)
    assert Store.open(store).revision() == 1, "nothing is written before it is confirmed"
    app.button(key="delete_not").click().run()
    assert "Delete 2 runs?" not in everything(app)
    ticked(app, "run", 0, 2)
    app.button(key="delete_asked").click().run()
    app.button(key="delete_now").click().run()
    assert_sound(app, "Library")
    assert "2 runs deleted in one transaction (revision 2)" in app.success[0].value.replace("\\", "")
    assert Store.open(store).read().runs().height == 1
    assert "2 runs deleted" in everything(app)
    ticked(app, "run_deleted", 1)
    app.button(key="restore_run").click().run()
    assert_sound(app, "Library")
    assert "1 run restored" in app.success[0].value
    assert Store.open(store).read().runs().height == 2


@pytest.mark.slow
def test_a_golden_set_is_deleted_and_restored(open_page: OpenPage, store: Path):
    app = open_page(store, "library")
    app.button_group(key="kind").set_value("Golden sets").run()
    ticked(app, "golden_set", 0)
    app.button(key="delete_asked").click().run()
    assert "Delete 1 golden set?" in everything(app)
    assert "With it go **1 judgement**" in everything(app)
    assert not [each for each in app.button if each.key == "delete_asked" and each.disabled]
    app.button(key="delete_now").click().run()
    assert_sound(app, "Library")
    assert Store.open(store).read().golden_sets().is_empty()
    assert "1 golden set deleted" in everything(app)
    ticked(app, "golden_set_deleted", 0)
    app.button(key="restore_golden_set").click().run()
    assert_sound(app, "Library")
    assert Store.open(store).read().golden_sets().height == 1
    assert "Nothing is deleted." in everything(app)


@pytest.mark.slow
def test_the_only_collection_is_deleted_with_what_it_holds_and_restored(open_page: OpenPage, store: Path):
    app = open_page(store, "library")
    app.button_group(key="kind").set_value("Collections").run()
    ticked(app, "collection", 0)
    app.button(key="delete_asked").click().run()
    assert "With it go **3 runs, 1 golden set**" in everything(app)
    assert Store.open(store).revision() == 1
    app.button(key="delete_now").click().run()
    assert_sound(app, "Library")
    assert "The store holds 0 runs in 0 workspaces" in everything(app)
    assert "No collections are here" in everything(app)
    elsewhere = open_page(store, "decision")
    assert_sound(elsewhere, "Decision")
    assert "Every collection was deleted." in everything(elsewhere)
    ticked(app, "collection_deleted", 0)
    app.button(key="restore_collection").click().run()
    assert_sound(app, "Library")
    assert "The store holds 3 runs" in everything(app)


@pytest.mark.slow
def test_links_to_what_was_deleted_say_so(open_page: OpenPage, tmp_path: Path):
    lab = Lab().judge({"q1": {"p": 5}}).judge({"q1": {"p": 4}}, "second")
    lab.run("a", final={"q1": ["p"]}, ms={"sparse": [1.0]})
    lab.write(tmp_path / "store")
    Lab("other").run("z", final={"q1": ["p"]}).write(tmp_path / "store")
    app = open_page(tmp_path / "store", "decision", ws="lab", gs="second")
    assert app.selectbox(key="gs").value == "second"
    with Store.open(tmp_path / "store").write("delete") as writer:
        writer.remove("golden_set", ["second"])
    assert_sound(app.run(), "Decision")
    said = "deleted, page Library can restore it"
    app = open_page(tmp_path / "store", "decision", ws="lab", gs="second")
    assert_sound(app, "Decision")
    assert said in everything(app)
    app = open_page(tmp_path / "store", "decision", ws="lab", gs="second", rev="1")
    assert app.selectbox(key="gs").value == "second", "an earlier revision still shows it"
    assert said not in everything(app)
    with Store.open(tmp_path / "store").write("delete") as writer:
        writer.remove("collection", ["lab"])
    app = open_page(tmp_path / "store", "decision", ws="lab", gs="gold")
    assert_sound(app, "Decision")
    assert "Not followed: workspace “lab”" in everything(app)
    assert said in everything(app)
    assert app.selectbox(key="ws").value == "other"


def test_a_pinned_revision_keeps_showing_what_was_deleted(open_page: OpenPage, store: Path):
    with Store.open(store).write("delete") as writer:
        writer.remove("run", ["a", "b", "c"])
    app = open_page(store, "library", rev="1")
    assert "The store holds 3 runs" in everything(app)
    assert "deleting works on the newest data" in everything(app)
    assert not [button for button in app.button if button.key == "delete_asked"]
    app = open_page(store, "library")
    assert_sound(app, "Library")
    assert "No runs are here" in everything(app)


@pytest.mark.slow
def test_an_export_is_prepared_and_offered(open_page: OpenPage, store: Path):
    app = open_page(store, "library")
    app.selectbox(key="exported_as").set_value("TREC runs and qrels").run()
    app.button(key="prepare").click().run()
    assert_sound(app, "Library")
    assert "3 runs, 3 rankings, 1 judgements" in everything(app)
    assert "3 timings" in everything(app)
    assert [each.proto.label for each in app.get("download_button") if "Download" in each.proto.label] == [
        "Download"
    ]
    app.selectbox(key="exported_as").set_value("ranx runs and qrels (JSON)").run()
    assert not [each for each in app.get("download_button") if "Download" in each.proto.label], (
        "it was another one"
    )


def test_runs_are_found_by_name(open_page: OpenPage, store: Path):
    app = open_page(store, "library", named="<b>b")
    assert app.dataframe[0].value["label"].to_list() == ["<b>b</b>"]


def test_a_published_table_is_shown_whole(open_page: OpenPage, published_store: Path):
    app = open_page(
        published_store, "library", printed="CLQ paper, Table 13: Cosine lost from clean to high noise"
    )
    assert_sound(app)
    table = next(frame for frame in app.dataframe if "condition" in frame.value.columns)
    assert sorted(table.value["value"]) == [-0.377, -0.296, -0.274, -0.235]
    heading = json.loads(table.proto.columns)["value"]
    assert heading["label"] == "value, in the metric's unit"
    assert "value of clq_diagnostics.csv" in heading["help"]


@pytest.mark.slow
def test_permissions_are_marked_on_the_page_and_unmarked_again(open_page: OpenPage, tmp_path: Path):
    path = tmp_path / "store"
    stored(path, {"clean": CLEAN}, permission=False)
    for wanted, marked in ((["tenant"], {"tenant"}), ([], frozenset())):
        app = open_page(path, "library")
        (choice,) = [each for each in app.multiselect if each.label == "Permissions"]
        choice.set_value(wanted).run()
        app.button("permissions_store").click().run()
        assert not app.exception
        assert f"{len(wanted)} permission" in everything(app)
        assert Store.open(path).read().access("corpus").permissions == marked
    assert Store.open(path).read().revision == 3
