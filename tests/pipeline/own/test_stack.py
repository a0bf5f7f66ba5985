"""Custom pipelines as stacks: specified, planned, measured, resumed, and what their faults cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.errors import BudgetError, InputError, ProviderError
from core.files import read_json
from core.number_format import count
from core.pipeline.evaluate import Outcome, Protocol, State
from core.pipeline.evaluate.job import named_corpus
from core.pipeline.own.config import OwnStack
from core.pipeline.own.signature import takes_no_k
from core.pipeline.own.version import refuse_code, versioned
from core.pipeline.search.evaluation import searching
from core.pipeline.sweep import parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.plan import plan
from core.pipeline.sweep.problems import SpecError
from core.records import Batch, GoldenSet, Stack
from core.tables import frame
from core.work.sweep.own import fault_words
from tests.pipeline.corpora import passages
from tests.pipeline.evaluate.helpers import Sunk, job, run

TEXTS = ["cats purr", "dogs bark", "cows moo", "bees hum"]
ASKED = ["cats", "dogs", "bees"]
CODE = """
import time
calls = open("calls.txt", "a")

def find(query, k=4, first="p000"):
    calls.write(query + "\\n"); calls.flush()
    if query == "dogs": raise ValueError("no dogs")
    if query == "bees": return {"hits": ["p002", "p002", "elsewhere"], "pool": ["p003", "p002"],
        "stages": {"rerank": 0.001}, "usage": [{"model": "m", "usd": 0.5}]}
    return [(first, 2.0), ("p001", 1.0)]

def answering(query):
    if query == "bees": return ["p003"]
    return {"calls": [["p000"], ["p001", "p000"]], "answer": "A " + query, "stages": {"generate": 0.001}}

def tuned(query, k=4, alpha=0, beta=0):
    best = ["p000", "p001", "p002", "p003"]
    return best[3 - alpha - beta:] + best[:3 - alpha - beta]

def by_text(query):
    return [{"id": "mine", "text": "cows  moo"}, {"text": "bees hum"}]

def parts(query, k=4, alpha=0):
    if query == "dogs": return {"hits": [{"text": "bark"}, {"id": "p000"}], "pool": [{"text": "hum"}]}
    return [{"text": "purr", "score": 2.0}, {"id": "p002", "text": "moo"}]

def broken(query):
    raise RuntimeError("always")
"""


def own(folder: Path, call: str = "find", **changes: Any) -> OwnStack:
    (folder / "barn.py").write_text(CODE)
    told = {"name": "barn", "call": f"barn:{call}", "path": folder, "candidates": 4, **changes}
    return OwnStack.model_validate(told)


def measured(
    folder: Path, *pipelines: OwnStack, asked: list[str] = ASKED, **options: Any
) -> tuple[Outcome, Sunk]:
    stacks = [Stack(each.spec(params)) for each in pipelines for params in each.points()]
    work = job(
        stacks,
        texts=passages(TEXTS),
        asked=asked,
        **{"protocol": Protocol(repeats=2, shuffled=True), "own": {p.name: p for p in pipelines}, **options},
    )
    return run(folder, work)


def ranked(sunk: Sunk, stage: str = "final") -> dict[str, list[str]]:
    rows = sunk.table("rankings").filter(stage=stage).sort("query_id", "rank")
    return {
        query: part["passage_id"].to_list()
        for (query,), part in rows.group_by("query_id", maintain_order=True)
    }


@pytest.mark.slow
def test_it_is_one_more_stack_of_the_evaluation(tmp_path: Path):
    """An exception costs its query's row; what matches nothing or stands twice is counted and named."""
    outcome, sunk = measured(tmp_path, own(tmp_path))
    (one,) = outcome.runs
    assert outcome.status.state is State.FINISHED
    first, last = ranked(sunk)
    assert ranked(sunk) == {first: ["p000", "p001"], last: ["p002"]}
    assert ranked(sunk, "pool")[last] == ["p003", "p002"]
    assert one.pool == "own@4"
    timings = sunk.table("timings")
    assert set(timings["stage"]) == {"pipeline", "rerank"}
    assert set(timings["query_id"]) == {first, last}
    assert timings.filter(stage="rerank", query_id=last)["ms"].to_list() == [0.001, 0.001]
    told = one.manifest["own"]
    assert told["failed"] == 1
    assert (told["faults"][0]["kind"], "no dogs" in told["faults"][0]["text"]) == ("exception", True)
    assert (told["repeated"], told["unmatched"], told["unmatched_passages"]) == (1, 1, ["elsewhere"])
    assert told["in_another_order"] == 0 < told["asked_again"]
    assert told["understood_as"] == ["(id, score)", "ids"]
    dollars = sunk.table("usage").filter(unit="usd")
    assert dollars.filter(pl.col("amount") > 0)["amount"].to_list() == [0.5]


