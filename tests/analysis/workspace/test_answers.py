"""What answers are worth, and what they cost and take, as quality, cost and latency of stacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.analysis.scoring.stored import score_stored
from core.analysis.workspace.answers import MADE_UP, TRIAL, agreed, as_name, as_word
from core.analysis.workspace.choices import choices
from core.analysis.workspace.scope import Answering, Latency, Quality, Scope
from core.analysis.workspace.stacks import UNPROVEN, stack_table
from core.analysis.workspace.view import View
from core.decide.rules import Constraints, decide
from core.prices import PriceBook
from core.records import Batch, Origin
from core.store import Snapshot
from core.tables import frame
from core.views.link import settings
from tests.prices.test_cost import price
from tests.stores import Lab
from tests.views.made import LAB, table

ODD = "a reader (1,000 = best)"
BOOK = PriceBook(
    "test",
    (
        price("embed", "input_tokens", 1.0),
        price("gpt", "input_tokens", 2.0),
        price("gpt", "output_tokens", 10.0),
    ),
)
QUERIES = ("q1", "q2", "q3", "q4")
SCORES = {("good", "gpt"): (1.0, 1.0, 0.6, 0.0), ("bad", "gpt"): (0.5, 0.0, 0.0, 0.0)}
SCORES[("good", ODD)] = (0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Stack "good" retrieves for $2 per 1,000 queries, "bad" for $1, "mute" without answers for $0.5."""
    lab = Lab().judge({query: {"a": 5} for query in QUERIES})
    for name in ("good", "bad", "mute"):
        lab.run(name, final={query: ["a", "b"] for query in QUERIES})
    store = lab.write(tmp_path_factory.mktemp("answers") / "store")
    answers, scores = [], []
    for (run_id, reader), values in SCORES.items():
        for query, value in zip(QUERIES, values, strict=True):
            key = {"run_id": run_id, "query_id": query, "reader": reader, "mode": "top_k", "k": 2, "pass": 1}
            paid = {"usd": 0.01} if reader == ODD else {"input_tokens": 1000, "output_tokens": 100}
            answers.append({**key, "text": "…", "ms": 400.0, **paid})
            scores.append({**key, "scorer": "f1", "value": value, "scale": "0-1"})
    tokens = {"good": 2000.0, "bad": 1000.0, "mute": 500.0}
    used = [
        {"run_id": run, "query_id": query, "stage": "embed", "item": "embed", "unit": "input_tokens"}
        | {"amount": amount, "basis": "measured"}
        for run, amount in tokens.items()
        for query in QUERIES
    ]
    timed = [
        {"run_id": run, "query_id": query, "stage": "retrieve", "repeat": 1, "ms": 100.0}
        for run in tokens
        for query in QUERIES
    ]
    rows = {"answers": answers, "answer_scores": scores, "usage": used, "timings": timed}
    with store.write("answers") as writer:
        writer.add(Batch(frames={name: frame(name, each) for name, each in rows.items()}))
    return store.read()


def asked(scope: Scope = LAB, **given) -> Scope:
    return replace(scope, answering=Answering(**given))


def cost(found: pl.DataFrame, column: str = "cost") -> dict[str, float | None]:
    return dict(found.select("run_id", column).iter_rows())


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        ({}, {"good": 2.0, "bad": 1.0, "mute": 0.5}),
        ({"per": "answered query"}, {"good": 5.0, "bad": 4.0, "mute": None}),
        ({"per": "correct answer"}, {"good": 5 / 0.75, "bad": 4 / 0.25, "mute": None}),
        ({"per": "correct answer", "least": 0.7}, {"good": 5 / 0.5, "bad": None, "mute": None}),
        ({"per": "answered query", "reader": as_word(ODD)}, {"good": 12.0, "bad": None, "mute": None}),
        ({"per": "correct answer", "reader": as_word(ODD)}, {"good": None, "bad": None, "mute": None}),
    ],
)
def test_costs_are_those_of_queries_of_answers_or_of_correct_answers(snapshot: Snapshot, given, expect):
    found = table(snapshot, asked(**given), Quality("Answer", 2), book=BOOK)
    assert cost(found) == pytest.approx(expect)
    if given.get("per") == "answered query":
        assert cost(found, "cost_least")["mute"] == pytest.approx(0.5)


