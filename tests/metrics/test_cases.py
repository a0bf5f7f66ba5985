"""Worked examples: every one can be recomputed by hand from the text beside it."""

import json
from pathlib import Path

import numpy as np
import pytest

from core.metrics import REGISTRY, Extra, Measure, Weighting, na_reason, ratio_of_means, score_at, weights
from core.metrics.info import depths_of, sets_of
from core.views.measures.worked import bits

CASES = json.loads((Path(__file__).parents[1] / "cases" / "metrics.json").read_text("utf-8"))


def table(kind):
    return [pytest.param(case, id=case["source"]) for case in CASES[kind]]


def number(value):
    return np.nan if value is None else value


@pytest.mark.parametrize("case", table("weights"))
def test_weights(case):
    made = weights(np.array([case["counts"]]), Weighting(**case.get("params", {})))
    np.testing.assert_allclose(made, [case["expect"]], rtol=0, atol=1e-12)


def extra(case):
    made = {"gains": tuple(case["gains"])} if "gains" in case else {}
    if "sources" in case:
        judged = np.array(case["judged"])
        of = judged[None, :, 0].astype(np.int8), judged[None, :, 1].astype(np.int32)
        made["sources"] = np.array([case["sources"]], dtype=np.int32)
        best = {
            source: max(grade for grade, own in case["judged"] if own == source)
            for _, source in case["judged"]
        }
        made["source_grades"] = np.array([[best.get(source, 0) for source in case["sources"]]], dtype=np.int8)
        made |= {"facets": sets_of(*of), "depths": depths_of(*of)}
    if "supports" in case:
        made["nuggets"] = np.array([[bits(told) for told in case["supports"]]], dtype=np.uint64)
        made["nuggets_listed"] = np.array([[bits(case["nuggets"]), bits(case["vital"])]], dtype=np.uint64)
    if "states" in case:
        made["states"] = np.array([case["states"]], dtype=np.int8)
        made["filtered"] = np.array([case["filtered"]], dtype=np.int32)
    if "answers" in case:
        made["answers"] = np.array([[number(value) for value in case["answers"]]])
    return Extra(**made)


@pytest.mark.parametrize("case", table("scores"))
def test_scores(case):
    measure = Measure.parse(case["measure"])
    grades = np.array([case["ranking"]], dtype=np.int8)
    pool = np.array([case["pool"]], dtype=np.int8) if "pool" in case else None
    counts = np.array([case["counts"]])
    made = score_at(measure, grades, counts, pool_grades=pool, extra=extra(case))
    np.testing.assert_allclose(made, [number(case["expect"])], rtol=0, atol=1e-12)
    if not {"answers", "nuggets", "filters"} & measure.info.needs:
        reason = na_reason(measure, counts[0], None if pool is None else pool[0])
        assert bool(reason) == (case["expect"] is None)


@pytest.mark.parametrize("case", table("ratio_of_means"))
def test_ratio_of_means(case):
    columns = [np.array([[number(value)] for value in case[side]]) for side in ("actual", "ceiling")]
    np.testing.assert_allclose(ratio_of_means(*columns), [number(case["expect"])], rtol=0, atol=1e-12)


def test_every_plain_measure_has_a_case():
    cased = {Measure.parse(case["measure"]).name for case in CASES["scores"]}
    assert {name for name in REGISTRY if "[" not in name} <= cased