def of_documents(folder: Path, **options: Any) -> tuple[Outcome, Sunk]:
    corpora = {None: named_corpus(passages(TEXTS), frame("chunks", []))}
    return measured(folder, own(folder, "parts"), asked=["cats", "dogs"], corpora=corpora, **options)


@pytest.mark.slow
def test_parts_of_documents_are_passages_of_its_own_chunking(tmp_path: Path):
    outcome, sunk = of_documents(tmp_path)
    (one,), (part,) = outcome.runs, sunk.all.collections
    assert one.chunking is not None
    assert one.chunking.startswith("own-barn-")
    assert part.collection_id == f"c@{one.chunking}"
    rows = sunk.table("chunks").select("passage_id", "source", "start_char", "end_char").rows()
    places = {name: (source, start, end) for name, source, start, end in rows}
    cats, dogs = sorted(ranked(sunk))
    assert [places[name] for name in ranked(sunk)[cats]] == [("p000", 5, 9), ("p002", 5, 8)]
    assert [places[name] for name in ranked(sunk)[dogs]] == [("p001", 5, 9), ("p000", 0, 9)]
    assert [places[name] for name in ranked(sunk, "pool")[dogs]] == [
        ("p003", 5, 8), ("p001", 5, 9), ("p000", 0, 9)
    ]  # fmt: skip
    assert {source for source, *_ in places.values()} == {"p000", "p001", "p002", "p003"}
    assert one.manifest["own"]["known_by"] == {"quote": 3, "id": 1}
    _, other = of_documents(tmp_path)  # from what is kept of its answers
    assert other.table("rankings").equals(sunk.table("rankings"))


@pytest.mark.slow
def test_what_it_cut_itself_is_taken_for_nothing_where_ids_alone_count(tmp_path: Path):
    corpora = {None: named_corpus(passages(TEXTS), frame("chunks", []))}
    outcome, sunk = measured(
        tmp_path, own(tmp_path, "parts", match="ids"), asked=["cats", "dogs"], corpora=corpora
    )
    assert outcome.runs[0].chunking is None
    assert sorted(ranked(sunk).values()) == [["p000"], ["p002"]]


@pytest.mark.slow
def test_an_answer_that_comes_along_is_one_of_a_reader_of_its_name(tmp_path: Path):
    _, sunk = measured(tmp_path, own(tmp_path, "answering"))
    (first, *_, last) = sorted(sunk.table("timings")["query_id"].unique())
    rows = sunk.table("answers").sort("query_id")
    assert rows["query_id"].to_list() == [first, sorted(sunk.table("timings")["query_id"].unique())[1]]
    assert rows["text"].to_list() == ["A cats", "A dogs"]
    assert set(rows.select("reader", "mode", "k", "ms", "usd").rows()) == {("barn", "top_k", 2, 0.001, None)}
    calls = sunk.table("signals").filter(signal="pipeline_calls")
    assert set(calls.select("query_id", "value").rows()) == {(query, 2.0) for query in rows["query_id"]}
    assert last not in calls["query_id"]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ([2, 2, 2], {"most_returned": 2, "wanted": 4, "capped_at": 2}),
        ([1, 2, 2], {"most_returned": 2, "wanted": 4, "capped_at": 2}),
        ([0, 1, 3], {"most_returned": 3, "wanted": 4}),  # what matches
        ([0, 0, 0], {"most_returned": 0, "wanted": 4}),
        ([0, 2, 4], {}),
    ],
)
def test_fewer_than_k_are_told_and_a_cap_stands_in_the_label(
    returned: list[int], told: dict[str, int], tmp_path: Path
):
    code = f"COUNTS = dict(zip({ASKED}, {returned}))\ndef find(query, n_results=10):\n"
    code += "    return [f'p00{at}' for at in range(COUNTS[query])]\n"
    pipeline = own(tmp_path)
    (tmp_path / "barn.py").write_text(code)
    (one,) = measured(tmp_path, pipeline)[0].runs
    said = one.manifest["own"]
    assert {name: said[name] for name in ("most_returned", "wanted", "capped_at") if name in said} == told
    cap = f" · at most {told['capped_at']} passages" if "capped_at" in told else ""
    assert one.label == f"barn, K = 4{cap}"
    words = [text for text in fault_words(said, 3) if text.startswith("It returns at most")]
    most = count(told.get("most_returned", 0), "passage")
    assert words == (
        [f"It returns at most {most} of the 4 asked for as n_results."] if "wanted" in told else []
    )


