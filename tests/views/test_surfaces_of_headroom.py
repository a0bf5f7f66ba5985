"""One stack, one ceiling: record, Queries, Headroom and the stack table say the same of every stack."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.analysis.workspace.pools import lost
from core.api.workspace import Workspace
from core.report.data import record_data, verdict
from core.store import Store
from core.views.blocks import Answer
from core.views.headroom import MIXED, limiting

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sla_ms", [None, 20.0])
def test_record_queries_and_headroom_say_the_same_of_every_stack(shipped_store: Path, sla_ms: float | None):
    space = Workspace(Store.open(shipped_store), "docs-search")
    decided = space.decide(sla_ms=sla_ms)
    view = decided.view
    feasible = view.decision.feasible.tolist()
    whole = decided.page("headroom", None, {"pool": MIXED}).tables["headroom"]
    on_page = {row["name"]: row for row in whole.iter_rows(named=True)}
    seen = set()
    for row in view.table.iter_rows(named=True):
        parts = lost(row["quality"], row["proc"])
        actual, ceiling = round(row["quality"], 3), round(max(row["quality"], row["proc"]), 3)
        pool, ordering, retrieval = row["proc_pool"], f"{ceiling - actual:.3f}", f"{1 - ceiling:.3f}"
        said = limiting(row, view.quality, view.table, feasible, view.paired)
        assert f"{retrieval} is lost in retrieval and {ordering} in ordering (pool {pool}," in said
        queries = decided.page("queries", None, {"stack": row["name"]})
        cards = {card[0]: card[1:] for block in queries.blocks for card in getattr(block, "cards", ())}
        of = f"best order of its {pool.partition('@')[2]} candidates"
        assert cards["PROC"] == (f"{row['proc']:.3f}", of)
        if row["name"] in on_page:
            page = on_page[row["name"]]
            seen.add(row["name"])
            assert (page["pool"], page["proc"]) == (pool, row["proc"])
            assert (page["ordering"], page["retrieval"]) == (parts["ordering"], parts["retrieval"])
    assert seen == set(on_page)
    chosen = view.table["name"][view.decision.chosen]
    assert chosen in seen
    (head, *_) = [block for block in decided.page("headroom").blocks if isinstance(block, Answer)]
    record = record_data(view, verdict(view), link="", made_at=datetime.now(UTC))
    assert head.caveats["what was tried"] in str(record["limiting"])
    assert f"pool {on_page[chosen]['pool']}" in str(record["limiting"])
