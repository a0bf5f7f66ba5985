"""Hypothetical passages and several queries: how answers are read, and what a sweep searches with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.pipeline.evaluate import run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index.bm25 import make_bm25
from core.pipeline.query.rewrite import (
    HYDE,
    MULTI_QUERY,
    QUERIES,
    WAYS,
    ChatRewrite,
    make_rewrite,
    rewrite_config,
    way_of,
)
from core.pipeline.ranking.pool import reciprocal_rank_fusion
from core.pipeline.sweep import parse
from core.pipeline.sweep.read import read_job
from core.providers.calls.keys import ALLOW
from core.providers.chat import CHATS, FakeChat
from core.store import Snapshot, Store
from tests.pipeline.evaluate.vendor import Vendor, vendor
from tests.vendors import keys_for

ASKED = "where do whales sing"
MARK = "0123456789ab"


@pytest.mark.parametrize(
    ("way", "answer", "text", "problem"),
    [
        (HYDE, "Whales sing.\nThey do so at night.", "Whales sing. They do so at night.", ""),
        (HYDE, '{"passage": "Whales sing."}', "Whales sing.", ""),
        (HYDE, '{"text": "Whales sing."}', "", 'it has no text "passage"'),
        (HYDE, "?!", "", "it is empty"),
        (HYDE, "x" * 5000, "", "it is longer than 3000 characters"),
        (HYDE, f"a {MARK} b", "", "it repeats the marks"),
        (MULTI_QUERY, "1. whale song\n2) song of whales", f"{ASKED}\nwhale song\nsong of whales", ""),
        (MULTI_QUERY, '{"queries": ["a b", "c d", "e f", "g h"]}', f"{ASKED}\na b\nc d\ne f", ""),
        (MULTI_QUERY, f"{ASKED}\n\n?\n{ASKED}", "", "it has no query that can be used"),
        (MULTI_QUERY, '{"queries": "a"}', "", 'it has no list "queries"'),
    ],
)
def test_answers_are_read(way: str, answer: str, text: str, problem: str):
    reading = WAYS[way].read(answer, ASKED, MARK)
    assert (reading.value, reading.problem) == (text, problem)


def test_names_and_what_is_planned():
    for way in WAYS:
        assert rewrite_config(f"{way}:gpt-4o-mini") is CHATS["gpt-4o-mini"]
        assert way_of(f"{way}:a:b") == way
    short, long = (
        make_rewrite(f"{way}:gpt-4o-mini", ready=False).expected(ASKED)[1].amount for way in ("chat", HYDE)
    )
    assert long > 5 * short


def test_what_cannot_be_used_falls_back_to_the_question():
    for way in (HYDE, MULTI_QUERY):
        reply = ChatRewrite(FakeChat(["", ""]), way).rewrite(f"  {ASKED} ")
        assert reply.value == ASKED
        assert reply.details["fallback"]
        fine = ChatRewrite(FakeChat(), way).rewrite(ASKED)
        assert "fallback" not in fine.details
        assert len(fine.value.splitlines()) == (QUERIES if way == MULTI_QUERY else 1)


PASSAGES = {
    "a": "whales sing at night in the sea",
    "b": "this passage is about fish",
    "c": "crabs walk sideways on the sand",
    "d": "dogs sing badly",
    "e": "where do cats sleep",
}
SPEC = """
name = "ways"
collection = "passages.csv"
queries = "asked.csv"
golden_set = "qrels.csv"
[models.chat]
provider = "openai"
model = "gpt-4o-mini"
base_url = "{url}/openai/v1"
key_env = "KEY"
chat = {{ json_mode = "schema" }}
[axes]
mode = ["sparse", "hybrid"]
embedder = "fake"
candidates = 3
reranker = ["none", "fake"]
rewrite = ["none", "hyde:chat", "multi-query:chat"]
[latency]
repeats = 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with vendor(tmp_path_factory.mktemp("vendor")) as serving:
        yield serving


