"""Arguments in Python: dicts of runs, what is refused with which words, types that checkers see."""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import core as clq
from core.agents.answers import Answers
from core.analysis.workspace.question import Question
from core.api import options, typed
from core.decide.axes import FORMER
from core.decide.switching import Terms
from core.errors import InputError, UnknownNameError
from core.importers import Options
from core.work.sweep.own import OwnForm

QUERIES = [f"q{at}" for at in range(12)]
GOLD = {query: {"a": 2, "b": 1} for query in QUERIES}
GOOD = {query: {"a": 0.9, "b": 0.5, "c": 0.1} for query in QUERIES}
POOR = {query: {"c": 0.9, "a": 0.5 if at % 3 else 0.05, "b": 0.1} for at, query in enumerate(QUERIES)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> clq.Results:
    made = clq.open(tmp_path_factory.mktemp("dicts") / "store")
    made.add(GOOD, GOLD, name="good", collection="dicts")
    made.add(POOR, name="poor", collection="dicts")
    return made


def test_dicts_are_added_as_runs_and_judgements(results: clq.Results):
    space = results.workspace()
    assert sorted(space.runs["stack"]) == ["good", "poor"]
    scores = space.score("nDCG@10, recip_rank_3, P_1")
    assert sorted(set(scores["measure"])) == ["P@1", "RR@3", "nDCG@10"]
    means = {(row["stack"], row["measure"]): row["value"] for row in scores.to_dicts()}
    assert means["good", "nDCG@10"] == 1.0 > means["poor", "nDCG@10"]
    assert space.runs.join(scores, on=["run_id", "stack"]).height == scores.height
    assert scores["run"].to_list() == scores["run_id"].to_list()


@pytest.mark.parametrize(
    ("thing", "formats"),
    [
        ({"q": {"d": 1.0}}, "ranx-run"), ({"q": {"d": 1}}, "ranx-qrels"),
        ({"q": {"d": np.int64(1)}}, "ranx-qrels"), ({"q": {"a": 2, "b": 1, "c": 0}}, "ranx-qrels"),
        ({"q": {"d": np.float32(0.5)}}, "ranx-run"), ({1: {2: 0.5}}, "ranx-run"),
    ],
)  # fmt: skip
def test_whole_numbers_alone_are_grades(thing: object, formats: str, tmp_path: Path):
    added = clq.open(tmp_path / "s").add(thing, name="one", collection="c")
    assert added.report.filter(status="read")["what"].to_list() == [formats]


def test_whole_numbers_that_tell_all_passages_apart_are_not_taken_for_grades(tmp_path: Path):
    store, ranks = clq.open(tmp_path / "s"), {"q": {f"d{rank}": 10 - rank for rank in range(10)}}
    with pytest.raises(InputError, match=r"as scores do\. Scores: write 3\.0, or formats=\{'one.json'"):
        store.add(ranks, name="one", collection="c")
    added = store.add(ranks, name="one", collection="c", formats={"one.json": "ranx-run"})
    assert added.report.filter(status="read")["what"].to_list() == ["ranx-run"]
    grades = ",".join(f"{grade}={min(5, grade)}" for grade in range(1, 11))
    said = {"one.json": "ranx-qrels"}
    added = store.add(ranks, name="one", collection="c", formats=said, grades=grades)
    assert added.report.filter(status="read")["what"].to_list() == ["ranx-qrels"]


@pytest.mark.slow
def test_no_word_of_a_printed_comparison_is_broken(results: clq.Results):
    printed = repr(results.compare("good", "poor", measure="nDCG@10"))
    assert max(map(len, printed.splitlines())) <= 120
    for words in ("quality", "verdict", "recorded", "P(better)"):
        assert words in printed
    assert any(line.startswith("Left out at 120 columns: ") for line in printed.splitlines())


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        ({"q": 1.0}, "one: q: 1.0 is not a dict of passages."),
        ({"q": {"d": "x"}}, "one: q, d: 'x' is not a finite number."),
        ({"q": {"d": float("nan")}}, "q, d: nan is not a finite number."),
        ({"q": {"d": True}}, "q, d: True is not a finite number."),
        (3, "int is neither a path, a DataFrame nor a dict."),
    ],
)
def test_other_dicts_are_refused(thing: object, said: str, tmp_path: Path):
    with pytest.raises(InputError) as refused:
        clq.open(tmp_path / "s").add(thing, name="one")
    assert said in str(refused.value)


