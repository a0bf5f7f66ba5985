"""Tables 8 and 9 of the CLQ paper from the published data, by the functions that pages show them with."""

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Scope
from core.decide.rules import Constraints
from core.importers.formats.published import read_figures
from core.prices import load_books
from core.prices.cost import QUERY_TOKENS
from core.store import Store
from core.views.what_if.scenarios import ORDER, choices, leaderboard, matrix, named
from tests.views.made import AT_10, DEMO, PAPER, table

PRINTED = read_figures()
QUANTITIES = {
    "cost": ("rerank_usd_per_1k_queries", None),
    "rerank_ms": ("rerank_ms_p50", None),
    "N-Recall4+@10": ("n_recall_4plus", 10),
    "RA-nWG@10": ("ra_nwg", 10),
    "RA-nWG@30": ("ra_nwg", 30),
}


@pytest.fixture(scope="module")
def paper(published_store: Path):
    return Store.open(published_store).read()


@pytest.mark.slow
@pytest.mark.parametrize("book", ["list", "clq-paper"])
def test_table_8_exactly(paper, book):
    whole = table(paper, PAPER, book=load_books()[book])
    found = choices(whole, named(paper, "clq-paper"), [], Constraints())[: len(ORDER)]
    made = matrix(paper, whole, PAPER, found, load_books()[book], quality=AT_10, latency=Latency())
    assert tuple(made["scenario"]) == ORDER
    figures = PRINTED.filter(pl.col("table") == 8)
    assert figures.height == made.height * len(QUANTITIES)
    for row in made.iter_rows(named=True):
        printed = figures.filter(pl.col("note") == row["scenario"])
        stack = ("embedder", "dim", "reranker", "candidates_k")
        assert printed.select(stack).unique().row(0) == tuple(
            row[name] for name in ("embedder", "dim", "reranker", "candidates")
        )
        for column, (metric, k) in QUANTITIES.items():
            same = printed.filter((pl.col("metric") == metric) & pl.col("k").eq_missing(pl.lit(k, pl.Int64)))
            asked = _embedding(row, book) if column == "cost" else 0.0
            assert round(row[column] - asked, 6) == same["value"].item(), (row["scenario"], column)
        unpriced = "embedding not priced" if book == "clq-paper" else None
        assert row["cost_missing"] == unpriced


def _embedding(row, book) -> float:
    """What embedding 1,000 queries costs, which the paper leaves out of its costs."""
    price = load_books()[book].find(row["embedder"], "input_tokens")
    return 1000 * QUERY_TOKENS * price.each if price else 0.0


def test_table_9_within_rounding(paper):
    table = PRINTED.filter(pl.col("table") == 9)
    stacks = table.pivot("metric", index=["embedder", "dim", "reranker", "candidates_k"], values="value")
    made = leaderboard(paper, PAPER)
    ids = [
        f"clq-{row['embedder']}-{row['dim']}-dense-flat-{row['reranker']}-{row['candidates_k']}"
        for row in stacks.iter_rows(named=True)
    ]
    listed = made.head(len(ids))
    assert listed["run_id"].to_list() == ids  # the paper's order
    assert listed["average"].to_list() == pytest.approx(stacks["avg_quality"].to_list(), abs=0.0005 + 1e-9)
    assert listed["latency_ms"].to_list() == stacks["rerank_ms_p50"].to_list()
    assert listed["efficiency"].to_list() == pytest.approx(stacks["efficiency"].to_list(), abs=0.0015)
    assert listed["average_basis"].to_list().count("as reported") == 3
    assert listed["rank"].to_list() == [1, 2, 3, 4, 5]


def test_end_to_end_divides_by_the_whole_path(paper):
    local, whole = leaderboard(paper, PAPER), leaderboard(paper, PAPER, end_to_end=True)
    both = local.join(whole, on="run_id", suffix="_whole").drop_nulls(["efficiency", "efficiency_whole"])
    assert both.height >= 5
    assert (both["latency_ms_whole"] > both["latency_ms"]).all()
    assert (both["efficiency_whole"] < both["efficiency"]).all()
    unknown = whole.filter(pl.col("efficiency").is_null())
    assert unknown["rank"].null_count() == unknown.height
    assert unknown["reason"].null_count() == 0


def test_leaderboard_of_measured_stacks(demo_store: Path):
    made = leaderboard(Store.open(demo_store).read(), Scope(DEMO.collection_id, DEMO.golden_set_id),
                       end_to_end=True)  # fmt: skip
    assert made["average_basis"].unique().to_list() == ["four measures"]
    assert made["efficiency"].is_sorted(descending=True)
