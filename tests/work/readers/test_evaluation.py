"""Readers of an evaluation: they answer from its runs, in its budget, and are added to it later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.export import StoreShelf
from core.errors import BudgetError
from core.jobs import State
from core.pipeline.evaluate import Job, Outcome, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.sweep import parse
from core.pipeline.sweep.plan import plan
from core.pipeline.sweep.problems import SpecError
from core.pipeline.sweep.read import read_job
from core.records import Batch
from core.store import Store
from core.work.readers import stored
from core.work.readers.plan import with_readers
from tests.vendors import Vendors, serve
from tests.work.readers import asked

CHAT = "openai/chat"
SWEEP = """
name = "both"
collection.stored = "c"
golden_set.stored = "g"
latency.repeats = 1
budget.prices = "fake"
[[stack]]
mode = "sparse"
candidates = 3
[[stack]]
mode = "dense"
embedder = "fake"
dim = 16
candidates = 3
"""
READER = """
[reader]
models = ["reader"]
k = [1, 3]
modes = ["top_k", "gold_only", "none"]
"""


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch):
    with serve(chat=asked.answer) as server:
        monkeypatch.setenv("KEY", "key")
        monkeypatch.setenv("CLQ_ALLOW_KEYS", f"KEY={server.url}")
        yield server


def job(store: Store, url: str, text: str = SWEEP + READER, budget: float | None = None) -> Job:
    models = asked.models(url)
    spec = parse(text)
    spec = spec.model_validate({**spec.model_dump(exclude_none=True, exclude={"models"}), "models": models})
    made, _ = read_job(spec, shelf=StoreShelf(store.read()), books={"fake": asked.book()}, to_run=False)
    return replace(made, budget_usd=budget)


def run(store: Store, of: Job) -> Outcome:
    def sink(batch: Batch) -> None:
        with store.write("evaluate") as writer:
            writer.add(batch)

    held = set(store.read().runs()["run_id"])
    work = store.path.parent / "evaluations"
    return run_job(of, sink, site=Site(work=work), held=held, after=stored.after(store, of))


def answers(store: Store, outcome: Outcome) -> dict[tuple[str, int], int]:
    ids = [*outcome.held, *(each.run_id for each in outcome.runs)]
    rows = store.read().answers(ids).group_by("mode", "k").len()
    return {(mode, k): count for mode, k, count in rows.iter_rows()}


@pytest.mark.slow
def test_readers_answer_from_the_runs_once_these_have_landed(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    made = job(store, vendors.url)
    foreseen = with_readers(plan(made), made)
    outcome = run(store, made)
    assert outcome.status.state is State.FINISHED
    assert (outcome.status.runs_done, outcome.status.share) == (2, 1.0)
    found = answers(store, outcome)
    assert found["top_k", 1] == found["top_k", 3] == found["none", 0] == 2 * 3
    assert found["gold_only", 1] <= found["gold_only", 3] <= 6
    assert {line.stage for line in foreseen.lines} == {"answer"}
    assert outcome.status.usd > 0
    again = run(store, made)
    assert len(again.held) == 2
    assert again.status.usd == pytest.approx(outcome.status.usd)


@pytest.mark.slow
def test_readers_are_added_to_an_evaluation_that_has_run(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    first = run(store, job(store, vendors.url, SWEEP))
    assert answers(store, first) == {}
    then = run(store, job(store, vendors.url))
    assert then.folder == first.folder
    assert then.runs == ()
    assert answers(store, then)["none", 0] == 6


@pytest.mark.slow
def test_the_budget_is_of_both(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    with pytest.raises(BudgetError):
        run(store, job(store, vendors.url, budget=0.0009))
    assert store.read().runs("c").height == 2 + len(asked.RANKED)
    sent = vendors.state.calls[CHAT]
    outcome = run(store, job(store, vendors.url, budget=1.0))
    assert answers(store, outcome)["none", 0] == 6
    assert vendors.state.calls[CHAT] > sent > 0
    assert max(vendors.state.texts[CHAT].values()) == 1


@pytest.mark.parametrize(
    "change", [("k = [1, 3]", 'k = 1\nruns = "r-a"'), ('["reader"]', '["nobody"]')], ids=["runs", "model"]
)
def test_what_is_wrong_is_told_before_anything_runs(tmp_path: Path, vendors: Vendors, change):
    store = asked.store_of(tmp_path)
    made = job(store, vendors.url, SWEEP + READER.replace(*change))
    with pytest.raises(SpecError):
        with_readers(plan(made), made)
    with pytest.raises(SpecError):
        run(store, made)
    assert store.read().runs("c").height == len(asked.RANKED)


def test_a_plan_counts_what_a_judge_is_asked_about_answers_that_are_not_there(
    tmp_path: Path, vendors: Vendors
):
    judge = '[reader.judge]\nmodel = "judge"\nscorers = ["correctness"]\n'
    judged = job(asked.store_of(tmp_path), vendors.url, SWEEP + READER + judge)
    lines = {each.model: each.calls for each in with_readers(plan(judged), judged).lines}
    assert lines["judge"] == lines["reader"]
