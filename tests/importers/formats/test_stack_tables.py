"""Tables with one row per stack: the ways in which people head their columns, units, and what is assumed."""

from __future__ import annotations

import json

import polars as pl
import pytest

from core.errors import InputError
from core.importers import Options, Preview, preview
from core.importers.meaning import TableAs, mapped
from core.importers.naming import NamedValue, named, normal
from core.importers.read.number_format import Reading
from core.importers.report import FileReport
from tests.importers.formats.test_excel import book
from tests.importers.helpers import parquet, read, refusal, rows, up

NAMES = {
    "nDCG@10": ("nDCG", None, 10, 1.0),
    "ndcg@10 %": ("nDCG", None, 10, 0.01),
    "nDCG@10 (%)": ("nDCG", None, 10, 0.01),
    "ndcg_at_10": ("nDCG", None, 10, 1.0),
    "ndcg_cut_10": ("nDCG", None, 10, 1.0),
    "NDCG10": ("nDCG", None, 10, 1.0),
    "recall_100": ("Recall", None, 100, 1.0),
    "P_5": ("P", None, 5, 1.0),
    "RA-nWG@10(alpha=0.5)": ("RA-nWG(alpha=0.5)", None, 10, 1.0),
    "ANN-Recall@100": ("ANN-Recall", None, 100, 1.0),
    "MRR": ("MRR", None, None, 1.0),
    "Quality": ("quality", None, None, 1.0),
    "quality_pct": ("quality", None, None, 0.01),
    "quality@5": ("quality", None, 5, 1.0),
    "latency_ms": ("ms", "total", None, 1.0),
    "latency": ("ms", "total", None, 1.0),
    "Latency (ms)": ("ms", "total", None, 1.0),
    "query time s": ("ms", "total", None, 1000.0),
    "rerank_seconds": ("ms", "rerank", None, 1000.0),
    "latency_p95_ms": ("latency_p95", "total", None, 1.0),
    "p95_latency_s": ("latency_p95", "total", None, 1000.0),
    "p95_ms": ("latency_p95", "total", None, 1.0),
    "latency_ms_p99": ("latency_p99", "total", None, 1.0),
    "latency_p95": ("latency_p95", "total", None, 1.0),
    "median latency ms": ("latency_p50", "total", None, 1.0),
    "avg_latency_ms": ("latency_mean", "total", None, 1.0),
    "rerank_p50_ms": ("latency_p50", "rerank", None, 1.0),
    "usd_per_1k": ("usd_per_1k", "total", None, 1.0),
    "cost_usd_per_1k_queries": ("usd_per_1k", "total", None, 1.0),
    "price": ("usd_per_1k", "total", None, 1.0),
    "Cost ($)": ("usd_per_1k", "total", None, 1.0),
    "$/query": ("usd_per_1k", "total", None, 1000.0),
    "price per query": ("usd_per_1k", "total", None, 1000.0),
    "cost_per_1000_queries": ("usd_per_1k", "total", None, 1.0),
    "usd_per_million_queries": ("usd_per_1k", "total", None, 0.001),
    "cost_per_1m": ("usd_per_1k", "total", None, 0.001),
    "rerank_usd_per_1k": ("usd_per_1k", "rerank", None, 1.0),
    "nDCG @ 10": ("nDCG", None, 10, 1.0),
    "NDCG@10 [%]": ("nDCG", None, 10, 0.01),
    "nDCG@10 (mean)": ("nDCG", None, 10, 1.0),
    "nDCG (k=10)": ("nDCG", None, 10, 1.0),
    "ndcg_at_10 (%)": ("nDCG", None, 10, 0.01),
    "ndcg@10_mean": ("nDCG", None, 10, 1.0),
    "('ndcg@10', 'mean')": ("nDCG", None, 10, 1.0),
    "mean nDCG@10": ("nDCG", None, 10, 1.0),
    "ndcg.10": ("nDCG", None, 10, 1.0),
    "RA-nWG @ 10": ("RA-nWG", None, 10, 1.0),
    "Recall@5 (%)": ("Recall", None, 5, 0.01),
    "Recall @5, %": ("Recall", None, 5, 0.01),
    "Recall at 5": ("Recall", None, 5, 1.0),
    "recall_at_k=5": ("Recall", None, 5, 1.0),
    "avg_recall@5": ("Recall", None, 5, 1.0),
    "Precision@1 in %": ("Precision", None, 1, 0.01),
    "P@10 (percent)": ("P", None, 10, 0.01),
    "Hit@5": ("Hit", None, 5, 1.0),
    "hit_rate@5": ("Hit", None, 5, 1.0),
    "HitRate@10": ("Hit", None, 10, 1.0),
    "Success@5": ("Success", None, 5, 1.0),
    "F1-score@10": ("F1", None, 10, 1.0),
    "MRR@10": ("MRR", None, 10, 1.0),
    "MAP@100": ("MAP", None, 100, 1.0),
    "Mean reciprocal rank": ("MRR", None, None, 1.0),
    "Average precision": ("AP", None, None, 1.0),
    "Accuracy (%)": ("accuracy", None, None, 0.01),
    "accuracy pct": ("accuracy", None, None, 0.01),
    "p95 latency [s]": ("latency_p95", "total", None, 1000.0),
    "P95 (ms)": ("latency_p95", "total", None, 1.0),
    "p50 (s)": ("latency_p50", "total", None, 1000.0),
    "Latency p99 (ms)": ("latency_p99", "total", None, 1.0),
    "Latency - p95 (ms)": ("latency_p95", "total", None, 1.0),
    "Latency P50 / ms": ("latency_p50", "total", None, 1.0),
    "95th percentile latency (ms)": ("latency_p95", "total", None, 1.0),
    "Latency 95% (ms)": ("latency_p95", "total", None, 1.0),
    "Median latency (ms)": ("latency_p50", "total", None, 1.0),
    "Mean latency (s)": ("latency_mean", "total", None, 1000.0),
    "Avg. latency (ms)": ("latency_mean", "total", None, 1.0),
    "('latency_ms', 'p95')": ("latency_p95", "total", None, 1.0),
    "latency_ms_median": ("latency_p50", "total", None, 1.0),
    "p95LatencyMs": ("latency_p95", "total", None, 1.0),
    "Latency in ms": ("ms", "total", None, 1.0),
    "Latency, ms": ("ms", "total", None, 1.0),
    "Latency (seconds)": ("ms", "total", None, 1000.0),
    "Latency (µs)": ("ms", "total", None, 0.001),
    "Response time (s)": ("ms", "total", None, 1000.0),
    "Query time [ms]": ("ms", "total", None, 1.0),
    "Time per query (ms)": ("ms", "total", None, 1.0),
    "ms / query": ("ms", "total", None, 1.0),
    "end-to-end latency (ms)": ("ms", "total", None, 1.0),
    "elapsed (s)": ("ms", "total", None, 1000.0),
    "duration_sec": ("ms", "total", None, 1000.0),
    "Rerank latency p50 (ms)": ("latency_p50", "rerank", None, 1.0),
    "second_stage_ms": ("ms", "second_stage", None, 1.0),
    "Cost per query ($)": ("usd_per_1k", "total", None, 1000.0),
    "Cost/query": ("usd_per_1k", "total", None, 1000.0),
    "costPerQuery": ("usd_per_1k", "total", None, 1000.0),
    "Avg cost per query ($)": ("usd_per_1k", "total", None, 1000.0),
    "mean_cost_usd": ("usd_per_1k", "total", None, 1000.0),
    "cost_per_query_usd": ("usd_per_1k", "total", None, 1000.0),
    "USD/query": ("usd_per_1k", "total", None, 1000.0),
    "Cost / 1k queries (USD)": ("usd_per_1k", "total", None, 1.0),
    "Cost (USD/1k queries)": ("usd_per_1k", "total", None, 1.0),
    "Cost [$ / 1000 queries]": ("usd_per_1k", "total", None, 1.0),
    "USD per 1,000 queries": ("usd_per_1k", "total", None, 1.0),
    "Cost per 1000 requests": ("usd_per_1k", "total", None, 1.0),
    "$ per 1k": ("usd_per_1k", "total", None, 1.0),
    "price per million queries ($)": ("usd_per_1k", "total", None, 0.001),
    "Cost per 1,000,000 queries (USD)": ("usd_per_1k", "total", None, 0.001),
    "Embedding cost per query ($)": ("usd_per_1k", "embedding", None, 1000.0),
    "Cost (USD)": ("usd_per_1k", "total", None, 1.0),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns(name):
    value = named(name, name)
    assert value is not None
    assert (value.measure, value.stage, value.k, value.factor) == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_meaning_is_named_so_that_it_is_recognised(name):
    """The name that is shown, and that a link or a command holds, means the same again."""
    value = named(name, "c")
    again = named(value.name, "c")
    assert (again.measure, again.stage, again.k, again.factor) == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        "notes",
        "dim512",
        "qps",
        "index_size",
        "price_per_month",
        "usd_per_1m_tokens",
        "build_time_s",
        "date",
        "p90 latency (ms)",
        "max latency (ms)",
        "latency_ms_std",
        "ndcg@10_std",
        "nDCG@10 std",
        "Cost per query (€)",
        "cost_per_query_eur",
        "cost per token ($)",
        "Throughput (queries/s)",
    ],
)
def test_what_is_no_result_of_a_query(name):
    assert named(name, name) is None


