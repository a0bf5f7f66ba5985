"""The controls behind Settings: which runs to compare, the measure's parameters, the generator's speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.choices import Choices as Offered
from core.analysis.workspace.clusters import groupings
from core.analysis.workspace.comparable import ALL, ALL_MACHINES, EVERY, SAME, SHARED
from core.analysis.workspace.narrow import (
    NarrowChoices,
    Offer,
    Reads,
    about_offer,
    judging,
    judging_offer,
)
from core.analysis.workspace.noise import OFF, about_grades, auditors, usual_auditor
from core.analysis.workspace.query_sets import ANY, EVERY_SET, ONE_SET, QuerySets
from core.analysis.workspace.resolve import NO_INCUMBENT, running, taken
from core.analysis.workspace.scope import AUTO, PER, SINGLY, Answering, Judging, Quality, Scope
from core.choices import declared
from core.decide.switching import Terms
from core.errors import InputError, UnknownNameError
from core.metrics import REGISTRY, Measure
from core.metrics.rates import ANSWER
from core.params import Param, ParamValue
from core.stats.latency import Generation, Speed
from core.store import Snapshot
from core.ui import cache
from core.ui.address import put
from core.ui.address.state import bound
from core.ui.pick import ASKED, listed, pick_asked, pick_listed, pick_one, type_asked
from core.views.latency.data import fitted
from core.views.latency.sections import speed as in_words
from core.views.latency.sections import timed_answers
from core.views.link import parameter_key
from core.views.text import plain

READS = Reads(cache.stacks, cache.query_sets, cache.cached(entries=64)(judging_offer))


def judge_noise(snapshot: Snapshot, scope: Scope, quality: Quality) -> str:
    """Offer to draw another judge's grades in the probabilities, if one graded enough common passages."""
    known = auditors(snapshot, scope) if scope.golden_set_id and about_grades(quality) else {}
    if not known:
        return OFF
    usual = usual_auditor(snapshot, scope) or OFF
    options = list(dict.fromkeys((usual, *known, OFF)))  # no other words: the shown text is in the URL
    chosen = pick_asked("judge_noise", options)
    if chosen != OFF:
        st.caption(f"{known[chosen]:,} passages of this golden set were graded by both.")
    return chosen


def running_stack(snapshot: Snapshot, scope: Scope, table: pl.DataFrame) -> dict[str, Any]:
    """Offer which stack runs today; return it with the terms of a move, by their names in a question.

    The terms are asked for on page What if, and hold on every page.
    """
    key = ASKED["incumbent"].choice.key
    marked = running(table, snapshot, scope, None)
    usual = NO_INCUMBENT if marked is None else str(table.filter(run_id=marked)["name"][0])
    said = st.query_params.get(key)
    if said is not None and key not in st.session_state and said != NO_INCUMBENT:
        with suppress(UnknownNameError):  # the list of names puts it right
            put({key: table.filter(run_id=taken(table, said))["name"][0]})
    chosen = pick_asked("incumbent", [NO_INCUMBENT, *listed(table, key)], usual=usual)
    return {"incumbent": chosen, "move": [*_terms()]}


def _terms() -> Iterator[str]:
    """Yield the terms of a move in the URL, by their names in a question; invalid ones are left out."""
    for name, field in declared(Terms).items():
        text = f"{name}={st.query_params.get(field.choice.key, '')}"
        with suppress(InputError):
            Terms.of([text])
            yield text


def cluster_by(snapshot: Snapshot, scope: Scope) -> str:
    """Offer the groups that the questions come in, if any."""
    known = groupings(snapshot, scope.collection_id, scope.golden_set_id)
    return pick_asked("cluster_by", [AUTO, *known, SINGLY], few=True) if known else AUTO


