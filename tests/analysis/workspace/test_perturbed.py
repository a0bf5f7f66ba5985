"""Robust measures over what the store holds of perturbed siblings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.analysis.workspace.choices import choices
from core.analysis.workspace.figures.samples import joint_sample
from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.scores import at_cutoff, evidence, unperturbed
from core.decide.joint import chances
from core.decide.rules import Constraints, decide
from core.metrics import Measure
from core.store import Snapshot
from tests.stores import Lab
from tests.views.made import LAB, table

BM25 = {"name": "bm25", "mode": "sparse", "sparse": "bm25"}
ALL = {"q1": ["p", "x"], "q2": ["p", "x"], "q3": ["p", "x"]}
GRADES = {query: {"p": 5, "x": 1} for query in ALL}
NOISY = {**BM25, "perturb": {"noise": 4}}
ROBUST = Measure.parse("Robust[N-Recall4+]@1")


def lab(tmp_path: Path, **runs: tuple[dict[str, object], dict[str, list[str]]]) -> Snapshot:
    made = Lab().judge(GRADES)
    for run_id, (spec, final) in runs.items():
        made.run(run_id, final=final, spec=spec)
    return made.write(tmp_path / "store").read()


def test_it_is_the_worst_of_a_run_and_its_sibling_and_needs_one(tmp_path: Path):
    noisy = {"q1": ["x", "p"], "q2": ["p"]}
    snapshot = lab(
        tmp_path,
        clean=(BM25, ALL),
        noisy=(NOISY, noisy),
        alone=({**BM25, "rewrite": "rules"}, ALL),
        typo=({**BM25, "perturb": {"typo": 1}}, noisy),
    )
    found = evidence(snapshot, ["clean", "alone", "noisy"], "gold", [ROBUST])
    values = at_cutoff(found, ROBUST)
    np.testing.assert_array_equal(values[0], [0, 1, np.nan])
    assert np.isnan(values[1:]).all(), "no sibling; and a perturbed run is nobody's clean one"
    np.testing.assert_array_equal(at_cutoff(found.among({"q2"}), ROBUST)[0], [1])
    assert np.isnan(found.rescored(ROBUST, found.grades[..., :1], found.pool_counts)).all()
    assert {"Robust[N-Recall4+]", "Robust[RA-nWG]"} <= set(choices(snapshot, LAB).measures)


def test_robust_quality_stands_beside_the_quality_and_is_a_floor(tmp_path: Path):
    snapshot = lab(
        tmp_path,
        clean=(BM25, ALL),
        noisy=(NOISY, {"q1": ["x", "p"], "q2": ["p"], "q3": ["x"]}),
        alone=({**BM25, "rewrite": "rules"}, ALL),
    )
    rows = table(snapshot, LAB, Quality("N-Recall4+", 1))
    assert dict(rows.select("run_id", "robust").iter_rows()) == {"clean": pytest.approx(1 / 3), "alone": None}
    assert rows["robust_of"].drop_nulls().to_list() == [str(ROBUST)]
    found = decide(rows, Constraints(min_robust=0.5))
    assert dict(found.excluded().select("run_id", "constraint").iter_rows()) == {
        "clean": "min_robust", "alone": "unknown robust quality",
    }  # fmt: skip
    sample = joint_sample(snapshot, rows, LAB, quality=Quality("N-Recall4+", 1), latency=Latency())
    alone = chances(sample, Constraints(min_robust=0.5), resamples=4_000, seed=1)
    # of three draws of three queries two or more are the one that endures: 7/27
    assert alone.feasible[rows["run_id"].to_list().index("clean")] == pytest.approx(7 / 27, abs=0.03)


def test_perturbations_at_once_count_where_they_were_run(tmp_path: Path):
    other = {**BM25, "candidates": 3}
    both, typo = {"noise": 4, "typo": 1}, {"typo": 1}
    snapshot = lab(
        tmp_path,
        clean=(BM25, ALL), noisy=(NOISY, ALL), typo=({**BM25, "perturb": typo}, ALL),
        both=({**BM25, "perturb": both}, {"q1": ["x", "p"], "q2": ["p"]}),
        alone=(other, ALL), alone_noisy=({**other, "perturb": {"noise": 4}}, ALL),
        alone_both=({**other, "perturb": both}, ALL),
    )  # fmt: skip
    asked = Measure.parse("Robust[N-Recall4+]@1(noise=4,typo=1)")
    found = evidence(snapshot, ["clean", "alone"], "gold", [asked])
    np.testing.assert_array_equal(at_cutoff(found, asked), [[0, 1, 1], [np.nan] * 3])
    assert unperturbed(found, asked) == ["", "needs a run of the stack with typo 1"]


def test_a_query_that_found_nothing_counts_0_and_one_that_was_not_asked_does_not(tmp_path: Path):
    made = Lab().judge(GRADES).run("clean", final=ALL, spec=BM25)
    made.run("noisy", final={"q1": ["p"]}, ms={"sparse": [1.0, 1.0]}, spec=NOISY)
    snapshot = made.write(tmp_path / "store").read()
    values = at_cutoff(evidence(snapshot, ["clean"], "gold", [ROBUST]), ROBUST)
    np.testing.assert_array_equal(values[0], [1, 0, np.nan])


@pytest.mark.parametrize("spec", [BM25, {**BM25, "perturb": {"noise": 2}}])
def test_without_the_perturbation_there_is_no_value(tmp_path: Path, spec: dict[str, object]):
    snapshot = lab(tmp_path, clean=(BM25, ALL), other=(spec, ALL))
    values = at_cutoff(evidence(snapshot, ["clean"], "gold", [ROBUST]), ROBUST)
    assert np.isnan(values).all()
    offered = choices(snapshot, LAB).measures
    assert ("Robust[N-Recall4+]" in offered) == ("perturb" in spec)
    assert Quality("Robust[N-Recall4+]", 1).ceiling is None
