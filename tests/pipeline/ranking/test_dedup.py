"""Near copies in a candidate pool: who is a copy, who stays, and a sweep over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.ranking.pool import DEDUPS, dedup_options, kept
from core.pipeline.sweep import parse
from core.pipeline.sweep.check import check, require
from core.pipeline.sweep.problems import SpecError
from core.pipeline.sweep.read import read_job
from core.store import Snapshot, Store

WORDS = [f"{name}{number}" for number in range(4) for name in ("alpha", "beta", "gamma", "delta", "nu")]
LONG = " ".join(WORDS)


def copies(method: str, texts: list[str], **options: Any) -> list[list[bool]]:
    told = dedup_options({"method": method, **options})
    way = DEDUPS[method]
    assert way.mark is not None
    return way.alike([way.mark(text, told) for text in texts], told).tolist()


def test_exact_copies_differ_in_case_and_blanks_at_most():
    assert copies("exact", ["A  b\nc", "a B c", "a b  d", "ab c"])[0] == [True, True, False, False]


@pytest.mark.parametrize(
    ("other", "alike"), [(LONG, True), (LONG + " end", True), (LONG[: len(LONG) // 2], False), ("", False)]
)
def test_near_copies_by_shingles(other: str, alike: bool):
    assert copies("minhash", [LONG, other], threshold=0.7)[0][1] == alike
    assert copies("minhash", [LONG, other], threshold=0.7) == copies("minhash", [LONG, other], threshold=0.7)


@given(st.lists(st.sampled_from(WORDS), min_size=4, max_size=60), st.integers(0, 59), st.sampled_from(WORDS))
def test_the_estimate_is_near_the_jaccard_similarity(words: list[str], at: int, instead: str):
    changed = [*words]
    changed[at % len(words)] = instead
    one, other = (
        {" ".join(each[start : start + 3]) for start in range(len(each) - 2)} for each in (words, changed)
    )
    exact = len(one & other) / len(one | other)
    told = dedup_options({"method": "minhash", "permutations": 1024})
    mark = DEDUPS["minhash"].mark
    assert mark is not None
    estimate = np.mean(mark(" ".join(words), told) == mark(" ".join(changed), told))
    assert estimate == pytest.approx(exact, abs=0.12)  # nearly four standard errors at 1,024 permutations


def test_vectors_are_compared_by_their_direction():
    told = dedup_options({"method": "cosine", "threshold": 0.99})
    vectors = [np.array(each) for each in ([1.0, 0.0], [5.0, 0.1], [0.0, 1.0], [0.0, 0.0])]
    assert DEDUPS["cosine"].alike(vectors, told)[0].tolist() == [True, True, False, False]


SQUARES = st.integers(0, 9).flatmap(lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n))


@given(SQUARES, st.integers(1, 9))
def test_who_stays_as_one_by_one(flags: list[bool], depth: int):
    n = int(np.sqrt(len(flags)))
    alike = np.array(flags, dtype=bool).reshape(n, n)
    alike |= alike.T
    expected: list[int] = []
    for place in range(n):
        if len(expected) < depth and not any(alike[place][other] for other in expected):
            expected.append(place)
    assert kept(alike, depth).tolist() == expected


def test_options_are_checked():
    assert dedup_options({"method": "exact"}) == {"method": "exact", "look": 2}
    with pytest.raises(UnknownNameError):
        dedup_options({"method": "soundex"})
    with pytest.raises(InputError):
        dedup_options({"method": "minhash", "threshold": 2.0})


SPEC = """
name = "copies"
collection = "passages.csv"
queries = "asked.csv"
golden_set = "qrels.csv"
[axes]
mode = ["sparse", "hybrid"]
embedder = "fake"
candidates = [2, 3]
reranker = ["none", "fake"]
dedup = ["none", "exact", {{ method = "minhash", threshold = 0.7 }}, "cosine"]
[latency]
repeats = {repeats}
"""
PASSAGES = (
    "passage_id,text\na,the cat sat on the mat by the door all day long\n"
    "b,The cat sat on the mat  by the door all day long\n"
    "c,the cat sat on the mat by the door all day long today\nd,a cat and a dog\ne,zebras run fast\n"
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Snapshot]:
    folder = tmp_path_factory.mktemp("copies")
    (folder / "passages.csv").write_text(PASSAGES)
    (folder / "asked.csv").write_text("query_id,text\nq1,cat on the mat\nq2,zebras\n")
    (folder / "qrels.csv").write_text("query_id,passage_id,grade\nq1,a,5\nq1,d,4\nq2,e,5\n")
    job, problems = read_job(parse(SPEC.format(repeats=1), "toml", folder=folder))
    store = Store.open(folder / "store")
    with store.write("evaluate") as writer:
        outcome = run_job(job, writer.add, site=Site(work=folder / "evaluations"))
    assert not problems
    return outcome.runs, store.read()


def pool(snapshot: Snapshot, run: Any, query: str = "q1") -> list[str]:
    stage = "pool" if run.stack.spec["reranker"] != "none" else "final"
    rows = snapshot.rankings([run.run_id], stage=stage, query_id=query)
    return rows.sort("rank")["passage_id"].to_list()


def test_a_sparse_stack_has_no_vectors_to_compare(swept: tuple[list[Any], Snapshot], tmp_path: Path):
    specs = [run.stack.spec for run in swept[0]]
    assert {spec["mode"] for spec in specs if spec.get("dedup", {}).get("method") == "cosine"} == {"hybrid"}
    assert len(specs) == 2 * 2 * (3 + 4)
    alone = 'collection = "x"\n[[stack]]\nmode = "sparse"\ndedup = "cosine"\n'
    with pytest.raises(SpecError, match="no vectors"):
        require(check(parse(alone, "toml", folder=tmp_path)))


@pytest.mark.slow
def test_a_sweep_shows_what_suppression_does(swept):
    runs, snapshot = swept
    by_method = {}
    for run in runs:
        spec = run.stack.spec
        method = spec.get("dedup", {}).get("method", "none")
        by_method.setdefault((spec["mode"], method, spec["candidates"], spec["reranker"]), run)
    assert {method for _, method, _, _ in by_method} >= {"none", "exact", "minhash"}
    for (mode, method, k, _), run in by_method.items():
        found = pool(snapshot, run)
        assert len(found) == len(set(found)) <= k
        copies_of_a = [passage for passage in found if passage in "abc"]
        if method == "exact":
            assert not {"a", "b"} <= set(found)
        if method == "minhash":
            assert len(copies_of_a) == 1
            assert "d" in found  # the place that a copy had
        if method == "none" and mode == "sparse":
            assert len(copies_of_a) == min(k, 3)
        assert ("-" in str(run.pool)) == (method != "none")
        stages = set(snapshot.timings([run.run_id])["stage"])
        assert ("dedup" in stages) == (method != "none")


def test_what_was_dropped_is_counted_per_query(swept):
    runs, snapshot = swept
    run = next(
        run for run in runs
        if run.stack.spec["mode"] == "sparse" and run.stack.spec.get("dedup", {}).get("method") == "minhash"
        and run.stack.spec["candidates"] == 2 and run.stack.spec["reranker"] == "none"
    )  # fmt: skip
    rows = snapshot.signals([run.run_id]).filter(pl.col("signal") == "dedup_dropped")
    assert dict(rows.select("query_id", "value").iter_rows()) == {"q1": 2.0, "q2": 0.0}
    assert "without copies (minhash" in run.label


@pytest.mark.slow
def test_nothing_is_suppressed_where_nothing_is_alike(tmp_path: Path):
    folder = tmp_path
    (folder / "passages.csv").write_text("passage_id,text\na,one cat\nb,two dogs cat\nc,three fish cat\n")
    (folder / "asked.csv").write_text("query_id,text\nq1,cat\n")
    (folder / "qrels.csv").write_text("query_id,passage_id,grade\nq1,a,5\n")
    spec = SPEC.format(repeats=0).replace('["sparse", "hybrid"]', '"sparse"').replace(', "cosine"', "")
    job, _ = read_job(parse(spec, "toml", folder=folder))
    store = Store.open(folder / "store")
    with store.write("evaluate") as writer:
        outcome = run_job(job, writer.add, site=Site(work=folder / "evaluations"))
    found = {tuple(pool(store.read(), run)) for run in outcome.runs if run.stack.spec["candidates"] == 3}
    assert len(found) == 1
