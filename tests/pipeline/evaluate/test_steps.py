"""Steps are shared by what they are made of, and go as deep as any stack needs."""

from __future__ import annotations

import pytest

from core.pipeline.demo import grid
from core.pipeline.evaluate import steps
from core.pipeline.evaluate.steps import Graph, Identities, Step, graph
from core.pipeline.ranking.pool import DEDUPS
from core.records import Stack, canonical_json

NAMES = Identities(
    corpora={None: "h", "cut": "h2"}, full_dims={("wordllama", d): 256 for d in (64, 128, 256)}
)
DENSE = {"mode": "dense", "embedder": "e", "dim": 4, "index": "flat", "reranker": "none", "candidates": 10}
RRF = {"method": "rrf", "constant": 60, "depth": 100}
HYBRID = {**DENSE, "mode": "hybrid", "sparse": "bm25", "fusion": RRF}


def routes(*specs: dict[str, object], deepest: tuple[str, ...] = (), names: Identities = NAMES) -> Graph:
    return graph(map(Stack, specs), names, deepest=deepest)


def kinds(steps: tuple[Step, ...]) -> dict[str, int]:
    found = [step.kind for step in steps]
    return {kind: found.count(kind) for kind in found}


def test_the_demo_embeds_once_and_searches_every_index_once():
    made = graph(grid(), NAMES)
    assert len(made.routes) == 76
    assert kinds(made.builds) == {"bm25": 1, "vectors": 1, "slice": 2, "index": 9}
    assert kinds(made.steps) == {"sparse": 1, "embed": 3, "search": 9, "fuse": 9}
    assert {made.depths[step] for step in made.steps if step.kind in ("search", "sparse", "fuse")} == {200}


def test_what_is_needed_comes_first():
    made = graph(grid(), NAMES)
    for them in (made.steps, made.builds):
        for at, step in enumerate(them):
            assert all(each in them[:at] for each in step.needs if each.asks == step.asks)


def test_a_fusion_asks_its_legs_for_its_own_depth():
    made = routes({**HYBRID, "candidates": 10}, {**HYBRID, "candidates": 30})
    assert {step.kind: made.depths[step] for step in made.steps if step in made.depths} == {
        "sparse": 100, "search": 100, "fuse": 30,
    }  # fmt: skip


def test_equal_content_is_one_step_and_other_content_another():
    base = routes(DENSE).steps
    assert routes({**DENSE, "candidates": 99}).steps == base
    for change in (
        {"dim": 8},
        {"metric": "ip"},
        {"index_params": {"M": 9}},
        {"embedder": "x"},
        {"rewrite": "rules"},
    ):
        assert routes({**DENSE, **change}).steps[-1] != base[-1]
    told = Identities(corpora={None: "h"}, models={"e": {"files": "1"}})
    assert routes(DENSE, names=told).steps[0] != base[0]
    other = Identities(corpora={None: "other"})
    assert routes(DENSE, names=other).steps[0] == base[0]  # the query is embedded alike
    assert routes(DENSE, names=other).steps[1] != base[1]


def test_indexes_that_are_only_searched_in_another_way_are_built_once():
    graphs = [{**DENSE, "index": "hnsw-f32", "index_params": {"M": 8, "efSearch": ef}} for ef in (8, 64)]
    lists = [
        {**DENSE, "index": "pgvector", "index_params": {"url_env": "U", "probes": probes, "exact": exact}}
        for probes, exact in ((1, "no"), (9, "no"), (9, "yes"))
    ]
    there = [{**each, "index_params": {**each["index_params"], "table": "t"}} for each in lists]
    for specs, searches, builds in (
        (graphs, 2, 1),
        ([*graphs, {**graphs[0], "index_params": {"M": 9, "efSearch": 8}}], 3, 2),
        (lists, 3, 1),
        (there, 3, 3),
    ):
        made = routes(*specs)
        assert kinds(made.steps)["search"] == searches
        assert kinds(made.builds)["index"] == builds
    searched = [step for step in routes(*graphs).steps if step.kind == "search"]
    assert [step.index_options for step in searched] == [each["index_params"] for each in graphs]
    plain = {**DENSE, "index": "hnsw-f32"}
    assert routes(plain).steps[-1].built == routes({**plain, "index_params": {"efSearch": 9}}).steps[-1].built


