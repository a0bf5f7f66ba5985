"""The widgets of the Run page: the specification, its plan, and the evaluations that run or ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core.errors import ClqError
from core.ui import access, cache, show
from core.ui.shell import show_error
from core.ui.sidebar import go_to_workspace
from core.ui.view import find_view
from core.views.run import evaluations as words
from core.views.run.drafts import drafts
from core.views.run.plan import dollars, line_rows, services, size_of, stack_rows, time_and_memory
from core.views.run.shelf import StoreShelf
from core.views.text import count, plain

if TYPE_CHECKING:  # the engines take a second to load, which looking at the page does not need
    from core.pipeline.evaluate.launch import Known
    from core.pipeline.sweep.plan import Plan

_DRAFT, _FROM = "_draft", "_draft_from"
_STACKS_FIRST = 200


def draft() -> str:
    """The specification as text: from the workspace, a preset or a file, then edited."""
    view = find_view()
    offered = drafts(None if view is None else view.scope)
    left, right = st.columns([3, 2])
    start = left.segmented_control(
        "Start from", list(offered), default=next(iter(offered)), required=True, key=_FROM
    )
    given = right.file_uploader(
        "or a file", type=["toml", "yaml", "yml", "json"], label_visibility="collapsed"
    )
    source = (start, None if given is None else given.file_id)
    if st.session_state.get("_draft_source") != source:
        st.session_state["_draft_source"] = source
        st.session_state[_DRAFT] = offered[start] if given is None else _text(given.getvalue())
    return st.text_area(
        "Specification",
        key=_DRAFT,
        height=300,
        help="TOML or YAML. Paths are those of the machine that runs the dashboard. `python -m core plan "
        "--schema` prints every key.",
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def planned(text: str) -> bool:
    """Show the plan of a specification, or what is wrong with it.

    A specification names files of this machine, so that only who may start it may have it read.

    Returns:
        Whether it could run.
    """
    access.require()
    path, revision = str(cache.store().path), cache.snapshot(None).revision
    try:
        made = _plan(path, revision, text + "\n")
    except ClqError as error:
        problems = getattr(error, "problems", None)
        if problems is None:
            show_error(error)
        else:
            st.error("\n".join(f"- {plain(str(each))}" for each in problems[:20]), icon=":material/error:")
        return False
    st.markdown(f"**{plain(size_of(made))}**")
    for sentence in (dollars(made), *services(made), *time_and_memory(made)):
        st.markdown(plain(sentence))
    missing = [each for each in made.problems if str(each.severity) == "missing"]
    for each in made.problems:
        (st.error if each in missing else st.warning)(plain(str(each)), icon=":material/warning:")
    _tables(made)
    return not missing


def _tables(made: Plan) -> None:
    lines, stacks = line_rows(made), stack_rows(made)
    if not lines.is_empty():
        columns = {
            "stage": show.text_column("stage"),
            "model": show.text_column("model"),
            "calls": show.number_column("calls", 0),
            "unit": show.text_column("unit"),
            "amount": show.number_column("amount", 0),
            "counted": show.text_column("counted"),
            "usd": show.dollar_column("$", "Empty = unknown."),
            "unknown": show.text_column("unknown because"),
        }
        show.table(lines, "plan", columns)
    with st.expander(f"The {count(stacks.height, 'stack')}"):
        columns = {
            "label": show.text_column("stack", width=320),
            "pool": show.text_column("pool"),
            "usd_per_1k": show.dollar_column("$ / 1k", "Vendors only, in production; empty = unknown."),
            "unknown": show.text_column("unknown because"),
        }
        show.table(stacks, "planned_stacks", columns)


@st.cache_resource(show_spinner="Reading the corpus and counting…", max_entries=8)
def _plan(path: str, revision: int, text: str) -> Plan:
    from core.pipeline.sweep import load  # noqa: PLC0415 - see above
    from core.pipeline.sweep.plan import plan  # noqa: PLC0415
    from core.pipeline.sweep.read import read_job  # noqa: PLC0415

    del path  # part of the key
    shelf, books = StoreShelf(cache.snapshot(revision)), cache.books()
    job, problems = read_job(load(text), shelf=shelf, books=books, to_run=False)
    return plan(job, problems=problems)


def start(text: str, *, ready: bool) -> None:
    """The button that begins."""
    if st.button("Run", type="primary", icon=":material/play_arrow:", disabled=not ready):
        from core.pipeline.evaluate import launch  # noqa: PLC0415 - see above

        access.require()
        launch.begin(text, cache.store().path)
        st.rerun()


def headline() -> str:
    """What is going on, in a sentence."""
    return words.headline([each.status for each in _known()])


def _known() -> list[Known]:
    from core.pipeline.evaluate import launch  # noqa: PLC0415 - see above

    return launch.known(cache.store().path)


@st.fragment(run_every=1.0)
def evaluations(*, may_start: bool) -> None:
    """Those that run with their progress, the others with how they ended; looks again every second."""
    found = _known()
    running = [each for each in found if str(each.status.state) == words.RUNNING]
    if st.session_state.get("_running") != [each.name for each in running]:
        st.session_state["_running"] = [each.name for each in running]
        st.rerun()
    for each in running:
        with st.container(border=True):
            st.markdown(f"**{plain(each.status.name)}**")
            st.progress(each.status.share, plain(words.progress(each.status)))
            _actions(each, may_start=may_start)
    for each in [each for each in found if each not in running][:5]:
        with st.container(border=True):
            st.markdown(f"**{plain(each.status.name)}** · {plain(words.ended(each.status))}")
            _actions(each, may_start=may_start)


def _actions(each: Known, *, may_start: bool) -> None:
    from core.pipeline.evaluate import launch  # noqa: PLC0415 - see above

    bar = st.container(horizontal=True)
    if str(each.status.state) == words.RUNNING:
        if bar.button("Cancel", key=f"cancel_{each.name}", icon=":material/stop:", disabled=not may_start):
            access.require()
            launch.cancel(each)
    elif words.resumable(each.status) and bar.button(
        "Resume", key=f"resume_{each.name}", icon=":material/resume:", disabled=not may_start
    ):
        access.require()
        launch.resume(each, cache.store().path)
        st.rerun()
    if each.status.runs_done and bar.button(
        "Show its workspace", key=f"show_{each.name}", icon=":material/scatter_plot:"
    ):
        go_to_workspace(each.status.collection_id)
        st.switch_page("pages/decision.py")
