"""The page of formats says what the importers declare."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.importers import FORMATS
from core.tables import TABLES
from core.work.imports.imports import described, format_table

NAMES = [each.name for each in FORMATS]


def test_every_format_stands_in_every_table() -> None:
    assert format_table()["as"].to_list() == NAMES


@pytest.mark.parametrize("each", FORMATS, ids=NAMES)
def test_what_a_format_declares_is_sound(each) -> None:
    assert set(each.brings) <= set(TABLES), "only tables that there are"
    told = described(each.name)
    assert told[0][1], "how it is recognised"
    plainly = dict(told).get("taken as they are", "").split(", ")
    assert {*plainly, *(what for what, _ in told)} >= set(each.brings)


def test_formats_by_command() -> None:
    listed = CliRunner().invoke(app, ["formats"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in NAMES)
    assert "recognised by" in CliRunner().invoke(app, ["formats", "trec-run"]).output
    wrong = CliRunner().invoke(app, ["formats", "trec"])
    assert wrong.exit_code == 1
    assert "No format 'trec'" in wrong.output