def test_a_rewrite_changes_what_every_later_step_is_asked():
    (plain,), (rewritten,) = (routes(each).routes for each in (HYBRID, {**HYBRID, "rewrite": "rules"}))
    assert [step.kind for step in rewritten.steps] == ["rewrite", "sparse", "embed", "search", "fuse"]
    assert all(step.rewrite == rewritten.steps[0] for step in rewritten.steps)
    assert set(plain.steps).isdisjoint(rewritten.steps)
    assert {step.built for step in plain.steps if step.kind in ("sparse", "search")} == {
        step.built for step in rewritten.steps if step.kind in ("sparse", "search")
    }


def test_rerankers_are_asked_at_each_depth_or_at_the_deepest():
    stacks = [{**DENSE, "reranker": name, "candidates": k} for name in ("r", "listwise") for k in (5, 10)]
    each = routes(*stacks)
    assert kinds(each.steps)["rerank"] == 4
    assert not any(route.replayed for route in each.routes)
    deep = routes(*stacks, deepest=("r",))
    assert [route.rerank.params["depth"] for route in deep.routes if route.rerank] == [10, 10, 5, 10]
    assert [route.replayed for route in deep.routes] == [True, False, False, False]
    assert deep.depths[deep.routes[0].pool] == 10


def test_cuts_and_what_is_sent_keep_the_pool():
    plain, cut, sent, rerank = routes(
        DENSE,
        {**DENSE, "cut": {"method": "otsu"}},
        {**DENSE, "chunks_sent": 3},
        {**DENSE, "reranker": "r"},
    ).routes
    assert [route.keeps_pool for route in (plain, cut, sent, rerank)] == [False, True, True, True]
    assert (plain.pool, plain.depth) == (cut.pool, cut.depth)
    assert sent.sent == 3
    assert {route.pool_name for route in (plain, cut, sent, rerank)} == {"dense@10"}
    assert routes(HYBRID).routes[0].pool_name == "rrf100@10"


def test_chunkings_are_other_corpora():
    chunker = {"method": "fixed", "size": 100}
    names = Identities(
        corpora={None: "h", "fixed-100": "h2"}, chunkings={canonical_json(chunker): "fixed-100"}
    )
    whole, cut = routes(DENSE, {**DENSE, "chunker": chunker}, names=names).routes
    assert (whole.chunking, cut.chunking) == (None, "fixed-100")
    assert whole.steps[0] == cut.steps[0]
    assert whole.steps[1] != cut.steps[1]


def test_the_first_step_of_a_model_stays_the_first_whatever_is_left():
    stacks = [{**DENSE, "dim": 4}, {**DENSE, "dim": 8}, {**DENSE, "reranker": "r"}]
    made = routes(*stacks)
    assert {(step.kind, step.params.get("dim")) for step in made.firsts} == {("embed", 4), ("rerank", None)}


@pytest.mark.parametrize(
    ("dropping", "name", "asked"),
    [
        ({}, "bm25@10", {"sparse": 10}),
        ({"dedup": {"method": "exact", "look": 3}}, "bm25-exact@10", {"sparse": 30, "dedup": 10}),
        ({"again": {"method": "minhash"}}, "bm25-minhash@10", {"sparse": 10, "again": 10}),
        (
            {"again": {"method": "minhash", "look": 2}, "dedup": {"method": "exact", "look": 3}},
            "bm25-exact-minhash@10",
            {"sparse": 60, "dedup": 20, "again": 10},
        ),
    ],
)
def test_each_step_that_drops_passages_is_given_as_many_as_it_looks_at(
    monkeypatch: pytest.MonkeyPatch, dropping: dict[str, object], name: str, asked: dict[str, int]
):
    monkeypatch.setattr(steps, "OF_POOL", {"dedup": DEDUPS, "again": DEDUPS})
    monkeypatch.setattr(steps, "QUERY_STAGES", {**steps.QUERY_STAGES, "again": "again"})
    made = routes({"mode": "sparse", "sparse": "bm25", "reranker": "none", "candidates": 10, **dropping})
    (route,) = made.routes
    assert route.pool_name == name
    assert route.ranked == asked["sparse"]
    assert {step.kind: made.depths[step] for step in made.steps} == asked
