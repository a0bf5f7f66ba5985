"""Section Names of Diagnostics with figures in the store: numbers, languages, names of one's own as text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.pipeline.sweep import load_as
from core.store import Store
from core.views.diagnostics import names
from core.views.text import plain
from core.work.names import stored
from core.work.names.job import NamesSpec
from core.work.work import Work
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, figures, rows
from tests.stores import HOSTILE
from tests.views.diagnostics.test_asked_names import write
from tests.views.diagnostics.test_names import made


@pytest.mark.slow
def test_figures_are_shown_by_language(open_page: OpenPage, demo_store: Path, tmp_path: Path):
    own = tmp_path / f"{HOSTILE[0].replace('/', '_')}.csv"
    own.write_text("entity,topic,title\n" + "".join(f"{e},{t},{e}{t}\n" for e in "abcd" for t in "xy"))
    store = Store.open(demo_store)
    stored.store_results(store, made(5))
    stored.store_results(store, made(6, entities=str(own)))
    rows = names.both(names.figures(store.read())[0])
    app = open_page(demo_store, "diagnostics")
    assert_sound(app, "Diagnostics")
    assert answer(app) == names.answer(rows, "en")[0]
    assert len(app.metric) == len(names.cards(rows, "en"))
    (drawn,) = figures(app)
    assert len(drawn["data"]) == 3
    app.button_group(key="spoken").set_value(plain(names.spoken(rows["language"].unique().sort()[1]))).run()
    assert not app.exception
    (drawn,) = figures(app)
    assert len(drawn["data"]) == 1
    assert not any(HOSTILE[0] in each.value for each in app.markdown)


@pytest.mark.slow
def test_a_diagnosis_is_planned_and_begun_from_the_page(
    open_page: OpenPage, demo_store: Path, monkeypatch: pytest.MonkeyPatch
):
    begun: list[tuple[str, Path]] = []
    monkeypatch.setattr(Work, "begin", lambda _, text, store: begun.append((text, store)))
    app = open_page(demo_store, "diagnostics")
    app.multiselect(key="names_embedders").set_value(["voyage-3.5"]).run()
    app.number_input(key="names_runs").set_value(1).run()
    app.number_input(key="names_queries").set_value(3).run()
    assert not app.exception
    said = app.button(key="names_now").label
    assert said.startswith("Embed ")
    assert "$" in said
    app.button(key="names_now").click().run()
    ((text, store),) = begun
    assert store == demo_store
    spec = load_as(NamesSpec, text)
    assert (spec.embedder[0].name, spec.runs, spec.queries) == ("voyage-3.5", 1, 3)
    app.multiselect(key="names_dims").set_value(["7"]).run()
    assert any("dimensions" in each.value for each in app.error)
    app.multiselect(key="names_embedders").set_value([]).run()
    assert not [each for each in app.button if each.key == "names_now"]


@pytest.fixture
def demo_store(demo_store: Path, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    copy = tmp_path / "own" / "store"
    shutil.copytree(demo_store, copy)
    return copy


@pytest.mark.slow
def test_other_names_in_the_questions_of_a_workspace(open_page: OpenPage, tmp_path: Path):
    app = open_page(write(tmp_path / "store"), "diagnostics", k="1")
    assert_sound(app, "Diagnostics")
    (drawn,) = figures(app)
    assert {trace["name"] for trace in drawn["data"]} >= {"paper, French"}
    assert rows(app)["change"].to_list() == pytest.approx([-0.4, -1.0, -0.5])
    app = open_page(tmp_path / "store", "diagnostics/noise", k="1")
    assert_sound(app, "Diagnostics")
    assert "names" not in answer(app).lower(), "other names are no noise"
