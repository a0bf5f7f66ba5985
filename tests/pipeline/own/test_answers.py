"""Answers of every shape that frameworks give, and of shapes that are none; the file is for Python 3.9."""

from __future__ import annotations

import ast
import io
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
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
    "lists within": ([["a", "b", "c", "d", "e"]], "a list of 5"),
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
