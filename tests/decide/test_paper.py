"""The numbers that the CLQ paper prints, recomputed by the shipped functions (tests/cases/clq.json)."""

import json
from pathlib import Path

import pytest

from core.analysis.workspace.scope import Quality
from core.prices import load_books
from core.prices.calculator import CostInputs, calculator
from core.views.headroom import limiting
from tests.views.made import stacks

CASES = json.loads((Path(__file__).parents[1] / "cases" / "clq.json").read_text(encoding="utf-8"))
BOOKS = load_books()


@pytest.mark.parametrize("book", ["list", "clq-paper"])
@pytest.mark.parametrize("reranker", ["rerank-2.5", "rerank-2.5-lite"])
@pytest.mark.parametrize("row", CASES["rerank_usd_per_1k"]["rows"], ids=lambda row: f"K{row['k']}")
def test_rerank_cost_table(book, reranker, row):
    tokens = CASES["rerank_usd_per_1k"]["tokens_per_candidate"]
    inputs = CostInputs(reranker=reranker, candidates=row["k"], tokens_per_candidate=tokens)
    assert calculator(inputs, BOOKS[book]).per_1k == pytest.approx(row[reranker], abs=1e-9)


@pytest.mark.parametrize("book", ["list", "clq-paper"])
@pytest.mark.parametrize("generator", ["gpt-5", "gpt-5-mini", "gpt-5-nano"])
@pytest.mark.parametrize("row", CASES["generator_input_usd_per_1k"]["rows"], ids=lambda r: f"{r['chunks']}")
def test_generator_input_cost_table(book, generator, row):
    tokens = CASES["generator_input_usd_per_1k"]["tokens_per_chunk"]
    inputs = CostInputs(generator=generator, chunks_sent=row["chunks"], tokens_per_chunk=tokens)
    assert calculator(inputs, BOOKS[book]).per_1k == pytest.approx(row[generator], abs=1e-9)


@pytest.mark.parametrize("row", CASES["pct_proc"]["rows"], ids=lambda row: f"{row['measure']}@{row['k']}")
def test_percentage_of_the_ceiling(row):
    table = stacks(quality=[row["actual"]], proc=[row["proc"]])
    said = limiting(table.row(0, named=True), Quality(row["measure"], row["k"]), table, [True])
    assert f"{row['percent']:.1f} %" in said
