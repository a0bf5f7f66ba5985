"""Stay or switch on a store: the worked example of docs/switch.md to the cent, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.agents.answers import Answers
from core.analysis.moves.switching import moves, switch
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.decide.rules import Constraints
from core.decide.switching import Terms
from core.errors import InputError, UnknownNameError
from core.views.ask import Given
from core.views.blocks import Cards, Chart, Text
from core.views.what_if.moving import FRONTIER, deadlines, questions, steps
from core.views.words.near import broken, near_rows, promising_rows, way_in
from tests.analysis.two_models import (
    EVERY,
    EXAMPLE,
    HALF,
    LARGE,
    QUERIES,
    SMALL,
    judged,
    two_models,
)
from tests.stores import Lab
from tests.views.made import BOOK


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """A small model that finds half of the answers, a large one that finds all, and a table's figures."""
    made = two_models()
    figures = [{"measure": "RA-nWG", "k": 10, "stage": None, "value": 0.1, "n": 40}]
    made.run("told", figures=figures)
    snapshot = made.write(tmp_path_factory.mktemp("s") / "s").read()
    return resolve(Question(together=True, incumbent="small", move=EXAMPLE.said()), snapshot, BOOK)


def row(view: View, **asked: Any) -> dict[str, Any]:
    return switch(view.replace(**asked)).to_dict()


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the small model is marked as the one that runs today."""
    made = judged().run("small", final=HALF, spec=SMALL).run("large", final=EVERY, spec=LARGE)
    path = tmp_path_factory.mktemp("marked") / "s"
    made.write(path)
    call(path, "incumbent", "small")
    return path


def call(store: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--store", str(store), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_surface_says_the_same_of_a_move(store: Path, tmp_path: Path):
    told = json.loads(call(store, "switch", "--format", "json", "--queries-per-month", "1000"))
    asked = ["--move", "queries_per_month=1000"]
    results, move = open_store(store), ["queries_per_month=1000"]
    space = results.workspace("lab")
    decision = space.decide(move=move)
    record = decision.record(tmp_path / "r.json", tmp_path / "r.md")
    says = {
        "python": space.switch(queries_per_month=1000),
        "decide": json.loads(call(store, "decide", "--format", "json", *asked))["stay_or_switch"],
        "record": json.loads(record[0].read_text())["stay_or_switch"],
        "by name": space.switch("small", queries_per_month=1000),
    }
    answer = {name: value for name, value in told.items() if name != "replayed"}  # of those who ask alone
    alone = ("python", "by name")
    assert says == {name: told if name in alone else answer for name in says}
    agents = Answers(results, tmp_path).stay_or_switch("lab", {}, {"queries_per_month": 1000})
    assert {name: agents[name] for name in told} == {
        name: pytest.approx(value, abs=1e-3) if isinstance(value, float) else value
        for name, value in told.items()
    }
    line = told["in_words"]
    assert line in record[1].read_text().replace("\\", "")
    shown = decision.page("decision").blocks
    assert [block.label for block in shown if isinstance(block, Text) and block.words == line]
    page = call(store, "page", "what_if", "--section", "stay or switch", *asked)
    assert line.startswith(page.split("\n")[0])
    assert page == call(store, "page", "what_if", "--section", "stay or switch", "--set", "qpm=1000")
    assert "now=small" in decision.link()
    assert "qpm=1000" in decision.link()


def test_nothing_is_said_of_a_move_where_no_stack_runs(store: Path):
    space = open_store(store).workspace("lab")
    unmarked = space.decide(incumbent="none")
    assert unmarked.data["stay_or_switch"] is None
    assert "runs today" not in json.dumps(unmarked.page("decision").data)
    page = call(store, "page", "what_if", "--section", "steps", "--incumbent", "none")
    assert page.startswith("No stack is marked as running today.")


def test_what_nobody_said_is_not_known(view: View):
    found = row(view, terms=Terms(passages=10))
    assert found["one_time_usd"] is None
    assert found["monthly_usd"] is None
    assert {each["what"]: each["usd"] for each in found["one_time"]}["embed again"] is None


def test_each_other_stack_has_its_step(view: View):
    found = moves(view)
    assert found["step"].to_list() == ["embed", None]
    assert found["difference"].to_list() == [pytest.approx(0.5), None]


def test_a_line_is_named_only_where_two_stacks_make_one(view: View):
    def caption(terms: Terms) -> str:
        blocks = steps.draw(view.replace(terms=terms), Given())
        return next(block.caption for block in blocks if isinstance(block, Chart))

    assert caption(Terms(passages=10)) == "", "what embedding again costs is not known"
    assert caption(Terms(passages=10, tokens_per_passage=100, queries_per_month=10)) == FRONTIER


def test_of_averages_the_steps_are_known_and_their_gains_are_not(tmp_path: Path):
    made = Lab()
    for name, spec, value in (("small", SMALL, 0.4), ("large", LARGE, 0.6)):
        made.run(name, spec=spec, figures=[{"measure": "RA-nWG", "k": 10, "value": value, "n": 40}])
    averages = resolve(Question(incumbent="small"), made.write(tmp_path / "s").read(), BOOK)
    answer, *_ = tuple(steps.draw(averages, Given()))
    assert answer.sentence == "What each step gains is not known: quality is known on average alone."
    assert switch(averages).to_dict()["answer"] == "unknown"


def test_a_stack_that_is_none_is_refused(view: View):
    with pytest.raises(UnknownNameError):
        resolve(Question(together=True, incumbent="nope"), view.snapshot, BOOK)
    with pytest.raises(InputError, match="No stack is marked as running today"):
        row(view, incumbent=None)


def test_a_stack_alone_has_nothing_to_switch_to(tmp_path: Path):
    made = Lab().judge({"q1": {"good": 5}}).run("alone", final={"q1": ["good"]}, spec=SMALL)
    alone = resolve(Question(incumbent="alone"), made.write(tmp_path / "s").read(), BOOK)
    with pytest.raises(InputError, match="only stack"):
        switch(alone)


@pytest.mark.slow
def test_a_decision_to_stay_holds_until_the_rule_says_switch_or_the_stack_is_gone(tmp_path: Path):
    made = judged().run("small", final=HALF, spec=SMALL)
    bad = {query: ["bad"] for query in QUERIES}
    made.run("bm25", final=bad, spec={"mode": "sparse", "sparse": "bm25"})
    path = tmp_path / "s"
    made.write(path)
    call(path, "incumbent", "small")
    call(path, "record", str(tmp_path / "r.json"))
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["stay_or_switch"]["answer"] == "stay"
    assert [end["model"] for end in record["stay_or_switch"]["retires"]] == ["voyage-3.5-lite"]
    space = open_store(path).workspace("lab")
    held = space.gate(tmp_path / "r.json")
    assert held.holds
    assert held.held.sentence.startswith("Holds: Stay with ")

    old = {**record, "stay_or_switch": {**record["stay_or_switch"], "retires": []}}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert space.gate(tmp_path / "old.json").findings["check"].to_list() == ["retires"]

    made.run("large", final=EVERY, spec=LARGE).write(path)
    later = space.gate(tmp_path / "r.json")
    assert later.findings["check"].to_list() == ["switch"]
    failed = CliRunner().invoke(app, ["--store", str(path), "gate", str(tmp_path / "r.json")])
    assert failed.exit_code == 4, failed.output
    call(path, "delete", "small")
    assert space.gate(tmp_path / "r.json").findings["check"].to_list() == ["gone"]


def test_what_ends_is_listed_and_said(view: View):
    row_of = {each["name"]: each for each in moves(view).to_dicts()}
    assert {each["retires"] for each in row_of.values()} == {"2027-12-01", None}
    said = tuple(deadlines.draw(view, Given()))
    assert said[0].sentence == "voyage-3.5-lite ends on 1 December 2027."
    nothing = tuple(deadlines.draw(view.replace(incumbent=None), Given()))
    assert nothing[0].sentence == "No stack is marked as running today."
    listed = json.loads(CliRunner().invoke(app, ["models", "--ending", "--format", "json"]).stdout)
    assert {each["model"] for each in listed} >= {"voyage-3.5", "gpt-5"}


def test_the_questions_that_a_move_changes_are_counted(store: Path, view: View):
    said = open_store(store).workspace("lab").page("what_if", "queries that change")
    assert said.sentence.startswith("0.0 % of queries get worse by ")
    assert said.sentence.endswith("50.0 % better.")
    cards = next(block.cards for block in said.blocks if isinstance(block, Cards))
    assert [number for _, number, _ in cards] == ["0", "20", "50.0 %"]
    nothing = tuple(questions.draw(view.replace(incumbent=None), Given()))
    assert nothing[0].sentence == "No stack is marked as running today."


@pytest.mark.parametrize(
    ("limits", "chosen", "near", "out"),
    [
        ({"max_step": "rebuild"}, "small", ("needs embedding again", "step limit embed"), "unknown step"),
        ({"max_step": "embed"}, "large", None, "unknown step"),
        (
            {"max_switching_usd": 1000.0},
            "small",
            ("$2,095.00 over the switching limit (209.5 % beyond)", "switching limit $3,100 once"),
            "unknown switching cost",
        ),
        ({"max_switching_usd": 4000.0}, "large", None, "unknown switching cost"),
    ],
)
def test_a_move_has_two_limits_under_which_what_is_not_known_is_out_by_name(
    view: View, limits: dict[str, Any], chosen: str, near: tuple[str, str] | None, out: str
):
    asked = view.replace(constraints=Constraints(**limits))
    decided = asked.decision
    assert asked.table["run_id"][decided.chosen or 0] == chosen
    missed = near_rows(asked.table, decided, asked.constraints)
    assert [(broken(row), way_in(row)) for row in missed] == ([] if near is None else [near])
    assert decided.excluded().filter(run_id="told")["constraint"].to_list() == [out]
    assert promising_rows(asked.table, decided)["run_id"].to_list() == ["told"]


def test_the_limits_of_a_move_have_one_name_everywhere(store: Path, tmp_path: Path):
    options = ["--max-step", "rebuild", "--max-switching-usd", "90", "--move", "queries_per_month=1000"]
    told = json.loads(call(store, "decide", "--format", "json", *options))
    limits = {"max_step": "rebuild", "max_switching_usd": 90.0}
    assert {name: told["asked"][name] for name in limits} == limits
    assert (told["chosen"]["switching"], told["chosen"]["switching_usd"]) == ("none", 0.0)
    space = open_store(store).workspace("lab")
    decision = space.decide(move=["queries_per_month=1000"], **limits)
    assert decision.chosen is not None
    assert decision.chosen.name == told["chosen"]["stack"]
    assert decision.chosen.run_id == "small"
    assert {row["run_id"]: row["switching"] for row in decision.table.to_dicts()} == {
        "small": "none",
        "large": "embed",
    }
    assert decision.confidence is not None
    assert decision.confidence.p_feasible == 1
    assert "max_step=rebuild&max_switching_usd=90" in "&".join(sorted(decision.link().split("&")))
    record, _ = decision.record(tmp_path / "r.json", tmp_path / "r.md")
    assert json.loads(record.read_text())["question"] | limits == json.loads(record.read_text())["question"]
    assert space.gate(record).holds
    agents = Answers(open_store(store), tmp_path).decide("lab", {**limits})
    assert told["chosen"]["stack"] in json.dumps(agents["ship"], ensure_ascii=False)
    wide = call(store, "decide", "--wide", *options)
    assert "$ to switch" in wide
    scenario = "Stay: quality, max_step none, max_switching_usd 5"
    page = call(store, "page", "what_if", "--section", "scenarios", "--set", f"scen={scenario}")
    assert "step at most a setting" in page


@pytest.mark.parametrize("option", ["--max-step=rebuild", "--max-switching-usd=5"])
def test_a_limit_of_a_move_without_a_running_stack_says_how_to_mark_one(store: Path, option: str):
    done = CliRunner().invoke(app, ["--store", str(store), "decide", "--incumbent", "none", option])
    assert done.exit_code == 7
    assert "Mark the stack that runs today (`incumbent NAME`)" in " ".join(done.output.split())
