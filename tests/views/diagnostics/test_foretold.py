"""The section on diagnostics and recall: planted relations, and what a store with small talk says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.views.ask import Given
from core.views.blocks import Answer, Table
from core.views.diagnostics import foretold
from core.views.diagnostics.sections import with_recall
from tests.views.made import BOOK
from tests.views.what_if import routed

OF = ("s", "noise 4", foretold.COSINE)


@pytest.mark.parametrize(
    ("slope", "low", "high"), [(1.0, 0.8, 1.0), (-1.0, -1.0, -0.8), (0.0, -0.35, 0.35)], ids=str
)
def test_a_planted_relation_is_found(slope: float, low: float, high: float):
    random = np.random.default_rng(4)
    moved = random.standard_normal(150)
    row = foretold._row(OF, moved, slope * moved + 0.1 * random.standard_normal(150))
    assert low <= row["rho"] <= high
    assert row["low"] <= row["rho"] <= row["high"]
    assert row["n"] == 150


def test_queries_that_nothing_is_known_of_are_left_out_and_too_few_say_so():
    moved = np.full(30, np.nan)
    moved[:9] = np.arange(9)
    row = foretold._row(OF, moved, np.arange(30.0))
    assert (row["n"], row.get("rho")) == (9, None)
    assert "10 are needed" in row["reason"]


@pytest.mark.parametrize(("stacks", "sure"), [(2, False), (4, True)])
def test_over_stacks_an_interval_needs_several(stacks: int, sure: bool):
    rows = [
        {"stack": f"s{at}", "perturb": "p", "diagnostic": foretold.COSINE, "moved": -level,
         "change": -level - at / 9}
        for at in range(stacks)
        for level in (1.0, 2.0)
    ]  # fmt: skip
    (row,) = foretold._over_stacks(rows)
    assert row["rho"] > 0.8
    assert (row["low"] is not None) is sure
    assert ("no interval" in (row["reason"] or "")) is not sure


def test_a_store_with_small_talk_has_rows_over_queries(tmp_path: Path):
    store = routed.write_rewritten(tmp_path / "s")
    view = View(store.read(), routed.ROUTED, quality=Quality("RA-nWG", 3), latency=Latency(), book=BOOK)
    blocks = list(with_recall.draw(view, Given()))
    assert any(isinstance(block, Answer) for block in blocks)
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert table.whole is not None
    rows = table.whole.filter(pl.col("stack") != foretold.EVERY)
    assert set(rows["perturb"]) == {foretold.CLEANLY, "noise 4"}
    assert rows["n"].max() == routed.QUESTIONS
    none = View(store.read(), routed.ROUTED, quality=Quality("RA-nWG", 3), latency=Latency(), book=BOOK)
    assert foretold.foretold(none).equals(table.whole)
