"""Stay or switch on a store: the worked example of docs/switch.md to the cent, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.analysis.switching import Corpus, moves, switch
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.decide.switching import Terms
from core.errors import InputError, UnknownNameError
from tests.stores import Lab
from tests.views.made import BOOK

QUERIES = [f"q{number:02}" for number in range(40)]
DENSE = {"mode": "dense", "dim": 1024, "index": "flat", "candidates": 10, "reranker": "none"}
SMALL, LARGE = ({**DENSE, "embedder": name} for name in ("voyage-3.5-lite", "voyage-3.5"))
EXAMPLE = Terms(
    queries_per_month=1_000_000, weeks_both=4, engineering_days=5, usd_per_day=600, evaluation_usd=40
)
CORPUS = Corpus(passages=2_000_000, tokens_per_passage=250)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """A small model that finds half of the answers, a large one that finds all, and a table's figures."""
    made = Lab().judge({query: {"good": 5, "bad": 1} for query in QUERIES})
    hits = {query: ["good"] if number % 2 else ["bad"] for number, query in enumerate(QUERIES)}
    usage = [("embed", "voyage-3.5-lite", "input_tokens", 20.0)]
    made.run("small", final=hits, spec=SMALL, usage=usage)
    usage = [("embed", "voyage-3.5", "input_tokens", 20.0)]
    made.run("large", final={key: ["good"] for key in QUERIES}, spec=LARGE, usage=usage)
    figures = [{"measure": "RA-nWG", "k": 10, "stage": None, "value": 0.1, "n": 40}]
    made.run("told", figures=figures)
    return resolve(Question(together=True), made.write(tmp_path_factory.mktemp("s") / "s").read(), BOOK)


def row(view: View, **asked: Any) -> dict[str, Any]:
    small = view.table.filter(embedder="voyage-3.5-lite")["name"][0]
    return switch(view, **{"incumbent": small, "terms": EXAMPLE, "corpus": CORPUS} | asked).to_dict()


def test_the_worked_example(view: View):
    found = row(view)
    assert (found["answer"], found["step"], found["needs"]) == ("switch", "embed", {"embedder": "embed"})
    once = {each["what"]: each["usd"] for each in found["one_time"]}
    assert once["embed again"] == pytest.approx(2_000_000 * 250 / 1e6 * 0.06)  # $30.00
    assert once["both run"] == pytest.approx(20 * 0.06 * 4 / (365.25 / 12 / 7))  # $1.10: 1.2 dollars a month
    assert (once["engineering"], once["evaluation"]) == (3000, 40)
    assert found["one_time_usd"] == pytest.approx(sum(once.values()))
    assert found["monthly_usd"] == pytest.approx(20 * (0.06 - 0.02))  # $0.80 more
    assert (found["pays_back"], found["payback_months"]) == (False, None)
    assert found["difference"] == pytest.approx(0.5)


def test_command_page_and_python_say_the_same(tmp_path: Path):
    made = Lab().judge({query: {"good": 5, "bad": 1} for query in QUERIES})
    made.run(
        "small",
        final={key: ["good" if place % 2 else "bad"] for place, key in enumerate(QUERIES)},
        spec=SMALL,
    )
    made.run("large", final={key: ["good"] for key in QUERIES}, spec=LARGE)
    store = tmp_path / "s"
    made.write(store)
    ask = ["--store", str(store), "switch", "--incumbent", "small", "--format", "json"]
    printed = CliRunner().invoke(app, ask)
    assert printed.exit_code == 0, printed.output
    told = json.loads(printed.stdout)
    assert told == open_store(store).workspace("lab").switch("small")
    shown = ["page", "what_if", "--section", "stay or switch", "--set", f"now={told['incumbent']}"]
    page = CliRunner().invoke(app, ["--store", str(store), *shown])
    assert page.stdout.startswith(f"{told['answer'].capitalize()} to {told['to']}: {told['why']}."), (
        page.output
    )


def test_what_nobody_said_is_not_known(view: View):
    found = row(view, corpus=Corpus(passages=10), terms=Terms())
    assert found["one_time_usd"] is None
    assert found["monthly_usd"] is None
    assert {each["what"]: each["usd"] for each in found["one_time"]}["embed again"] is None


def test_each_other_stack_has_its_step(view: View):
    small = view.table.filter(embedder="voyage-3.5-lite")["name"][0]
    found = moves(view, small, EXAMPLE, CORPUS)
    assert found["step"].to_list() == ["embed", None]
    assert found["difference"].to_list() == [pytest.approx(0.5), None]


def test_a_stack_that_is_none_is_refused(view: View):
    with pytest.raises(UnknownNameError):
        row(view, incumbent="nope")


def test_a_stack_alone_has_nothing_to_switch_to(tmp_path: Path):
    made = Lab().judge({"q1": {"good": 5}}).run("alone", final={"q1": ["good"]}, spec=SMALL)
    alone = resolve(Question(), made.write(tmp_path / "s").read(), BOOK)
    with pytest.raises(InputError, match="only stack"):
        switch(alone, alone.table["name"][0], EXAMPLE, CORPUS)
