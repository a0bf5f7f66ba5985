"""Where the form starts from after a run that cut documents: the same files, cut the same way."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from core.analysis.workspace.scope import Scope
from core.paths import PRICES
from core.pipeline.evaluate import Job
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.prices import load_books
from core.records import Origin, canonical_json
from core.work.sweep import form

TEXT = "# Wings\n\nA wing lifts. It bends. ## Heat\n\nA plate warms.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
FIRST = """name = "first"
collection = "{docs}"
queries = "{queries}"
[axes]
mode = ["sparse"]
candidates = [2]
chunker = [{cut}]
"""
SMALL = '{ method = "sentence", size = 20, overlap = 0 }'


def read(text: str) -> Job:
    return read_job(parse(text, "toml", name="run"), shelf=None, books=load_books(PRICES), to_run=False)[0]


def stored(job: Job, at: int = 1, chunking: str | None = "cut", **sweep: Any) -> dict[str, Any]:
    manifest = {"evaluation": {"id": str(at)}, "sweep": {**job.spec, **sweep}}
    return {
        "run_id": f"r{at}",
        "origin": Origin.RUN.value,
        "spec": canonical_json(job.stacks[0].spec),
        "manifest": canonical_json(manifest),
        "chunking": chunking,
        "created_at": at,
    }


def ran(*rows: dict[str, Any]) -> form.Ran | None:
    runs = pl.DataFrame(rows, schema_overrides={"chunking": pl.String})
    return form.ran(SimpleNamespace(runs=lambda _: runs), "docs")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(TEXT)
    (tmp_path / "q.jsonl").write_text('{"_id": "q1", "text": "what lifts?"}\n')
    return {"docs": str(tmp_path / "docs"), "queries": str(tmp_path / "q.jsonl")}


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["", SMALL], ids=["as is usual", "as was said"])
def test_the_form_starts_from_what_was_run(files: dict[str, str], cut: str):
    first = read(FIRST.format(**files, cut=cut))
    before = ran(stored(first))
    begun = form.starts(Scope("docs", "gold"), ["docs"], {"gold": "docs"}, before)
    for name in (form.WORKSPACE, "quick-local"):
        assert (begun[name].documents, begun[name].judgements) == (files["docs"], "gold")
        assert "Cut as in the latest run: sentence" in begun[name].note
        text = form.specification(begun[name], ["docs"], ["gold"]).replace('golden_set.stored = "gold"', "")
        again = read(text + "\n")
        assert [corpus.hash for corpus in again.corpora.values()] == [
            corpus.hash for corpus in first.corpora.values()
        ]
        if name == form.WORKSPACE:
            assert again.evaluation_id == first.evaluation_id, "stacks are added to those that ran"
        assert first.stacks[0].spec["chunker"] in [stack.spec["chunker"] for stack in again.stacks]


def test_only_what_can_be_read_alike_is_read_again(files: dict[str, str]):
    job = read(FIRST.format(**files, cut=SMALL))
    cut = (job.stacks[0].spec["chunker"],)
    source = job.spec["collection"]
    kept = {**source, "path": None, "stored": "docs"}
    cases = {
        "searched whole": (ran(stored(job), stored(job, 2, None)), None),
        "cut again": (ran(stored(job, 1, None), stored(job, 2)), form.Ran(*files.values(), cut, "first")),
        "of the store": (ran(stored(job, collection=kept)), form.Ran("docs", "", cut, "first")),
        "gone": (ran(stored(job, collection={**source, "path": "/gone"})), form.Ran("docs", "", ())),
        "columns": (ran(stored(job, queries={"columns": {"a": "b"}})), form.Ran("docs", "", ())),
        "another language": (
            ran(stored(job, collection={**source, "language": "french"})),
            form.Ran("docs", "", ()),
        ),
    }
    assert {name: found for name, (found, _) in cases.items()} == {
        name: expected for name, (_, expected) in cases.items()
    }
    assert "not there" in form.Ran("docs", "", ()).words