class Asking(NarrowChoices):
    """Asks the visitor how to compare runs that differ: a control per difference."""

    offers = True

    def shared(self, sets: QuerySets) -> bool:
        """Offer only the queries common to all compared stacks, or all."""
        if not sets.differ and not (sets.ranked and sets.unasked):
            return False
        every = "one that a stack does not rank counts as 0" if sets.ranked else "each stack's own"
        chosen = pick_one(
            "Compare on", [SHARED, EVERY], "cq", usual=SHARED if sets.differ else EVERY, setting=True,
            help="Not every stack has every query. shared queries: the n = "
            f"{len(sets.shared.ids)} on which they are compared. all queries: {every}.",
        )  # fmt: skip
        return chosen == SHARED

    def together(self) -> bool:
        """Offer to compare averages over different data on one scale."""
        chosen = pick_one(
            "Stacks", [SAME, ALL], "figs", setting=True,
            help="Set apart are averages from elsewhere that rest on other queries or judgements, and stacks "
            "that retrieve whole documents where others retrieve passages, or searched other texts of them.",
        )  # fmt: skip
        return chosen == ALL

    def judging(self, scope: Scope, offer: Callable[[Scope], Offer]) -> tuple[Judging, tuple[str, ...]]:
        """Offer well judged queries only, if stacks aren't judged alike; return the other options too."""
        sets = offer(scope)
        everywhere = bool(sets.everywhere) and pick_asked(
            "every_golden_set", [ONE_SET, EVERY_SET], few=True,
            about="The golden sets of this collection judge different queries; "
            f"n = {sets.everywhere} are judged in all of them.",
        ) == EVERY_SET  # fmt: skip
        wanted = judging(scope.cutoff, everywhere=everywhere)
        left = offer(replace(scope, judging=wanted)) if everywhere else sets
        if left.left:
            options = [ANY, *left.left]
            counts = ", ".join(f"{word}: n = {count}" for word, count in left.left.items())
            about = f"{ASKED['judged'].choice.about} K = {left.k}; {counts}."
            word = pick_asked("judged", options, few=True, about=about)
            wanted = judging(scope.cutoff, word, everywhere=everywhere)
        asked = replace(scope, judging=wanted)
        return wanted, about_offer(replace(left, everywhere=sets.everywhere), asked)

    def machine(self, names: list[str]) -> str | None:
        """Offer the choice of one machine, or all."""
        options = [*names, ALL_MACHINES]
        about = "Latencies of different machines do not compare; others keep quality and cost."
        chosen = pick_listed("Latency measured on", options, "env", setting=True, help=about)
        return None if chosen == ALL_MACHINES else chosen


def answering(offered: Offered) -> dict[str, Any]:
    """Draw whose answers count and the unit of cost, if readers answered; return both by name."""
    if not offered.sent:
        return {}
    reader = _name("reader", offered.readers, "unnamed" if offered.unnamed else "")
    scorer = _name("scorer", offered.scorers)
    per, usual = pick_asked("cost_per", PER, few=True), Answering().least
    least = (type_asked("correct_from", usual) if per == "correct answer" else None) or usual
    return {"reader": reader, "scorer": scorer, "cost_per": per, "correct_from": least}


def _name(parameter: str, known: tuple[str, ...], first: str = "") -> str:
    """Choose a reader, or a scorer, by the parameter of the measure of answers; `first`: the default."""
    about = ANSWER.param(parameter)
    usual, text = (str(about.default), about.text) if about else ("", "")
    words = {usual: f"usual: {first or next(iter(known), 'unnamed')}"}
    return pick_asked(parameter, [usual, *known], about=text, format_func=lambda name: words.get(name, name))


_SPEEDS = (
    ("gbase", "Base (ms)", "Before anything depends on length: network, queue."),
    ("gin", "Per 1,000 prompt tokens (ms)", "Reading the prompt; decides the first token."),
    ("gout", "Per output token (ms)", "Writing the answer."),
)


def generation(revision: int, scope: Scope) -> Generation | None:
    """Draw the inputs of the generation model."""
    with st.expander("Generation, modelled", expanded=True):
        typed = [
            st.number_input(label, min_value=0.0, value=None, help=text, **bound(key, None))
            for key, label, text in _SPEEDS
        ]
        fit = fitted(timed_answers(cache.snapshot(revision), scope))
        speed = _speed(typed) or fit.speed
        if any(value is not None for value in typed) and not _speed(typed):
            st.caption("Type both the time per prompt token and the time per output token.")
        elif speed is None:
            st.caption(
                "Unknown until you type its speed, or import timings of its answers with their tokens."
            )
        elif speed is fit.speed:
            st.caption(in_words(fit))
        chunks = st.number_input(
            "Chunks sent", 0, 1000, 10, **bound("gchunk", 10),
            help="For stacks whose specification does not say how many passages they send.",
        )  # fmt: skip
        sizes = [
            st.number_input(label, min_value=0, value=usual, **bound(key, usual))
            for key, label, usual in (
                ("gtok", "Tokens per chunk", 500),
                ("gprompt", "Other prompt tokens", 100),
                ("gans", "Output tokens", 200),
            )
        ]
    return None if speed is None else Generation(speed, int(chunks), *map(float, sizes))


def _speed(typed: list[float | None]) -> Speed | None:
    base, prompt, output = typed
    return None if prompt is None or output is None else Speed(base or 0.0, prompt, output)


def parameters(name: str) -> str:
    """Draw a measure's parameters, if any are worth changing."""
    params = [param for param in REGISTRY[name].params if parameter_key(param)] if name in REGISTRY else []
    if not params:
        return name
    with st.expander(f"Parameters of {plain(name)}"):
        values = tuple((param.name, _widget(param)) for param in params)
    return str(Measure(name, None, values))


def _widget(param: Param) -> ParamValue:
    key = parameter_key(param) or param.name
    if param.choices:
        default = str(param.default)
        return pick_listed(param.name, param.choices, key, usual=default, setting=True, help=param.text)
    kind: type[float] = int if isinstance(param.default, int) else float
    low, high, usual, step = (kind(end) for end in (param.low, param.high, param.default, param.step))
    number: float = st.slider(param.name, low, high, usual, step, help=param.text, **bound(key, usual))
    return number
