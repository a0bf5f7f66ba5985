"""Only what compares stands on one chart: the sidebar's choices where runs differ."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import streamlit as st

from core.store import Snapshot
from core.ui import cache
from core.ui.pick import still_offered
from core.views import comparable
from core.views.comparable import ALL, ALL_MACHINES, EVERY, SAME, SHARED, Comparability
from core.views.matched import out_of_reach
from core.views.query_sets import QuerySets
from core.views.scope import Apart, Latency, Quality, Scope

KEYS = ("cq", "figs", "env")
"""Settings of the address that say how runs that differ are compared."""


def matched(
    snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: str
) -> tuple[Scope, Latency, pl.DataFrame, Comparability]:
    """Draw a control for whatever differs between the runs of a workspace, and read what compares.

    Args:
        snapshot: The data.
        scope: The workspace as it was chosen.
        quality: Measure and cutoff.
        latency: Percentile and scope.
        book: Name of the price book.

    Returns:
        The workspace and the latency narrowed to what compares, their stack table, and what there is to say.
    """
    path, revision = str(cache.store().path), snapshot.revision

    def stacks() -> pl.DataFrame:
        return cache.stacks(path, revision, scope=scope, quality=quality, latency=latency, book=book)

    sets = cache.query_sets(path, revision, scope)
    shared = _shared(sets)
    apart = dict(_out_of_reach(path, revision, scope)) if shared else {}
    scope = replace(scope, shared=shared, apart=Apart.of(apart))
    table = stacks()
    foreign, words = comparable.foreign_figures(table)
    together = _together() if words else True
    if not together:
        names = dict(table.select("run_id", "name").iter_rows())
        apart |= {run_id: (names[run_id], why) for run_id, why in foreign.items()}
        scope = replace(scope, apart=Apart.of(apart))
        table = stacks()
    found = comparable.machines(table)
    if len(found) > 1:
        latency = replace(latency, machine=_machine(list(found)))
        table = stacks()
    said = (
        comparable.about_queries(sets, shared=shared),
        comparable.about_figures(words, together=together),
        comparable.about_machines(found, latency.machine),
    )
    return scope, latency, table, comparable.comparability(said, apart)


@st.cache_resource(show_spinner=False, max_entries=16)
def _out_of_reach(path: str, revision: int, scope: Scope) -> dict[str, tuple[str, str]]:
    return out_of_reach(cache.snapshot(revision), cache.query_sets(path, revision, scope))


def _shared(sets: QuerySets) -> bool:
    if not sets.differ and not sets.unasked:
        return False
    chosen: str = st.segmented_control(
        "Compare on",
        [SHARED, EVERY],
        default=SHARED if sets.differ else EVERY,
        required=True,
        key="cq",
        bind="query-params",
        help=f"Not every stack was asked every judged query. shared queries: the n = {sets.shared} that all "
        "were asked. all queries: a judged query that a stack does not rank counts as 0.",
    )
    return chosen == SHARED


def _together() -> bool:
    chosen: str = st.segmented_control(
        "Averages",
        [SAME, ALL],
        default=SAME,
        required=True,
        key="figs",
        bind="query-params",
        help="Averages that came from elsewhere and rest on other queries or judgements than the rest.",
    )
    return chosen == ALL


def _machine(names: list[str]) -> str | None:
    options = [*names, ALL_MACHINES]
    still_offered("env", options)
    chosen = st.selectbox(
        "Latency measured on",
        options,
        key="env",
        bind="query-params",
        help="Latencies of different machines do not compare; stacks timed elsewhere keep quality and cost.",
    )
    return None if chosen == ALL_MACHINES else chosen
