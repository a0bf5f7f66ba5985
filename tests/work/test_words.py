from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from core.analysis.workspace.scope import Scope
from core.pipeline.evaluate import State, Status
from core.pipeline.sweep import load
from core.pipeline.sweep.problems import Problem
from core.prices import PRICE_IT
from core.views.text import duration
from core.work import paid
from core.work.questions import words as questions
from core.work.sweep import form
from core.work.sweep import words as plan

BEGAN = datetime(2026, 11, 22, tzinfo=UTC)


def status(state: State = State.RUNNING, **given: Any) -> Status:
    return Status(
        evaluation_id="e1", name="paris", state=state, done=12, total=40, runs_done=3, runs_total=10,
        started_at=BEGAN, updated_at=BEGAN, **given,
    )  # fmt: skip


def test_what_goes_on_is_one_sentence():
    assert plan.headline([]) == "Choose what to compare; you see time and cost before anything starts."
    assert plan.headline([status()]) == "“paris” is running."
    assert plan.headline([status(State.FINISHED)] * 2) == "2 evaluations run here."
    ended = [status(State.FAILED), status(State.FINISHED)]
    assert plan.headline(ended) == "2 evaluations run here; the latest did not finish."
    assert plan.headline(ended[::-1]) == "2 evaluations run here."


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
    assert plan.progress(status(**given)) == words


def test_what_was_stopped_says_why_and_can_go_on():
    stopped = status(State.BUDGET, message="The budget is spent.", usd_lost=0.02)
    assert plan.ended(stopped) == (
        "stopped by budget: 3 of 10 stacks in the store. Lost answers may have cost up to $0.02 more. "
        "The budget is spent."
    )
    again = plan.ended(status(State.FINISHED, calls_again=3))
    assert again.endswith(" 3 calls whose answers were lost were sent again and may have been paid twice.")
    assert paid.resumable(stopped)
    assert not paid.resumable(status())
    assert not paid.resumable(status(State.FINISHED))
    assert {state for state in State if paid.resumable(status(state))} == set(State) - {
        State.RUNNING,
        State.FINISHED,
    }


def test_questions_made_are_shown_by_examples():
    facts = {"questions": 2, "examples": ["x" * 70, "brake pads"]}
    assert questions.ended(status(State.FINISHED, facts=facts)) == (
        f"finished: 2 questions. Such as: “{'x' * 59}…”; “brake pads”."
    )


def test_forms_are_specifications():
    forms = form.starts(
        Scope("python-docs", 'a "quoted" set'), ["python-docs"], {'a "quoted" set': "python-docs"}
    )
    assert list(forms) == [form.WORKSPACE, "quick-local", "clq-paper"]
    text = form.specification(forms[form.WORKSPACE], ["python-docs"], ['a "quoted" set'])
    spec = load(text)
    assert (spec.collection.stored, spec.golden_set.stored) == ("python-docs", 'a "quoted" set')
    assert (spec.axes[0].candidates, spec.axes[0].dim) == ((20, 50), (128, 256))
    forms = form.starts(Scope("c", "g"), ["c"], {"g": "c"})
    noisy = {"noise": ("2", "4"), "typo": ("1",), "names": ("mask",), "rewrite": ("none", "rules")}
    asked = replace(forms[form.WORKSPACE], axes=forms[form.WORKSPACE].axes | noisy)
    (axes,) = load(form.specification(asked, ["c"], ["g"])).axes
    assert (axes.noise, axes.typo, axes.names) == ((0, 2, 4), (0, 1), ("0", "mask")), "beside the clean ones"
    assert (axes.case, axes.rewrite) == ((0,), ("none", "rules"))
    assert list(form.starts(None, [], {})) == ["quick-local", "clq-paper"]


