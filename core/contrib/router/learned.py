"""A router learnt from several features: its gain on held-out queries, and its files.

The export is router.json (means, scales, coefficients or neighbours, a threshold, and their origin)
and router.py, which decides by it without any package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.families import Option
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.decide.learning import Choices, LearnedRule, cross_validated, in_sample
from core.decide.routers import COPIES, ByNeighbours, ByRegression, Regression, RouterScorer, copies_gain
from core.decide.routing import Depths, one_hot
from core.paths import DATA
from core.records import JsonMap
from core.stats.threads import one_thread
from core.views.what_if import data, simulator
from core.views.what_if.data import DIM, ENCODER, Signs, together
from core.views.what_if.routing import Bounds, Routable, RoutingWay

FILE = DATA / "exported" / "router.py"
REGRESSION, NEIGHBOURS = "logistic regression", "nearest neighbours"
METHODS: Mapping[str, type[ByRegression | ByNeighbours]] = {
    REGRESSION: ByRegression,
    NEIGHBOURS: ByNeighbours,
}
REPEATS = {0: 5, 500: 2}  # minimum queries → number of averaged fold assignments
FORMAT, VERSION = "clq-explorer/router", 1
_GAINS = ("gain", "gain_low", "gain_high", "over", "over_low", "over_high")
COMPARED = pl.Schema({
    "method": pl.String(),
    **dict.fromkeys(("deeper", "quality", *_GAINS, "null_gain", "null_most", "null_over"), pl.Float64()),
    "n": pl.Int32(),
})  # fmt: skip
"""Columns of `Learned.methods`: held-out gains over chance at the same rates and over the best option for
all; the null columns are the mean and the most that the method gains over chance between noisy copies, and
the mean over the best copy."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A router and its evaluation."""

    routable: Routable
    signs: Signs
    rows: pl.DataFrame  # for the chosen method, in the form of `simulator.Simulation`
    between: pl.DataFrame  # chance at every rate, in the same form
    methods: pl.DataFrame  # `COMPARED`, a row per method
    scorer: RouterScorer  # learnt from all queries; this one is exported
    decided: tuple[int, ...]  # [Q], the option chosen for each query


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """A router's options and features."""

    options: tuple[Option, ...]
    way: RoutingWay  # how a query gets from the first option to a further one
    groups: tuple[str, ...]  # names of its feature groups
    method: str  # a key of `METHODS`
    most: float  # maximum share of the queries that may leave the first option, 0..1
    bounds: Bounds = simulator.FREE  # the limits on a way


@cached("Learning on some queries, judging on others…", entries=16)
def learned(view: View, plan: RouterPlan) -> Learned | None:
    """Learn a router between some options.

    Returns:
        The router, or None if too few queries are scored at every option, or all score alike.
    """
    routable = data.routable(view, plan.options, plan.way)
    if routable is None or simulator.nothing(routable) or routable.depths.same:
        return None
    groups = [group for group in data.groups(view, plan.options[0]) if group.name in plan.groups]
    signs = together(groups, routable.query_ids)
    rules = {name: rule(signs.values, plan.most) for name, rule in METHODS.items()}
    depths = routable.depths
    with one_thread():
        judged = {name: _judged(routable, rule, plan.bounds) for name, rule in rules.items()}
        compared = [_compared(depths, name, rules[name], rows) for name, (rows, *_) in judged.items()]
    rows, scorer, decided = judged[plan.method]
    methods = pl.DataFrame(compared, schema=COMPARED)
    between = simulator.between(depths)
    return Learned(routable, signs, rows, between, methods, scorer, tuple(decided.tolist()))


def _judged(
    routable: Routable, rule: LearnedRule[Any], bounds: Bounds
) -> tuple[pl.DataFrame, RouterScorer, Choices]:
    """Return ways of answering with their gains, the scorer learnt from all queries, and its choices [Q]."""
    depths = routable.depths
    scorer, decided = in_sample(rule, depths.merit)
    repeats = next(times for least, times in reversed(REPEATS.items()) if depths.queries >= least)
    tried = {
        "routed": cross_validated(rule, depths.merit, repeats=repeats),
        "optimistic": one_hot(decided, depths.count),
    }
    every = simulator.ways(routable, tried)
    return simulator.judged(routable, every, list(tried), bounds), scorer, decided


def _compared(depths: Depths, method: str, rule: LearnedRule[Any], rows: pl.DataFrame) -> dict[str, Any]:
    routed = rows.row(by_predicate=pl.col("kind") == "routed", named=True)
    null, over = copies_gain(rule, depths, draws=COPIES)
    return {
        "method": method,
        **{name: routed[name] for name in ("deeper", "quality", *_GAINS, "n")},
        "null_gain": float(null.mean()),
        "null_most": float(null.max()),
        "null_over": float(over.mean()),
    }


def coefficients(router: Learned) -> pl.DataFrame:
    """Return feature, mean, scale and log odds per standard deviation of a regression, the largest first."""
    scorer = router.scorer
    if not isinstance(scorer, Regression):
        return pl.DataFrame(schema={"sign": pl.String})
    labels = [option.label for option in router.routable.options[1:]]
    lines = dict(zip(labels, scorer.lines[:, 1:], strict=True))
    table = pl.DataFrame({"sign": router.signs.names, "mean": scorer.means, "sd": scorer.scales, **lines})
    return table.sort(pl.max_horizontal(pl.col(label).abs() for label in labels), descending=True)


def as_json(view: View, router: Learned, quality: Quality, most: float) -> JsonMap:
    """Return the input of `data/exported/router.py`, and its origin."""
    names = dict(view.snapshot.runs(view.scope.collection_id).select("run_id", "label").iter_rows())
    specs = dict(view.snapshot.runs(view.scope.collection_id).select("run_id", "spec").iter_rows())
    options = [
        {
            "label": option.label,
            "stack": names.get(option.run_id),
            "run_id": option.run_id,
            "spec": json.loads(specs.get(option.run_id) or "{}"),
            "candidates": option.depth,
            "reader": None if option.sent is None else option.sent.reader,
            "passages_sent": None if option.sent is None else option.sent.k,
        }
        for option in router.routable.options
    ]
    named = {
        f"over_{said}{end}": f"{stem}{end}"
        for said, stem in (("chance", "gain"), ("best", "over"))
        for end in ("", "_low", "_high")
    }
    held_out = router.rows.filter(kind="routed").select("quality", "low", "high", "deeper", **named)
    learnt: JsonMap = {
        "collection": view.scope.collection_id,
        "golden_set": view.scope.golden_set_id,
        "revision": view.snapshot.revision,
        "measure": quality.name,
        "queries": len(router.routable.query_ids),
        "most_that_leave_the_first": most,
        "held_out": held_out.row(0, named=True),
    }
    vector = {"encoder": ENCODER, "dimensions": DIM} if router.signs.encoded else None
    return {
        "format": FORMAT,
        "version": VERSION,
        "options": options,
        "signs": list(router.signs.names),
        "vector": vector,
        **router.scorer.as_json(),
        "notes": [*router.routable.notes, *router.signs.notes],
        "learnt_from": learnt,
    }


def files(told: JsonMap) -> dict[str, str]:
    """Return the exported files, by name."""
    written = json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False)
    return {"router.json": written + "\n", "router.py": FILE.read_text("utf-8")}
