"""Answers for agents without the SDK: small, and plain; what the command says where the extra is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.agents.server import SKILL, guides
from core.agents.small import TEXT, untrusted
from core.cli.app import app


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain", "plain"),
        ("a\nb", "a\nb"),
        ("a\x1b[31mb", "a [31mb"),
        ("a\u202eb", "ab"),
        ("x" * (TEXT + 1), "x" * TEXT + " […]"),
    ],
)
def test_texts_of_the_data_are_short_and_plain(given: str, expected: str):
    assert untrusted(given) == expected


def test_the_skill_names_tools_and_the_guides_are_there():
    printed = CliRunner().invoke(app, ["mcp", "--skill"])
    assert printed.exit_code == 0
    assert printed.output == SKILL.read_text(encoding="utf-8")
    assert printed.output.startswith("---\nname: clq-explorer\n")
    assert {"decide", "reference-measures", "agents"} <= set(guides())


@pytest.mark.parametrize("words", [["--budget", "3"], ["--folder", "/nowhere"]])
def test_options_that_mean_nothing_are_refused(words: list[str]):
    assert CliRunner().invoke(app, ["mcp", *words]).exit_code == 2


def test_what_is_missing_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "mcp"])
    assert done.exit_code == 1
    assert "requirements-mcp.txt" in done.stderr
