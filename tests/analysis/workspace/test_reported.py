"""Scores of queries that runs came with: intervals, pairs and queries without rankings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.paired import compared
from core.analysis.per_query import NOT_REPORTED, query_table
from core.analysis.scoring.table import score_table
from core.analysis.sides import look_closer, unpaired
from core.analysis.workspace.figures.reported import query_scores, with_queries
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.query_sets import paired
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.importers import Options, Upload, load
from core.stats.means import mean_interval
from core.stats.significance import Setup
from core.store import Snapshot, Store
from core.work.imports.imports import store_import
from tests.stores import Lab
from tests.views.made import table as stacks_of

NDCG, SCOPE = Quality("nDCG", 10), Scope("x")
RNG = np.random.default_rng(7)
VALUES = {name: RNG.beta(*shape, 40) for name, shape in {"A": (2, 3), "B": (3, 2), "C": (3, 2)}.items()}
MISSING = ("A", 3)


def export() -> str:
    rows = [
        f"{name},q{query:02},{'NaN' if (name, query) == MISSING else value},{10 * (query + 1)}"
        for name, values in VALUES.items()
        for query, value in enumerate(values)
    ]
    return "\n".join(["stack,query_id,nDCG@10,latency_ms", *rows])


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("reported")
    store = Store.open(path)
    store_import(store, load([Upload("x.csv", export().encode())], Options()), "x.csv")
    return store.read()


def test_quality_has_the_n_and_interval_of_its_queries(snapshot: Snapshot):
    rows = {row["name"]: row for row in stacks_of(snapshot, SCOPE, NDCG).iter_rows(named=True)}
    for name, values in VALUES.items():
        own = values.copy()
        if name == MISSING[0]:
            own[MISSING[1]] = np.nan
        assert rows[name]["quality"] == pytest.approx(np.nanmean(own))
        assert rows[name]["n"] == np.isfinite(own).sum()
        low, high = mean_interval(own, "shares")
        assert (rows[name]["quality_low"], rows[name]["quality_high"]) == pytest.approx((low[0], high[0]))
        assert rows[name]["latency_n"] == 40


def test_stacks_are_paired_query_by_query(snapshot: Snapshot):
    stacks = stacks_of(snapshot, SCOPE, NDCG)
    known = with_queries(snapshot, stacks, SCOPE, NDCG)
    assert known == stacks["run_id"].to_list()
    assert unpaired(stacks, SCOPE, NDCG, known) == ""
    rows = compared(snapshot, SCOPE, NDCG, stacks, ["A", "B", "C"], against="the first", setup=Setup())
    for row in rows.iter_rows(named=True):
        other = {"A", "B", "C"} & {row["first"], row["second"]} - {"A"}
        gaps = np.delete(VALUES["A"] - VALUES[other.pop()], MISSING[1])
        sign = 1 if row["second"] == "A" else -1
        assert row["difference"] == pytest.approx(sign * gaps.mean())
        assert row["n"] == 39
        assert row["wins"] + row["ties"] + row["losses"] == 39
    assert rows["if_judged"].null_count() == rows.height
    pairs = paired(snapshot, stacks, SCOPE, NDCG)
    assert pairs is not None
    assert pairs.values.shape == (3, 40)
    sample = joint_sample(snapshot, stacks, SCOPE, quality=NDCG, latency=Latency())
    assert sample is not None
    assert np.isfinite(sample.quality).sum() == 119


def test_a_look_closer_has_the_flips(snapshot: Snapshot):
    stacks = stacks_of(snapshot, SCOPE, NDCG)
    ids = dict(stacks.select("name", "run_id").iter_rows())
    closer = look_closer(snapshot, SCOPE, NDCG, stacks, pair=(ids["A"], ids["B"]), setup=Setup(tolerance=0))
    told = closer.queries.drop_nulls("outcome")
    assert told.height == 39
    assert (told["outcome"] == "better").sum() == np.delete(VALUES["B"] > VALUES["A"], MISSING[1]).sum()
    assert not closer.same


def test_queries_are_those_that_the_runs_report(snapshot: Snapshot):
    ids = dict(stacks_of(snapshot, SCOPE, NDCG).select("name", "run_id").iter_rows())
    rows = query_table(snapshot, SCOPE, NDCG, ids["A"], ids["B"])
    assert rows.height == 40
    lost = rows.filter(query_id=f"q{MISSING[1]:02}").row(0, named=True)
    assert (lost["score"], lost["note"]) == (None, NOT_REPORTED)
    assert lost["other"] == pytest.approx(VALUES["B"][MISSING[1]])
    assert rows.drop_nulls("score")["note"].null_count() == 39
    assert rows["judged"].null_count() == rows["holes"].null_count() == 40


@pytest.mark.parametrize("per_query", [False, True])
def test_scores_of_the_command(snapshot: Snapshot, per_query: bool):
    measure = NDCG.measure
    assert measure is not None
    rows = score_table(snapshot, snapshot.runs(), None, [measure], per_query=per_query)
    assert rows.height == (120 if per_query else 3)
    assert rows["n"].sum() == 119
    assert rows["reason"].null_count() == (119 if per_query else 3)
    assert per_query or rows["ci_low"].null_count() == 0


def test_figures_that_are_no_mean_of_the_queries_have_none_of_their_scores(snapshot: Snapshot):
    ids = snapshot.runs()["run_id"].to_list()
    assert query_scores(snapshot, ids, NDCG) is not None
    for other in (Quality("nDCG", 5), Quality("MRR", 10)):
        assert query_scores(snapshot, ids, other) is None


@pytest.mark.slow
def test_scores_made_here_and_elsewhere_are_not_paired(tmp_path: Path):
    ranking = {"q1": ["p1"], "q2": ["p1"]}
    lab = Lab("x").judge({"q1": {"p1": 5}, "q2": {"p1": 1}})
    for name in ("here", "also"):
        lab.run(name, final=ranking)
    store = lab.write(tmp_path)
    text = "stack,qid,nDCG@10\nA,q1,0.5\nA,q2,0.7\nB,q1,0.1\nB,q2,0.2\n"
    store_import(
        store,
        load(
            [Upload("s.csv", text.encode())], Options(collection_id="x", known_collections=frozenset({"x"}))
        ),
        "s.csv",
    )
    snapshot = store.read()
    scope = Scope("x", snapshot.golden_sets("x")["golden_set_id"][0])
    rows = stacks_of(snapshot, scope, NDCG)
    first = rows.sort(pl.col("has_rankings"), descending=True)
    assert len(with_queries(snapshot, first, scope, NDCG)) == 2
    last = rows.sort("has_rankings")
    reports = with_queries(snapshot, last, scope, NDCG)
    assert set(reports) == set(last.filter(~pl.col("has_rankings"))["run_id"])
    one_each = pl.concat([first.head(1), last.head(1)])
    known = with_queries(snapshot, one_each, scope, NDCG)
    assert known == one_each["run_id"][:1].to_list()
    assert unpaired(one_each, scope, NDCG) != ""
