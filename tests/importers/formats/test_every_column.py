"""Every column of a table is taken or named as left out, whatever the table's shape: tried by changing it.

A column that is said to be taken changes what is read when its cells change; one that is said to be left out
changes nothing. So that no report says more than was done, and nothing is lost in silence.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.errors import ClqError
from core.importers import Import, Options, load
from core.importers.report import TAKEN
from tests.importers.formats.test_excel import book
from tests.importers.helpers import parquet, read, refusal, rows, up

Row = dict[str, Any]
STACKS, QUERIES, MEASURES = ("A", "B"), ("q1", "q2", "q3"), ("nDCG@10", "R@5")


def figure(name: str, row: Row, salt: int) -> float:
    """A number that hangs on the stack and query of a row alone, and on the salt."""
    return (1 + _drawn(name, row, salt) % 90) / 100


def whole(name: str, row: Row, salt: int) -> int:
    return 1 + _drawn(name, row, salt) % 10_000


def _drawn(name: str, row: Row, salt: int) -> int:
    return zlib.crc32(f"{name} {row.get('stack')} {row.get('query_id')} {salt}".encode())


def word(name: str, row: Row, salt: int) -> str:
    return f"{name}-{salt}"


def each(name: str, row: Row, salt: int) -> str:
    return f"{name}-{row.get('stack')}-{salt}"


BESIDE = {
    **dict.fromkeys(("latency_ms", "embed_ms", "rerank_s", "latency_p95_ms", "total_ms", "time"), figure),
    **dict.fromkeys(("usd_per_query", "usd_per_1k", "price", "rerank_usd_per_1k"), figure),
    **dict.fromkeys(("MRR@10", "accuracy", "quality", "temperature"), figure),
    **dict.fromkeys(("input_tokens", "prompt_tokens", "rerank_search_units", "cpu_ms", "n", "k"), whole),
    **dict.fromkeys(("rerank_model", "item", "note", "judge", "reader", "stage name", "scale"), word),
    **dict.fromkeys(("embedder", "reranker", "team"), each),
    **dict.fromkeys(("score", "value", "grade", "rank", "number"), whole),
    **dict.fromkeys(("tag", "stage", "label", "method", "text", "line", ""), word),
    "dim": whole,
    "build_time_s": figure,
    "latency_std_ms": figure,
    "cost (€)": figure,
}


def wide_stacks() -> Iterator[Row]:
    for stack in STACKS:
        yield {"stack": stack}


def wide_queries() -> Iterator[Row]:
    for stack in STACKS:
        yield from ({"stack": stack, "query_id": query} for query in QUERIES)


def long(rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        yield from ({**row, "metric": measure, "value": figure(measure, row, 0)} for measure in MEASURES)


def passages() -> Iterator[Row]:
    for row in wide_queries():
        yield from ({**row, "passage_id": f"p{rank}", "rank": rank} for rank in (1, 2, 3))


def answers() -> Iterator[Row]:
    yield from ({**row, "answer": f"{row['stack']} {row['query_id']}"} for row in wide_queries())


def depths() -> Iterator[Row]:
    for row in wide_queries():
        yield from ({**row, "answer": "yes", "k": k, "grade": figure(str(k), row, 0)} for k in (5, 10))


def judged() -> Iterator[Row]:
    for query in QUERIES:
        yield from ({"query_id": query, "passage_id": f"p{n}", "grade": n} for n in range(3))


def grid(measures: Sequence[str]) -> Iterator[Row]:
    for query in QUERIES:
        row: Row = {"query_id": query}
        for stack in STACKS:
            own = {"stack": stack, "query_id": query}
            row |= {f"{stack}_{measure}": figure(measure, own, 0) for measure in measures}
        yield row


def turned() -> Iterator[Row]:
    for measure in (*MEASURES, "latency_p95_ms", "latency_p95"):
        yield {"measure": measure, **{stack: figure(measure, {"stack": stack}, 0) for stack in STACKS}}


SHAPES = {
    "a row per stack": lambda: [{**row, "nDCG@10": figure("nDCG@10", row, 0)} for row in wide_stacks()],
    "a row per stack and measure": lambda: list(long(wide_stacks())),
    "a row per query": lambda: [{**row, "nDCG@10": figure("nDCG@10", row, 0)} for row in wide_queries()],
    "a row per query and measure": lambda: list(long(wide_queries())),
    "a row per passage": lambda: list(passages()),
    "a row per answer": lambda: list(answers()),
    "a row per answer and depth": lambda: list(depths()),
    "a row per judgement": lambda: list(judged()),
    "a column per stack and measure": lambda: list(grid(("ndcg@10", "recall@5"))),
    "a column per stack and time": lambda: list(grid(("ndcg@10", "latency_ms", "latency_p95_ms"))),
    "a column per stack": lambda: list(turned()),
}
_GRID = {name for name in BESIDE if BESIDE[name] is not word}
UNLIKE = {
    "a column per stack": set(BESIDE),  # each would be one more stack
    "a column per stack and measure": _GRID,  # asked about: of a stack, or of the query
    "a column per stack and time": _GRID,
    "a row per passage": {"grade", "stage"},  # judgements; a stage is pool or final
}
"""Columns that make another shape of one."""
FILES = {
    "csv": lambda rows: up("x.csv", rows.write_csv()),
    "jsonl": lambda rows: up("x.jsonl", rows.write_ndjson()),
    "parquet": lambda rows: up("x.parquet", parquet(rows)),
    "xlsx": lambda rows: up("x.xlsx", book({"Results": [rows.columns, *map(list, rows.rows())]})),
}


def table(shape: str, beside: Sequence[str], salted: str = "") -> pl.DataFrame:
    """A table of a shape with columns beside it, the cells of one of them changed."""
    rows = SHAPES[shape]()
    for name in beside:
        for row in rows:
            row[name] = BESIDE[name](name, row, int(name == salted))
    return pl.DataFrame(rows)


def content(made: Import) -> dict[str, Any]:
    """What is read, by names instead of ids that hang on the file's bytes."""
    labels = {run.run_id: run.label for run in made.runs}
    frames = {
        name: sorted(map(repr, _named(rows.lazy().collect(), labels).rows()))
        for name, rows in made.frames.items()
    }
    return {**frames, "runs": sorted((run.label, repr(run.stack.spec)) for run in made.runs)}


