"""Filters of queries that reach a custom pipeline, and pipelines that take none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.filters import fields_of, parse
from core.pipeline.evaluate import Protocol
from core.pipeline.evaluate.job import named_corpus
from core.pipeline.own.config import OwnStack
from core.pipeline.own.here import offer
from core.pipeline.own.signature import takes_no_filter
from core.pipeline.sweep.filters import own_problems
from core.records import Stack
from tests.pipeline.corpora import passages
from tests.pipeline.evaluate.helpers import job, run

TENANTS = ["a", "a", "b", "b"]
FILTERS = [parse({"tenant": "a"}), parse({"tenant": "b"}), None, parse({"tenant": ["'; DROP", "b"]})]
ASKED = ["cats", "cats", "dogs", "cows"]
CODE = """
import json
TENANTS = ["a", "a", "b", "b"]

def optional(query, k=4, filter=None):
    wanted = (filter or {}).get("tenant", TENANTS)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return [f"p00{at}" for at, tenant in enumerate(TENANTS) if tenant in wanted]

def required(query, filter):
    return optional(query, filter=filter)

class Retriever:
    def search(self, query, k, *, filter=None):
        return optional(query, k, filter)

def without(query, k=4):
    return optional(query)

def anything(query, k=4, **more):
    assert not more
    return optional(query)

def other(query, k=4, filter="mine"):
    return ["p003"] if filter == "mine" else ["p000"]
"""
SEEN = [["p000", "p001"], ["p002", "p003"], ["p000", "p001", "p002", "p003"], ["p002", "p003"]]
ALL = [SEEN[2]] * 4


def own(folder: Path, call: str, **changes: Any) -> OwnStack:
    (folder / "barn.py").write_text(CODE)
    return OwnStack.model_validate(
        {"name": "barn", "call": f"barn:{call}", "path": folder, "candidates": 4, **changes}
    )


def found(folder: Path, config: OwnStack) -> tuple[list[list[str]], Any]:
    """What each query found, and the run."""
    corpus = named_corpus(passages(["cat", "dog", "cow", "bee"]), None)
    fields = fields_of([{"tenant": tenant} for tenant in TENANTS])
    asked = job(
        [Stack(config.spec(params)) for params in config.points()],
        asked=ASKED,
        corpora={None: replace(corpus, fields=fields)},
        filters=FILTERS,
        own={config.name: config},
        protocol=Protocol(repeats=2),
    )
    outcome, sunk = run(folder, asked)
    rows = sunk.table("rankings").filter(stage="final").sort("rank")
    return [rows.filter(query_id=f"q{at:02}")["passage_id"].to_list() for at in range(4)], outcome.runs[0]


@pytest.mark.parametrize(
    ("call", "ranked", "unfiltered"),
    [
        ("optional", SEEN, False),
        ("required", SEEN, False),
        ("Retriever", SEEN, False),
        ("without", ALL, True),
        ("anything", ALL, True),
    ],
)
def test_a_pipeline_gets_filters_where_its_signature_takes_them(
    tmp_path: Path, call: str, ranked: list[list[str]], unfiltered: bool
):
    hits, made = found(tmp_path, own(tmp_path, call))
    assert hits == ranked
    assert made.manifest["own"]["asked_unfiltered"] is unfiltered
    assert made.label.endswith(" · unfiltered") is unfiltered


def test_a_parameter_of_its_own_stays_its_own(tmp_path: Path):
    hits, made = found(tmp_path, own(tmp_path, "other", params={"filter": ["mine"]}))
    assert hits == [["p003"]] * 4
    assert made.manifest["own"]["asked_unfiltered"] is True


def test_a_function_of_this_process_gets_them_too(tmp_path: Path):
    seen: list[Any] = []

    def find(query: str, k: int, filter: Any = None) -> list[str]:  # noqa: A002 - as applications call it
        seen.append((query, filter))
        return ["p000"][:k]

    config = OwnStack(name="here", call=offer("here", find), candidates=4)
    _, made = found(tmp_path, config)
    assert not made.manifest["own"]["asked_unfiltered"]
    wanted = [
        (text, None if asked is None else json.loads(asked.text))
        for text, asked in zip(ASKED, FILTERS, strict=True)
    ]
    assert all(each in wanted for each in seen)
    assert all(each in seen for each in wanted)


@pytest.mark.parametrize(
    ("call", "takes"),
    [("optional", True), ("required", True), ("without", False), ("Retriever.search", True)],
)
def test_the_source_says_whether_a_filter_reaches_it(tmp_path: Path, call: str, takes: bool):
    config = own(tmp_path, call)
    assert takes_no_filter(config) is not takes
    said = [str(problem) for problem in own_problems([config])]
    assert said == ([] if takes else [
        "stack barn: It takes no filter: it is asked for everything. Give it a parameter filter."
    ])  # fmt: skip
