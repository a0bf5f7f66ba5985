"""What is shipped, and what is only the best so far: the rule of docs/decide.md, case by case."""

from typing import Any

import numpy as np
import pytest

from core.decide.joint import JointSample
from core.decide.rules import Constraints
from core.views.decision.words import answer, title
from core.views.words.verdict import NONE, SHIP, SO_FAR, TAKEN, doubt, verdict
from tests.views.made import asking, stacks

RANDOM = np.random.default_rng(3)
APART = np.stack([RANDOM.normal(0.8, 0.05, 40), RANDOM.normal(0.3, 0.05, 40)])
ALIKE = RANDOM.normal(0.5, 0.2, (2, 20))
KNOWN = {"latency_ms": [20.0, 10.0], "cost": [2.0, 1.0]}


def of(
    values: np.ndarray, columns: dict[str, Any], limits: Constraints | None = None, take: str | None = None
):
    table = stacks(name=["a", "b"], quality=values.mean(axis=1).tolist(), n=[values.shape[1]] * 2, **columns)
    none = np.full(2, np.nan)
    cost, ms = (np.array(columns.get(name, none), dtype=float) for name in ("cost", "latency_ms"))
    sample = JointSample(values, np.full(values.shape, np.nan), cost, none, ms)
    return asking(table, limits or Constraints(delta=0.01), sample=sample, take=take)


@pytest.mark.parametrize(
    ("view", "kind", "against"),
    [
        (of(APART, KNOWN), SHIP, ""),
        (of(APART, {"cost": [2.0, 1.0]}), SO_FAR, "latency unknown"),
        (of(APART, {"latency_ms": [20.0, 10.0]}), SO_FAR, "cost unknown"),
        (of(APART, {}), SO_FAR, "latency and cost unknown"),
        (of(ALIKE, KNOWN), SO_FAR, "ask 20 more queries first"),
        (of(ALIKE[:, :4], KNOWN), SO_FAR, "confidence unknown"),
        (of(APART, KNOWN, take="r1"), TAKEN, "surely worse than a"),
        (of(APART, KNOWN, Constraints(min_quality=0.9, delta=0.01)), NONE, ""),
        (of(APART, KNOWN, Constraints(sla_ms=15.0, delta=0.01)), SHIP, ""),
    ],
)
def test_only_what_nothing_stands_against_is_shipped(view, kind: str, against: str):
    assert (verdict(view), doubt(view)) == (kind, against)
    heads = {SHIP: "Ship ", SO_FAR: "Best so far: ", TAKEN: "Taken by hand: ", NONE: "No stack "}
    if view.table["n"][0] >= 8:
        assert title(view).startswith(heads[kind])
        assert title(view).endswith(f"; {against}") == bool(against)
    assert answer(view).sentence.startswith("No stack " if kind == NONE else title(view)[:11])
