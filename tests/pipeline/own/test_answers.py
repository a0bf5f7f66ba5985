"""Answers of every shape that frameworks give, and of shapes that are none; the file is for Python 3.9."""

from __future__ import annotations

import ast
import io
import sqlite3
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from core.pipeline.own.process import WORKER
from core.pipeline.own.worker import clq_worker
from core.pipeline.own.worker.clq_worker import Refused, understood

LANGCHAIN = SimpleNamespace(page_content="cats purr", metadata={"doc_id": "a"}, id=None)
LLAMA = SimpleNamespace(
    node=SimpleNamespace(text="cats purr", metadata={}, node_id="n1", ref_doc_id="a"), score=0.5
)
HAYSTACK = SimpleNamespace(content="cats purr", meta={"id": "a"}, id="0f", score=0.5)
Row = namedtuple("Row", "id score text")
Found = namedtuple("Found", "documents scores")
TABLE = {"id": ["a", "b"], "text": ["cats", "dogs"], "score": [2.0, 1.0]}
OF_TABLE = [[["a"], 2.0, "cats"], [["b"], 1.0, "dogs"]]
IDS = [[["a"], None, "a"], [["b"], None, "b"]]


class OfWhoosh:
    """A hit: its stored fields by key, its score beside them."""

    score = 1.5

    def keys(self) -> list[str]:
        return ["id", "text"]

    def __getitem__(self, key: str) -> str:
        return {"id": "a", "text": "cats"}[key]


def rows_of_sqlite() -> list[sqlite3.Row]:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("SELECT 'a' AS id, 1.5 AS score").fetchall()


def of_chroma(**changes: Any) -> dict[str, Any]:
    return {
        "ids": [["a", "b"]],
        "distances": [[0.1, 0.2]],
        "documents": [["cats", "dogs"]],
        "metadatas": [[{"source": "pets.md"}, None]],
        "embeddings": None,
        "included": ["documents"],
        **changes,
    }


SHAPES: dict[str, tuple[Any, list[list[Any]]]] = {
    "ids": (["a", "b"], [[["a"], None, "a"], [["b"], None, "b"]]),
    "numbers": ([7, np.int64(8)], [[["7"], None, None], [["8"], None, None]]),
    "pairs": ([("a", 2), ("b", np.float32(0.5))], [[["a"], 2.0, "a"], [["b"], 0.5, "b"]]),
    "beside one another": ((["a", "b"], [2.0, 1.0]), [[["a"], 2.0, "a"], [["b"], 1.0, "b"]]),
    "dicts": ([{"_id": "a", "_score": 1.5, "text": "cats"}], [[["a"], 1.5, "cats"]]),
    "source": ([{"_id": "1", "_source": {"doc_id": "a"}}], [[["1", "a"], None, None]]),
    "id to score": ({"a": 0.1, "b": 0.9}, [[["b"], 0.9, "b"], [["a"], 0.1, "a"]]),
    "LangChain": ([LANGCHAIN], [[["a"], None, "cats purr"]]),
    "LangChain with scores": ([(LANGCHAIN, 0.25)], [[["a"], 0.25, "cats purr"]]),
    "LlamaIndex": ([LLAMA], [[["n1", "a"], 0.5, "cats purr"]]),
    "Haystack component": ({"documents": [HAYSTACK]}, [[["a", "0f"], 0.5, "cats purr"]]),
    "Haystack pipeline": ({"joiner": {"documents": [HAYSTACK]}}, [[["a", "0f"], 0.5, "cats purr"]]),
    "named tuples": ([Row("a", 1.0, "cats")], [[["a"], 1.0, "cats"]]),
    "array": (np.array(["a", "b"]), [[["a"], None, "a"], [["b"], None, "b"]]),
    "nothing found": ([], []),
    "Chroma": (of_chroma(), [[["a"], None, "cats", {"source": "pets.md"}], [["b"], None, "dogs"]]),
    "Chroma, nothing found": (of_chroma(ids=[[]], documents=[[]], metadatas=[[]]), []),
    "Chroma, ids alone": ({"ids": [["a", "b"]], "documents": None}, IDS),
    "Qdrant": (
        SimpleNamespace(points=[SimpleNamespace(id=7, score=0.5, payload={"id": "a", "text": "cats"})]),
        [[["7", "a"], 0.5, None]],
    ),
    "Redis": (SimpleNamespace(total=1, docs=[SimpleNamespace(id="a", score="x")]), [[["a"], None, None]]),
    "Whoosh": ([OfWhoosh()], [[["a"], 1.5, "cats"]]),
    "Milvus": ([[{"id": "a", "distance": 0.5, "entity": {"text": "cats"}}]], [[["a"], None, None]]),
    "Weaviate": (
        SimpleNamespace(objects=[SimpleNamespace(uuid="0f", properties={"id": "a"})]),
        [[["0f", "a"], None, None]],
    ),
    "bm25s": (Found(np.array([["a", "b"]]), np.array([[2.0, 1.0]])), [[["a"], 2.0, "a"], [["b"], 1.0, "b"]]),
    "the only query's": ([["a", "b"]], IDS),
    "Arrow table": (pa.table(TABLE), OF_TABLE),
    "Arrow array": (pa.array(["a", "b"]), IDS),
    "pandas": (pd.DataFrame(TABLE), OF_TABLE),
    "pandas, ids in the index": (pd.DataFrame(TABLE).set_index("id"), OF_TABLE),
    "pandas, scores by id": (pd.Series([2.0, 1.0], ["a", "b"]), [[["a"], 2.0, "a"], [["b"], 1.0, "b"]]),
    "pandas, ids": (pd.Series(["a", "b"]), IDS),
    "Polars": (pl.DataFrame(TABLE), OF_TABLE),
    "rows of one column": ([("a",), ("b",)], IDS),
    "rows of SQLite": (rows_of_sqlite(), [[["a"], 1.5, None]]),
    "id and text": ([("a", "cats")], [[["a"], None, "cats"]]),
    "id, text and score": ([("a", "cats", 1.5)], [[["a"], 1.5, "cats"]]),
    "score and id": ([(1.5, "a")], [[["a"], 1.5, "a"]]),
    "several calls": ({"calls": [["a", "b"], ["c", "a"]]}, [[[i], None, i] for i in "acb"]),
}

