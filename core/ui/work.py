"""Long-running work started from a page: its specification as text, its plan, progress and earlier jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import ClqError
from core.pipeline.sweep import load_as
from core.pipeline.sweep.plan import Bill
from core.pipeline.sweep.problems import Problem, SpecError
from core.store import Snapshot
from core.ui import access, cache, show
from core.views import columns as cols
from core.views.text import count, plain
from core.work import paid
from core.work.work import StartedWork, Work

LINES = cols.Rows(
    "plan",
    *(cols.text("stage"), cols.text("model"), cols.count("calls"), cols.text("unit"), cols.count("amount")),
    *(cols.text("counted"), cols.usd("usd", "$", "Empty = unknown.")),
    cols.text("unknown", "unknown because"),
)
"""Columns of a plan's paid items."""

_DRAFT, _DRAFTED, _SLOW = "_draft", "_drafted", "_plan_slow"
_RUNS, _WATCHED = "_running", "_watched"  # running work, and the work that this visitor saw running; by kind
PATH_SEEN = 20  # letters of a path visible in its field
_RUNS_S, _IDLE_S = 1.0, 10.0  # seconds between refreshes of running work, and between checks for any
_SLOW_S, _LATEST = 5.0, 5  # seconds above which a plan waits for a request; maximum ended jobs with a row
P = TypeVar("P")
B = TypeVar("B", bound=Bill)
AnyWork = Work[Any, Any, Any]
Finish = Callable[[StartedWork, DeltaGenerator], None]
Inside = Callable[[StartedWork], None]


def known(work: AnyWork) -> list[StartedWork]:
    """Return all started work of a kind, newest first."""
    return work.known(cache.store().path)


def draft(written: str, kind: str, help_text: str) -> str:
    """Return the specification as text: from the current form, or from a file, then edited."""
    key, source_key = f"{_DRAFT}_{kind}", f"{_DRAFTED}_{kind}"
    given = st.file_uploader(
        "From a file", type=["toml", "yaml", "yml", "json"], label_visibility="collapsed", key=f"file_{kind}"
    )
    source = written if given is None else given.getvalue().decode("utf-8-sig", "replace")
    if st.session_state.get(source_key) != source or key not in st.session_state:
        st.session_state[source_key] = st.session_state[key] = source
    return str(st.text_area("Specification", key=key, height=300, help=help_text))


def chosen(
    place: DeltaGenerator, title: str, first: str, known: Sequence[str], *, key: str, empty: str = "a path"
) -> str:
    """Draw a field for something stored, or a path of this machine; return the choice."""
    if not known:
        about = "A path of the machine that runs the dashboard."
        path: str | None = place.text_input(
            title, first, key=f"{title}_path_{key}", placeholder=empty, help=about
        ).strip()
    else:
        options = list(dict.fromkeys([*known, *([first] if first else [])]))
        path = place.selectbox(
            title,
            options,
            index=options.index(first) if first else None,
            placeholder=empty,
            accept_new_options=True,
            key=f"{title}_{key}",
            help="Choose what the store has, or type a path of the machine that runs the dashboard.",
        )
    if path and len(path) > PATH_SEEN:  # the field cuts its end off
        place.caption(plain(path))
    return path or ""


def budget(place: DeltaGenerator, key: str, kept: str) -> float | None:
    """Ask for the maximum dollars of the work; what is kept is explained in its help."""
    return place.number_input(
        "Budget, $", min_value=0.0, value=None, placeholder="no limit", key=key,
        help=f"It stops before it would spend more, and keeps what was {kept}.",
    )  # fmt: skip


def planned(text: str, kind: str, plan_of: Callable[[str], P]) -> P | SpecError | None:
    """Return the plan of a specification, its error, or None while a slow plan has not been requested.

    A specification names files of this machine, so only visitors who may start it may have it read.
    """
    access.require()
    key = f"{_SLOW}_{kind}"
    planned_last, *took = st.session_state.get(key, (text, 0.0, 0.0))
    place = st.empty()
    # The first plan also loads the planning modules: its duration doesn't predict the next one's.
    if planned_last != text and min(took) > _SLOW_S:
        if not place.button(f"Update the plan (about {min(took):.0f} s)"):
            return None
        place.empty()
    began = time.monotonic()
    try:
        return plan_of(text + "\n")
    except SpecError as error:
        return error
    except ClqError as error:
        return SpecError([Problem("", str(error))])
    finally:
        st.session_state[key] = (text, took[-1], time.monotonic() - began)


@cache.cached("Counting…", entries=24)
def _plan_of(snapshot: Snapshot, _work: Work[Any, B, Any], noun: str, text: str) -> B:
    """Plan a specification's work, once per revision."""
    del noun  # part of the cache key
    job, problems = _work.read(snapshot, load_as(_work.model, text), cache.books(), to_run=False)
    return _work.plan(job, problems)


def offer(work: Work[Any, B, Any], text: str, *, key: str, plan_of: Callable[[str], B] | None = None) -> None:
    """Draw a specification's errors, or its plan in a line with the start button.

    Args:
        plan_of: Plans it; None = the planner of this kind of work.
    """
    planning = planned(text, key, plan_of or partial(_plan_of, cache.snapshot(None), work, work.noun))
    for problem in () if planning is None else planning.problems:
        say(st.container(), problem)
    if planning is not None and not isinstance(planning, SpecError):
        begin = partial(work.begin, text, cache.store().path)
        start(line_of(work, planning), work.button(planning), planning, begin, key=key)