@pytest.mark.slow
def test_what_readers_took_here_is_no_cost_of_a_query(snapshot: Snapshot, tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}}).run("run", final={"q1": ["a"]}, origin=Origin.RUN)
    used = {"run_id": "run", "query_id": "q1", "unit": "input_tokens", "amount": 1000.0, "basis": "measured"}
    rows = [{**used, "stage": "embed", "item": "embed"}, {**used, "stage": "generate", "item": "unpriced"}]
    store = lab.write(tmp_path / "own")
    with store.write("usage") as writer:
        writer.add(Batch(frames={"usage": frame("usage", rows)}))
    for per, expect in (("query", 1.0), ("answered query", None)):
        assert cost(table(store.read(), asked(per=per), book=BOOK))["run"] == expect


@pytest.mark.slow
def test_the_cheapest_correct_answer_is_another_stack_than_the_cheapest_query(snapshot: Snapshot):
    for per, expect in (("query", "mute"), ("answered query", "bad"), ("correct answer", "good")):
        found = table(snapshot, asked(per=per), Quality("RA-nWG", 2), book=BOOK)
        limits = Constraints(per_correct=per == "correct answer")
        made = decide(found, limits, "cost")
        assert found["run_id"][made.chosen] == expect
        assert (
            next(axis for axis in made.axes if axis.key == "cost")
            .written(2.0)
            .endswith("/ 1k correct" if limits.per_correct else "/ 1k")
        )


@pytest.mark.slow
def test_the_score_of_answers_is_a_quality(snapshot: Snapshot):
    quality, answering = agreed(Quality("Answer", 2), Answering(reader=as_word(ODD)))
    found = {
        "any": table(snapshot, LAB, Quality("Answer", 2)),
        "odd": table(snapshot, asked(reader=as_word(ODD)), quality),
    }
    assert as_name(answering.reader) == ODD
    assert cost(found["any"], "quality") == pytest.approx({"good": 0.65, "bad": 0.125, "mute": None})
    assert cost(found["odd"], "quality")["good"] == 0
    assert agreed(quality, Answering())[1] == answering
    scope = asked(reader=answering.reader)
    link = settings(View(snapshot, scope, quality=quality, latency=Latency(), book=BOOK))
    assert (link["m"], link["ansby"]) == ("Answer", ODD)


@pytest.mark.slow
def test_end_to_end_latency_has_the_answers_from_as_many_passages(snapshot: Snapshot):
    for k, expect in ((2, 500.0), (1, None)):
        latency = Latency(scope="end-to-end", answers=Answering().measure(k))
        found = table(snapshot, LAB, Quality("Answer", k), latency)
        assert cost(found, "latency_ms") == {"good": expect, "bad": expect, "mute": None}


@pytest.mark.slow
def test_means_that_came_without_answers_are_a_quality_too(tmp_path: Path):
    store = Lab().run("paper").write(tmp_path / "store")
    told = {"run_id": "paper", "reader": "FlanT5", "mode": "top_k", "pass": 1, "scale": "0-100", "n": 100}
    rows = [{**told, "k": k, "scorer": "exact_match", "value": 10.0 * k} for k in (1, 5)]
    with store.write("means") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", rows)}))
    snapshot, scope = store.read(), Scope("lab")
    offered = choices(snapshot, scope)
    assert ("Answer" in offered.measures, offered.sent, offered.readers) == (True, (1, 5), ("FlanT5",))
    assert offered.cutoffs("Answer") == [1, 5]
    found = table(snapshot, scope, Quality("Answer", 5)).row(0, named=True)
    assert (found["quality"], found["n"]) == (0.5, 100)
    correct = table(snapshot, asked(scope, per="correct answer"), Quality("Answer", 5)).row(0, named=True)
    assert (correct["correct"], correct["cost"]) == (0.5, None)


