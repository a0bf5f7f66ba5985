"""Numbers outside of the range of their measure: refused by their place, taken as percent, or asked."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest

from core.importers.read.number_format import OpenNumbersError, Reading
from core.metrics.measure import declared
from tests.importers.formats import test_deepeval, test_mteb, test_ragas, test_rankllm_eval
from tests.importers.formats.test_excel import book
from tests.importers.helpers import parquet, read, refusal, rows, up, zipped


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nDCG", (0, 1)), ("MRR", (0, 1)), ("map", (0, 1)), ("RBP(p=0.8)", (0, 1)), ("accuracy", (0, 1)),
        ("answer_relevancy", (-1, 1)), ("Contextual Recall", (0, 1)), ("quality", None), ("my score", None),
        ("Correctness [GEval]", (0, 1)), ("Tool Correctness", (0, 1)), ("topic_adherence", (0, 1)),
        ("bias", None),
    ],
)  # fmt: skip
def test_declared(name, expected):
    assert declared(name) == expected


def contained(columns: dict[str, list[object]], kind: str) -> bytes:
    """A table as the bytes of a file of a kind."""
    table = pl.DataFrame(columns)
    if kind == "parquet":
        return parquet(table)
    if kind == "excel":
        return book({"Results": [table.columns, *map(list, table.rows())]})
    buffer = io.BytesIO()
    table.write_ndjson(buffer) if kind == "jsonl" else table.write_csv(buffer)
    return buffer.getvalue()


KINDS = ("csv", "jsonl", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("excel", "parquet")))
STACKS = ("a", "b", "c")
SHAPES = {
    "stacks": lambda values: {"stack": STACKS, "recall@10": values, "latency_ms": [10, 10, 12]},
    "queries": lambda values: {"stack": STACKS, "query_id": ["q1"] * 3, "recall@10": values},
    "long": lambda values: {"stack": STACKS, "metric": ["recall@10"] * 3, "value": values},
    "turned": lambda values: {
        "metric": ["recall@10", "ndcg@10"], **{s: [v, 0.5] for s, v in zip(STACKS, values, strict=True)}
    },
}  # fmt: skip


def found(made) -> list[float]:
    held = rows(made, "aggregates").filter(pl.col("measure").is_in(["R", "Recall"]))
    label = {run.run_id: run.label for run in made.runs}
    return [value for _, value in sorted(zip(map(label.get, held["run_id"]), held["value"], strict=True))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_table_may_hold(shape, kind):
    def offered(*values: float):
        return up(
            "t", contained({key: list(cells) for key, cells in SHAPES[shape](list(values)).items()}, kind)
        )

    assert found(read(offered(85.0, 91.0, 88.0))) == pytest.approx([0.85, 0.91, 0.88])
    assert found(read(offered(0.85, 0.91, 1.0))) == [0.85, 0.91, 1.0]
    for outside in (1.31, 101.0, -0.2):
        said = refusal(offered(outside, 0.62, 0.5))
        assert f"recall@10 lies between 0 and 1, and {outside:g} does not" in said.replace(
            "R@10", "recall@10"
        )
        assert "column `recall@10`" in said
    with pytest.raises(OpenNumbersError) as caught:
        read(offered(85.0, 0.91, 88.0))
    (one,) = caught.value.columns
    assert one.cells == ("0.91", "85", "88")
    assert one.ways == {"percent": ("0.0091", "0.85", "0.88"), "share": ("0.91", "0.85", "0.88")}
    assert "--numbers 'recall@10=share'" in str(caught.value)
    ways: dict[Reading, list[float]] = {"share": [0.85, 0.91, 0.88], "percent": [0.85, 0.0091, 0.88]}
    for way, expected in ways.items():
        made = read(offered(85.0, 0.91, 88.0), numbers={"recall@10": way})
        assert found(made) == pytest.approx(expected)


TABLES = {
    "more than that": ("stack,nDCG@10,latency_ms\nhybrid,1.31,20\nbm25,0.62,1\n", "x:2, column `nDCG@10`"),
    "one of two": ("stack,nDCG@10,recall@10\na,1.5,0.2\nb,0.9,0.3\n", "x:2, column `nDCG@10`"),
    "one and a percent": ("stack,nDCG@10\nA,0.5\nB,60\n", "x:2, column `nDCG@10`: Cannot read '0.5'"),
    "signs above a hundred": ("stack,nDCG@10\nA,50%\nB,131%\n", "x:3, column `nDCG@10`"),
    "some signs": ("stack,nDCG@10\nA,50%\nB,0.9\n", "Some cells have a percent sign"),
    "some signs of a long one": (
        "stack,metric,value\nA,nDCG@10,50%\nA,latency_ms,5\nB,nDCG@10,0.9\n", "x:4, column `value`: Some"
    ),
    "time below zero": ("stack,nDCG@10,latency_ms\nA,0.5,-3\n", "latency_ms is at least 0, and -3 does not."),
    "a percentile below another": (
        "stack,nDCG@10,p95 latency (s),p50 latency (ms)\nA,0.5,0.012,30\n",
        "x:2, column `p95 latency (s)`: The p95, 12 ms, is below the p50, 30 ms.",
    ),
    "queries below zero": ("stack,nDCG@10,n\nA,0.5,9\nB,0.5,-3\n", "x:3, column `n`: -3 is not a number"),
    "dollars below zero": ("stack,nDCG@10,usd_per_1k\nA,0.5,-2\n", "x:2, column `usd_per_1k`"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_refused_by_its_cell(name):
    text, message = TABLES[name]
    assert message in refusal(up("x", text))


def test_signs_count_by_measure_where_each_row_holds_one():
    text = "stack,metric,value\nA,nDCG@10,50%\nA,latency_ms,5\nB,nDCG@10,61%\nB,latency_ms,7\n"
    assert sorted(rows(read(up("x", text)), "aggregates")["value"]) == [0.5, 0.61, 5, 7]


def ragas(*values: float) -> bytes:
    samples = [
        {**test_ragas.SAMPLES[0], "user_input": f"What {at}?", "faithfulness": value}
        for at, value in enumerate(values)
    ]
    return test_ragas.as_csv(samples).encode()


def deepeval(*values: float) -> bytes:
    case = {"input": "What?", "actualOutput": "That.", "retrievalContext": ["a"]}
    cases = [
        {**case, "input": f"{at}?", "metricsData": [test_deepeval.metric("Faithfulness", value)]}
        for at, value in enumerate(values)
    ]
    return json.dumps({"testCases": cases}).encode()


def mteb(*values: float) -> bytes:
    scores = {"hf_subset": "default", "main_score": values[0]}
    scores |= {f"ndcg_at_{10**at}": value for at, value in enumerate(values)}
    return zipped({"m/r/a.json": json.dumps({**test_mteb.NEW, "scores": {"test": [scores]}})})


def rank_llm(*values: float) -> bytes:
    files = [test_rankllm_eval.FIRST.replace("4096", str(at)) for at, _ in enumerate(values, 1)]
    lines: list[dict[str, object]] = [
        {"file": file, "result": [f"ndcg_cut_10\tall\t{value}"]}
        for file, value in zip(files, values, strict=True)
    ]
    return test_rankllm_eval.jsonl(lines).encode()


FORMATS = {"ragas": ragas, "deepeval": deepeval, "mteb": mteb, "rank-llm-results": rank_llm}
NAMES = {"ragas": "faithfulness", "deepeval": "Faithfulness"}


@pytest.mark.parametrize("name", FORMATS)
def test_other_formats(name):
    measure = NAMES.get(name, "nDCG")

    def offered(*values: float):
        file = "trec_eval_aggregated_results_m.jsonl" if name == "rank-llm-results" else "x"
        return up(file, FORMATS[name](*values))

    def brought(*values: float, numbers: dict[str, Reading] | None = None) -> list[float]:
        made = read(offered(*values), numbers=numbers or {})
        assert made.detected[0].format == name
        table, key = ("signals", "signal") if "signals" in made.frames else ("aggregates", "measure")
        return sorted(rows(made, table).filter(pl.col(key) == measure)["value"])

    assert brought(0.85, 0.91) == [0.85, 0.91]
    assert brought(91.0, 85.0) == pytest.approx([0.85, 0.91])
    said = refusal(offered(1.31, 0.62))
    assert f"{measure} lies between 0 and 1, and 1.31 does not" in said
    assert offered(0.0).name in said
    with pytest.raises(OpenNumbersError) as caught:
        brought(85.0, 0.91)
    assert f"--numbers '{measure}=share'" in str(caught.value)
    assert brought(85.0, 0.91, numbers={measure: "share"}) == pytest.approx([0.85, 0.91])
    assert brought(85.0, 0.91, numbers={measure: "percent"}) == pytest.approx([0.0091, 0.85])