def line_of(work: Work[Any, B, Any], plan: B) -> str:
    """Say what will be done and what it costs."""
    return ". ".join(filter(None, (work.size_of(plan), work.costs(plan))))


def start(
    said: str,
    label: str,
    plan: Bill,
    begin: Callable[[], None],
    *,
    key: str,
    details: Callable[[], None] | None = None,
) -> None:
    """Draw a plan in a line, the start button, and what is paid for; without a key nothing starts.

    Args:
        details: Draws the whole plan, if it is more than what is paid for.
    """
    missing = any(str(problem.severity) == "missing" for problem in plan.problems)
    with st.container(border=True):
        words, press = st.columns([2, 1], vertical_alignment="center")
        words.markdown(plain(said))
        pressed = press.button(
            plain(label), type="primary", key=f"{key}_now", disabled=missing, width="stretch"
        )
        lines = paid.line_rows(plan)
        if details is not None:
            with st.expander("The plan: calls, time, memory, stacks"):
                details()
        elif not lines.is_empty():
            with st.expander("The plan: calls, tokens, dollars"):
                show.table(lines, LINES.named(f"{key}_plan"))
    if pressed:
        access.require()
        begin()
        st.toast("It runs; its progress stands above.", icon=":material/arrow_upward:")
        st.rerun()


def say(place: DeltaGenerator, problem: Problem) -> None:
    """Draw one error, or a note for its owner."""
    warns = str(problem.severity) == "warning"
    (place.warning if warns else place.error)(plain(str(problem)), icon=":material/warning:")


def underway(
    work: AnyWork, *, may_start: bool, finish: Finish = lambda *_: None, inside: Inside = lambda _: None
) -> None:
    """Draw running work with its progress, what this visitor saw running, and the latest if unfinished.

    It is drawn anew while any runs.

    Args:
        finish: Draws the link to the result of a job, in its bar.
        inside: Draws further details below a job.
    """
    runs = any(str(one.status.state) == paid.RUNNING for one in known(work))
    # A refresh while a page is being left would delay the next one: idle pages refresh rarely.
    looked_at = st.fragment(_underway, run_every=_RUNS_S if runs else _IDLE_S)
    looked_at(work, may_start=may_start, finish=finish, inside=inside)


def _underway(work: AnyWork, *, may_start: bool, finish: Finish, inside: Inside) -> None:
    runs, watched = f"{_RUNS}_{work.noun}", f"{_WATCHED}_{work.noun}"
    begun = known(work)
    running = [one for one in begun if str(one.status.state) == paid.RUNNING]
    names = [one.name for one in running]
    unfinished = [one.name for one in begun[:1] if paid.resumable(one.status)]
    changed = st.session_state.get(runs, names) != names
    st.session_state[runs] = names
    st.session_state[watched] = {*st.session_state.get(watched, ()), *names, *unfinished}
    for one in running:
        with st.container(border=True):
            st.markdown(f"**{plain(one.status.name)}**")
            st.progress(one.status.share, plain(work.progress(one.status)))
            _actions(work, one, st.container(horizontal=True), may_start=may_start, finish=finish)
            inside(one)
    for one in begun:
        if one.name in st.session_state.get(watched, ()) and one not in running:
            _how_it_ended(work, one, may_start=may_start, finish=finish, inside=inside)
    if changed:  # last, otherwise a button pressed meanwhile would be forgotten
        st.rerun()


def earlier(
    work: AnyWork, *, may_start: bool, finish: Finish = lambda *_: None, inside: Inside = lambda _: None
) -> None:
    """Draw the latest other jobs with their outcome, and all as a table; arguments as in `underway`."""
    begun = known(work)
    keys = (f"{_RUNS}_{work.noun}", f"{_WATCHED}_{work.noun}")
    shown = {name for key in keys for name in st.session_state.get(key, ())}
    for one in [one for one in begun if one.name not in shown][:_LATEST]:
        _how_it_ended(work, one, may_start=may_start, finish=finish, inside=inside)
    if len(begun) > _LATEST:
        with st.expander(f"All {count(len(begun), work.noun)}"):
            rows = work.table([(one.status.name, one.status) for one in begun])
            show.table(rows, cols.Rows(f"{work.noun}s", *map(_column, rows)))


def _how_it_ended(
    work: AnyWork, one: StartedWork, *, may_start: bool, finish: Finish, inside: Inside
) -> None:
    """Draw a job that isn't running, with its actions."""
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(f"**{plain(one.status.name)}** · {plain(work.ended(one.status))}", width="stretch")
        bar = st.container(horizontal=True, width="content")
        _actions(work, one, bar, may_start=may_start, finish=finish)
    inside(one)


def _actions(
    work: AnyWork, one: StartedWork, bar: DeltaGenerator, *, may_start: bool, finish: Finish
) -> None:
    """Draw the buttons that cancel and resume, and the link to the result."""
    press = partial(bar.button, disabled=not may_start)
    if str(one.status.state) == paid.RUNNING:
        if press("Cancel", key=f"cancel_{one.name}", icon=":material/stop:"):
            access.require()
            one.cancel()
    elif paid.resumable(one.status) and press("Resume", key=f"resume_{one.name}", icon=":material/resume:"):
        access.require()
        work.resume(one, cache.store().path)
        st.rerun()
    finish(one, bar)


def _column(values: pl.Series) -> cols.Column:
    """Return a column for a table of jobs, by the type of its values."""
    if values.name == "usd":
        return cols.usd("usd", "$")
    if values.name == "began":
        return cols.Column("began", "began (UTC)", form="time")
    return cols.exact(values.name) if values.dtype.is_numeric() else cols.text(values.name)