def _told(snapshot: Snapshot, per: str) -> dict[str, tuple]:
    rows = table(snapshot, asked(per=per, reader="gpt"), Quality("Answer", 2), book=BOOK)
    columns = ("cost", "cost_least", "cost_missing")
    return {row["run_id"]: tuple(row[name] for name in columns) for row in rows.iter_rows(named=True)}


@pytest.mark.slow
@pytest.mark.parametrize("origin", [Origin.IMPORT, Origin.RUN])
@pytest.mark.parametrize("spec", [{}, {"mode": "dense", "embedder": "embed"}])
def test_retrieval_of_which_nothing_is_recorded_is_unknown_once_there_are_answers(tmp_path, origin, spec):
    store = _answered(tmp_path, Lab().judge({"q1": {"a": 5}}), spec, origin)
    assert _told(store, "query")["run"][0] is None
    _, least, missing = _told(store, "answered query")["run"]
    assert (missing, least) == ("retrieval not recorded", pytest.approx(3.0, abs=0.1))
    for per in ("answered query", "correct answer"):
        assert _told(store, per)["run"][0] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("book", "expect"),
    [
        (BOOK, (4.25, None, None)),
        (PriceBook("none", ()), (None, 1.25, "generation not in the reported cost")),
    ],
)
def test_answers_are_added_to_a_reported_cost(tmp_path: Path, book: PriceBook, expect):
    figures = {"measure": "usd_per_1k", "stage": "total", "value": 1.25}
    store = _answered(tmp_path, Lab().judge({"q1": {"a": 5}}), {}, Origin.IMPORT, figures)
    for per, told in (("query", (1.25, None, None)), ("answered query", expect), ("correct answer", expect)):
        rows = table(store, asked(per=per, reader="gpt"), Quality("Answer", 2), book=book)
        assert rows.select("cost", "cost_least", "cost_missing").row(0) == told


def _answered(folder: Path, lab: Lab, spec: dict, origin: Origin, *figures: dict) -> Snapshot:
    """Run "run" of which retrieval recorded nothing, with a right answer for $3 per 1,000."""
    store = lab.run("run", final={"q1": ["a"]}, origin=origin, spec=spec, figures=figures).write(folder / "s")
    key = {"run_id": "run", "query_id": "q1", "reader": "gpt", "mode": "top_k", "k": 2, "pass": 1}
    rows = {
        "answers": [{**key, "text": "…", "input_tokens": 1000, "output_tokens": 100}],
        "answer_scores": [{**key, "scorer": "f1", "value": 1.0, "scale": "0-1"}],
    }
    with store.write("answers") as writer:
        writer.add(Batch(frames={name: frame(name, each) for name, each in rows.items()}))
    return store.read()


@pytest.mark.slow
def test_a_judged_correctness_comes_before_f1_given_a_hit(tmp_path: Path):
    store = Lab().judge({"q1": {"a": 5}}).run("one", final={"q1": ["a"]}).write(tmp_path / "store")
    key = {"run_id": "one", "query_id": "q1", "reader": "gpt", "mode": "top_k", "k": 1, "pass": 1}
    scores = [
        {**key, "scorer": "f1", "value": 0.154, "scale": "0-1"},
        {**key, "scorer": "correctness", "judge": "m", "value": 1.0, "scale": "0-5"},
    ]
    frames = {
        "answers": frame("answers", [{**key, "text": "…"}]),
        "answer_scores": frame("answer_scores", scores),
    }
    with store.write("import", "answers") as writer:
        writer.add(Batch(frames=frames))
    found = store.read()
    for bare, value in (("Acc|Hit", 0.2), ("Acc|Hit(scorer=f1)", 0.154), ("Answer", 0.154)):
        row = table(found, LAB, Quality(bare, 1)).row(0, named=True)
        assert row["quality"] == pytest.approx(value), bare
    asked, _ = agreed(Quality("Acc|Hit", 1), Answering(scorer="f1"))
    assert asked.name == "Acc|Hit@1(scorer=f1)"
    assert agreed(Quality("Acc|Hit", 1), Answering())[0] == Quality("Acc|Hit", 1)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["reader", "judge"])
