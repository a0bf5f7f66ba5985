"""The Run page: the form, its specification, its plan, and specifications that make no sense."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.files import write_json
from core.pipeline.evaluate import State
from core.pipeline.evaluate.folder import Folder, Status
from core.pipeline.sweep import load
from core.pipeline.sweep.fields import Reader
from core.ui import work
from core.work.work import StartedWork, Work
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything


def button(app: AppTest) -> str:
    return app.button(key="run_now").label.replace("\\", "")


def test_the_workspace_can_be_planned_again(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    assert_sound(app, "Run")
    assert answer(app) == "Choose what to compare; you see time and cost before anything starts."
    assert 'collection.stored = "python-docs"' in app.text_area[0].value
    said = everything(app)
    alike = "(Decision compares 5: without a reranker K changes nothing)"
    assert f"10 stacks {alike}, 64 questions asked 3 times" in said
    assert "No vendor is paid: everything runs on this machine." in said
    assert button(app).startswith("Run 10 stacks · $0 · about ")
    assert not app.button(key="run_now").disabled
    assert "Not offered" not in said


@pytest.mark.slow
def test_an_embedder_of_the_workspace_that_is_not_here_is_named(open_page: OpenPage, shipped_store: Path):
    app = open_page(shipped_store, "run", ws="docs-search")
    assert "Run tools/demo/minilm.py and name its folder under [models] in Text." in everything(app)


def test_the_plan_and_the_text_follow_the_form(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    app.multiselect(key="mode_this workspace").set_value(["sparse"]).run()
    app.number_input(key="limit_this workspace").set_value(5).run()
    assert_sound(app)
    assert button(app).startswith("Run 2 stacks")
    assert (
        "2 stacks (Decision compares 1: without a reranker K changes nothing), 5 questions asked 3"
        in everything(app)
    )
    assert 'mode = ["sparse"]' in app.text_area[0].value


@pytest.mark.slow
def test_readers_are_asked_for_and_planned_with_the_stacks(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    assert "[reader]" not in app.text_area[0].value
    app.multiselect(key="readers_this workspace").set_value(["fake", "gpt-4o-mini"]).run()
    assert not app.exception
    assert ["OPENAI" in each.value for each in app.error] == [True]
    assert load(app.text_area[0].value + "\n").reader == Reader(
        models=("fake", "gpt-4o-mini"), prompts=("short",), k=(1, 5, 10), modes=("top_k", "none")
    )
    assert "$0 ·" not in button(app)
    assert app.button(key="run_now").disabled, "its key is missing"


def test_the_text_counts_where_it_was_edited(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    app.text_area[0].set_value(app.text_area[0].value.replace("[20, 50]", "[20]")).run()
    assert_sound(app)
    assert button(app).startswith("Run 5 stacks")
    app.multiselect(key="mode_this workspace").set_value(["sparse"]).run()
    assert button(app).startswith("Run 2 stacks"), "a change in the form writes it anew"


def test_plans_wait_to_be_asked_for_once_two_in_a_row_took_long(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(work, "_SLOW_S", 0.0)
    app = open_page(demo_store, "run", ws="python-docs")
    for limit, waits in ((5, False), (6, True)):
        app.number_input(key="limit_this workspace").set_value(limit).run()
        assert bool([each for each in app.button if each.label.startswith("Update the plan")]) == waits


def test_mistakes_stand_beside_their_fields_all_at_once(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    app.multiselect(key="mode_this workspace").set_value(["dens"])
    app.multiselect(key="candidates_this workspace").set_value(["many"]).run()
    assert not app.exception
    assert len(app.error) == 2
    assert "dens" in app.error[0].value
    assert "many" in app.error[1].value
    assert not [each for each in app.button if each.key == "run_now"]


def test_a_specification_that_makes_no_sense_says_what_is_wrong(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    broken = app.text_area[0].value.replace("candidates", "candidate").replace('"dense"', '"dens"')
    app.text_area[0].set_value(broken).run()
    assert not app.exception
    said = " ".join(error.value for error in app.error)
    assert "candidates" in said
    assert "dens" in said
    assert not [each for each in app.button if each.key == "run_now"]


def test_what_is_searched_is_asked_for_and_may_be_a_path(open_page: OpenPage, empty_store: Path):
    app = open_page(empty_store, "run")
    assert_sound(app, "Run")
    assert 'preset = "quick-local"' in app.text_area[0].value
    assert "Choose what is searched" in everything(app)
    app.text_area[0].set_value('collection = "path/to/corpus"\n' + app.text_area[0].value).run()
    assert "path/to/corpus" in app.error[0].value


def test_an_empty_field_is_asked_for_and_no_mistake(open_page: OpenPage, empty_store: Path, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Wings lift.")
    app = open_page(empty_store, "run")
    documents = next(each for each in app.text_input if each.label == "Documents")
    documents.set_value(str(tmp_path / "docs")).run()
    assert_sound(app, "Run")
    assert not app.error
    assert "Type the path of the questions" in everything(app)
    app.text_area[0].set_value(app.text_area[0].value + "\n").run()
    assert "There are no questions" in app.error[0].value, "of a text that was edited its names are said"


def test_an_evaluation_of_other_documents_has_their_name(
    open_page: OpenPage, demo_store: Path, tmp_path: Path
):
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "a.md").write_text("Wings lift.")
    app = open_page(demo_store, "run", ws="python-docs")
    names = [each.value for each in app.text_input if each.label == "Name"]
    box = app.selectbox(key="Documents_this workspace")
    box.options.append(str(tmp_path / "handbook"))  # as a browser accepts what is typed
    box.set_value(str(tmp_path / "handbook")).run()
    assert_sound(app, "Run")
    assert [each.value for each in app.text_input if each.label == "Name"] == ["handbook"] != names


def test_a_preset_runs_on_the_open_workspace(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    next(group for group in app.button_group if group.label == "Start from").set_value("quick-local").run()
    assert_sound(app)
    assert 'preset = "quick-local"' in app.text_area[0].value
    assert 'collection.stored = "python-docs"' in app.text_area[0].value
    assert "stacks" in button(app)


def test_a_visitor_cannot_send_a_key_anywhere(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MY_KEY", "mine-mine-mine")
    app = open_page(demo_store, "run", ws="python-docs")
    draft = """
