"""Limits on a move from the stack that runs today, in a search: what is beyond them is not begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.axes import AxisSpec
from core.errors import ClqError, InputError
from core.pipeline.sweep import parse
from core.pipeline.sweep.problems import Problem
from core.store import Store
from core.work.incumbent import mark
from core.work.sweep.kind import EVALUATION
from tests.stores import Lab
from tests.views.made import BOOK

SPEC = """
name = "near"
{top}
collection.stored = "lab"
golden_set.stored = "gold"
[axes]
method = "search"
mode = ["sparse", "dense", "hybrid"]
embedder = ["fake", "wordllama"]
dim = [64]
index = ["flat", "int8"]
candidates = [2]
[search]
{search}
"""
RUNS = {
    "mode": "dense", "embedder": "fake", "dim": 64, "index": "flat", "reranker": "none", "candidates": 2,
}  # fmt: skip
PASSAGES = {"p1": "lift of a wing", "p2": "heat of a plate", "p3": "noise"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    lab = Lab().ask({"q1": "wing lift", "q2": "heat"}).judge({"q1": {"p1": 5}, "q2": {"p2": 4}})
    lab.hold(PASSAGES).run("now", final={"q1": ["p1"], "q2": ["p2"]}, spec=RUNS)
    return lab.write(tmp_path / "store")


def read(store: Store, search: str, top: str = "") -> tuple[list[AxisSpec], list[Problem]]:
    text = SPEC.format(search=search, top=top)
    job, problems = EVALUATION.read(store.read(), parse(text), {"list": BOOK}, to_run=False)
    return [stack.spec for stack in job.stacks], problems


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ("", {"sparse", "fake flat", "fake int8", "wordllama flat", "wordllama int8", "hybrid"}),
        ('limits.max_step = "embed"', {"sparse", "fake flat", "fake int8", "wordllama flat",
                                       "wordllama int8", "hybrid"}),
        ('limits.max_step = "rebuild"', {"sparse", "fake flat", "fake int8", "hybrid"}),
        ('limits.max_step = "none"', {"fake flat"}),
    ],
)  # fmt: skip
def test_stacks_beyond_the_step_are_not_begun(store: Store, limit: str, kept: set[str]):
    mark(store, "lab", "now")
    if kept == {"fake flat"}:  # the running stack alone
        with pytest.raises(InputError, match="No stack of the search is within them"):
            read(store, limit)
        return
    specs, problems = read(store, limit)
    assert {_kind(spec) for spec in specs} == kept
    beyond = 9 - len(specs)
    said = [problem.found for problem in problems if problem.where == "search.limits"]
    assert said == ([f"{beyond} of 9 stacks are beyond them and not begun."] if beyond else [])


def _kind(spec: AxisSpec) -> str:
    return f"{spec['embedder']} {spec['index']}" if spec["mode"] == "dense" else str(spec["mode"])


def test_dollars_count_as_far_as_they_are_known(store: Store):
    """A million passages to embed again cost more than to index again; both cost more than nothing."""
    mark(store, "lab", "now")
    every, _ = read(store, "")
    move = "move = { passages = 1_000_000_000, weeks_both = 0 }"
    dear, _ = read(store, f"limits.max_switching_usd = 1e9\n{move}")
    near, problems = read(store, f"limits.max_switching_usd = 5\n{move}")
    assert len(dear) == len(every)
    assert {_kind(spec) for spec in near} < {_kind(spec) for spec in every}
    assert not any(spec.get("embedder") == "wordllama" for spec in near)
    assert any("not begun" in problem.found for problem in problems)


def test_the_running_stack_is_named_or_marked(store: Store):
    limit = 'limits.max_step = "rebuild"'
    with pytest.raises(InputError, match="No stack is known to run today") as error:
        read(store, limit)
    assert 'incumbent = "NAME"' in str(error.value)
    specs, _ = read(store, limit, 'incumbent = "now"')
    assert not any(spec.get("embedder") == "wordllama" for spec in specs)
    with pytest.raises(InputError, match="No stacks called 'nobody' are known"):
        read(store, limit, 'incumbent = "nobody"')


def test_without_such_limits_no_running_stack_is_needed(store: Store):
    assert len(read(store, "limits.budget = 2.5")[0]) == len(read(store, "")[0])


@pytest.mark.parametrize(
    "wrong",
    [
        "limits.max_step = 'far'",
        "limits.max_switching_usd = -1",
        "limits.max_step = 'none'\nmove = { pace = 3 }",
    ],
)
def test_what_makes_no_sense_is_refused(store: Store, wrong: str):
    mark(store, "lab", "now")
    with pytest.raises(ClqError):
        read(store, wrong)
