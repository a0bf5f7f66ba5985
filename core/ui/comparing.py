"""Only what compares stands on one chart: the sidebar's choices where runs differ."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import streamlit as st

from core.store import Snapshot
from core.ui import cache
from core.ui.pick import still_offered
from core.views.workspace import comparable
from core.views.workspace.comparable import ALL, ALL_MACHINES, EVERY, SAME, SHARED, Comparability
from core.views.workspace.judged import ANY, EVERY_SET, ONE_SET
from core.views.workspace.judged_offer import Offer, about_judging, about_offer, judging, judging_offer
from core.views.workspace.matched import out_of_reach
from core.views.workspace.query_sets import QuerySets, among
from core.views.workspace.scope import Apart, Latency, Quality, Scope

KEYS = ("cq", "figs", "env", "gq", "jq")
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
    scope, offers = _well_judged(path, revision, scope, quality)
    if scope.judging:
        table = stacks()
    found = comparable.machines(table)
    if len(found) > 1:
        latency = replace(latency, machine=_machine(list(found)))
        table = stacks()
    latency = replace(latency, answering=comparable.answering(table))
    said = (
        comparable.about_queries(sets, shared=shared or scope.judging.least > 0),
        *about_judging(scope, len(among(snapshot, scope) or ())),
        comparable.about_figures(words, together=together),
        comparable.about_machines(found, latency.machine),
    )
    return scope, latency, table, comparable.comparability(said, apart, offers)


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


def _well_judged(path: str, revision: int, scope: Scope, quality: Quality) -> tuple[Scope, tuple[str, ...]]:
    """The workspace on queries that are judged as well as the visitor wants, and what else there is."""
    sets = _offer(path, revision, scope, quality)
    everywhere = bool(sets.everywhere) and _everywhere(sets)
    scope = replace(scope, judging=judging(quality, everywhere=everywhere))
    offer = _offer(path, revision, scope, quality) if everywhere else sets
    word = _least(offer) if offer.left else ANY
    scope = replace(scope, judging=judging(quality, word, everywhere=everywhere))
    return scope, about_offer(replace(offer, everywhere=sets.everywhere), scope)


@st.cache_resource(show_spinner=False, max_entries=64)
def _offer(path: str, revision: int, scope: Scope, quality: Quality) -> Offer:
    del path  # part of the key
    return judging_offer(cache.snapshot(revision), scope, quality)


def _everywhere(offer: Offer) -> bool:
    chosen: str = st.segmented_control(
        "Queries judged in",
        [ONE_SET, EVERY_SET],
        default=ONE_SET,
        required=True,
        key="gq",
        bind="query-params",
        help="The golden sets of this collection judge different queries; "
        f"n = {offer.everywhere} are judged in all of them.",
    )
    return chosen == EVERY_SET


def _least(offer: Offer) -> str:
    options = [ANY, *offer.left]
    still_offered("jq", options)
    left = ", ".join(f"{word}: n = {count}" for word, count in offer.left.items())
    chosen: str = st.segmented_control(
        f"Judged of every stack's Top-{offer.k}",
        options,
        default=ANY,
        required=True,
        key="jq",
        bind="query-params",
        help=f"Compare only on queries of whose Top-{offer.k} every stack has at least half, most (80 %) or "
        f"all judged ({left}). Fewer holes, but no random sample. Fewer runs leave more queries.",
    )
    return chosen


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