SIGNATURES = {
    "def find(query): ...": True,
    "def find(query, depth=3): ...": True,
    "def find(query, n_results=10): ...": False,
    "def find(query, **more): ...": False,
    "class find:\n def __call__(self, query): ...": False,  # how it is made is not told
    "find = partial(other, k=3)": False,
    "from elsewhere import find": False,
    "def find(": False,
}


@pytest.mark.parametrize("code", SIGNATURES)
def test_a_plan_says_that_nothing_takes_k_without_running_it(code: str, tmp_path: Path):
    pipeline = own(tmp_path)
    (tmp_path / "barn.py").write_text(f"raise SystemExit\n{code}\n")
    assert takes_no_k(pipeline) is SIGNATURES[code]
    spec = parse('collection = "x"\n[[stack]]\nname = "barn"\ncall = "barn:find"\n', folder=tmp_path)
    said = [str(problem) for problem in check(spec) if "may return fewer than K = 50" in str(problem)]
    assert bool(said) is SIGNATURES[code]


def test_passages_are_known_by_their_text(tmp_path: Path):
    outcome, sunk = measured(tmp_path, own(tmp_path, "by_text"), asked=["cats"])
    assert list(ranked(sunk).values()) == [["p002", "p003"]]
    assert outcome.runs[0].manifest["own"]["known_by"] == {"text": 2}


@pytest.mark.slow
def test_it_goes_on_and_asks_nothing_twice(tmp_path: Path):
    measured(tmp_path, own(tmp_path))
    asked = (tmp_path / "calls.txt").read_text().count("cats")
    again, sunk = measured(tmp_path, own(tmp_path))
    assert (tmp_path / "calls.txt").read_text().count("cats") == asked
    assert sunk.table("timings").height
    assert again.runs[0].manifest["own"]["failed"] == 1


@pytest.mark.slow
def test_parameters_are_stacks_that_share_a_process(tmp_path: Path):
    outcome, sunk = measured(tmp_path, own(tmp_path, params={"first": ["p000", "p003"]}), asked=["cats"])
    tops = sunk.table("rankings").filter(rank=1)["passage_id"].to_list()
    assert sorted(tops) == ["p000", "p003"]
    assert {each.manifest["own"]["processes"] for each in outcome.runs} == {1}
    assert [each.label for each in outcome.runs] == [
        f"barn, K = 4 · first {first} · at most 2 passages" for first in ("p000", "p003")
    ]


@pytest.mark.slow
def test_a_process_that_somebody_killed_costs_no_query(tmp_path: Path):
    """Killed once, the query is asked again; a query that is killed again has failed."""
    killing = """
import os, signal
from pathlib import Path
def find(query):
    seen = Path("seen.txt"); before = seen.read_text() if seen.exists() else ""
    seen.write_text(before + query)
    if query == "dogs" or (query == "cats" and query not in before): os.kill(os.getpid(), signal.SIGKILL)
    return ["p000"]
"""
    pipeline = own(tmp_path)
    (tmp_path / "barn.py").write_text(killing)
    outcome, sunk = measured(tmp_path, pipeline, protocol=Protocol(repeats=1, warm_up=0))
    told = outcome.runs[0].manifest["own"]
    assert [each["kind"] for each in told["faults"]] == ["killed"]
    assert told["retried"] == 1
    assert len(ranked(sunk)) == 2


@pytest.mark.slow
def test_what_fails_on_all_questions_is_no_stack_and_is_asked_again_once_mended(tmp_path: Path):
    pipeline = own(tmp_path, "broken")
    with pytest.raises(
        ProviderError, match=r"All questions failed \(3\), the first by exception: RuntimeError"
    ):
        measured(tmp_path, pipeline)
    (tmp_path / "barn.py").write_text("def broken(query): return ['p000']\n")
    outcome, sunk = measured(tmp_path, pipeline)
    assert outcome.runs[0].manifest["own"]["failed"] == 0
    assert len(ranked(sunk)) == 3


