"""A model grades what decides between two stacks: question by question, until it is decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.analysis.between import between
from core.analysis.deciding import Contest
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.cli.app import app
from core.errors import BudgetError, ClqError
from core.pipeline.evaluate import State
from core.store import Store
from tests.stores import Lab
from tests.vendors import Vendors
from tests.views.made import BOOK
from tests.work.golden import built

N, K = 60, 5
GOOD = [f"g{at}" for at in range(40)]
BAD = [f"b{at}" for at in range(40)]
SPEC = """
name = "which"
collection.stored = "lab"
prices = "fake"
{top}
[golden]
between = {{ now = "now", to = "to", k = 5{more} }}
[golden.judge]
models = ["judge"]
"""


def store_of(folder: Path, *, better: bool = True) -> Store:
    """Two stacks of which the candidate finds what answers, or none does."""
    lab = Lab().ask({f"q{at:02}": f"sort a frame number {at}" for at in range(N)})
    lab.hold({name: f"sort a frame by {name}" for name in GOOD} | {name: f"none {name}" for name in BAD})
    for name, own in (("now", BAD), ("to", GOOD if better else BAD[20:])):
        final = {f"q{at:02}": [own[(at + rank) % 20] for rank in range(K)] for at in range(N)}
        lab.run(name, final=final, spec={"mode": "dense", "embedder": name})
    return lab.write(folder / "store")


def asked(vendors: Vendors) -> int:
    return vendors.state.calls["openai/chat"]


def job(store: Store, url: str, *, top: str = "", more: str = "") -> Any:
    return built.job(store, url, SPEC.format(top=top, more=more))


def test_it_stops_once_it_is_decided_and_the_set_says_the_same(tmp_path: Path, vendors: Vendors):
    store = store_of(tmp_path)
    result = built.build(store, job(store, vendors.url), vendors.url)
    (made,) = store.read().golden_sets().filter(golden_set_id=result.stored).to_dicts()
    view = resolve(Question(together=True), store.read(), BOOK)
    found = between(view, Contest(now="now", to="to", k=K), result.stored).standing
    assert found is not None
    assert (result.status.state, found.answer, found.at) == (State.FINISHED, "switch", found.done)
    assert 0 < found.done < N // 2
    assert asked(vendors) == found.graded == 2 * K * found.done
    assert json.loads(made["manifest"])["between"] == found.to_dict()


def test_no_difference_takes_all_questions_at_most(tmp_path: Path, vendors: Vendors):
    store = store_of(tmp_path, better=False)
    result = built.build(store, job(store, vendors.url, more=", alike = 0.3"), vendors.url)
    view = resolve(Question(together=True), store.read(), BOOK)
    contest = Contest(now="now", to="to", k=K, delta=0.3)
    found = between(view, contest, result.stored).standing
    assert found is not None
    assert (found.answer, found.value) == ("no difference", 0.0)


@pytest.mark.slow
def test_it_ends_at_the_budget_and_goes_on_without_paying_twice(tmp_path: Path, vendors: Vendors):
    whole, store = store_of(tmp_path / "whole"), store_of(tmp_path / "part")
    fresh = built.build(whole, job(whole, vendors.url), vendors.url)
    needed, spent = asked(vendors), fresh.status.usd
    vendors.state.reset()
    with pytest.raises(BudgetError):
        built.build(store, job(store, vendors.url, top=f"budget_usd = {spent / 2}"), vendors.url)
    assert 0 < asked(vendors) < needed
    result = built.build(store, job(store, vendors.url, top=f"budget_usd = {spent * 2}"), vendors.url)
    assert (asked(vendors), result.status.usd) == (needed, pytest.approx(spent))
    assert built.grades(store, result.stored) == built.grades(whole, fresh.stored)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (SPEC.replace('["judge"]', '["judge", "second"]'), "Name the one model"),
        (SPEC.replace('to = "to"', 'to = "nobody"'), "nobody"),
        (SPEC.replace('to = "to"', 'to = "now"'), "cannot be judged|no question in common"),
        (f"{SPEC}\n[golden.nuggets]\nmodel = 'judge'\n", "nothing but their own passages"),
    ],
)
def test_what_cannot_be_decided_is_refused(tmp_path: Path, vendors: Vendors, spec: str, words: str):
    store = store_of(tmp_path)
    with pytest.raises(ClqError, match=words):
        built.job(store, vendors.url, spec.format(top="", more=""))
    assert asked(vendors) == 0


def test_the_command_grades_with_the_judge_and_says_what_it_decides(tmp_path: Path):
    store = store_of(tmp_path)
    words = ("golden", "between", "now", "to", "--together", "--judge", "fake", "--yes")
    said = CliRunner().invoke(app, ["--store", str(store.path), *words, "--measure", "Precision4+@5"])
    assert said.exit_code == 0, said.output
    assert "is in the store" in said.output
    again = CliRunner().invoke(
        app, ["--store", str(store.path), *words, "--measure", "Precision4+@5", "--format", "json"]
    )
    assert again.exit_code == 0, again.output
    assert store.read().golden_sets()["judge"].to_list() == ["fake"]