def swept(server: Vendor, folder: Path, store_name: str = "store") -> tuple[list[Any], Snapshot]:
    texts = "".join(f"{key},{text}\n" for key, text in PASSAGES.items())
    (folder / "passages.csv").write_text("passage_id,text\n" + texts)
    (folder / "asked.csv").write_text(f"query_id,text\nq1,{ASKED}\n")
    (folder / "qrels.csv").write_text("query_id,passage_id,grade\nq1,a,5\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "ways")
        patch.setenv(ALLOW, f"KEY={server.url}")
        job, _ = read_job(parse(SPEC.format(url=server.url), "toml", folder=folder))
    store = Store.open(folder / store_name)
    with store.write("evaluate") as writer:
        keys = keys_for(server.url, KEY="ways")
        outcome = run_job(job, writer.add, site=Site(work=folder / "evaluations", keys=keys))
    return outcome.runs, store.read()


@pytest.fixture(scope="module")
def made(server: Vendor, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Snapshot]:
    return swept(server, tmp_path_factory.mktemp("ways"))


def run_of(runs: list[Any], **wanted: str) -> Any:
    return next(
        run for run in runs if all(run.stack.spec.get(key, "none") == value for key, value in wanted.items())
    )


def ranking(snapshot: Snapshot, run: Any, stage: str = "final") -> list[str]:
    return snapshot.rankings([run.run_id], stage=stage).sort("rank")["passage_id"].to_list()


def test_a_hypothetical_passage_is_searched_in_place_of_the_question(made: tuple[list[Any], Snapshot]):
    runs, snapshot = made
    index = make_bm25(list(PASSAGES.values()), {})
    expected = index.search(f"This passage is about {ASKED}.", 3).passages
    run = run_of(runs, mode="sparse", rewrite="hyde:chat", reranker="none")
    assert ranking(snapshot, run) == [list(PASSAGES)[at] for at in expected]


def test_rankings_of_several_queries_are_fused(made: tuple[list[Any], Snapshot]):
    runs, snapshot = made
    index, words = make_bm25(list(PASSAGES.values()), {}), ASKED.split()
    queries = [ASKED, *(" ".join(words[start:]) for start in range(1, 4))]
    expected = reciprocal_rank_fusion([index.search(query, 100) for query in queries], 3).passages
    run = run_of(runs, mode="sparse", rewrite="multi-query:chat", reranker="none")
    assert ranking(snapshot, run) == [list(PASSAGES)[at] for at in expected]
    assert run.pool == "queries-rrf100@3"


def test_rerankers_judge_against_the_question_itself(made: tuple[list[Any], Snapshot]):
    runs, snapshot = made
    pools = {}
    for rewrite in ("none", "hyde:chat", "multi-query:chat"):
        run = run_of(runs, mode="sparse", rewrite=rewrite, reranker="fake")
        rows = snapshot.rankings([run.run_id], stage="final").select("passage_id", "score")
        pools[rewrite] = dict(rows.iter_rows())
    for passage, score in pools["none"].items():
        for other in ("hyde:chat", "multi-query:chat"):
            assert pools[other].get(passage, score) == pytest.approx(score)


def test_the_models_calls_are_a_stage_with_time_and_usage(made: tuple[list[Any], Snapshot]):
    runs, snapshot = made
    for rewrite in ("hyde:chat", "multi-query:chat"):
        run = run_of(runs, mode="hybrid", rewrite=rewrite, reranker="none")
        times = snapshot.timings([run.run_id])
        assert {"rewrite", "embed", "retrieve", "sparse", "fuse"} == set(times["stage"])
        assert not times.select("query_id", "stage", "repeat").is_duplicated().any()
        used = snapshot.usage([run.run_id]).filter(stage="rewrite", unit="output_tokens")
        assert (used["amount"] > 0).all()


@pytest.mark.slow
def test_nothing_is_paid_twice(server: Vendor, tmp_path: Path):
    swept(server, tmp_path)
    before = len(server.lines())
    runs, _ = swept(server, tmp_path, "another")
    assert len(runs) == 2 * 2 * 3
    assert len(server.lines()) == before