@pytest.mark.slow
def test_what_always_fails_ends_it(tmp_path: Path):
    asked = [f"cats {n}" for n in range(30)]
    with pytest.raises(
        ProviderError, match="20 calls in a row failed, the last by exception: RuntimeError: always"
    ):
        measured(tmp_path, own(tmp_path, "broken"), asked=asked)


@pytest.mark.slow
def test_a_budget_is_kept_or_refused(tmp_path: Path):
    with pytest.raises(BudgetError, match="ends here"):
        measured(tmp_path, own(tmp_path, usd_per_query=1.0), budget_usd=2.0)
    with pytest.raises(BudgetError, match="not known"):
        measured(tmp_path, own(tmp_path), budget_usd=2.0)


SPEC = """
collection = "barn.jsonl"
[axes]
mode = "sparse"
candidates = [2, 4]
[[stack]]
mode = "dense"
embedder = "fake"
[[stack]]
name = "shop"
call = "shop.search:retrieve"
params = { alpha = [0.3, 0.5], ef = [64, 256] }
version = "v1"
[[stack]]
name = "over HTTP"
url = "http://localhost:8000/search"
request = { json = { q = "{{ query }}", size = "{{ k }}" } }
response = { hits = "hits.hits[]", id = "_id" }
"""


def test_a_specification_names_it_beside_other_stacks(tmp_path: Path):
    spec = parse(SPEC, folder=tmp_path)
    stacks = expand(spec)
    assert [each.spec["mode"] for each in stacks] == ["sparse", "sparse", "dense", *["own"] * 5]
    assert stacks[3].spec == {
        "mode": "own", "name": "shop", "call": "shop.search:retrieve", "params": {"alpha": 0.3, "ef": 64},
        "version": "v1", "candidates": 50,
    }  # fmt: skip
    assert stacks[3].label == "shop, K = 50 · alpha 0.3, ef 64, v1"
    assert spec.own[0].path == tmp_path
    one = spec.own[0].model_copy(update={"method": "one-factor"})
    assert list(one.points()) == [
        {"alpha": 0.3, "ef": 64},
        {"alpha": 0.5, "ef": 64},
        {"alpha": 0.3, "ef": 256},
    ]
    assert parse(spec.model_dump_json(), "json").own == spec.own


@pytest.mark.extras
def test_its_parameters_are_searched(tmp_path: Path):
    """A function of two parameters: the search begins some of 16 points, the best among those that stay."""
    pytest.importorskip("optuna", reason="optuna is not installed")
    spec = parse(
        'collection = "x"\n[search]\ntrials = 8\nrounds = [4]\nmeasure = "RR@4"\n[[stack]]\nname = "barn"\n'
        'call = "barn:tuned"\nmethod = "search"\nparams = { alpha = [0, 1, 2, 3], beta = [0, 1, 2, 3] }',
        folder=tmp_path,
    )
    assert spec.searched
    pipeline = own(tmp_path, "tuned", params=spec.own[0].params)
    asked = [f"cats {n}" for n in range(8)]
    ids = [f"q{n:02}" for n in range(8)]
    rows = {"golden_set_id": "g", "query_id": ids, "passage_id": "p000", "grade": 5, "raw": 5}
    setup = Batch(
        golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="g"),),
        frames={"judgements": frame("judgements", pl.DataFrame(rows).to_dict())},
    )
    work = job(
        [Stack(pipeline.spec(params)) for params in pipeline.points()],
        texts=passages(TEXTS), asked=asked, protocol=Protocol(repeats=0), own={"barn": pipeline},
        setup=setup, spec=spec.plain(),
    )  # fmt: skip
    outcome, sunk = run(tmp_path, work, before=searching(work))
    found = read_json(outcome.folder.search)
    assert (found["stacks"], found["begun"]) == (16, 8)
    quality = {entry["stack_id"]: entry["quality"] for entry in found["entries"]}
    through = [quality[run_of.stack.stack_id] for run_of in sunk.all.runs]
    assert max(through) == 1.0
    dropped = [entry for entry in found["entries"] if entry["state"] == "dropped"]
    assert all(entry["quality"] < 1.0 and entry["beaten_by"] for entry in dropped)