ROLE_NAMES = {
    "Model name": "run", "System": "run", "Stack name": "run", "Config": "run", "# queries": "n",
    "Number of queries": "n", "N queries": "n",
}  # fmt: skip


@pytest.mark.parametrize("name", ROLE_NAMES)
def test_names_of_columns_that_are_no_figure(name):
    other = "n" if ROLE_NAMES[name] == "run" else "stack"
    cells = {"run": "A", "n": "5"}
    row = ",".join([cells[ROLE_NAMES[name]], cells["n" if other == "n" else "run"], "0.5"])
    made = read(up("x.csv", f"{name},{other},nDCG@10\n{row}\n"))
    assert made.runs[0].label == "A"
    assert rows(made, "aggregates")["n"].to_list() == [5]


NATURAL = (
    "stack,quality,latency,price\nhybrid + rerank,0.47,340,1.90\ndense,0.44,90,0.20\nbm25,0.41,12,0.00\n"
)


def figures(made) -> dict[str, dict[str, float]]:
    """Per stack the value of each figure, named as it is kept."""
    labels = {run.run_id: run.label for run in made.runs}
    found: dict[str, dict[str, float]] = {}
    for row in rows(made, "aggregates").iter_rows(named=True):
        stage = "" if row["stage"] in (None, "total") else f" {row['stage']}"
        cutoff = f"@{row['k']}" if row["k"] else ""
        found.setdefault(labels[row["run_id"]], {})[f"{row['measure']}{cutoff}{stage}"] = row["value"]
    return found


