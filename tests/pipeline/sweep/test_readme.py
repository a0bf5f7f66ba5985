"""The specifications that the README shows are such."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.paths import ROOT
from core.pipeline.sweep import load, parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.known import Known
from core.pipeline.sweep.problems import Severity
from core.providers.calls import Keys

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPECS = dict(re.findall(r"<!-- spec: (\w+) -->\n```toml\n(.*?)```", README, re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.jsonl").touch()
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "a.md").touch()
    for name in ("golden.tsv", "questions.csv", "quotes.csv"):
        (tmp_path / name).touch()
    return tmp_path


def test_the_papers_sweep_takes_three_lines_and_a_key(folder: Path):
    assert len(SPECS["paper"].strip().splitlines()) == 3
    (folder / "paper.toml").write_text(SPECS["paper"])
    spec = load(folder / "paper.toml")
    stacks = expand(spec)
    assert len(stacks) == 648  # 2 modes · 3 models · 3 dimensions · 3 indexes · 3 rerankers · 4 depths
    assert "648\nstacks" in README or "648 stacks" in README
    without = check(spec, known=Known(spec.models, Keys({}, ())))
    assert [each.found for each in without if each.severity is not Severity.WARNING] == [
        "The key VOYAGE_API_KEY is not set."
    ]
    known = Known(spec.models, Keys({"VOYAGE_API_KEY": "key"}, ()))
    assert {each.severity for each in check(spec, known=known)} == {Severity.WARNING}


def test_the_local_sweep_takes_no_key(folder: Path):
    spec = parse(SPECS["local"], folder=folder)
    assert check(spec, known=Known(spec.models, Keys({}, ()))) == []
    stacks = expand(spec)
    assert {stack.spec["chunker"]["method"] for stack in stacks} == {"paragraph", "sentence"}
    assert {stack.spec["chunker"]["language"] for stack in stacks if "language" in stack.spec["chunker"]} == {
        "french"
    }
