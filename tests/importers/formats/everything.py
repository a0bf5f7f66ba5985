from __future__ import annotations

from datetime import UTC, datetime

from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.tables import frame


def everything() -> Batch:
    """A batch with every kind of record and a row in every table, with awkward values."""
    run = Run(
        run_id="r-1",
        collection_id="c",
        stack=Stack({"mode": "hybrid", "fusion": {"method": "rrf", "constant": 60}, "candidates": 50}),
        label='=1+1 <b>"é"</b>\n',
        origin=Origin.RUN,
        pool="rrf100@50",
        environment={"cpu": "x", "cores": 2},
        manifest={"seed": 7},
        created_at=datetime(2025, 5, 1, 12, 30, 15, 123456, tzinfo=UTC),
    )
    bare = Run(
        run_id="r-2",
        collection_id="c",
        stack=Stack({}),
        label="",
        origin=Origin.PUBLISHED,
        created_at=run.created_at,
        chunking="page-1a2b",
    )
    golden = GoldenSet(
        golden_set_id="g", collection_id="c", name="G", mapping="binary: 0→1, 1→5",
        parents=("f",), manifest={"prompts": {"grade.en": "ab12"}},
    )  # fmt: skip
    part = "page-1a2b"
    return Batch(
        collections=(
            Collection(collection_id="c", name="C", source="s", notes="n\nn"),
            Collection(collection_id=f"c@{part}", name="C, pages", part_of="c"),
        ),
        golden_sets=(
            golden,
            GoldenSet(golden_set_id=f"g@{part}", collection_id=f"c@{part}", name="G, pages", part_of="g"),
        ),
        runs=(run, bare),
        frames={
            "queries": frame(
                "queries", [{"collection_id": "c", "query_id": "q", "text": "?", "tags": ["a=b", "c=d,e"]}]
            ),
            "passages": frame(
                "passages",
                [
                    {
                        "collection_id": "c",
                        "passage_id": "p",
                        "title": None,
                        "text": "",
                        "tokens": 3,
                        "tokenizer": "t",
                        "source": None,
                    }
                ],
            ),
            "judgements": frame(
                "judgements",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "grade": 5,
                        "raw": 1,
                        "judge": None,
                    }
                ],
            ),
            "rankings": frame(
                "rankings",
                [
                    {
                        "run_id": "r-1",
                        "query_id": "q",
                        "stage": s,
                        "rank": 1,
                        "passage_id": "p",
                        "score": None,
                    }
                    for s in ("pool", "final")
                ],
            ),
            "timings": frame(
                "timings", [{"run_id": "r-1", "query_id": "q", "stage": "embed", "repeat": 1, "ms": 0.1}]
            ),
            "usage": frame(
                "usage",
                [
                    {
                        "run_id": "r-1",
                        "query_id": None,
                        "stage": "embed",
                        "item": "i",
                        "unit": "cpu_ms",
                        "amount": 1e-9,
                        "basis": "measured",
                    }
                ],
            ),
            "aggregates": frame(
                "aggregates",
                [
                    {
                        "run_id": "r-2",
                        "measure": "Hit",
                        "k": 10,
                        "stage": None,
                        "value": 0.5,
                        "n": None,
                        "low": None,
                        "high": None,
                        "source": None,
                    }
                ],
            ),
            "signals": frame(
                "signals", [{"run_id": "r-1", "query_id": "q", "signal": "gap", "k": None, "value": -0.5}]
            ),
            "answers": frame("answers", [{"run_id": "r-1", "query_id": "q", "k": 0, "text": "=1\u2028"}]),
            "answer_scores": frame(
                "answer_scores", [{"run_id": "r-1", "query_id": "q", "k": 0, "scorer": "f1", "value": 0.5}]
            ),
            "nuggets": frame(
                "nuggets",
                {
                    "golden_set_id": ["g"],
                    "query_id": ["q"],
                    "nugget": [3],
                    "text": ["a fact"],
                    "vital": [False],
                    "passage_id": ["p1"],
                    "support": [0.5],
                    "judge": ["nuggetizer"],
                },
            ),
            "passage_metadata": frame(
                "passage_metadata", [{"collection_id": "c", "passage_id": "p", "metadata": '{"t":"=1"}'}]
            ),
            "query_filters": frame(
                "query_filters", [{"collection_id": "c", "query_id": "q", "filter": '{"u":"=1"}'}]
            ),
            "fields": frame("fields", [{"collection_id": "c", "field": "t", "permission": True}]),
            "clusters": frame(
                "clusters",
                [{"collection_id": "c", "query_id": "q", "kind": "session", "cluster": "s"}],
            ),
            "gold_answers": frame("gold_answers", [{"collection_id": "c", "query_id": "q", "answer": "=1"}]),
            "diagnostics": frame(
                "diagnostics",
                [
                    {
                        "collection_id": "c",
                        "diagnosis": "names",
                        "condition": "base",
                        "measure": "d_name",
                        "value": 0.5,
                    }
                ],
            ),
            "chunks": frame(
                "chunks",
                [
                    {
                        "collection_id": f"c@{part}",
                        "passage_id": f"d#{part}:0",
                        "source": "d",
                        "start_char": 0,
                        "end_char": 7,
                    }
                ],
            ),
            "spans": frame(
                "spans",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "source": "d",
                        "start_char": 2,
                        "end_char": 2**40,
                        "grade": 5,
                        "raw": 1,
                    }
                ],
            ),
            "gradings": frame(
                "gradings",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "judge": "a model",
                        "grade": 5,
                        "at": "2026-11-01T12:30:00+00:00",
                        "seconds": 1.5,
                        "prompt": "ab12",
                        "input_tokens": 2**40,
                        "usd": 0.25,
                    }
                ],
            ),
            "criteria": frame(
                "criteria",
                [
                    {
                        "run_id": "r-1",
                        "query_id": "q",
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
                [{"run_id": "r-1", "query_id": "q", "passage_id": "p", "position": 1, "rating": 4.0}],
            ),
            "orders": frame(
                "orders",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "rank": 1,
                        "score": -0.5,
                        "exposures": 0,
                    }
                ],
            ),
        },
    )