def test_the_natural_table():
    made = read(up("stacks.csv", NATURAL))
    assert figures(made) == {
        "hybrid + rerank": {"quality@10": 0.47, "latency_p50": 340.0, "usd_per_1k": 1.90},
        "dense": {"quality@10": 0.44, "latency_p50": 90.0, "usd_per_1k": 0.20},
        "bm25": {"quality@10": 0.41, "latency_p50": 12.0, "usd_per_1k": 0.0},
    }
    assert made.left_out == ()
    assert sum("`quality`" in note or "`latency`" in note or "`price`" in note for note in made.notes) == 3


TEN = (
    "stack,nDCG@10,R@100,latency_ms,latency_p95_ms,usd_per_1k\n"
    "A,0.47,0.9,340,700,1.9\nB,0.44,0.8,90,150,0.2\n"
)


def test_every_figure_that_is_offered_is_taken():
    made = read(up("board.csv", TEN))
    assert made.taken["aggregates"] == 10
    assert figures(made)["A"] == {
        "nDCG@10": 0.47, "R@100": 0.9, "latency_p50": 340.0, "latency_p95": 700.0, "usd_per_1k": 1.9
    }  # fmt: skip
    assert made.reports == (
        FileReport("board.csv", "column", tuple(TEN.split("\n", maxsplit=1)[0].split(",")), {}),
    )


