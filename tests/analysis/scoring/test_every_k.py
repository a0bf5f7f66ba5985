"""Values per query at every cutoff, as one table."""

from __future__ import annotations

import polars as pl
import pytest

from core.analysis.scoring import files as module
from core.analysis.scoring.files import every_k, in_parts
from core.analysis.scoring.table import score_table
from core.analysis.workspace.scores import evidence
from core.metrics import Measure, parse_list
from core.store import Snapshot
from tests.stores import Lab

GRADES = {"q1": {"p1": 5, "p2": 1, "p3": 4}, "q2": {"p1": 4}, "q3": {"p3": 2}}
MEASURES = parse_list("RA-nWG@10,PROC[RA-nWG],RA-nWG@3(alpha=0.5),nDCG,AP,RR")
TEXTS = {"run": pl.String, "query_id": pl.String}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    made = Lab().judge(GRADES).run("a", final={"q1": ["p2", "p1"], "q3": ["p3"], "q9": ["p1"]})
    made.run("b", final={"q1": ["p1", "p3", "p2"]}).run("c", final={"q2": ["p1"]})
    return made.write(tmp_path_factory.mktemp("lab") / "s").read()


def test_each_value_is_that_of_the_score_table(lab: Snapshot):
    found = every_k(evidence(lab, ["b", "a"], "gold", MEASURES), MEASURES, depth=4)
    names = ["RA-nWG", "PROC[RA-nWG]", "RA-nWG(alpha=0.5)", "nDCG", "AP", "RR"]
    assert found.columns == ["k", "run", "query_id", *names]
    assert found.select("k", "run", "query_id").cast(TEXTS).rows() == [
        (k, run, query) for k in range(1, 5) for run in ("b", "a") for query in sorted(GRADES)
    ]
    long = found.unpivot(names, index=["k", "run", "query_id"], variable_name="measure")
    for k in range(1, 5):
        at = [Measure.parse(name).at(k) for name in names]
        wanted = score_table(lab, lab.runs(), "gold", at, per_query=True)
        for row in wanted.filter(pl.col("run") != "c").iter_rows(named=True):
            own = long.filter(
                k=k,
                run=row["run"],
                query_id=row["query_id"],
                measure=str(Measure.parse(row["measure"]).at(None)),
            )
            assert own["value"].to_list() == [row["value"]]


def test_runs_in_parts_give_the_same(lab: Snapshot, monkeypatch: pytest.MonkeyPatch):
    whole = every_k(evidence(lab, ["a", "b", "c"], "gold", MEASURES), MEASURES, depth=2)
    for rows in (1, 4_000_000):
        monkeypatch.setattr(module, "_ROWS", rows)
        parts = list(in_parts(lab, ["a", "b", "c"], "gold", MEASURES, depth=2))
        assert len(parts) == (3 if rows == 1 else 2)
        together = pl.concat([part.cast({"run": pl.String, "query_id": pl.String}) for part in parts])
        assert together.sort("k", "run", "query_id").equals(
            whole.cast({"run": pl.String, "query_id": pl.String})
        )
    assert list(in_parts(lab, [], "gold", MEASURES)) == []


def test_what_a_run_was_not_asked_is_unknown_where_wanted(lab: Snapshot):
    measures = parse_list("P")
    found, zeros = (
        pl.concat(
            part.cast(TEXTS)
            for part in in_parts(lab, ["a", "b", "c"], "gold", measures, depth=1, asked_only=asked_only)
        )
        for asked_only in (True, False)
    )
    known = found.filter(pl.col("P").is_not_null()).select("run", "query_id").rows()
    assert known == [("a", "q1"), ("a", "q3"), ("b", "q1"), ("c", "q2")]
    assert (found["P"].fill_null(0) == zeros["P"]).all()
    assert zeros["P"].null_count() == 0