def _named(rows: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    return rows.with_columns(pl.col("run_id").replace(labels)) if "run_id" in rows.columns else rows


def untrue(shape: str, beside: Sequence[str], file: str) -> dict[str, str]:
    """The columns of which less or more is read than the report says, each with what it says."""
    make = FILES[file]
    made = load([make(table(shape, beside))], Options())
    (report,) = made.reports
    said = {**dict.fromkeys(report.taken, TAKEN), **report.left_out}
    assert said.keys() == set(table(shape, beside).columns)
    before, wrong = content(made), {}
    for name in beside:
        try:
            differs = content(load([make(table(shape, beside, name))], Options())) != before
        except ClqError:
            differs = True
        if differs != (said[name] == TAKEN):
            wrong[name] = said[name] or "taken"
    return wrong


def drawn(seed: int) -> tuple[str, list[str]]:
    """A shape and some columns beside it that it can have."""
    draws = np.random.default_rng(seed)
    shape = list(SHAPES)[int(draws.integers(len(SHAPES)))]
    own = SHAPES[shape]()[0]
    few = draws.choice(list(BESIDE), size=int(draws.integers(1, 6)), replace=False).tolist()
    return shape, [name for name in few if name not in own and name not in UNLIKE.get(shape, ())]


@pytest.mark.parametrize("seed", range(60))
def test_every_column_is_taken_or_named(seed):
    shape, beside = drawn(seed)
    assert untrue(shape, beside, ("csv", "jsonl", "parquet")[seed % 3]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 180))
def test_every_column_of_a_workbook_is_taken_or_named(seed):
    shape, beside = drawn(seed)
    assert untrue(shape, beside, "xlsx" if seed < 110 else "csv") == {}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_its_latency_and_price(shape):
    """Where a row is of a stack or a query, both are read; else they are named."""
    beside = [name for name in ("latency_ms", "usd_per_1k") if name not in UNLIKE.get(shape, ())]
    made = load([FILES["csv"](table(shape, beside))], Options())
    (report,) = made.reports
    assert {*report.taken, *report.left_out} >= set(beside)
    if "passage" not in shape and "judgement" not in shape and "depth" not in shape:
        assert set(beside) <= set(report.taken)


