"""Five stored queries and two runs, for the tests of the queries page."""

from __future__ import annotations

import polars as pl
import pytest

from core.analysis.workspace.scope import Quality, Scope
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot, Store
from core.tables import TABLES

SCOPE = Scope("c", "g")
AT_2 = Quality("RA-nWG", 2)
HOSTILE = "<img src=x onerror=alert(1)> **bold** $x$"


def run(run_id: str) -> Run:
    return Run(
        run_id=run_id,
        collection_id="c",
        stack=Stack({"name": run_id}),
        label=f"Stack {run_id}",
        origin=Origin.IMPORT,
    )


def rows(table: str, values: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(values, schema=dict(TABLES[table]), orient="row")


def ranked(run_id: str, stage: str, lists: dict[str, str]) -> pl.DataFrame:
    """Rankings of one-letter passages: {"q1": "abc"}."""
    return rows(
        "rankings",
        [
            (run_id, query, stage, rank, passage, 1 / rank)
            for query, passages in lists.items()
            for rank, passage in enumerate(passages, 1)
        ],
    )


def judged(grades: dict[str, dict[str, int]]) -> pl.DataFrame:
    return rows(
        "judgements",
        [
            ("g", query, passage, grade, grade, "")
            for query, given in grades.items()
            for passage, grade in given.items()
        ],
    )


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Five stored queries and one that only the judgements name; run b has a pool, run a has none."""
    texts = [
        ("c", "q1", "Where is the First one?", ["package=numpy", "type=broad"]),
        ("c", "q2", HOSTILE, ["package=polars", "type=broad"]),
        ("c", "q3", "nobody judged this", []),
        ("c", "q4", "only bad passages", ["package=numpy"]),
        ("c", "q5", "nobody ranks this", None),
    ]
    grades = {
        "q1": {"a": 5, "b": 4, "c": 1, "d": 4},
        "q2": {"a": 5, "b": 1},
        "q4": {"a": 1, "b": 2},
        "q5": {"a": 5},
        "q6": {"a": 5},
    }
    passages = [("c", name, "", f"text of\n {name}", None, None, None) for name in "bcde"]
    passages.append(("c", "a", HOSTILE, HOSTILE * 200, None, None, None))
    store = Store(tmp_path_factory.mktemp("snapshot") / "store")
    with store.write("seed") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="G"),),
                runs=(run("a"), run("b")),
                frames={
                    "queries": rows("queries", texts),
                    "passages": rows("passages", passages),
                    "judgements": judged(grades),
                    "rankings": pl.concat(
                        [
                            ranked("a", "final", {"q1": "cab", "q2": "xb", "q3": "a", "q4": "a", "q6": "a"}),
                            ranked("b", "final", {"q1": "ac", "q2": "ba", "q4": "a", "q6": "x"}),
                            ranked("b", "pool", {"q1": "cad", "q2": "bxa", "q4": "a", "q6": "xa"}),
                        ]
                    ),
                },
            )
        )
    return store.read()


def by_id(table: pl.DataFrame, column: str) -> dict[str, object]:
    return dict(table.select("query_id", column).iter_rows())