TEXT = "cats purr"
PLACED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a path and characters": (
        {"text": TEXT, "source": "a/pets.md", "start": 4, "end_char": 13},
        {"source": "a/pets.md", "start": 4, "end": 13},
    ),
    "metadata": ({"text": TEXT, "metadata": {"file_name": "pets.md"}}, {"source": "pets.md"}),
    "its own before its metadata's": (
        {"text": TEXT, "source": "a.md", "metadata": {"source": "b.md", "section": "Cats"}},
        {"source": "a.md", "heading": "Cats"},
    ),
    "no text": ({"source": "pets.md", "heading": "Cats"}, {"source": "pets.md", "heading": "Cats"}),
    "headings": ({"text": TEXT, "headings": ["Pets", "Cats"]}, {"heading": "Cats"}),
    "a path of headings": ({"text": TEXT, "header_path": "/Pets/Cats/"}, {"heading": "Cats"}),
    "steps of headings": ({"text": TEXT, "heading": "Pets > TCP/IP"}, {"heading": "TCP/IP"}),
    "levels of headings": (
        {"text": TEXT, "metadata": {"Header 1": "Pets", "Header 2": "Cats"}},
        {"heading": "Cats"},
    ),
    "a number that is none": ({"text": TEXT, "start": -1, "end": 2.5}, {}),
    "the text itself": ({"document": TEXT}, {}),
    "LangChain": (
        SimpleNamespace(page_content=TEXT, metadata={"source": "pets.md", "start_index": 4}, id=None),
        {"source": "pets.md", "start": 4},
    ),
    "LlamaIndex": (
        SimpleNamespace(
            node=SimpleNamespace(
                text=TEXT, metadata={"file_path": "a/pets.md"}, node_id="n", start_char_idx=4, end_char_idx=13
            ),
            score=0.5,
        ),
        {"source": "a/pets.md", "start": 4, "end": 13},
    ),
    "Haystack": (
        SimpleNamespace(content=TEXT, meta={"file_path": "pets.md", "split_idx_start": 4}, id="x"),
        {"source": "pets.md", "start": 4},
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_where_a_passage_is_from_is_taken_along(name: str):
    answer, at = PLACED[name]
    for given in ([answer], [(answer, 2.0)], {"calls": [[answer]]}):
        (hit,) = understood(given)["hits"]
        assert (hit[3] if hit[3:] else {}) == at
        assert hit[2] in (TEXT, None)


WRONG: dict[str, tuple[Any, str]] = {
    "None": (None, "None"),
    "text": ("a", "str came back"),
    "bytes": (b"a", "bytes came back"),
    "number": (3, "int came back"),
    "set": ({"a"}, "no order"),
    "object": (object(), "object came back"),
    "keys": ({"foo": 1, "bar": "x"}, "foo, bar"),
    "None within": (["a", None], "passage 2 of the answer is None"),
    "lists within": ([["a", "b", "c", "d", "e"], ["f"]], "a list of 5"),
    "columns": (of_chroma(documents=[["cats"]]), "2 of id, 1 of text, 2 of metadata"),
    "neither": ([{"title": "cats"}], "neither an id nor a text; its keys: title"),
    "two components": ({"x": {"documents": []}, "y": {"documents": []}}, "x, y"),
    "bool": ([True], "passage 1 of the answer is bool"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_answers_are_understood_without_an_adapter(name: str):
    answer, hits = SHAPES[name]
    assert understood(answer)["hits"] == hits


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_told_by_what_came(name: str):
    answer, words = WRONG[name]
    with pytest.raises(Refused, match=words):
        understood(answer)


def test_more_is_taken_where_it_is_there():
    answer = {
        "results": ["a"], "pool": ["b", "a"], "stages": {"rerank": 3, "bad": float("nan")}, "calls": 2,
        "usage": {"rerank-2": {"input_tokens": 12}}, "answer": "Cats.",
    }  # fmt: skip
    found = understood(answer)
    assert [hit[0] for hit in found["pool"]] == [["b"], ["a"]]
    assert found["stages"] == {"rerank": 3.0}
    assert found["usage"] == [{"model": "rerank-2", "input_tokens": 12.0}]
    assert (found["calls"], found["answer"]) == (2, "Cats.")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT 'a' AS id, 1.5 AS score", [[["a"], 1.5, None]]),
        ("SELECT 'a' AS name, 1.5 AS rank", [[["a"], 1.5, "a"]]),
    ],
)
def test_what_a_database_has_yet_to_work_out_is_worked_out_while_it_is_timed(code: str, expected: list[Any]):
    finished = clq_worker.Pipeline("os.path:join").finished
    asks = (duckdb.connect().sql, duckdb.connect().execute, sqlite3.connect(":memory:").execute)
    for ask in asks:
        rows = finished(ask(code))
        assert type(rows) is list
        assert understood(rows)["hits"] == expected


class OfChroma:
    """A collection: a search of its own beside the one that takes texts."""

    def search(self, searches: object) -> None:
        raise AssertionError

    def query(
        self, query_embeddings: object = None, query_texts: list[str] | None = None, n_results: int = 10
    ) -> dict[str, Any]:
        return {"ids": [[f"{text} {at}" for at in range(n_results)] for text in query_texts or ()]}


def offered(name: str) -> list[str]:
    """Return what a pipeline returned that takes K by a name."""
    namespace: dict[str, Any] = {}
    exec(f"def find(query, {name}=10): return [query] * {name}", namespace)  # noqa: S102 - of the test itself
    return asked(namespace["find"])


def asked(target: object, k: int = 3) -> list[str]:
    clq_worker.target = target  # type: ignore[attr-defined]
    ask = clq_worker.Pipeline("core.pipeline.own.worker.clq_worker:target").prepared({})
    return [hit[0][0] for hit in understood(ask("cats", k))["hits"]]


@pytest.mark.parametrize("name", clq_worker.SIZES)
def test_k_goes_by_the_name_that_the_signature_has_for_it(name: str):
    assert offered(name) == ["cats"] * 3


def test_a_collection_of_chroma_is_asked_by_texts():
    assert asked(OfChroma()) == ["cats 0", "cats 1", "cats 2"]


def test_an_interpreter_that_is_too_old_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clq_worker, "OLDEST", (99, 1))
    fault = clq_worker.Server(io.BytesIO(), io.BytesIO()).begin({"call": "os.path:join"})["fault"]
    assert "Python 99.1 or later is needed, found 3." in fault["text"]


def test_the_worker_is_for_python_3_9_and_needs_no_package():
    tree = ast.parse(WORKER.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert "core" not in imported
    assert imported <= {
        "__future__", "asyncio", "collections", "contextlib", "contextvars", "importlib", "inspect", "json",
        "math", "os", "struct", "sys", "threading", "time", "traceback", "typing",
    }  # fmt: skip
