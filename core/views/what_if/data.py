"""Data of page What if, read from a workspace and cached if drawn often.

A view's functions are cached by the sources of its stack table: other dependencies are separate arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from core.analysis import families
from core.analysis.cache import cached
from core.analysis.families import Family, Option, Signal
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.views.what_if import features, routing, scenarios, sent
from core.views.what_if.routing import Routable
from core.views.what_if.scenarios import ScenarioChoice


@cached()
def named(view: View) -> Mapping[str, str]:
    """Return the stacks named by the paper, by scenario."""
    return scenarios.named(view.snapshot, view.scope.collection_id)


@cached("Scoring the chosen stacks…")
def matrix(view: View, choices: tuple[ScenarioChoice, ...]) -> pl.DataFrame:
    """Return the stacks chosen by scenarios, measure by measure; see `scenarios.matrix`."""
    where = (view.snapshot, view.table, view.scope)
    return scenarios.matrix(*where, choices, view.book, quality=view.quality, latency=view.latency)


@cached("Scoring the leaderboards…", entries=16)
def leaders(view: View, end_to_end: bool) -> pl.DataFrame:
    """Return quality per second of every stack; see `scenarios.leaderboard`."""
    return scenarios.leaderboard(view.snapshot, view.scope, end_to_end=end_to_end)


@cached("Looking which stacks rewrite…", entries=16)
def rewriting(view: View) -> list[Family]:
    """Return stacks with and without rewritten queries."""
    return families.rewriting(view.snapshot, view.scope)


@cached("Looking whose answers there are…", entries=16)
def answering(view: View) -> list[Family]:
    """Return the readers whose answers show how many passages a query needs."""
    return sent.families(view)


@cached("Looking which depths can be replayed…", entries=64)
def with_replays(view: View, family: Family) -> Family:
    """Return a family with the smaller depths that its deepest run can replay."""
    return families.with_replays(view.snapshot, view.table, family)


@cached("Reading the signals…", entries=64)
def signals(view: View, option: Option) -> list[Signal]:
    """Return the signals of a depth that queries can be routed by."""
    return families.available(view.snapshot, option, view.scope.collection_id)


@cached("Reading what can be told of a query…", entries=32)
def groups(view: View, option: Option) -> tuple[features.Group, ...]:
    """Return the features of every query that a router can use."""
    return features.groups(view, option, signals(view, option))


@cached("Scoring every query…", entries=64)
def routable(view: View, options: tuple[Option, ...], way: routing.RoutingWay) -> Routable | None:
    """Return quality, latency and cost of every query at every depth.

    It is None if no query has a score.
    """
    if options[0].sent is not None:
        return sent.gather(view, options)
    if way.rewrites:  # runs of perturbed queries aren't offered, so the view's table lacks them
        scope = replace(view.scope, run_ids=tuple(option.run_id for option in options))
        table = stack_table(view.snapshot, scope, view.quality, view.latency, view.book)
        view = replace(view, given=table)
    return routing.gather(view, options, way=way)