FORMS = {
    "seconds": ("stack,quality,latency_s\nA,0.5,0.34\n", {}, {"quality@10": 0.5, "latency_p50": 340.0}),
    "per query": ("stack,quality,usd_per_query\nA,0.5,0.002\n", {}, {"quality@10": 0.5, "usd_per_1k": 2.0}),
    "per million": ("stack,quality,usd_per_1m\nA,0.5,2000\n", {}, {"quality@10": 0.5, "usd_per_1k": 2.0}),
    "percent by name": ("stack,nDCG@10 %\nA,4.5\n", {}, {"nDCG@10": 0.045}),
    "percent by value": ("stack,nDCG@10\nA,47.5\nB,91\n", {}, {"nDCG@10": 0.475}),
    "a scale of five": ("stack,quality\nA,4.5\n", {}, {"quality@10": 4.5}),
    "no share": ("stack,ANN-Recall@10,my score@3\nA,0.5,70\n", {}, {"ANN-Recall@10": 0.5, "my score@3": 70}),
    "one cutoff for all": ("stack,nDCG@5,quality\nA,0.5,0.4\n", {}, {"nDCG@5": 0.5, "quality@5": 0.4}),
    "a score": ("system,score\nA,0.5\n", {}, {"score@10": 0.5}),
    "the first words": ("what,ndcg@10\nA,0.5\n", {}, {"nDCG@10": 0.5}),
    "mean": ("stack,avg_latency_ms\nA,5\n", {}, {"latency_mean": 5.0}),
    "a stage": (
        "stack,rerank_ms,embed_p95_ms\nA,5,6\n",
        {},
        {"latency_p50 rerank": 5, "latency_p95 embed": 6},
    ),
    "mapped": (
        "variante,güte,dauer,preis\nA,0.5,0.34,0.002\n",
        {
            "columns": {
                "run": "variante", "nDCG@10": "güte", "latency_p95_s": "dauer", "usd_per_query": "preis"
            }
        },
        {"nDCG@10": 0.5, "latency_p95": 340.0, "usd_per_1k": 2.0},
    ),
    "a mean in brackets": (
        "Variante,nDCG@10 (Mittel),Antwortzeit [ms]\nA,0.5,12.5\n",
        {},
        {"nDCG@10": 0.5, "latency_p50": 12.5},
    ),
    "units in the cells": (
        "stack,p95 latency (s),median time (ms)\nA,0.031 s,12 ms\n",
        {},
        {"latency_p95": 31.0, "latency_p50": 12.0},
    ),
    "a row is a stack": (
        "query,quality,rank\nA,0.5,1\n",
        {"row": "stack", "columns": {"run": "query"}},
        {"quality@10": 0.5},
    ),
    "left out": (
        "stack,quality,latency\nA,0.5,9\n",
        {"without": frozenset({"latency"})},
        {"quality@10": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    text, options, expected = FORMS[name]
    made = read(up("x.csv", text), **options)
    assert figures(made)["A"] == pytest.approx(expected)
    file_report = made.reports[0]
    assert {*file_report.taken, *file_report.left_out} == set(text.split("\n")[0].split(","))


def test_usage_of_a_stack():
    made = read(up("x.csv", "stack,quality,rerank_input_tokens,rerank_model\nA,0.5,25000,rerank-2.5\n"))
    assert rows(made, "usage").select("query_id", "stage", "item", "unit", "amount").rows() == [
        (None, "rerank", "rerank-2.5", "input_tokens", 25000.0)
    ]


def test_a_figure_that_stands_twice_is_taken_once():
    made = read(up("x.csv", "stack,quality,latency_ms,latency_p50_ms\nA,0.5,9,8\n"))
    assert figures(made)["A"]["latency_p50"] == 8.0
    assert list(made.reports[0].left_out) == ["latency_ms"]


ROWS = {
    "stack": ("query_id,stack,quality\nq1,A,0.5\n", {"stack", "quality"}),
    "query": ("query_id,doc_id,latency_ms\nq1,d,5\n", {"query_id", "latency_ms"}),
    "passage": (
        "query_id,doc_id,score,latency_ms\nq1,d,1,5\n",
        {"query_id", "doc_id", "score", "latency_ms"},
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_is(row):
    text, taken = ROWS[row]
    assert set(read(up("x.csv", text), row=row).reports[0].taken) == taken


def test_a_row_that_the_columns_cannot_make():
    assert "passage_id" in refusal(up("x.csv", "query_id,latency_ms\nq1,5\n"), row="passage")
    assert "a measure, a latency or a price" in refusal(up("x.csv", "a,b\nq1,5\n"), row="stack")


def test_each_file_has_its_own_meanings():
    other = "name,q\nB,0.7\n"
    tables = {"b.csv": TableAs(columns={"nDCG@10": "q"}), "a.csv": TableAs(without=frozenset({"price"}))}
    made = read(up("a.csv", NATURAL), up("b.csv", other), tables=tables)
    assert figures(made)["B"] == {"nDCG@10": 0.7}
    assert figures(made)["dense"] == {"quality@10": 0.44, "latency_p50": 90.0}


EUROPEAN = "Stack;nDCG@10;Latency (ms);Cost / 1k queries (USD);n\nA;41,2 %;1.340,5;0,10;1.225\nB;5 %;12;1;3\n"
FIGURES = {"nDCG@10": 0.412, "latency_p50": 1340.5, "usd_per_1k": 0.1}


def test_numbers_as_people_write_them_are_read_and_said():
    made = read(up("x.csv", EUROPEAN))
    assert figures(made)["A"] == pytest.approx(FIGURES)
    assert set(rows(made, "aggregates").filter(pl.col("value") < 0.42)["n"]) == {1225, 3}
    assert any("1.340,5 is read as 1340.5" in note for note in made.notes)


@pytest.mark.slow
def test_texts_of_workbooks_and_parquet_are_numbers_too():
    lines = [line.split(";") for line in EUROPEAN.splitlines()]
    frame = pl.DataFrame(lines[1:], schema=lines[0], orient="row")
    assert figures(read(up("x.parquet", parquet(frame))))["A"] == pytest.approx(FIGURES)
    assert figures(read(up("x.xlsx", book({"s": lines}))))["A"] == pytest.approx(FIGURES)


def test_numbers_that_say_two_things_are_asked():
    text = 'stack,nDCG@10,latency_ms\nA,0.5,"1,200"\n'
    assert "--numbers 'latency_ms=thousands'" in refusal(up("x.csv", text))
    ways: dict[Reading, float] = {"thousands": 1200.0, "decimal-comma": 1.2}
    for way, expected in ways.items():
        made = read(up("x.csv", text), numbers={"latency_ms": way})
        assert figures(made)["A"]["latency_p50"] == expected
    assert "no column `speed`" in refusal(up("x.csv", text), numbers={"speed": "percent"})


def test_an_index_that_became_a_column_is_left_out():
    made = read(up("x.csv", "index,Unnamed: 0,stack,nDCG@10\n0,0,A,0.5\n1,1,B,0.4\n"))
    assert [run.label for run in made.runs] == ["A", "B"]
    assert set(made.reports[0].left_out.values()) == {"numbers the rows"}


def test_a_long_table_of_stacks():
    made = read(up("x.csv", "stack,metric,value\nA,ndcg@10,0.5\nA,latency_p95_ms,9\nB,ndcg@10,.4\nB,odd,1\n"))
    assert figures(made) == {"A": {"nDCG@10": 0.5, "latency_p95": 9.0}, "B": {"nDCG@10": 0.4}}
    assert "measure `odd`: unknown meaning" in [each.reason for each in made.left_out]


def test_jsonl_and_parquet_and_lines():
    lines = pl.read_csv(NATURAL.encode()).rows(named=True)
    made = read(up("x.jsonl", "".join(json.dumps(row) + "\n" for row in lines)))
    assert figures(made) == figures(read(up("stacks.csv", NATURAL)))


def test_the_preview_says_what_was_recognised():
    (seen,) = preview([up("stacks.csv", "stack,quality,latency,price,note\nA,47,340,1.9,x\n")], Options())
    assert isinstance(seen, Preview)
    assert seen.row == "stack"
    assert seen.mapping == {
        "run": "stack", "quality@10 %": "quality", "latency_p50_ms": "latency", "usd_per_1k": "price"
    }  # fmt: skip


def test_normal_names():
    assert normal(" Latency (ms) ") == "latency_ms"
    assert NamedValue("c", "latency_p50", "total", factor=1000.0).name == "latency_p50_s"


@pytest.mark.parametrize("name", ["model", "Method", "config", "stack"])
def test_one_figure_beside_a_name_is_a_table_of_stacks(name):
    made = read(up("x.csv", f"{name},ndcg\nbm25,0.4\ndense,0.5\n"))
    assert [run.label for run in made.runs] == ["bm25", "dense"]


@pytest.mark.parametrize("first", ["algorithm", "stack"])
def test_several_columns_together_name_a_stack_where_one_repeats(first):
    table = f"{first},parameters,dataset,qps,recall\na,L=1,sift,5,.9\na,L=2,sift,4,.95\nb,L=1,sift,4,.95\n"
    made = read(up("x.csv", table))
    assert [run.label for run in made.runs] == ["a · L=1", "a · L=2", "b · L=1"]
    assert [each.reason for each in made.left_out] == [
        "column `dataset`: unknown meaning", "column `qps`: unknown meaning"
    ]  # fmt: skip


GRIDS = {
    "numbers alone": (
        "chunk_size,top_k,recall@5,mrr,latency_ms\n256,5,0.61,0.50,12\n512,5,0.66,0.55,14\n512,10,0.72,0.56,19\n",
        ["chunk_size 256, top_k 5", "chunk_size 512, top_k 5", "chunk_size 512, top_k 10"],
        {"chunker": {"method": "unknown", "size": 256}, "chunks_sent": 5},
    ),
    "beside an axis": (
        "chunk_size,overlap,embedder,recall@5\n256,0,minilm,0.61\n256,32,minilm,0.66\n512,0,bge,0.72\n",
        ["embedder minilm, chunk_size 256, overlap 0", "embedder minilm, chunk_size 256, overlap 32",
         "embedder bge, chunk_size 512, overlap 0"],
        {"embedder": "minilm", "chunker": {"method": "unknown", "size": 256}},
    ),
    "a name that repeats": (
        "method,ndcg@5,nprobe,same\nivf,0.5,1,x\nivf,0.6,8,x\n", ["ivf · nprobe 1", "ivf · nprobe 8"], {}
    ),
    "of unknown names, before the figures": (
        "n_probes,size,ndcg@5,items\n1,2,0.5,7\n1,4,0.5,8\n2,4,0.6,9\n",
        ["n_probes 1, size 2", "n_probes 1, size 4", "n_probes 2, size 4"], {},
    ),
    "what is the same says nothing": (
        "chunk_size,top_k,ndcg@5\n256,5,0.5\n512,5,0.6\n", ["chunk_size 256", "chunk_size 512"], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GRIDS)
def test_stacks_are_named_by_the_parameters_that_differ(case):
    text, labels, spec = GRIDS[case]
    frame = pl.read_csv(text.encode(), infer_schema=False)
    for made in (read(up("x.csv", text)), read(up("x.parquet", parquet(frame)))):
        assert [run.label for run in made.runs] == labels
        if spec is not None:
            assert made.runs[0].stack.spec == {"name": labels[0], **spec}
        assert len({run.stack.stack_id for run in made.runs}) == len(labels)


def test_a_grid_with_a_row_twice_is_refused_by_its_line():
    text = "chunk_size,embedder,recall@5\n256,minilm,0.6\n256,minilm,0.7\n"
    told = "x.csv:3: The stack 'embedder minilm' occurs twice. Keep one of its rows, or name in a column"
    assert refusal(up("x.csv", text)) == f"{told} what sets them apart."


def test_a_number_of_the_row_is_no_parameter():
    assert "A row may be a stack or a query" in refusal(up("x.csv", "row,ndcg@5\n0,0.5\n1,0.6\n"))


def test_several_columns_name_a_stack_together():
    text = "a,b,c,ndcg@5\nx,1,z,0.5\nx,2,z,0.6\n"
    said = mapped([("run", "a"), ("run", "b"), ("nDCG@5", "ndcg@5")])
    assert said == {"run": "a", "run 2": "b", "nDCG@5": "ndcg@5"}
    assert [run.label for run in read(up("x.csv", text), columns=said).runs] == ["x · 1", "x · 2"]
    three = mapped([("run", "c"), ("run", "a"), ("run", "b")])
    assert [run.label for run in read(up("x.csv", text), columns=three).runs] == ["z · x · 1", "z · x · 2"]
    queries = "a,b,qid,ndcg@5\nx,1,q,0.5\nx,2,q,0.6\n"
    labels = sorted(run.label for run in read(up("x.csv", queries), columns={"run": "a", "run 2": "b"}).runs)
    assert labels == ["x · 1", "x · 2"]
    with pytest.raises(InputError, match=r"Two columns are said to hold nDCG@5: a, b\."):
        mapped([("nDCG@5", "a"), ("nDCG@5", "b")])


@pytest.mark.parametrize(("unit", "said", "ms"), [("us", "microseconds", 0.01), ("s", "seconds", 10_000.0)])
def test_the_unit_of_a_time_is_said(unit, said, ms):
    made = read(up("x.csv", f"stack,latency_p95_{unit}\nA,10\n"))
    assert made.notes == (f"x.csv: `latency_p95_{unit}` converted from {said} to milliseconds.",)
    assert rows(made, "aggregates")["value"].to_list() == [ms]


def test_scores_of_answers_are_measures():
    head = "version,faithfulness,Answer Relevancy,context_precision,contextualRecall,groundedness_score"
    made = read(up("x.csv", f"{head}\nv1 dense,0.71,80%,0.55,0.62,1\nv2 hybrid,0.85,78%,0.75,0.88,0\n"))
    assert [run.label for run in made.runs] == ["v1 dense", "v2 hybrid"]
    figures = rows(made, "aggregates")
    assert figures.select("measure", "k", "value").rows() == [
        ("faithfulness", 1, 0.71), ("faithfulness", 1, 0.85), ("answer_relevancy", 1, pytest.approx(0.8)),
        ("answer_relevancy", 1, pytest.approx(0.78)), ("context_precision", 1, 0.55),
        ("context_precision", 1, 0.75), ("contextual_recall", 1, 0.62), ("contextual_recall", 1, 0.88),
        ("groundedness", 1, 1.0), ("groundedness", 1, 0.0),
    ]  # fmt: skip
    beside = read(up("x.csv", "stack,faithfulness,recall@5\nA,0.7,0.5\n"))
    assert rows(beside, "aggregates").select("measure", "k").rows() == [("faithfulness", 5), ("Recall", 5)]
