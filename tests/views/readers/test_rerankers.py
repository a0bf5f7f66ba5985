"""Precision against similarity, and speed against their product, on scores made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.workspace.scope import Scope
from core.records import Batch
from core.tables import frame
from core.views.readers.generators import fitted, method_of, rebel_chart, rebel_table, rerankers_answer
from tests.stores import Lab

STACKS = {  # run → specification, similarity and precision of every pass
    "plain": ({}, (3, 3), (0.5, 0.5)),
    "ranked": ({"reranker": "relevance-one-turn:m"}, (2, 2), (0.75, 0.75)),
    "two": ({"reranker": "rebel-two-turn:m"}, (4, 5), (0.75, 0.5)),
}


@pytest.mark.parametrize(
    ("spec", "expect"),
    [
        ({}, "none"),
        ({"reranker": "none", "rewrite": "rules"}, "none"),
        ({"rewrite": "hyde:gpt"}, "HyDE"),
        ({"rewrite": "multi-query:gpt"}, "multi-query"),
        ({"rewrite": "hyde:gpt", "reranker": "rerank-2.5"}, "relevance only"),
        ({"reranker": "relevance:gpt"}, "relevance only"),
        ({"reranker": "rebel-one-turn:gpt"}, "one turn"),
        ({"reranker": "rebel-two-turn:gpt"}, "two turns"),
    ],
)
def test_the_method_is_read_from_the_specification(spec, expect):
    assert method_of(spec) == expect


def test_every_stack_with_both_scores(tmp_path: Path):
    lab = Lab()
    for name, (spec, *_) in STACKS.items():
        lab.run(name, spec=spec)
    store = lab.write(tmp_path / "store")
    answers, scores, timings = [], [], []
    for run_id, (_, similar, precise) in STACKS.items():
        for query in ("q1", "q2"):
            timings.append(
                {"run_id": run_id, "query_id": query, "stage": "retrieve", "repeat": 1, "ms": 500.0}
            )
            for turn, values in enumerate(zip(similar, precise, strict=True), 1):
                key = {
                    "run_id": run_id,
                    "query_id": query,
                    "reader": "r",
                    "mode": "top_k",
                    "k": 2,
                    "pass": turn,
                }
                answers.append({**key, "text": "x" * 90, "ms": 400.0})
                for scorer, value, scale in zip(
                    ("similarity", "precision"), values, ("0-5", "0-1"), strict=True
                ):
                    about = {"scorer": scorer, "judge": "j", "value": float(value), "scale": scale}
                    scores.append({**key, **about})
    rows = {"answers": answers, "answer_scores": scores, "timings": timings}
    with store.write("judged") as writer:
        writer.add(Batch(frames={name: frame(name, each) for name, each in rows.items()}))
    found = rebel_table(store.read(), Scope("lab"))
    assert dict(found.select("name", "method").iter_rows()) == {
        "plain": "none", "ranked": "relevance only", "two": "two turns",
    }  # fmt: skip
    assert found["name"].to_list() == ["two", "plain", "ranked"]
    by_name = {row["name"]: row for row in found.iter_rows(named=True)}
    assert by_name["plain"]["quality"] == pytest.approx(1.5)
    assert by_name["plain"]["passes"] == pytest.approx([1.5, 1.5])
    assert by_name["plain"]["speed"] == pytest.approx(90 / 0.9)
    assert by_name["plain"]["queries"] == 2
    slope, base = fitted(found)["relevance alone"]
    assert (slope, base) == pytest.approx((-4.0, 5.0))
    assert rerankers_answer(found)[0].startswith("Two turns answers best: ")
    assert rerankers_answer(found.head(1))[0].startswith("Two turns answers best, the only one measured: ")
    assert {trace.type for trace in rebel_chart(found).data} == {"scatter", "box"}


def test_nothing_judged(tmp_path: Path):
    assert rebel_table(Lab().run("a").write(tmp_path / "store").read(), Scope("lab")).is_empty()
