"""Nuggets by a model behind a local server: who supports what, what is kept, unusable answers."""

import json
from pathlib import Path

import pytest

from core.errors import BudgetError
from core.work.golden.nuggets import LEAST, MOST, read_facts, read_supported
from core.work.golden.plan import NUGGETS, candidates, plan
from tests.vendors import Vendors, serve
from tests.work.golden import built

SPEC = f'{built.SPEC}\n[golden.nuggets]\nmodel = "second"\n'
ONE = {"text": "a  fact", "importance": "vital"}


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ([ONE, {"text": "b", "importance": "okay"}], [("a fact", True), ("b", False)]),
        ([ONE, ONE], [("a fact", True)]),
        ([], []),
        ([{**ONE, "text": str(n)} for n in range(MOST + 5)], [(str(n), True) for n in range(MOST)]),
        ([{**ONE, "importance": "rare"}], None),
        ([{**ONE, "importance": []}], None),
        ([{**ONE, "text": " "}], None),
        ([{**ONE, "more": 1}], None),
        (["a fact"], None),
        ("a fact", None),
    ],
)
def test_facts_are_read_strictly(given, facts):
    reading = read_facts(json.dumps({"nuggets": given}))
    assert (reading.value, bool(reading.problem)) == (facts or [], facts is None)


@pytest.mark.parametrize(
    ("given", "places"),
    [([1, 3, 1], [0, 2]), ([], []), ([0], None), ([4], None), ([True], None), ([1.0], None), ("1", None)],
)
def test_support_is_read_strictly(given, places):
    reading = read_supported(json.dumps({"supported": given}), 3)
    assert (reading.value, bool(reading.problem)) == (places or [], places is None)


@pytest.mark.slow
def test_nuggets_follow_from_the_best_passages_and_are_paid_once(tmp_path: Path, vendors: Vendors):
    store = built.store_of(tmp_path)
    job = built.job(store, vendors.url, SPEC)
    foreseen = plan(job, candidates(job))
    assert NUGGETS in {line.stage for line in foreseen.lines}
    first = built.build(store, job, vendors.url)
    rows = store.read().nuggets("judged")
    grades = built.grades(store, "judged")
    good = {query for (query, _), grade in grades.items() if grade >= LEAST}
    assert {(query, text) for query, text in rows.select("query_id", "text").iter_rows()} == {
        (query, fact) for query in good for fact in built.facts_of(built.QUESTIONS[query])
    }
    told = {(query, text, passage) for query, text, passage in rows.drop_nulls("passage_id").select(
        "query_id", "text", "passage_id").iter_rows()}  # fmt: skip
    assert told == {
        (query, fact, passage)
        for (query, passage), grade in grades.items()
        for fact in built.facts_of(built.QUESTIONS[query])
        if grade >= LEAST and fact in built.TEXTS[passage].split()
    }
    assert {"copy", "p0"} <= {passage for _, _, passage in told}
    assert set(rows["judge"]) == {"second"}
    assert first.status.usd <= foreseen.usd
    calls, revision = vendors.state.calls["openai/chat"], store.revision()
    again = built.build(store, job, vendors.url)
    assert (vendors.state.calls["openai/chat"], store.revision(), again.stored) == (calls, revision, "judged")


@pytest.mark.slow
def test_stopped_in_the_middle_it_goes_on_and_pays_nothing_twice(tmp_path: Path, vendors: Vendors):
    whole, part = built.store_of(tmp_path / "whole"), built.store_of(tmp_path / "part")
    spent = built.build(whole, built.job(whole, vendors.url, SPEC), vendors.url).status.usd
    needed = vendors.state.calls["openai/chat"]
    vendors.state.reset()
    with pytest.raises(BudgetError):
        built.build(part, built.job(part, vendors.url, f"budget_usd = {0.9 * spent}\n{SPEC}"), vendors.url)
    assert 0 < vendors.state.calls["openai/chat"] < needed
    outcome = built.build(
        part, built.job(part, vendors.url, f"budget_usd = {9 * spent}\n{SPEC}"), vendors.url
    )
    assert vendors.state.calls["openai/chat"] == needed
    assert outcome.status.usd == pytest.approx(spent)
    assert part.read().nuggets("judged").equals(whole.read().nuggets("judged"))


@pytest.mark.slow
def test_grades_that_exist_get_nuggets(tmp_path: Path, vendors: Vendors):
    store = built.store_of(tmp_path)
    built.build(store, built.job(store, vendors.url), vendors.url)
    text = (
        'name = "facts"\ncollection.stored = "c"\nprices = "fake"\n[golden.judge]\ngrades = "judged"\n'
        '[golden.nuggets]\nmodel = "second"\n'
    )
    job = built.job(store, vendors.url, text)
    foreseen = plan(job, candidates(job))
    assert {line.stage for line in foreseen.lines} == {NUGGETS}
    before = vendors.state.calls["openai/chat"]
    assert built.build(store, job, vendors.url).stored == "facts"
    assert 0 < vendors.state.calls["openai/chat"] - before <= max(line.calls for line in foreseen.lines)
    assert built.grades(store, "facts") == built.grades(store, "judged")
    assert store.read().nuggets("facts").height


@pytest.mark.slow
def test_answers_that_cannot_be_used_are_counted(tmp_path: Path):
    def stubborn(body):
        asked = body["response_format"]["json_schema"]["schema"]["properties"]
        return "I would rather not." if "nuggets" in asked else built.judge(body)

    with serve(chat=stubborn) as server:
        store = built.store_of(tmp_path)
        outcome = built.build(store, built.job(store, server.url, SPEC), server.url)
    assert store.read().nuggets("judged").is_empty()
    assert outcome.status.facts["unusable"] > 0