@pytest.mark.extras
def test_a_search_cannot_grade_what_it_cut_itself(tmp_path: Path):
    pytest.importorskip("optuna", reason="optuna is not installed")
    spec = parse(
        'collection = "x"\n[search]\ntrials = 2\nrounds = [2]\nmeasure = "RR@4"\n[[stack]]\nname = "barn"\n'
        'call = "barn:parts"\nmethod = "search"\nparams = { alpha = [0, 1] }',
        folder=tmp_path,
    )
    pipeline = own(tmp_path, "parts", params=spec.own[0].params)
    rows = {"golden_set_id": "g", "query_id": ["q00"], "passage_id": "p000", "grade": 5, "raw": 5}
    setup = Batch(
        golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="g"),),
        frames={"judgements": frame("judgements", pl.DataFrame(rows).to_dict())},
    )
    work = job(
        [Stack(pipeline.spec(params)) for params in pipeline.points()],
        corpora={None: named_corpus(passages(TEXTS), frame("chunks", []))}, asked=["cats", "dogs"],
        protocol=Protocol(repeats=0), own={"barn": pipeline}, setup=setup, spec=spec.plain(),
    )  # fmt: skip
    with pytest.raises(InputError, match="returns passages that it cut itself"):
        run(tmp_path, work, before=searching(work))


MISTAKES = {
    "both": ('call = "a:b"\nurl = "http://localhost"', "Give one of call and url"),
    "no name within": ('call = "shop"', "call is MODULE:NAME"),
    "user in the address": ('url = "http://me:key@localhost"', "without a user name"),
    "key in the address": ('url = "http://localhost?api_key=1"', "key_env"),
    "key in a header": (
        'url = "http://localhost"\nrequest = { headers = { Authorization = "x" } }',
        "key_env",
    ),
    "an unknown key": ('call = "a:b"\nalpha = 1', "no key 'alpha'"),
    "an unknown preset": ('url = "http://localhost"\npreset = "elastic"', 'Did you mean "elasticsearch"'),
    "no JMESPath": ('url = "http://localhost"\nresponse = { hits = "a[" }', "is not JMESPath"),
    "a hole": (
        'url = "http://localhost"\nrequest = { json = { q = "{{ what }}" } }',
        "{{ what }} is filled by",
    ),
    "no interpreter": ('call = "a:b"\npython = "/nowhere/python"', "no such interpreter"),
    "no folder": ('call = "a:b"\npath = "nowhere"', "no such folder"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_with_their_place(name: str, tmp_path: Path):
    text, words = MISTAKES[name]
    try:
        spec = parse(f'collection = "x"\n[[stack]]\nname = "shop"\n{text}\n', folder=tmp_path)
        found = [str(each) for each in check(spec)]
    except SpecError as error:
        found = [str(each) for each in error.problems]
        assert any("text:2" in each or "text:" in each for each in found)
    assert any(words in each for each in found), found


def test_two_pipelines_have_two_names(tmp_path: Path):
    twice = '[[stack]]\nname = "a"\ncall = "a:b"\n' * 2
    with pytest.raises(SpecError, match="Two pipelines are called 'a'"):
        parse(f'collection = "x"\n{twice}', folder=tmp_path)


def test_a_plan_says_that_the_cost_is_unknown_and_runs_nothing(tmp_path: Path):
    pipeline = own(tmp_path)
    work = job([Stack(pipeline.spec({}))], texts=passages(TEXTS), asked=ASKED, own={"barn": pipeline})
    made = plan(work)
    assert made.usd is None
    assert made.stacks[0].usd_per_1k is None
    assert made.calls == 3 * 3 + 1
    assert not (tmp_path / "calls.txt").exists()
    priced = own(tmp_path, usd_per_query=0.002)
    made = plan(job([Stack(priced.spec({}))], texts=passages(TEXTS), asked=ASKED, own={"barn": priced}))
    assert (made.usd, made.stacks[0].usd_per_1k) == (pytest.approx(0.02), pytest.approx(2.0))


def test_a_version_is_what_its_command_prints(tmp_path: Path):
    assert versioned(own(tmp_path, version_cmd="echo 1.2")).version == "1.2"
    assert versioned(own(tmp_path, version_cmd="echo 1.2", version="3")).version == "3"
    with pytest.raises(InputError, match="prints no version"):
        versioned(own(tmp_path, version_cmd="false"))


def test_code_of_others_is_refused_with_the_reason(tmp_path: Path):
    with pytest.raises(
        InputError, match="An uploaded specification never runs code: the stack 'barn' would run"
    ):
        refuse_code([own(tmp_path)], "An uploaded specification")
