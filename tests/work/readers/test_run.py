"""Readers against a local server of the vendor's wire format: what is asked, paid, kept and stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.errors import BudgetError, InputError, UnknownNameError
from core.jobs import State
from core.pipeline.sweep import load_as
from core.pipeline.sweep.problems import SpecError
from core.readers.scoring import score
from core.records import Batch, Origin, Run, Stack
from core.tables import frame
from core.work.readers.plan import plan
from core.work.readers.prompts import prompt
from core.work.readers.run import ReaderSpec
from core.work.readers.words import ended
from tests.vendors import Step, Vendors, serve
from tests.work.readers import asked

CHAT = "openai/chat"


@pytest.fixture
def vendors():
    with serve(chat=asked.answer) as server:
        yield server


def calls(vendors: Vendors) -> int:
    return vendors.state.calls[CHAT]


def sent(vendors: Vendors) -> list[tuple[str, str]]:
    """Instructions and message of every request."""
    return [tuple(str(each["content"]) for each in request["messages"]) for request in vendors.state.requests]


@pytest.mark.slow
def test_each_run_reader_and_k_is_answered_and_equal_prompts_are_paid_once(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    job = asked.job(store, vendors.url)
    foreseen = plan(job)
    outcome = asked.ask(store, job, vendors.url)
    assert outcome.status.state is State.FINISHED
    blocks = {(run, "reader", mode, k): 3 for run in asked.RANKED for mode, k in
              (("top_k", 1), ("top_k", 2), ("none", 0))}  # fmt: skip
    assert asked.counts(store) == blocks
    # Of k = 1 two of three questions send the same passage in both runs, of k = 2 one; closed book: all.
    different = (3 + 1) + (3 + 2) + 3
    assert (calls(vendors), foreseen.asked, foreseen.answers) == (different, different, 18)
    assert len(set(sent(vendors))) == different
    answers = store.read().answers(list(asked.RANKED))
    assert answers["text"].null_count() == answers["input_tokens"].null_count() == 0
    assert answers.filter(pl.col("ms") <= 0).is_empty()
    assert outcome.status.usd <= foreseen.usd
    assert answers.unique(["query_id", "k", "text", "usd"])["usd"].sum() > 0
    assert asked.scores(store, "f1").height == answers.height
    best = asked.scores(store, "exact_match").filter(run_id="r-a", query_id="q2", k=1, mode="top_k")
    assert best["value"].to_list() == [0.0]  # "the mean of rows, text number 1"


@pytest.mark.slow
def test_what_answers_take_is_no_part_of_what_a_query_costs(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    asked.ask(store, asked.job(store, vendors.url), vendors.url)
    read = store.read()
    assert read.timings(["r-a"]).is_empty()
    assert read.usage(["r-a"]).is_empty()


@pytest.mark.slow
def test_done_again_nothing_is_paid_and_nothing_written(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    asked.ask(store, asked.job(store, vendors.url), vendors.url)
    paid, revision = calls(vendors), store.revision()
    asked.ask(store, asked.job(store, vendors.url), vendors.url)
    assert (calls(vendors), store.revision()) == (paid, revision)


@pytest.mark.slow
def test_another_reader_is_put_beside_the_answers_that_are_there(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    asked.ask(store, asked.job(store, vendors.url), vendors.url)
    before, scores = asked.counts(store), asked.scores(store, "f1")
    paid = calls(vendors)
    more = asked.SPEC.replace('["reader"]', '["second"]').replace("[1, 2]", "[3]")
    asked.ask(store, asked.job(store, vendors.url, more), vendors.url)
    after = asked.counts(store)
    assert {key: after[key] for key in before} == before
    assert {key[1] for key in after} == {"reader", "second"}
    kept = asked.scores(store, "f1").filter(reader="reader")
    assert kept.equals(scores)
    assert calls(vendors) > paid


@pytest.mark.parametrize(
    ("mode", "k", "answered"),
    [
        ("gold_only", 1, {"r-a": 3, "r-b": 2}),
        ("gold_only", 2, {"r-a": 3, "r-b": 2}),
        ("no_gold", 1, {"r-a": 0, "r-b": 1}),
        ("no_gold", 2, {"r-a": 3, "r-b": 3}),
        ("gold", None, {"r-a": 3, "r-b": 3}),
    ],
)
def test_modes_send_gold_passages_or_the_others(tmp_path: Path, mode: str, k: int | None, answered):
    store = asked.store_of(tmp_path)
    text = asked.SPEC.replace("[1, 2]", f"{k or 1}").replace('"reader"', '"fake"') + f'modes = ["{mode}"]\n'
    job = asked.job(store, text=text)
    found = Counter(each.block.run_id for each in job.wanted)
    assert {run: found[run] for run in asked.RANKED} == answered
    for each in job.wanted:
        sent = {job.texts[place] for place in each.call.passages}
        gold = asked.built.TEXTS[asked.GOLD[each.query_id]]
        assert (gold in sent) == (mode != "no_gold")
    asked.ask(store, job)
    assert sum(asked.counts(store).values()) == sum(answered.values())


def test_questions_that_a_run_found_nothing_for_are_answered_too(tmp_path: Path):
    store = asked.store_of(tmp_path)
    timed = [
        {"run_id": "r-c", "query_id": query, "stage": "retrieve", "repeat": 1, "ms": 1.0}
        for query in ("q1", "q2")
    ]
    found = {"run_id": "r-c", "query_id": "q1", "stage": "final", "rank": 1, "passage_id": "p0"}
    with store.write("import") as writer:
        rows = {"rankings": frame("rankings", [found]), "timings": frame("timings", timed)}
        run = Run(run_id="r-c", collection_id="c", stack=Stack({}), label="r-c", origin=Origin.RUN)
        writer.add(Batch(runs=(run,), frames=rows))
    job = asked.job(store, text=asked.SPEC.replace('"r-a", "r-b"', '"r-c"'))
    assert {
        (each.block.mode, each.block.k, each.query_id): len(each.call.passages) for each in job.wanted
    } == {
        (mode, k, query): min(k, query == "q1")
        for mode, k in (("top_k", 1), ("top_k", 2), ("none", 0))
        for query in ("q1", "q2")
    }


@pytest.mark.slow
def test_two_temperatures_prompts_and_passes_are_kept_apart(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    own = tmp_path / "own.txt"
    own.write_text("Answer in French.\n")
    text = asked.SPEC + f'temperatures = [0, 0.7]\nprompts = ["short", "grounded", "{own}"]\npasses = 2\n'
    job = asked.job(store, vendors.url, text)
    asked.ask(store, job, vendors.url)
    found = asked.counts(store, "answers", "prompt", "temperature", "pass")
    assert len(found) == 3 * 2 * 2
    assert set(found.values()) == {18}
    assert len({prompt for prompt, *_ in found if prompt.startswith("own-")}) == 1
    assert calls(vendors) == 12 * 12


@pytest.mark.slow
def test_what_differs_from_the_store_is_left_out_and_said(tmp_path: Path):
    store = asked.store_of(tmp_path)
    text = asked.SPEC.replace('"reader"', '"fake"') + 'modes = "no_gold"\n'
    job = asked.job(store, text=text)
    assert "Left out" not in ended(asked.ask(store, job).status)
    there = {*store.read().answers(list(asked.RANKED)).iter_rows()}
    other = tuple(replace(each, gold=dict.fromkeys(each.ranked, ())) for each in job.material.replays)
    golds = job.material.golds.with_columns(answer=pl.lit("text number 1"))
    again = replace(job, material=replace(job.material, replays=other))
    status = asked.ask(store, again).status
    assert status.facts["other_answers"] > 0
    assert "Left out: " in ended(status)
    status = asked.ask(store, replace(job, material=replace(job.material, golds=golds))).status
    assert status.facts["other_answers"] == 0
    assert status.facts["other_scores"] > 0
    assert there <= {*store.read().answers(list(asked.RANKED)).iter_rows()}


def test_an_edited_prompt_file_is_read_again(tmp_path: Path):
    own = tmp_path / "own.txt"
    own.write_text("Answer in French.\n")
    before = prompt(str(own))
    own.write_text("Answer in Latin.\n")
    after = prompt(str(own))
    assert after.context == "Answer in Latin."
    assert (after.name, after.hash) != (before.name, before.hash)


def test_only_the_passages_are_cut_and_it_is_counted(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    asked.ask(store, asked.job(store, vendors.url, asked.SPEC + "context_tokens = 5\n"), vendors.url)
    answers = store.read().answers(["r-a"])
    assert answers.filter(mode="top_k")["truncated"].all()
    assert not answers.filter(mode="none")["truncated"].any()
    told = [user for _, user in sent(vendors)]
    assert all(any(question in user for user in told) for question in asked.built.QUESTIONS.values())


@pytest.mark.slow
def test_a_judge_scores_each_different_answer_once(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    four = '["correctness", "similarity", "faithfulness", "precision"]'
    text = asked.SPEC + f'prompts = "grounded"\nscorers = ["f1", "citation_precision", "citation_recall"]\n' \
        f'[reader.judge]\nmodel = "judge"\nscorers = {four}\n'  # fmt: skip
    asked.ask(store, asked.job(store, vendors.url, text), vendors.url)
    assert len(set(sent(vendors))) == calls(vendors)
    rows = store.read().answer_scores(list(asked.RANKED))
    found = {tuple(key): count for *key, count in rows.group_by("scorer", "judge", "mode").len().iter_rows()}
    assert found["correctness", "judge", "none"] == found["similarity", "judge", "none"] == 6
    assert found["faithfulness", "judge", "top_k"] == found["precision", "judge", "top_k"] == 12
    assert ("faithfulness", "judge", "none") not in found
    assert found["citation_precision", None, "top_k"] == 12
    assert dict(rows.select("scorer", "scale").unique().iter_rows())["precision"] == "0-1"
    assert rows.filter(pl.col("scale") == "0-5")["value"].is_between(0, 5).all()


def test_several_judges_are_planned_and_paid_like_one(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    scorers = ["answer_relevancy", "hallucination", "specific_information_accuracy"]
    text = asked.SPEC.replace("[1, 2]", "1") + 'modes = ["top_k", "none"]\nscorers = "f1"\n' \
        f'[reader.judge]\nmodel = ["judge", "second"]\nscorers = {scorers}\n'  # fmt: skip
    job = asked.job(store, vendors.url, text)
    foreseen = {line.model: line.calls for line in plan(job).lines if line.unit == "input_tokens"}
    asked.ask(store, job, vendors.url)
    once = calls(vendors)
    # p0 to p2 come first in r-a, p9 in r-b: 4 answers from a passage by 3 scorers, 3 without one by relevancy
    assert foreseen == {"reader": 7, "judge": 15, "second": 15}
    assert once == sum(foreseen.values())
    rows = store.read().answer_scores(list(asked.RANKED)).filter(pl.col("judge").is_not_null())
    assert {*rows.group_by("scorer", "judge", "mode", "scale").len().iter_rows()} == {
        *((scorer, judge, "top_k", "0-5", 6) for scorer in scorers for judge in ("judge", "second")),
        *(("answer_relevancy", judge, "none", "0-5", 6) for judge in ("judge", "second")),
    }
    asked.ask(store, asked.job(store, vendors.url, text), vendors.url)
    assert calls(vendors) == once, "a judge that has answered is not asked again"


@pytest.mark.slow
def test_answers_are_scored_beside_those_from_all_gold_passages(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    text = asked.SPEC + 'modes = ["top_k", "gold", "none"]\nscorers = ["ideal_f1", "ideal_rougeL"]\n' \
        '[reader.judge]\nmodel = "judge"\nscorers = "ideal"\n'  # fmt: skip
    asked.ask(store, asked.job(store, vendors.url, text), vendors.url)
    answers, rows = (getattr(store.read(), part)(list(asked.RANKED)) for part in ("answers", "answer_scores"))
    said = {
        (row["run_id"], row["query_id"], row["mode"], row["k"]): row["text"]
        for row in answers.iter_rows(named=True)
    }
    computed = rows.filter(scorer="ideal_f1")
    assert set(computed["mode"]) == {"top_k", "none"}
    assert computed.height == 2 * 3 * 3
    for row in computed.iter_rows(named=True):
        ideal = said[row["run_id"], row["query_id"], "gold", None]
        assert row["value"] == score(
            "f1", said[row["run_id"], row["query_id"], row["mode"], row["k"]], [ideal]
        )
    judged = rows.filter(scorer="ideal")
    assert (set(judged["mode"]), set(judged["judge"]), judged.height) == ({"top_k", "none"}, {"judge"}, 18)
    ideals = {text for (_, _, mode, _), text in said.items() if mode == "gold"}
    seen = [user for _, user in sent(vendors) if "reference 1" in user]
    assert seen
    assert all(any(text in user for text in ideals) for user in seen)


def test_equal_questions_are_judged_beside_their_own_gold_answers(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    text = (
        asked.SPEC.replace("[1, 2]", "1")
        + 'modes = "none"\n[reader.judge]\nmodel = "judge"\nscorers = "correctness"\n'
    )
    job = asked.job(store, vendors.url, text)
    known = job.material
    golds = known.golds.filter(pl.col("query_id") != "q3")
    job = replace(job, material=replace(known, questions=dict.fromkeys(known.questions, "mean"), golds=golds))
    foreseen = next(line for line in plan(job).lines if line.model == "judge")
    asked.ask(store, job, vendors.url)
    judged = [user for _, user in sent(vendors) if "sort a frame by rows" in user]
    assert len(judged) == 1
    assert "the mean of rows" not in judged[0]
    assert calls(vendors) == 1 + 2 == 1 + foreseen.calls
    found = asked.scores(store, "correctness").filter(pl.col("judge") == "judge")
    assert set(found["query_id"]) == {"q1", "q2"}


def test_the_plan_counts_all_gold_answers_that_a_judge_is_sent(tmp_path: Path):
    text = (
        asked.SPEC.replace("[1, 2]", "1")
        + 'modes = "none"\n[reader.judge]\nmodel = "judge"\nscorers = "correctness"\n'
    )
    job = asked.job(asked.store_of(tmp_path), text=text)
    golds = job.material.golds.head(1)
    many = pl.concat([golds.with_columns(answer=pl.lit(f"right answer number {n}")) for n in range(20)])
    one, all_of_them = (
        plan(replace(job, material=replace(job.material, golds=rows))).usd for rows in (golds, many)
    )
    assert all_of_them > one


@pytest.mark.slow
def test_citations_count_against_the_passages_that_fitted(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    text = asked.SPEC.replace("[1, 2]", "[3]") + 'prompts = "grounded"\nscorers = ["citation_recall"]\n'
    asked.ask(store, asked.job(store, vendors.url, text), vendors.url)
    whole = asked.scores(store, "citation_recall")
    assert {*whole.select("run_id", "query_id").iter_rows()} == {
        (run, query) for run, ranked in asked.RANKED.items() for query, found in ranked.items()
        if asked.GOLD[query] in found
    }  # fmt: skip
    asked.ask(store, asked.job(store, vendors.url, text + "context_tokens = 4\n"), vendors.url)
    cut = asked.scores(store, "citation_recall").filter(pl.col("prompt") != "grounded")
    assert set(cut["value"]) == {1.0}, "the only passage that fits is gold, and cited"


@pytest.mark.slow
def test_the_budget_stops_hard_and_what_is_whole_has_landed(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    whole = plan(asked.job(store, vendors.url)).usd
    short = asked.job(store, vendors.url, f"budget_usd = {0.7 * whole}\n" + asked.SPEC, concurrency=1)
    with pytest.raises(BudgetError):
        asked.ask(store, short, vendors.url)
    there = asked.counts(store)
    assert set(there.values()) == {3}
    assert 0 < len(there) < 6
    paid = calls(vendors)
    outcome = asked.ask(store, asked.job(store, vendors.url), vendors.url)
    assert len(asked.counts(store)) == 6
    assert calls(vendors) == 12 > paid
    assert outcome.status.usd <= whole


@pytest.mark.slow
def test_a_cancelled_job_goes_on(tmp_path: Path, vendors: Vendors):
    vendors.state.delay_s = 0.05
    store = asked.store_of(tmp_path)
    job = asked.job(store, vendors.url, concurrency=1)
    outcome = asked.ask(store, job, vendors.url, cancelled=lambda: calls(vendors) > 5)
    assert outcome.status.state is State.CANCELLED
    assert outcome.stored == ""
    asked.ask(store, job, vendors.url)
    assert len(set(sent(vendors))) == calls(vendors) == 12
    assert len(asked.counts(store)) == 6


def test_instructions_in_passages_stand_between_marks(tmp_path: Path, vendors: Vendors):
    store = asked.store_of(tmp_path)
    asked.ask(store, asked.job(store, vendors.url), vendors.url)
    for system, user in sent(vendors):
        for text in asked.built.TEXTS.values():
            assert not text or text not in system
            assert not text or user.count(text) == user.count(f">\n{text}\n</passage ")


@pytest.mark.slow
def test_faults_lose_nothing(tmp_path: Path):
    with serve(chat=asked.answer) as server:
        faults = (Step.error(429, retry_after="0"), Step.error(500), Step("malformed"), Step("drop"))
        server.script(CHAT, *faults)
        store = asked.store_of(tmp_path)
        outcome = asked.ask(store, asked.job(store, server.url, attempts=6), server.url)
        assert outcome.status.state is State.FINISHED
    assert set(asked.counts(store).values()) == {3}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (('"r-a", "r-b"', '"r-x"'), "r-x"),
        (('["reader"]', '["nobody"]'), "nobody"),
        (("k = [1, 2]", 'k = 1\nprompts = "nope"'), "nope"),
        (("k = [1, 2]", 'k = 1\nmodes = "gold"\ngold_from = 5\ngolden_set = "nope"'), "nope"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, change: tuple[str, str], where: str):
    with pytest.raises((InputError, UnknownNameError), match=where):
        asked.job(asked.store_of(tmp_path), text=asked.SPEC.replace(*change))


def test_a_judge_of_its_own_answers_is_warned_of(tmp_path: Path):
    text = asked.SPEC + 'judge.model = ["second", "reader"]\n'
    job = asked.job(asked.store_of(tmp_path), text=text)
    assert [problem.where for problem in plan(job).problems] == ["reader.judge"]


@pytest.mark.parametrize(
    "text",
    [
        asked.SPEC.replace('runs = ["r-a", "r-b"]', ""),
        asked.SPEC.replace('["reader"]', "[]"),
        asked.SPEC + "passes = 0\n",
        asked.SPEC + "unknown = 1\n",
        asked.SPEC.replace("[1, 2]", "[]"),
        asked.SPEC + 'scorers = "ideal_f1"\n',
        asked.SPEC + '[reader.judge]\nmodel = "judge"\nscorers = "ideal"\n',
    ],
)
def test_a_specification_says_what_is_wrong(text: str):
    with pytest.raises(SpecError):
        load_as(ReaderSpec, text)
