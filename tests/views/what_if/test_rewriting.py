"""Routing between queries as typed and rewritten: what is offered, and what a rewritten query pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from core.analysis.families import TYPED, available, rewriting
from core.analysis.workspace.figures.latencies import sample
from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.store import Snapshot
from core.views.what_if.routing import RoutingWay, gather
from core.views.what_if.simulator import simulate
from tests.views.made import BOOK, table
from tests.views.what_if import routed

SCOPE, AT_3 = routed.ROUTED, Quality("Success", 3)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return routed.write_rewritten(tmp_path_factory.mktemp("rewriting") / "s").read()


def test_stacks_that_were_asked_both_ways_are_offered(snapshot: Snapshot):
    found = rewriting(snapshot, SCOPE)
    assert [each.name for each in found] == [
        "BM25, K = 10 · noise 4, rewritten or not", "BM25, K = 10, rewritten or not"
    ]  # fmt: skip
    assert [option.label for option in found[0].options] == [TYPED, "rules"]
    assert all(each.rewrites for each in found)
    specs = dict(snapshot.runs("c").select("run_id", "spec").iter_rows())
    assert all('"noise":4' in specs[option.run_id] for option in found[0].options)
    none = replace(SCOPE, run_ids=tuple(run for run, spec in specs.items() if '"dense"' in spec))
    assert rewriting(snapshot, none) == []


def test_a_margin_decides_which_queries_are_rewritten(snapshot: Snapshot):
    family = rewriting(snapshot, SCOPE)[0]
    ids = tuple(option.run_id for option in family.options)
    rows = table(snapshot, replace(SCOPE, run_ids=ids), AT_3)
    view = View(snapshot, SCOPE, quality=AT_3, latency=Latency(), book=BOOK, given=rows)
    margin = next(each for each in available(snapshot, family.options[0], "c") if each.key == "top_margin")
    found = gather(view, family.options, way=RoutingWay(margin.known, False, True, True))
    assert found is not None
    assert len(found.query_ids) == 24
    own = snapshot.runs("c").filter(pl.col("run_id").is_in(ids))
    took = dict(sample(snapshot, own, Latency()).filter(run_id=ids[0]).select("query_id", "ms").iter_rows())
    assert found.depths.probe_ms == pytest.approx([took[each] for each in found.query_ids]), (
        "all of it, again"
    )
    assert any("is rewritten and searched again" in note for note in found.notes)
    assert (found.depths.merit.mean(axis=1)[1] >= found.depths.merit.mean(axis=1)[0]) or found.depths.same
    made = simulate(found, margin, AT_3, most=1.0)
    routed = made.rows.row(by_predicate=pl.col("kind") == "routed", named=True)
    assert routed["n"] == 24
    assert np.isfinite([routed["gain_low"], routed["gain_high"]]).all()
