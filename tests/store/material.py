"""Small and large batches for the store's tests."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame

WHEN = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
CORPUS = Collection(collection_id="corpus", name="A corpus", source="tests", notes="none")
GOLD = GoldenSet(
    golden_set_id="gold",
    collection_id="corpus",
    name="Gold",
    judge="a person",
    parents=("older",),
    manifest={"seed": 7},
)


def run(run_id: str, **changes: object) -> Run:
    values = {
        "run_id": run_id,
        "collection_id": "corpus",
        "stack": Stack({"sparse": "bm25", "name": run_id}),
        "label": f"Run {run_id}",
        "origin": Origin.RUN,
        "pool": "bm25@100",
        "environment": {"cpu": "tests"},
        "created_at": WHEN,
    }
    return Run(**{**values, **changes})


def rankings(run_id: str, ranked: dict[str, list[str]], stage: str = "final") -> pl.DataFrame:
    return frame(
        "rankings",
        [
            {
                "run_id": run_id,
                "query_id": query,
                "stage": stage,
                "rank": rank,
                "passage_id": passage,
                "score": 1 / rank,
            }
            for query, passages in ranked.items()
            for rank, passage in enumerate(passages, 1)
        ],
    )


def judgements(grades: dict[str, dict[str, int]], golden_set_id: str = "gold") -> pl.DataFrame:
    return frame(
        "judgements",
        [
            {
                "golden_set_id": golden_set_id,
                "query_id": query,
                "passage_id": passage,
                "grade": grade,
                "raw": grade,
            }
            for query, judged in grades.items()
            for passage, grade in judged.items()
        ],
    )


def small() -> Batch:
    """One collection, one golden set, two runs; every table has rows."""
    texts = {"p1": "one", "p2": "two", "p3": "three"}
    return Batch(
        collections=(CORPUS,),
        golden_sets=(GOLD,),
        runs=(run("a"), run("b")),
        frames={
            "queries": frame(
                "queries",
                [
                    {"collection_id": "corpus", "query_id": query, "text": f"What is {query}?", "tags": tags}
                    for query, tags in (("q1", ["type=broad"]), ("q2", []), ("q3", None))
                ],
            ),
            "passages": frame(
                "passages",
                {"collection_id": ["corpus"] * 3, "passage_id": list(texts), "text": list(texts.values())},
            ),
            "judgements": judgements({"q1": {"p1": 5, "p2": 1}, "q2": {"p3": 4}}),
            "rankings": pl.concat(
                [
                    rankings("a", {"q1": ["p1", "p3", "p2"], "q2": ["p1"], "q3": ["p2"]}),
                    rankings("a", {"q1": ["p1", "p2", "p3"]}, stage="pool"),
                    rankings("b", {"q2": ["p2", "p3"]}),
                ]
            ),
            "timings": frame(
                "timings",
                {
                    "run_id": ["a"],
                    "query_id": ["q1"],
                    "stage": ["embed"],
                    "repeat": [1],
                    "ms": [1.5],
                    "place": [1],
                },
            ),
            "usage": frame(
                "usage",
                {
                    "run_id": ["a"],
                    "stage": ["embed"],
                    "item": ["m"],
                    "unit": ["requests"],
                    "amount": [1.0],
                    "basis": ["measured"],
                },
            ),
            "aggregates": frame(
                "aggregates", {"run_id": ["b"], "measure": ["RA-nWG"], "k": [10], "value": [0.5]}
            ),
            "signals": frame(
                "signals", {"run_id": ["a"], "query_id": ["q1"], "signal": ["score_gap"], "value": [0.25]}
            ),
            "answers": frame(
                "answers",
                {
                    "run_id": ["a"],
                    "query_id": ["q1"],
                    "k": [3],
                    "pass": [1],
                    "text": ["One."],
                    "truncated": [False],
                },
            ),
            "answer_scores": frame(
                "answer_scores",
                {
                    "run_id": ["a"],
                    "query_id": ["q1"],
                    "k": [3],
                    "pass": [1],
                    "scorer": ["f1"],
                    "value": [1.0],
                },
            ),
            "gold_answers": frame(
                "gold_answers",
                {"collection_id": ["corpus"] * 2, "query_id": ["q1"] * 2, "answer": ["1", "One"]},
            ),
            "passage_metadata": frame(
                "passage_metadata",
                {
                    "collection_id": ["corpus"] * 2,
                    "passage_id": ["p1", "p2"],
                    "metadata": ['{"tenant":"a"}', '{"tenant":"b"}'],
                },
            ),
            "query_filters": frame(
                "query_filters",
                {"collection_id": ["corpus"], "query_id": ["q9"], "filter": ['{"tenant":"a"}']},
            ),
            "fields": frame(
                "fields", {"collection_id": ["corpus"], "field": ["tenant"], "permission": [True]}
            ),
            "clusters": frame(
                "clusters",
                {
                    "collection_id": ["corpus"] * 2,
                    "query_id": ["q1", "q2"],
                    "kind": ["session"] * 2,
                    "cluster": ["s1"] * 2,
                },
            ),
            "diagnostics": frame(
                "diagnostics",
                {
                    "collection_id": ["corpus"] * 2,
                    "diagnosis": ["names"] * 2,
                    "embedder": ["wordllama"] * 2,
                    "dim": [64] * 2,
                    "language": ["en"] * 2,
                    "run": [1, 2],
                    "condition": ["base"] * 2,
                    "measure": ["d_name"] * 2,
                    "value": [0.1, -0.2],
                    "n": [100] * 2,
                },
            ),
            "chunks": frame(
                "chunks",
                {
                    "collection_id": ["corpus"] * 2,
                    "passage_id": ["p1", "p2"],
                    "source": ["d"] * 2,
                    "start_char": [0, 3],
                    "end_char": [3, 7],
                },
            ),
            "nuggets": frame(
                "nuggets",
                {
                    "golden_set_id": ["gold"],
                    "query_id": ["q1"],
                    "nugget": [0],
                    "text": ["a fact"],
                    "vital": [True],
                    "passage_id": ["p1"],
                    "support": [1.0],
                },
            ),
            "spans": frame(
                "spans",
                {
                    "golden_set_id": ["gold"],
                    "query_id": ["q1"],
                    "source": ["d"],
                    "start_char": [1],
                    "end_char": [3],
                    "grade": [5],
                    "raw": [5],
                },
            ),
            "gradings": frame(
                "gradings",
                {
                    "golden_set_id": ["gold"] * 2,
                    "query_id": ["q1"] * 2,
                    "passage_id": ["p1"] * 2,
                    "judge": ["a model", "a person"],
                    "grade": [None, 5],
                    "at": [None, "2026-11-01T12:30:00+00:00"],
                    "usd": [0.0001, None],
                    "note": ["no grade in three tries", None],
                },
            ),
            "criteria": frame(
                "criteria",
                [
                    {
                        "run_id": "a",
                        "query_id": "q1",
                        "position": 1,
                        "criterion": "Safety",
                        "meaning": "harmless",
                        "weight": 0.9,
                        "origin": "own",
                    }
                ],
            ),
            "ratings": frame(
                "ratings",
                [
                    {
                        "run_id": "a",
                        "query_id": "q1",
                        "passage_id": "p1",
                        "position": 1,
                        "rating": 4.0,
                        "reason": "*so*",
                    }
                ],
            ),
            "orders": frame(
                "orders",
                {
                    "golden_set_id": ["gold"] * 2,
                    "query_id": ["q1"] * 2,
                    "passage_id": ["p1", "p2"],
                    "rank": [1, 2],
                    "score": [5.1, 1.0],
                    "exposures": [2, 2],
                    "information": [0.5, 1e-6],
                    "locks": [1, 1],
                    "contradictions": [0, 0],
                },
            ),
        },
    )


def large(runs: int, queries: int = 1_000, depth: int = 100, prefix: str = "large") -> Batch:
    """Runs with queries × depth ranking rows each."""
    count = queries * depth
    query_ids = np.repeat([f"q{number:04d}" for number in range(queries)], depth)
    passages = np.array([f"passage-{number:06d}" for number in range(count)])
    frames = [
        pl.DataFrame(
            {
                "run_id": np.full(count, f"{prefix}-{number}"),
                "query_id": query_ids,
                "stage": np.full(count, "final"),
                "rank": np.tile(np.arange(1, depth + 1, dtype=np.int32), queries),
                "passage_id": np.roll(passages, number * 31),
                "score": np.linspace(1, 0, count),
            }
        )
        for number in range(runs)
    ]
    return Batch(
        collections=(CORPUS,),
        runs=tuple(run(f"{prefix}-{number}") for number in range(runs)),
        frames={"rankings": pl.concat(frames)},
    )


def add(store: Store, batch: Batch) -> int:
    with store.write("import") as writer:
        writer.add(batch)
    return writer.revision


def files(store: Store) -> set[str]:
    return {str(path.relative_to(store.path)) for path in store.path.rglob("*") if path.name != "LOCK"}
