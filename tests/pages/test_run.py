"""The Run page: drafts, plans, and specifications that make no sense."""

from pathlib import Path

import pytest

from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything


def test_the_workspace_can_be_planned_again(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    assert_sound(app, "Run")
    assert answer(app) == "No evaluation was run here yet."
    assert 'collection.stored = "python-docs"' in app.text_area[0].value
    app.toggle[0].set_value(True).run()
    assert_sound(app, "Run")
    said = everything(app)
    assert "10 stacks, 64 questions asked 3 times" in said
    assert "Nothing is paid for: everything runs on this machine." in said
    assert not app.button[0].disabled


def test_a_specification_that_makes_no_sense_says_what_is_wrong(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    broken = app.text_area[0].value.replace("candidates", "candidate").replace('"dense"', '"dens"')
    app.text_area[0].set_value(broken).run()
    app.toggle[0].set_value(True).run()
    assert not app.exception
    (error,) = app.error
    assert "candidates" in error.value
    assert "dens" in error.value
    assert all(button.disabled for button in app.button if button.label == "Run")


def test_presets_ask_for_paths(open_page: OpenPage, empty_store: Path):
    app = open_page(empty_store, "run")
    assert_sound(app, "Run")
    assert 'preset = "clq-paper"' in app.text_area[0].value
    app.toggle[0].set_value(True).run()
    assert "path/to/corpus" in app.error[0].value


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
    app.toggle[0].set_value(True).run()
    assert not app.exception
    said = everything(app)
    assert "The key MY_KEY may not be sent to https://evil.example/v1" in said
    assert "theirs is asked at https://evil.example/v1: key MY_KEY, which may not be sent there" in said
    assert "mine-mine" not in said
    assert all(button.disabled for button in app.button if button.label == "Run")