@pytest.mark.parametrize("name", ["clq-paper", "quick-local"])
def test_a_form_that_was_left_as_it_is_says_what_its_preset_says(name: str):
    begun = replace(form.starts(None, [], {})[name], documents="corpus")
    assert load(form.specification(begun, [], [])) == load(f'preset = "{name}"\ncollection = "corpus"\n')
    fewer = replace(begun, axes={**begun.axes, "candidates": ("20",)}, budget=1.5, limit=7)
    spec = load(form.specification(fewer, [], []))
    assert (spec.axes[0].candidates, spec.budget.usd, spec.queries.limit) == ((20,), 1.5, 7)
    assert spec.axes[0].index == load(form.specification(begun, [], [])).axes[0].index, "with its parameters"


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("text:9, axes.mode[2]", "mode"),
        ("text, collection", "collection"),
        ("dim of all 5 stacks", "dim"),
        ("budget.usd", "budget"),
        ("wordllama", "embedder"),
        ("axes.method", "trials"),
        ("text:9, search.trials", "trials"),
        ("models.mine.provider", None),
    ],
)
def test_a_mistake_stands_beside_its_field(where: str, key: str | None):
    problem = Problem(where, "It is wrong.")
    begun = form.starts(Scope("c", "g"), ["c"], {"g": "c"})[form.WORKSPACE]
    assert form.by_field([problem], begun) == (({key: [problem]}, []) if key else ({}, [problem]))


def planned(**given: Any) -> Any:
    line = SimpleNamespace(stage="rerank", model="a")
    usual = {
        "lines": (line,),
        "exact": True,
        "usd": 1.5,
        "usd_known": 1.5,
        "limit": None,
        "over_budget": False,
    }
    usual |= {"begun": None, "unpriced": ()}
    return SimpleNamespace(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lines": ()}, "No vendor is paid: everything runs on this machine."),
        ({}, "Dollars: $1.5000 (exact), no budget"),
        ({"usd": None}, "Dollars: unknown, at least $1.5000 (exact), no budget"),
        ({"usd": None, "unpriced": ("a", "b")},
         f"Dollars: unknown, at least $1.5000 (exact), no budget. No price in $: a, b. {PRICE_IT}"),
        ({"usd": None, "usd_known": 0.0, "unpriced": ("shop", "b"),
          "lines": (SimpleNamespace(stage="pipeline", model="shop"),)},
         "Dollars: unknown, no budget. shop costs what it reports as usage; if it reports none, give $ per"
         f" query or hour. No price in $: b. {PRICE_IT}"),
        ({"exact": False, "limit": 2.0},
         "Dollars: $1.5000 (estimated) of a budget of $2.00: enough as far as is known"),
        ({"limit": 1.0, "over_budget": True},
         "Dollars: $1.5000 (exact) of a budget of $1.00: it stops before its end"),
    ],
)  # fmt: skip
def test_dollars(given: dict[str, Any], words: str):
    assert plan.dollars(planned(**given)) == words
    assert "this machine" not in plan.dollars(planned(**given), here=False)


@pytest.mark.parametrize(
    ("given", "price"),
    [
        ({"lines": ()}, "$0"),
        ({}, "$1.50"),
        ({"usd": None}, "≥ $1.50"),
        ({"usd": None, "usd_known": 0.0}, "cost unknown"),
    ],
)
def test_the_button_says_how_many_what_for_and_how_long(given: dict[str, Any], price: str):
    made = planned(**given, stacks=[0] * 27, resources=SimpleNamespace(total_s=13.2))
    assert plan.button(made) == f"Run 27 stacks · {price} · about 13 s"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (5.25, "5.2 s"), (40, "40 s"), (600, "10 min"), (7200, "2.0 h"), (200_000, "2.3 d")],
)
def test_durations(seconds: float, words: str):
    assert duration(seconds) == words


def test_stacks_to_begin_make_it_a_search():
    begun = replace(form.starts(None, [], {})["quick-local"], documents="corpus", trials=12)
    spec = load(form.specification(begun, [], []))
    assert spec.searched
    assert spec.search.trials == 12
    assert not load(form.specification(replace(begun, trials=None), [], [])).searched
