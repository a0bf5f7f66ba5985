"""Replayed fusions: on the demo they equal what was measured, and what chance alone gives is not promised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.moves import replaying
from core.analysis.moves.replaying import replays
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.decide.held_out import best_row, held_out
from core.pipeline.demo import grid, run_demo
from core.pipeline.sweep import load
from core.pipeline.sweep.check import check
from core.pipeline.sweep.expand import expand
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Table, Text, Way
from core.views.what_if.moving import AT_FOLDER, CANDIDATE, steps
from core.views.words.moving import shallow
from core.work.sweep.form import FOLDER, stack_lines, starts, with_candidate
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


def test_a_replayed_stack_is_run_by_the_lines_that_are_printed(docs: View, tmp_path: Path):
    for replay in replays(docs):
        text = stack_lines(dict(replay.spec), "docs-search", "docs-search-graded")
        assert [stack.spec for stack in expand(load(text))] == [replay.spec]
        assert replay.unlisted == "all-MiniLM-L6-v2"  # so its folder is asked for, before anything runs
        assert [problem.where for problem in check(load(text))] == ["models.all-MiniLM-L6-v2.path"]
        assert not list(check(load(text.replace(FOLDER, str(tmp_path)))))


def test_steps_show_them_and_say_how_to_run_what_no_catalogue_has(docs: View):
    blocks = list(steps.draw(docs, Given({})))
    table = next(block.rows for block in blocks if isinstance(block, Table))
    replayed = table.drop_nulls("in_sample")
    assert replayed["name"].to_list() == [replay.name for replay in replays(docs)]
    assert set(replayed.filter(pl.col("name").str.starts_with("BM25 ⊕ MiniLM ·"))["step"]) == {"a setting"}
    assert not [block for block in blocks if isinstance(block, Way)]
    said = [block.words for block in blocks if isinstance(block, Text)]
    assert said.count(AT_FOLDER.format(model="all-MiniLM-L6-v2")) == 1


def test_one_click_runs_what_can_run_here(tmp_path: Path):
    store = lab(np.random.default_rng(0)).write(tmp_path / "s")
    view = resolve(Question(incumbent="now", together=True), store.read(), BOOK)
    listed = [replay.spec for replay in replays(view) if replay.unlisted is None]
    ways = [block for block in steps.draw(view, Given({})) if isinstance(block, Way)]
    assert [spec["embedder"] for spec in listed] == ["wordllama"]
    workspace, stack = ways[0].settings[CANDIDATE]
    form = next(iter(with_candidate(starts(view.scope, [workspace], {}), stack).values()))
    assert (len(ways), ways[0].page, form.documents, form.stacks) == (1, "run", "lab", (json.loads(stack),))
    assert FOLDER not in stack_lines(json.loads(stack), "lab", "")


@pytest.mark.parametrize(
    ("index", "params", "depths"),
    [("flat", {}, {20, 50}), ("hnsw-f32", {}, {20, 50}), ("hnsw-f32", {"efSearch": 16}, {50}),
     ("qdrant", {}, {50})],
)  # fmt: skip
def test_a_graph_that_looks_at_less_for_less_is_replayed_whole(
    tmp_path: Path, index: str, params: dict[str, Any], depths: set[int]
):
    """The first 20 of a search of 50 are not those of a search of 20 if that would visit fewer passages."""
    legs = {"sparse": SPARSE, "dense": {**DENSE, "index": index, "index_params": params}}
    view = deep(tmp_path, {name: ({**spec, "candidates": 50}, 50) for name, spec in legs.items()})
    ((sparse, dense),) = replaying._pairs(view)
    graded = evidence(view.snapshot, [sparse["run_id"], dense["run_id"], "now"], view.scope.golden_set_id)
    world = replaying._World(view, view.quality.measure, 10, graded, None)
    tried = replaying._tried(world, sparse, dense)
    assert {fusion["depth"] for fusion in tried.fusions} == depths


@pytest.mark.parametrize(("stored", "short"), [(50, 0), (45, 100), (60, 0)])
def test_a_leg_that_is_stored_less_deep_than_it_is_merged_is_named(tmp_path: Path, stored: int, short: int):
    dense = {**DENSE, "index": "qdrant", "candidates": 50}
    view = deep(tmp_path, {"sparse": ({**SPARSE, "candidates": 50}, 50), "dense": (dense, stored)})
    (found,) = replays(view)
    assert (found.spec["fusion"]["depth"], found.short) == (50, short)
    assert ("100 queries" in shallow([found])) == bool(short)
    assert "depth" not in found.name, "no other stack has this name"
    assert found.to_dict()["short"] == short


def deep(folder: Path, legs: Mapping[str, tuple[dict[str, Any], int]]) -> View:
    """A running stack, and legs that are stored so deep."""
    random = np.random.default_rng(1)
    made = Lab().judge({query: {f"p{at:02}": 5 if at < 8 else 1 for at in range(60)} for query in QUERIES})
    for name, (spec, stored) in {**legs, "now": ({"mode": "dense", "embedder": "other"}, 20)}.items():
        final = {query: [f"p{at:02}" for at in random.permutation(60)[:stored]] for query in QUERIES}
        made.run(name, final=final, spec=spec)
    return resolve(Question(incumbent="now", together=True), made.write(folder / "s").read(), BOOK)


def test_a_stack_of_two_machines_is_replayed_once(tmp_path: Path):
    legs = {"sparse": (SPARSE, 20), "dense": (DENSE, 20)}
    again = {f"{name} elsewhere": leg for name, leg in legs.items()}
    once, twice = deep(tmp_path / "one", legs), deep(tmp_path / "two", {**legs, **again})
    assert twice.table.height == once.table.height + 2
    assert len(replays(once)) == len(replays(twice)) == 1
    assert replays(twice)[0].name == replays(once)[0].name


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
