"""What the pages offer to take away is what they show."""

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app as commands
from core.report.data import decision_data
from core.report.files import command, record_file
from core.ui import share
from core.views.link import RULES
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound


@pytest.mark.slow
@pytest.mark.parametrize("page", ["decision"])
def test_the_record_is_of_the_decision_on_screen(open_page: OpenPage, demo_store: Path, page: str):
    app = open_page(demo_store, page, ws="clq-paper", sla_ms="520", alpha="0.5")
    files = {"HTML", "Markdown", "JSON", "Snapshot"}
    assert not files & {each.proto.label for each in app.get("download_button")}  # they wait for their button
    app.session_state["record"] = True
    assert_sound(app.run())
    assert files <= {each.proto.label for each in app.get("download_button")}
    view = app.session_state["_view"]
    words = str(command(view)).split()[3:]
    assert words
    said = CliRunner().invoke(commands, ["--store", str(demo_store), *words, "--format", "json"])
    assert json.loads(said.stdout) == decision_data(view, share.decided(view))


def test_the_record_follows_the_rule_of_the_page(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "confidence", rule="lowest cost", min_quality="0.7")
    assert_sound(app)
    view = app.session_state["_view"]
    render, rule = partial(record_file, ".json"), RULES[app.session_state["rule"]]
    written = json.loads(share._written(render, view, "", rule, weak=False))
    assert written["asked"]["rule"] == "cost"
    assert "--rule cost" in written["command"]
    assert written["chosen"]["stack"] in answer(app)


def test_nothing_to_decide_can_be_recorded_too(open_page: OpenPage, published_store: Path):
    app = open_page(published_store, "decision", min_quality="1")
    view = app.session_state["_view"]
    written = share._written(partial(record_file, ".md"), view, "http://host/?rev=1", "quality", weak=False)
    assert written.startswith("# Decision record\n\n**No stack above a quality of 1.00 is left.**")
    assert "http://host/?rev=1" in written
