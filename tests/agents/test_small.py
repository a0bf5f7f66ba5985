"""Answers for agents without the SDK: small, and plain; what the command says where the extra is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.agents.server import SKILL, guides
from core.agents.small import MOST, TEXT, Small, fitting, untrusted
from core.cli.app import app
from core.errors import UnknownNameError


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


TEXTS = st.text(st.characters(codec="utf-8"), max_size=TEXT)
ROWS = st.lists(st.dictionaries(st.sampled_from("abcdefgh"), TEXTS, min_size=1), min_size=1, max_size=30)


@st.composite
def answers(draw: st.DrawFn) -> Small:
    tables = [
        {"name": f"t{at}", "rows": rows, "rows_in_all": len(rows)}
        for at, rows in enumerate(draw(st.lists(ROWS, max_size=5)))
    ]
    lists = {"notes": st.lists(TEXTS, max_size=9), "numbers": ROWS}
    told = {name: draw(some) for name, some in lists.items()}
    choices = {f"k{at}": {"asks": draw(TEXTS)} for at in range(draw(st.integers(0, 12)))}
    whole = {"page": "p", "answer": draw(TEXTS), **told, "tables": tables, "choices": choices}
    return {key: value for key, value in whole.items() if value} | {"made_of": "m"}


@pytest.mark.slow
@given(answers())
def test_an_answer_fits_and_nothing_of_it_is_out_of_reach(told: Small):
    first = fitting(told)
    assert len(json.dumps(first, ensure_ascii=False)) <= MOST
    for part in (name for name in first.get("more", {}) if name != "how"):
        at, calls = first["more"][part]["start"], 0
        while calls < 100:
            said = fitting(told, part, at)
            assert len(json.dumps(said, ensure_ascii=False)) <= MOST
            if part not in said.get("more", {}):
                break
            assert said["more"][part]["start"] > at, "it goes on"
            at, calls = said["more"][part]["start"], calls + 1
        assert calls < 100


def test_a_part_that_is_not_there_is_refused_with_the_others():
    with pytest.raises(UnknownNameError, match="notes"):
        fitting({"page": "p", "notes": ["a"], "answer": ""}, "tables")