def test_answers_and_grades_that_are_made_up_carry_no_decision(tmp_path: Path, by: str):
    lab = Lab().judge({query: {"a": 5} for query in QUERIES})
    store = lab.run("only", final={query: ["a", "b"] for query in QUERIES}).write(tmp_path / "store")
    answers, scores = [], []
    for query in QUERIES:
        key = {"run_id": "only", "query_id": query, "reader": "gpt", "mode": "top_k", "k": 2, "pass": 1}
        told = key | ({"reader": TRIAL} if by == "reader" else {})
        answers.append({**told, "text": "…", "ms": 1.0, "input_tokens": 10, "output_tokens": 1})
        judged = {"scorer": "correctness", "judge": TRIAL} if by == "judge" else {"scorer": "f1"}
        scores.append({**told, **judged, "value": 1.0, "scale": "0-1"})
    rows = {"answers": answers, "answer_scores": scores}
    with store.write("answers") as writer:
        writer.add(Batch(frames={name: frame(name, each) for name, each in rows.items()}))
    data = store.read()
    row = table(data, asked(per="correct answer"), Quality("Answer", 2)).row(0, named=True)
    assert (row["quality"], row["n"]) == (None, None)
    assert row["quality_note"] == f"{UNPROVEN}{MADE_UP}"
    assert (row["cost"], row["correct"]) == (None, None)
    assert MADE_UP in row["cost_note"]
    assert decide(table(data, LAB, Quality("Answer", 2)), Constraints()).chosen is None
    answered = table(data, asked(per="answered query"), Quality("Answer", 2)).row(0, named=True)
    assert answered["cost"] is None


def test_answers_to_questions_that_nobody_judged_have_a_quality_too(tmp_path: Path):
    never = [f"never{place}" for place in range(4)]
    lab = Lab().judge({"q1": {"a": 5}}).ask(dict.fromkeys(never, "?"), tags=["unanswerable"])
    lab = lab.run("run", final={name: ["a"] for name in ("q1", *never)})
    lab.answer("run", dict(zip(never, (1.0, 1.0, 0.0, 1.0), strict=True)), k=1, scorer="right_refusal")
    snapshot = lab.answer("run", {"q1": 0.5}, k=1).write(tmp_path / "store").read()
    for scorer, quality, n in (("right_refusal", 0.75, 4), ("f1", 0.5, 1)):
        asked = Quality(f"Answer(scorer={scorer})", 1)
        (row,) = stack_table(snapshot, Scope("lab", "gold"), asked, Latency(), BOOK).rows(named=True)
        assert (row["quality"], row["n"]) == (quality, n)
        (score,) = score_stored(snapshot, snapshot.runs(), asked.name).rows(named=True)
        assert (score["value"], score["n"]) == (quality, n)
        single = score_stored(snapshot, snapshot.runs(), asked.name, per_query=True)
        assert single["value"].mean() == pytest.approx(quality)


@pytest.mark.parametrize("ranked", [True, False])
def test_score_says_of_answers_what_decide_says(tmp_path: Path, *, ranked: bool):
    values = {"q1": 0.5, "q2": 1.0, "q3": 0.25}
    final = {query: ["a"] for query in values} if ranked else {}
    lab = Lab().ask(dict.fromkeys(values, "?")).run("run", final=final)
    snapshot = lab.answer("run", values, k=5).write(tmp_path / "store").read()
    quality = Quality("Answer", 5)
    (row,) = stack_table(snapshot, Scope("lab"), quality, Latency(), BOOK).rows(named=True)
    (score,) = score_stored(snapshot, snapshot.runs(), quality.name).rows(named=True)
    names = {"value": "quality", "n": "n", "ci_low": "quality_low", "ci_high": "quality_high"}
    assert {name: score[name] for name in names} == {name: row[other] for name, other in names.items()}
    assert (score["value"], score["n"], score["reason"]) == (pytest.approx(1.75 / 3), 3, None)