@pytest.mark.slow
def test_compare_is_the_page_of_two_stacks_everywhere(results: clq.Results, tmp_path: Path):
    page = results.compare("good", "poor", measure="nDCG@10")
    assert page.sentence.startswith("A is better than B")
    assert (
        page.data
        == results.decide(measure="nDCG@10").page("compare", None, {"stack": "good", "vs": "poor"}).data
    )
    ids = dict(results.workspace().runs.select("stack", "run_id").iter_rows())
    assert results.compare(ids["good"], ids["poor"], measure="nDCG@10").data == page.data
    told = Answers(results, tmp_path).compare(None, "good", "poor", "nDCG@10")
    assert page.sentence in str(told["answer"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda s: s.compare("good", "good"), "Both are good. Name two stacks."),
        (lambda s: s.compare("good", "pore"), "No stack 'pore'. Found: good, poor."),
        (lambda s: s.compare("good", "poor", measur="P@1"), "No argument 'measur'. Nearest: measure."),
        (lambda s: s.decide(max_cost=1), "No argument 'max_cost'. Nearest: budget."),
        (lambda s: s.decide(slams=1), "Nearest: sla_ms."),
        (lambda s: s.decide(sla_ms="1"), "sla_ms='1' is not a number."),
        (lambda s: s.decide(sla_ms=-1), "sla_ms=-1 is out of range."),
        (lambda s: s.decide(rule="qualty"), "No rule 'qualty'. Found: cost, latency, quality."),
        (lambda s: s.decide(origin=["rum"]), "No origin 'rum'. Found: import, published, run."),
        (lambda s: s.decide(runs=3), "runs=3 is not a list of texts."),
        (lambda s: s.decide(together="yes"), "together='yes' is not true or false."),
        (lambda s: s.decide(measure="recal@10"), "No measure 'recal'. Found: "),
        (lambda s: s.score(5), "measures=5 is not text or a list."),
        (lambda s: s.score("P@1", runs="good"), "runs='good' is not a list."),
        (lambda s: s.score("P@1", runs=["god"]), "Nearest: good."),
        (lambda s: s.score("P@1", run=["good"]), "No argument 'run'. Found: measures, per_query, runs."),
        (lambda s: s.page("compar"), "Nearest: compare."),
        (lambda s: s.page("compare", choices={"stak": "good"}), "Nearest: stack."),
        (lambda s: s.page("compare", choices="stack=good"), "choices='stack=good' is not a mapping."),
        (lambda s: s.page("compare", choices={"tol": "x"}), "tol: 'x' is not a number."),
        (lambda s: s.measure("a:b", kk=1), "No argument 'kk'."),
        (lambda s: s.measure("a:b", timeout=1), "Nearest: timeout_s."),
        (lambda s: s.measure("a:b", k="ten"), "k='ten' is not a whole number."),
        (lambda s: s.measure("a:b", match="id"), "No match 'id'. Found: headings, ids, places."),
        (lambda s: s.switch("good", month=1), "Nearest: months."),
        (lambda s: s.switch("good", months="1"), "months='1' is not a number."),
        (lambda s: s.gate("x.json", shar=1), "No argument 'shar'. Nearest: share."),
        (lambda s: s.decide().record(3), "paths=3 is not text or a path."),
    ],
)  # fmt: skip
def test_arguments_are_refused_with_the_nearest(
    asked: Callable[[clq.Workspace], object], said: str, results: clq.Results
):
    with pytest.raises((InputError, UnknownNameError)) as refused:
        asked(results.workspace())
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda r: r.add("x", colection="c"), "Nearest: collection."),
        (lambda r: r.add("x", tie_order="trec"), "No tie_order 'trec'. Found: file, trec_eval."),
        (lambda r: r.add("x", if_changed="nw"), "No if_changed 'nw'. Found: new, replace, restore."),
        (lambda r: r.add("x", label=3), "label=3 is not text."),
        (lambda r: r.add("x", columns={"run": 3}), "columns['run']=3 is not text or a list."),
        (lambda r: r.workspace("dict"), "No workspace 'dict'. Found: dicts."),
        (lambda r: r.run("x.toml", budjet=1), "Found: budget, quiet, spec."),
        (lambda _: clq.open(3), "path=3 is not text or a path."),
        (lambda _: clq.measure("a:b", stor="x"), "Nearest: store."),
    ],
)
def test_arguments_of_a_store_are_refused_with_the_nearest(
    asked: Callable[[clq.Results], object], said: str, results: clq.Results
):
    with pytest.raises((InputError, UnknownNameError)) as refused:
        asked(results)
    assert said in str(refused.value)


def test_numbers_of_numpy_are_numbers(results: clq.Results):
    asked = results.decide(min_quality=np.float32(0.5), seed=np.int64(7), measure="P@1")
    assert (asked.view.seed, asked.view.constraints.min_quality) == (7, 0.5)


@pytest.mark.parametrize("choices", [MappingProxyType({"tol": 0.5}), UserDict(tol=0.5), {"tol": 0.5}, None])
def test_any_mapping_is_one(choices: Any, results: clq.Results):
    assert results.page("compare", None, choices).choices["tol"]["value"] in (0.5, 0.01)


def test_a_store_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert clq.open("~/mine").path == tmp_path / "mine"


@pytest.mark.parametrize(
    ("declared", "meant", "besides"),
    [
        (options.Understood, {field.name for field in fields(Question)}, {"floor", "harm"}),
        (options.Importing, {field.name for field in fields(Options)}, set()),
        (options.MoreMeasuring, {field.name for field in fields(OwnForm)}, set()),
        (options.Moving, {field.name for field in fields(Terms)}, set()),
    ],
)
def test_typed_options_are_those_that_there_are(declared: type, meant: set[str], besides: set[str]):
    keys = set(declared.__annotations__) | set(getattr(declared, "__required_keys__", ()))
    assert (keys | set(declared.__optional_keys__)) - besides <= meant  # type: ignore[attr-defined]
    assert besides <= FORMER.keys()


def test_every_option_of_measuring_is_one_of_both_ways():
    own = {
        name
        for name in inspect.signature(clq.Workspace.measure).parameters
        if name not in ("self", "target", "more")
    }
    assert options.Measuring.__optional_keys__ == own | options.MoreMeasuring.__optional_keys__


@pytest.mark.parametrize(
    "function", [clq.open, clq.measure, clq.run, *vars(clq.Results).values(), *vars(clq.Workspace).values()]
)
def test_every_public_function_knows_the_types_of_its_arguments(function: Any):
    if hasattr(function, "__wrapped__"):
        known = typed._arguments(inspect.unwrap(function))
        assert all(hint is not Any for name, hint in known.items() if name not in ("spec", "body"))
