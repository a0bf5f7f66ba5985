from pathlib import Path

import polars as pl
import pytest

from core.analysis.depth import latency_by_depth
from core.analysis.workspace.scope import Latency, Quality
from core.store import Store
from core.views.curves.sections import deeper_steps
from tests.stores import Lab
from tests.views.made import LAB, PAPER, table


def test_the_jump_of_the_paper_is_found_in_the_store(published_store: Path):
    found = latency_by_depth(Store.open(published_store).read(), PAPER)
    breaks = found.filter(pl.col("breaks_at").is_not_null()).select("reranker", "embedder", "breaks_at")
    assert sorted(breaks.unique().rows()) == [
        ("rerank-2.5", "voyage-3.5", 150),
        ("rerank-2.5", "voyage-3.5-lite", 200),
    ]


def test_the_paper_where_more_candidates_stop_paying(published_store: Path):
    snapshot = Store.open(published_store).read()
    made = table(snapshot, PAPER, latency=Latency("p50", "rerank"))
    found = deeper_steps(
        snapshot, made, PAPER, quality=Quality("RA-nWG", 10), latency=Latency("p50", "rerank")
    )
    assert found.height > 10
    assert set(found["d_usd"].drop_nulls().round(2)) <= {0.5, 1.25, 2.5, 3.75, 1.0}
    assert (found["pays"] == (found["d_quality"] > 0)).all()


def test_a_gain_of_one_query_may_be_chance(tmp_path: Path):
    queries = [f"q{n}" for n in range(1, 9)]
    lab = Lab().judge({query: {"a": 5} for query in queries})
    for depth, hits in ((50, 2), (100, 3), (150, 8)):
        final = {query: ["a" if place < hits else "b"] for place, query in enumerate(queries)}
        spec = {"name": "same", "reranker": "r", "candidates": depth}
        lab.run(f"k{depth}", spec=spec, final=final, ms={"rerank": [float(depth)] * 8})
    snapshot = lab.write(tmp_path / "s").read()
    at_1 = Quality("RA-nWG", 1)
    found = deeper_steps(snapshot, table(snapshot, LAB, at_1), LAB, quality=at_1, latency=Latency())
    assert found["d_quality"].to_list() == pytest.approx([1 / 8, 5 / 8])
    assert found["per_100_ms"].to_list() == pytest.approx([2 / 8, 10 / 8])
    assert found["reason"].to_list() == ["the gain may be chance: its interval reaches 0", None]
