"""Section Questions of Golden sets: its form opens in every workspace, for the documents of that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.cli.app import app as command
from core.work.sweep.form import ASKED_OF, MADE, MAKE
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, go, page_of
from tests.stores import Lab
from tests.work.questions import texts

TEXT = "Parcels can be returned within thirty days of delivery, in their original box, with a receipt."
HEAD = "Make test queries from your documents."


def documents(app: AppTest) -> str | None:
    """What the form asks about."""
    fields = [*app.selectbox, *app.text_input]
    return next((each.value or None for each in fields if each.label == "Documents"), None)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workspaces with texts and questions, texts alone, figures alone, and rankings alone."""
    path = tmp_path_factory.mktemp("workspaces") / "store"
    figures = [{"measure": "nDCG", "k": 10, "stage": "total", "value": 0.5, "source": "paper"}]
    Lab("whole").ask({"q": "what?"}).hold({"p": f"# Parcels\n\n{TEXT}"}).write(path)
    Lab("texts").hold({"p": f"# Returns\n\n{TEXT}"}).write(path)
    Lab("figures").run("a", figures=figures).write(path)
    Lab("rankings").run("b", final={"q": ["p"]}).write(path)
    return path


@pytest.mark.parametrize(
    ("workspace", "has_texts"), [("whole", True), ("texts", True), ("figures", False), ("rankings", False)]
)
def test_the_form_opens_in_every_workspace(open_page: OpenPage, store: Path, workspace: str, has_texts: bool):
    app = open_page(store, "golden/questions", ws=workspace)
    assert_sound(app, "Golden sets")
    assert answer(app) == HEAD
    assert documents(app) is None
    assert "Choose documents, or type a path." in everything(app)
    assert (f"{workspace} has no texts of passages." in everything(app)) != has_texts
    field = next(each for each in app.selectbox if each.label == "Documents")
    assert (field.options[0] == workspace) == has_texts, "its own come first"
    assert_sound(field.select("texts").run(), "Golden sets")
    assert [each for each in app.button if each.label.startswith("Make 1 question")]


@pytest.mark.parametrize("section", ["soundness", "judges", "people", "unseen", "build", "judge"])
def test_the_other_sections_say_what_is_missing(open_page: OpenPage, store: Path, section: str):
    app = open_page(store, f"golden/{section}", ws="texts")
    assert_sound(app, "Golden sets")
    lacks = "texts has no golden set with judgements, and lacks texts or questions to make one."
    assert lacks in everything(app)
    assert "Golden sets in whole" in [each.label for each in app.button]


@pytest.mark.slow
@pytest.mark.parametrize("workspace", ["whole", "figures", "rankings"])
def test_page_run_leads_to_the_form_for_what_was_chosen_there(
    open_page: OpenPage, store: Path, workspace: str
):
    app = open_page(store, "run", ws=workspace)
    next(each for each in app.selectbox if each.label == "Documents").set_value("texts").run()
    next(each for each in app.button if each.label == MAKE).click().run()
    assert_sound(app, "Golden sets")
    assert page_of(app).name == "golden"
    assert answer(app) == HEAD
    assert documents(app) == "texts"
    assert app.session_state[ASKED_OF] == (workspace, "texts")
    other = "figures" if workspace == "whole" else "whole"
    go(app, "golden/questions").selectbox(key="ws").set_value(other).run()
    assert documents(app) is None, "what was chosen in one workspace means nothing in another"
    app.selectbox(key="ws").set_value(workspace).run()
    assert documents(app) == "texts"


@pytest.mark.slow
def test_made_questions_are_run_where_they_were_chosen(open_page: OpenPage, store: Path, tmp_path: Path):
    folder = tmp_path / "asked"
    words = ["golden", "questions", str(texts.folder_of(tmp_path)), "--out", str(folder)]
    assert CliRunner().invoke(command, ["--store", str(store), *words]).exit_code == 0
    app = open_page(store, "run", ws="whole")

    def starts() -> list[str]:
        return next(list(each.options) for each in app.segmented_control if each.label == "Start from")

    before = starts()
    app.session_state[MADE] = ("whole", str(folder))
    assert_sound(app.run())
    (made,) = {*starts()} - {*before}
    assert starts()[0] == made
    app.selectbox(key="ws").set_value("texts").run()
    assert made not in starts()