collection.stored = "python-docs"
[axes]
mode = "dense"
embedder = "theirs"
dim = 8
[models.theirs]
provider = "openai"
base_url = "https://evil.example/v1"
key_env = "MY_KEY"
"""
    app.text_area[0].set_value(draft).run()
    assert not app.exception
    said = everything(app)
    assert "The key MY_KEY may not be sent to https://evil.example/v1" in said
    assert "theirs is asked at https://evil.example/v1: key MY_KEY, which may not be sent there" in said
    assert "mine-mine" not in said
    assert app.button(key="run_now").disabled


@pytest.mark.slow
def test_of_a_folder_with_several_splits_one_is_asked_for(
    open_page: OpenPage, empty_store: Path, tmp_path: Path
):
    folder = tmp_path / "corpus"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "p1", "text": "one"}\n{"_id": "p2", "text": "two"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n')
    for name, query in {"dev": "q1", "test": "q2"}.items():
        told = f"query-id\tcorpus-id\tscore\n{query}\tp1\t1\n"
        (folder / "qrels" / f"{name}.tsv").write_text(told)
    app = open_page(empty_store, "run")
    next(box for box in app.text_input if box.label == "Documents").set_value(str(folder)).run()
    box = next(box for box in app.selectbox if box.label == "Split of the judgements")
    assert box.options == ["test", "dev"]
    assert 'golden_set.split = "test"' in app.text_area[0].value
    assert "splits" not in everything(app)
    box.set_value("dev").run()
    assert 'golden_set.split = "dev"' in app.text_area[0].value
    judgements = next(box for box in app.text_input if box.label == "Judgements")
    judgements.set_value(str(folder / "qrels" / "dev.tsv")).run()
    assert not [box for box in app.selectbox if box.label == "Split of the judgements"]
    next(box for box in app.text_input if box.label == "Judgements").set_value(str(folder)).run()
    assert f'golden_set.path = "{folder}"' in app.text_area[0].value


def test_readers_on_stored_runs_have_a_form_and_a_plan(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run/readers", ws="python-docs")
    assert_sound(app, "Run")
    assert answer(app) == "Let a model answer from the passages that a stack found."
    assert not [each for each in app.button if each.key == "ask_now"]
    app.multiselect(key="readers_asked_python-docs").set_value(["fake"]).run()
    assert not app.exception
    assert 'runs = ["workspace"]' in app.text_area[0].value
    assert "64 questions" in everything(app)
    assert app.button(key="ask_now").label.startswith("Get ")
    app.multiselect(key="modes_asked_python-docs").set_value([]).run()
    assert app.error
    assert not [each for each in app.button if each.key == "ask_now"]


def test_without_rankings_there_is_nothing_to_read(open_page: OpenPage, empty_store: Path):
    app = open_page(empty_store, "run/readers")
    assert_sound(app, "Run")
    assert len(app.info) == 1


def test_where_it_runs_is_asked_where_the_operator_has_a_cluster(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    begun = []
    monkeypatch.setattr(Work, "begin", lambda _, *given: begun.append(given[2]))
    app = open_page(demo_store, "run", ws="python-docs")
    assert "run_on" not in app.session_state
    monkeypatch.setenv("CLQ_RAY_ADDRESS", "ray://operators-own:10001")
    app.run()
    app.button(key="run_now").click().run()
    app.session_state["run_on"] = "the cluster"
    app.button(key="run_now").click().run()
    assert_sound(app)
    assert begun == [(), ("--on", "configured")]
    assert "operators-own" not in everything(app)


@pytest.mark.parametrize("state", ["running", "finished"])
def test_what_a_search_dropped_stands_beside_it(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str
):
    dropped = {"label": "<b>slow</b>", "state": "dropped", "queries": 32, "round": 1, "quality": 0.5}
    dropped |= {"beaten_by": "good", "bound": -0.1}
    through = {"label": "good", "state": "through", "queries": 64, "round": 2, "quality": 0.7}
    counted = {
        "queries": 64,
        "stacks": 9,
        "begun": 2,
        "dropped": 1,
        "through": 1,
        "asked": 96,
        "asked_of": 576,
    }
    folder = Folder(tmp_path)
    write_json(folder.search, {**counted, "entries": [dropped, through]})
    status = Status(state=State(state), name="searched", runs_total=9)
    monkeypatch.setattr(Work, "known", lambda *_: [StartedWork("searched-1", status, folder)])
    app = open_page(demo_store, "run", ws="python-docs")
    assert_sound(app)
    (fold,) = [each for each in app.expander if each.label.startswith("The search")]
    assert "1 stack dropped, 1 through" in fold.label
    (table,) = [each.value for each in fold.dataframe]
    assert table["label"].tolist() == ["good", "<b>slow</b>"]
    assert table["beaten_by"].dropna().to_dict() == {1: "good"}
    assert table["round"].tolist() == [2, 1]


def test_every_evaluation_is_listed_with_how_it_ended(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    status = Status(state=State.FINISHED, name="local", runs_done=9, runs_total=9)
    known = [StartedWork(f"local-{number}", status, Folder(tmp_path)) for number in range(7)]
    monkeypatch.setattr(Work, "known", lambda *_: known)
    app = open_page(demo_store, "run", ws="python-docs")
    assert_sound(app)
    (fold,) = [each for each in app.expander if each.label == "All 7 evaluations"]
    (table,) = fold.dataframe
    assert table.value["name"].tolist() == ["local"] * 7
    settings = json.loads(table.proto.columns)
    assert not [name for name in table.value.columns if settings.get(name, {}).get("hidden")]
    assert settings["began"]["type_config"]["type"] == "datetime"


def test_a_press_counts_in_the_moment_that_an_evaluation_ends(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    runs = {"collection_id": "python-docs", "runs_done": 9, "runs_total": 9, "name": "local"}
    status = [Status(state=State.RUNNING, **runs)]
    monkeypatch.setattr(Work, "known", lambda *_: [StartedWork("local-1", status[0], Folder(tmp_path))])
    app = open_page(demo_store, "run", ws="python-docs")
    status[0] = Status(state=State.FINISHED, **runs)
    app.button(key="show_local-1").click().run()
    assert_sound(app)
    assert answer(app).startswith("Best so far: ")


def test_a_result_is_shown_in_the_workspace_that_it_filled(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    runs = {"collection_id": "python-docs", "runs_done": 9, "runs_total": 9, "name": "local"}
    known = [StartedWork("local-1", Status(state=State.FINISHED, **runs), Folder(tmp_path))]
    monkeypatch.setattr(Work, "known", lambda *_: known)
    app = open_page(demo_store, "decision", ws="clq-paper", sla_ms="600", budget="2.5per1k", k="10")
    app.switch_page("pages/run.py").run()
    app.button(key="show_local-1").click().run()
    assert_sound(app)
    assert app.session_state["ws"] == "python-docs"
    assert app.query_params["ws"] == "python-docs"
    assert not {"sla_ms", "budget"} & set(app.query_params), "those of the workspace that was left"
    assert answer(app).startswith("Best so far: ")
