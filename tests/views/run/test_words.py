from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from core.pipeline.evaluate import State, Status
from core.pipeline.sweep import load
from core.views.run import drafts, evaluations, plan
from core.views.workspace.scope import Scope

BEGAN = datetime(2026, 11, 22, tzinfo=UTC)


def status(state: State = State.RUNNING, **given: Any) -> Status:
    return Status(
        evaluation_id="e1", name="paris", state=state, done=12, total=40, runs_done=3, runs_total=10,
        started_at=BEGAN, updated_at=BEGAN, **given,
    )  # fmt: skip


def test_what_goes_on_is_one_sentence():
    assert evaluations.headline([]) == "No evaluation was run here yet."
    assert evaluations.headline([status()]) == "1 evaluation; “paris” runs (12 of 40 steps)."
    assert evaluations.headline([status(State.FINISHED)] * 2) == "2 evaluations; none runs now."


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stage": "embed"}, "embed · 3 of 10 stacks in the store"),
        (
            {"stage": "build: e5 384 d", "counted": 1196, "whole": 1400, "unit": "passages"},
            "build: e5 384 d · 1,196 of 1,400 passages · 3 of 10 stacks in the store",
        ),
        ({"eta_s": 130.0}, "3 of 10 stacks in the store · about 2.2 min left"),
        ({"usd": 0.5, "usd_limit": 2.0}, "3 of 10 stacks in the store · $0.50 spent of $2.00"),
        ({"usd_limit": 2.0}, "3 of 10 stacks in the store · $0.00 spent of $2.00"),
    ],
)
def test_progress(given: dict[str, Any], words: str):
    assert evaluations.progress(status(**given)) == words


def test_what_was_stopped_says_why_and_can_go_on():
    stopped = status(State.BUDGET, message="The budget is spent.", usd_lost=0.02)
    assert evaluations.ended(stopped) == (
        "stopped by budget (3 of 10 stacks in the store). The budget is spent. Lost answers may have cost up "
        "to $0.020 more."
    )
    again = evaluations.ended(status(State.FINISHED, calls_again=3))
    assert again.endswith(" 3 calls whose answers were lost were sent again and may have been paid twice.")
    assert evaluations.resumable(stopped)
    assert not evaluations.resumable(status())
    assert not evaluations.resumable(status(State.FINISHED))
    assert {state for state in State if evaluations.resumable(status(state))} == set(State) - {
        State.RUNNING,
        State.FINISHED,
    }


def test_drafts_are_specifications():
    made = drafts.drafts(Scope("python-docs", 'a "quoted" set'))
    assert list(made) == [drafts.WORKSPACE, "clq-paper", "quick-local"]
    spec = load(made[drafts.WORKSPACE])
    assert (spec.collection.stored, spec.golden_set.stored) == ("python-docs", 'a "quoted" set')
    for name in ("clq-paper", "quick-local"):
        assert load(made[name]).collection.path.name == "corpus"
    assert list(drafts.drafts(None)) == ["clq-paper", "quick-local"]


def planned(**given: Any) -> Any:
    usual = {"lines": (1,), "exact": True, "usd": 1.5, "usd_known": 1.5, "limit": None, "over_budget": False}
    return SimpleNamespace(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lines": ()}, "Nothing is paid for: everything runs on this machine."),
        ({}, "Dollars: $1.5000 (exact), no budget"),
        ({"usd": None}, "Dollars: unknown, at least $1.5000 (exact), no budget"),
        ({"exact": False, "limit": 2.0},
         "Dollars: $1.5000 (estimated) of a budget of $2.00: enough as far as is known"),
        ({"limit": 1.0, "over_budget": True},
         "Dollars: $1.5000 (exact) of a budget of $1.00: it stops before its end"),
    ],
)  # fmt: skip
def test_dollars(given: dict[str, Any], words: str):
    assert plan.dollars(planned(**given)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (5.25, "5.2 s"), (40, "40 s"), (600, "10 min"), (7200, "2.0 h"), (200_000, "2.3 d")],
)
def test_durations(seconds: float, words: str):
    assert plan.duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (2048, "2 KiB"), (5 << 20, "5 MiB"), (3 << 30, "3.0 GiB")]
)
def test_sizes(count: int, words: str):
    assert plan.size(count) == words
