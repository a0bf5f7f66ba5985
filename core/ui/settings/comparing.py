"""Only what compares stands on one chart: the visitor's choices where runs differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from core.prices import PriceBook
from core.store import Snapshot
from core.ui import cache
from core.ui.pick import still_offered
from core.ui.state import bound
from core.views.workspace.comparable import ALL, ALL_MACHINES, EVERY, SAME, SHARED
from core.views.workspace.narrow import (
    Choices,
    Narrowed,
    Offer,
    Reads,
    about_offer,
    judging,
    judging_offer,
    narrow,
)
from core.views.workspace.query_sets import ANY, EVERY_SET, ONE_SET, QuerySets
from core.views.workspace.scope import Judging, Latency, Quality, Scope

_offer = cache.cached(entries=64)(judging_offer)


def compared(
    snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: PriceBook
) -> Narrowed:
    """Draw a control for whatever differs between the runs of a workspace, and read what compares."""
    choices, reads = _Asking(quality), Reads(cache.stacks, cache.query_sets, _offer)
    return narrow(snapshot, scope, quality, latency, book, choices=choices, reads=reads)


class _Asking(Choices):
    """Asks the visitor, wherever there is a choice."""

    offers = True

    def __init__(self, quality: Quality) -> None:
        super().__init__()
        self._quality = quality

    def shared(self, sets: QuerySets) -> bool:
        """Offer the queries that all were asked, or every judged one."""
        if not sets.differ and not sets.unasked:
            return False
        chosen: str = st.segmented_control(
            "Compare on",
            [SHARED, EVERY],
            default=SHARED if sets.differ else EVERY,
            required=True,
            **bound("cq", SHARED if sets.differ else EVERY),
            help="Not every stack was asked every judged query. shared queries: the n = "
            f"{sets.shared} that all were asked. all queries: one that a stack does not rank counts as 0.",
        )
        return chosen == SHARED

    def together(self) -> bool:
        """Offer to put averages that rest on different things on one scale."""
        chosen: str = st.segmented_control(
            "Averages",
            [SAME, ALL],
            default=SAME,
            required=True,
            **bound("figs", SAME),
            help="Averages that came from elsewhere and rest on other queries or judgements than the rest.",
        )
        return chosen == ALL

    def judging(self, scope: Scope, offer: Callable[[Scope], Offer]) -> tuple[Judging, tuple[str, ...]]:
        """Offer well judged queries only, where stacks are not judged alike; say what else there is."""
        sets = offer(scope)
        everywhere = bool(sets.everywhere) and _everywhere(sets)
        wanted = judging(self._quality, everywhere=everywhere)
        left = offer(replace(scope, judging=wanted)) if everywhere else sets
        word = _least(left) if left.left else ANY
        wanted = judging(self._quality, word, everywhere=everywhere)
        asked = replace(scope, judging=wanted)
        return wanted, about_offer(replace(left, everywhere=sets.everywhere), asked)

    def machine(self, names: list[str]) -> str | None:
        """Offer one machine, or all."""
        options = [*names, ALL_MACHINES]
        still_offered("env", options)
        chosen = st.selectbox(
            "Latency measured on",
            options,
            **bound("env", options[0]),
            help="Latencies of different machines do not compare; stacks timed elsewhere keep quality "
            "and cost.",
        )
        return None if chosen == ALL_MACHINES else chosen


def _everywhere(offer: Offer) -> bool:
    chosen: str = st.segmented_control(
        "Queries judged in",
        [ONE_SET, EVERY_SET],
        default=ONE_SET,
        required=True,
        **bound("gq", ONE_SET),
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
        **bound("jq", ANY),
        help=f"Compare only on queries of whose Top-{offer.k} every stack has at least half, most (80 %) or "
        f"all judged ({left}). Fewer holes, but no random sample. Fewer runs leave more queries.",
    )
    return chosen
