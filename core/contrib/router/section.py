"""Section Router: several features choose the stack of a query together, and two files do so elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis.workspace.scope import Quality
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.contrib.router.learned import (
    METHODS,
    REGRESSION,
    Learned,
    RouterPlan,
    as_json,
    coefficients,
    files,
    learned,
)
from core.decide.routers import COPIES
from core.paths import PROGRAM
from core.records import JsonMap
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Control, Fold, Table, Text, section
from core.views.what_if import data, routing, simulator, words
from core.views.what_if.data import ask_options, way_of
from core.views.what_if.routing import Bounds
from core.views.what_if.simulator import WAYS

NAME = "router"

ABOUT_METHOD = (
    "Logistic regression: log odds that a further stack is better, a query weighed by what is at stake. "
    "Nearest neighbours: what the queries with the most similar signs gained."
)

ABOUT_MOST = "The router sends no more of the queries that it learns from beyond the first stack."

TOO_FEW = "Choose two or three stacks, depths, rewrites or numbers of passages to route {} between."

NO_SIGNS = "Nothing is known of a query here that a router could go by."

HOW = (
    "Penalty and number of neighbours are chosen within the queries that are learnt from; each is routed by "
    "a router that has not seen its quality (5 folds dealt 5 ways, 2 from 500 queries on). Chance sends the "
    "same shares to the same stacks. Intervals: 95 % over queries, paired, the routing held fixed."
)
ABOUT_FILES = {
    "router.json": "Options, means, coefficients or neighbours, threshold, and what it was learnt from.",
    "router.py": "Decides by router.json beside it; needs Python and no package.",
}
LEAVES = (
    f"{PROGRAM} router FOLDER, with the same choices, writes router.json and router.py, which decides alike."
)
PER_SD = "Log odds of being better than the first stack, per standard deviation of the sign."
_OVER = "Against the same shares of queries sent at random."
COMPARED = cols.Rows(
    "router_methods",
    cols.text("method", help=ABOUT_METHOD, width=150),
    "deeper",
    cols.score("quality", help="Held out; mean over n queries."),
    cols.signed("gain", "over chance", _OVER),
    "gain_low gain_high",
    cols.signed("null_most", "most by noise", f"The most that {COPIES} noisy copies gain over chance."),
    more=(
        cols.signed("null_gain", "mean by noise", "The mean that noisy copies gain over chance."),
        cols.signed("null_over", "noise over best", "The mean that they gain over the best copy."),
        "over over_low over_high n",
    ),
    ends="95 % interval, paired by query.",
)


def asked(view: View, ask: Ask) -> RouterPlan | str:
    """Ask for options and features; if routing is impossible, return why."""
    if not view.table["has_rankings"].any():
        return f"No stack here has rankings to route {view.quality.name} by."
    family, options = ask_options(view, ask, of_my_choice=True)
    if len(options) < 2:
        return TOO_FEW.format(view.quality.name)
    groups = data.groups(view, options[0])
    known = {group.name: group for group in groups}
    usual = [name for name in known if name != data.VECTOR] or list(known)
    but = "all but the vector"
    picked = ask.several("Signs", known, "signs", usual=usual, words=but, about=data.ABOUT) if known else []
    if not picked:
        return NO_SIGNS
    method = ask.one("Method", tuple(METHODS), "routby", usual=REGRESSION, about=ABOUT_METHOD)
    (most,) = ask.slide(words.AT_MOST, "most", (50,), 0, 100, step=5, about=ABOUT_MOST)
    late = data.together([known[name] for name in picked], ()).known
    bounds = Bounds.of(view, options)
    return RouterPlan(tuple(options), way_of(family, late), tuple(picked), method, most / 100, bounds)


def judged_by(view: View, plan: RouterPlan) -> Quality:
    """Return the measure that judges the options."""
    return routing.quality(plan.options[-1], view.quality)


def learnt(view: View, plan: RouterPlan) -> Learned | str:
    """Learn the router, or return why there is nothing to learn."""
    router = learned(view, plan)
    if router is not None:
        return router
    routable = data.routable(view, plan.options, plan.way)
    labels = " and ".join(option.label for option in plan.options)
    n = text.count(0 if routable is None else len(routable.query_ids), "query", "queries")
    same = f"Nothing to route: all {n} have the same {judged_by(view, plan).name} at {labels}."
    return simulator.nothing(routable) or same


def sentence(view: View, plan: RouterPlan, router: Learned) -> str:
    """Say what the router gains, and whether it is worth it."""
    return words.sentence(router.routable, router.rows, judged_by(view, plan))


def told(view: View, plan: RouterPlan, router: Learned) -> JsonMap:
    """Return the content of router.json."""
    return as_json(view, router, judged_by(view, plan), plan.most)


@section(NAME, "Do several signs together send the right queries to the slower stack?", seldom)
def router(view: View, ask: Ask) -> Blocks:
    """Yield the gain of a learnt router, held out, and the files that reproduce its decisions."""
    plan = asked(view, ask)
    found = plan if isinstance(plan, str) else learnt(view, plan)
    if isinstance(plan, str) or isinstance(found, str):
        yield Answer(str(found), simulator.NEEDS)
        return
    quality = judged_by(view, plan)
    method = found.methods.row(by_predicate=pl.col("method") == plan.method, named=True)
    said = sentence(view, plan, found)
    yield Answer(said, caveats=caveats(found, method))
    yield Cards(words.cards(found.rows, quality))
    if axes := {simulator.AXES[axis]: axis for axis in simulator.drawable(found.rows)}:
        behind = view.table.clear() if plan.options[0].sent else view.table
        axis = axes[ask.listed("Across", axes, "rx")]
        unit = text.cost_unit(view.table)
        drawn = simulator.chart(found.rows, found.between, behind, quality, axis, said=unit)
        yield Chart(drawn, "router", said)
    yield Table(found.methods, COMPARED)
    every = Table(found.rows, WAYS.measured(quality.name))
    yield Fold("Every way of answering, with latency and cost", [every])
    lines = coefficients(found)
    if not lines.is_empty():
        goes_by = cols.Rows(
            "router_signs",
            cols.text("sign", help="As router.json and router.py call it.", width=230),
            *(cols.signed(label, f"to {label}", PER_SD, digits=2) for label in lines.columns[3:]),
            cols.number(
                "mean", help="Of the sign over the queries; stands in where it is unknown.", digits=3
            ),
            cols.number("sd", help="Standard deviation of the sign.", digits=3),
        )
        yield Fold("What it goes by", [Table(lines, goes_by)])
    leave = {"texts": files(told(view, plan, found)), "about": ABOUT_FILES}
    yield Control("files", leave, lambda: iter([Text(LEAVES, "guide")]))


def caveats(found: Learned, method: Mapping[str, Any]) -> dict[str, str]:
    """Return how it is judged, the gain by noise alone, and what the features need, by words of a chip."""
    most = text.signed(method["null_most"])
    null = (
        f"Between {COPIES} noisy copies of the best stack, as different as the real ones, the same method "
        f"gains {text.signed(method['null_gain'])} over chance on average and {most} at most."
    )
    beaten = method["gain"] > method["null_most"]
    null += " The router's gain is above all of them." if beaten else " The router's gain is no larger."
    left = found.routable.left_out
    return {
        "how it is judged": HOW,
        "what noise gains": null,
        "what is known when": " ".join((*found.routable.notes, *found.signs.notes)),
        "left out": f"{text.count(left, 'query is', 'queries are')} left out: an option cannot score them."
        if left
        else "",
    }