LONG = """\
stack,query_id,metric,value,latency_ms,rerank_input_tokens,rerank_model,usd_per_query
A,q1,nDCG@10,0.5,120,100,m,0.001
A,q1,R@5,0.6,120.0,100,m,0.001
A,q2,nDCG@10,0.7,130,110,m,0.003
A,q2,R@5,0.8,,110,m,0.003
B,q1,nDCG@10,0.4,20,0,m,0
"""


def test_what_stands_beside_the_measures_counts_once_for_each_query():
    made = read(up("x.csv", LONG))
    labels = {run.run_id: run.label for run in made.runs}
    times = _named(rows(made, "timings"), labels).select("run_id", "query_id", "repeat", "ms")
    assert times.rows() == [("A", "q1", 1, 120.0), ("A", "q2", 1, 130.0), ("B", "q1", 1, 20.0)]
    used = _named(rows(made, "usage"), labels).sort("run_id", "query_id")
    assert used.select("run_id", "query_id", "stage", "item", "amount").rows() == [
        ("A", "q1", "rerank", "m", 100.0), ("A", "q2", "rerank", "m", 110.0), ("B", "q1", "rerank", "m", 0.0)
    ]  # fmt: skip
    prices = _named(rows(made, "aggregates"), labels).filter(measure="usd_per_1k")
    assert dict(prices.select("run_id", "value").iter_rows()) == {"A": 2.0, "B": 0.0}
    assert made.reports[0].left_out == {}


def test_the_number_of_queries_of_each_measure_is_kept():
    made = read(up("x.csv", "stack,metric,value,n,latency_p95_ms\nA,nDCG@10,.5,50,9\nA,R@5,.6,49,9\n"))
    known = rows(made, "aggregates").select("measure", "value", "n")
    assert set(known.rows()) == {("nDCG", 0.5, 50), ("R", 0.6, 49), ("latency_p95", 9.0, None)}


DIFFER = {
    "of a query": (
        LONG.replace("120.0", "125"),
        "x.csv:3, column `latency_ms`: The same query of a stack has '120' on line 2 and '125' on line 3.",
    ),
    "of a stack": (
        "stack,metric,value,usd_per_1k\nA,nDCG@10,.5,1\nB,R@5,.6,2\nA,R@5,.6,3\n",
        "x.csv:4, column `usd_per_1k`: The same stack has '1' on line 2 and '3' on line 4.",
    ),
    "a name": (LONG.replace("0.6,120.0,100,m", "0.6,120.0,100,n"), "has 'm' on line 2 and 'n' on line 3"),
}


@pytest.mark.parametrize("case", DIFFER)
def test_what_differs_beside_the_measures_is_refused_with_its_lines(case):
    text, message = DIFFER[case]
    assert message in refusal(up("x.csv", text))


TWO = {
    "a measure and a column": (
        "stack,qid,metric,value,latency_ms\nA,q1,mrr@5,1,7\nA,q1,latency_ms,9,7\n",
        {"latency_ms": "the same as `measure latency_ms`, which is taken"},
        9.0,
    ),
    "two columns": (
        "stack,qid,mrr@5,latency_ms,total_ms\nA,q1,1,9,7\n",
        {"total_ms": "the same as `latency_ms`, which is taken"},
        9.0,
    ),
}


@pytest.mark.parametrize("case", TWO)
def test_one_time_that_stands_twice_is_no_second_pass(case):
    text, left_out, ms = TWO[case]
    made = read(up("x.csv", text))
    assert rows(made, "timings").select("repeat", "ms").rows() == [(1, ms)]
    assert made.reports[0].left_out == left_out


def test_a_measure_of_the_name_of_a_column_is_left_out_by_name():
    made = read(up("x.csv", "stack,metric,value\nA,ndcg@10,0.5\nA,stack,3\n"))
    assert made.taken["aggregates"] == 1
    assert "measure `stack`: a column has this name" in [each.reason for each in made.left_out]
