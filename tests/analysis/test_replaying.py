"""Replayed fusions: on the demo they equal what was measured, and what chance alone gives is not promised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis import replaying
from core.analysis.replaying import replays
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.decide.held_out import best_row, held_out
from core.pipeline.demo import grid, run_demo
from core.pipeline.sweep import load
from core.pipeline.sweep.expand import expand
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Table, Way
from core.views.what_if.moving import CANDIDATE, steps
from core.work.sweep.form import stack_lines, starts, with_candidate
from tests.stores import Lab, add
from tests.views.made import BOOK

QUERIES = [f"q{number:03}" for number in range(100)]
LEG = {"reranker": "none", "candidates": 20}
SPARSE = {**LEG, "mode": "sparse", "sparse": "bm25"}
DENSE = {**LEG, "mode": "dense", "embedder": "wordllama", "dim": 256, "index": "flat"}


@pytest.fixture(scope="module")
def docs(shipped_store: Path) -> View:
    """A workspace with BM25, MiniLM and their fusions, of which the usual one runs today."""
    asked = Question(collection="docs-search", incumbent="BM25 ⊕ MiniLM")
    return resolve(asked, Store.open(shipped_store).read(), BOOK)


def test_the_promise_is_the_gain_on_questions_that_did_not_choose(docs: View):
    found = replays(docs)
    assert found
    for replay in found:
        assert replay.gain.difference <= replay.in_sample
        assert replay.gain.low < replay.gain.difference < replay.gain.high
        assert (replay.gain.n, replay.spec["mode"]) == (150, "hybrid")
    assert [one.gain.difference for one in found] == sorted((o.gain.difference for o in found), reverse=True)


def test_a_replayed_stack_is_run_by_the_lines_that_are_printed(docs: View):
    for replay in replays(docs):
        text = stack_lines(dict(replay.spec), "docs-search", "docs-search-graded")
        assert [stack.spec for stack in expand(load(text))] == [replay.spec]


def test_steps_show_them_and_one_click_runs_one(docs: View):
    blocks = list(steps.draw(docs, Given({})))
    table = next(block.rows for block in blocks if isinstance(block, Table))
    replayed = table.drop_nulls("in_sample")
    assert replayed["name"].to_list() == [replay.name for replay in replays(docs)]
    assert set(replayed.filter(pl.col("name").str.starts_with("BM25 ⊕ MiniLM ·"))["step"]) == {"a setting"}
    way = next(block for block in blocks if isinstance(block, Way))
    workspace, stack = way.settings[CANDIDATE]
    form = next(iter(with_candidate(starts(docs.scope, [workspace], {}), stack).values()))
    assert (way.page, form.documents, form.stacks) == ("run", "docs-search", (json.loads(stack),))


def test_command_and_library_say_the_same(shipped_store: Path, docs: View):
    words = ("switch", "--collection", "docs-search", "--incumbent", "BM25 ⊕ MiniLM")
    said = CliRunner().invoke(app, ["--store", str(shipped_store), *words, "--format", "json"])
    own = [replay.to_dict() for replay in replays(docs)]
    assert json.loads(said.stdout)["replayed"] == own
    workspace = open_store(shipped_store).workspace("docs-search")
    assert workspace.switch(incumbent="BM25 ⊕ MiniLM")["replayed"] == own
    printed = CliRunner().invoke(app, ["--store", str(shipped_store), *words])
    assert "[[stack]]" in printed.stdout


@pytest.mark.slow
def test_a_replay_of_what_was_measured_scores_the_same(tmp_path: Path):
    stacks = grid(embedder="fake", dims=(16,), indexes=("flat",), depths=(100,))
    run_demo(lambda batch: add(tmp_path / "s", batch, "demo"), stacks=stacks)
    view = resolve(Question(collection="python-docs"), Store.open(tmp_path / "s").read(), BOOK)
    measured = {
        _key(spec): run for spec, run in view.table.select("spec", "run_id").iter_rows() if "hybrid" in spec
    }
    pairs = list(replaying._pairs(view))
    assert len(pairs) == 1
    for sparse, dense in pairs:
        runs = [sparse["run_id"], dense["run_id"]]
        graded = evidence(view.snapshot, runs, view.scope.golden_set_id, [view.quality.measure])
        tried = replaying._tried(
            replaying._World(view, view.quality.measure, 10, graded, None), sparse, dense
        )
        usual = replaying._spec(tried, {"method": "rrf", "constant": 60, "depth": 100})
        both = evidence(view.snapshot, [measured[_key(usual)]], view.scope.golden_set_id)
        stored = at_cutoff(both, view.quality.measure)[0]
        assert tried.values[0] == pytest.approx(stored, nan_ok=True)


def _key(spec: Any) -> str:
    """A specification without its K, as text."""
    keys = json.loads(spec) if isinstance(spec, str) else dict(spec)
    return json.dumps({**keys, "candidates": None}, sort_keys=True)


def lab(values: np.random.Generator) -> Lab:
    """Two legs and a running stack, whose rankings are all drawn at random."""
    made = Lab().judge({query: {f"p{at:02}": 5 if at < 8 else 1 for at in range(40)} for query in QUERIES})
    for name, spec in (("sparse", SPARSE), ("dense", DENSE), ("now", {**DENSE, "embedder": "other"})):
        final = {query: [f"p{at:02}" for at in values.permutation(40)[:20]] for query in QUERIES}
        made.run(name, final=final, spec=spec)
    return made


@pytest.mark.slow
def test_of_random_legs_nothing_is_promised(tmp_path: Path):
    gains, flattered = [], []
    for seed in range(12):
        store = lab(np.random.default_rng(seed)).write(tmp_path / str(seed))
        view = resolve(Question(incumbent="now", together=True), store.read(), BOOK)
        fused = next(one for one in replays(view) if one.spec["embedder"] == "wordllama")
        gains.append(fused.gain.difference)
        flattered.append(fused.in_sample)
    assert abs(np.mean(gains)) < 3 * np.std(gains) / np.sqrt(len(gains))
    assert np.mean(flattered) > np.mean(gains)


def test_the_best_of_alike_rows_promises_nothing():
    random = np.random.default_rng(7)
    worlds = random.normal(0.5, 0.2, size=(200, 40, 60))
    held = [held_out(values, 0, 1.0, repeats=2).mean() for values in worlds]
    chosen = [values[best_row(values, 0, 1.0)].mean() for values in worlds]
    assert np.mean(held) == pytest.approx(0.5, abs=0.005)
    assert np.mean(chosen) > 0.54


def test_groups_of_questions_are_held_out_together():
    """A row that is right for one group only is never judged on that group."""
    groups = np.repeat(np.arange(10), 6)
    values = np.vstack([np.full(60, 0.5), np.where(groups == 0, 6.0, 0.0)])
    assert held_out(values, 0, 1.0, groups).max() < 6.0
    assert held_out(values, 0, 1.0).max() == 6.0


def test_without_an_incumbent_or_rankings_nothing_is_replayed(docs: View):
    assert replays(docs.replace(incumbent=None)) == ()
