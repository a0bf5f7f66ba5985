"""What is too large to wait for: read and written in the background, watched and cancelled from the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from core.importers import Options
from core.jobs import Job, State, Status
from core.ui import access, cache
from core.ui.add.finish import decision, finished
from core.ui.view import end
from core.views.add import background, words
from core.views.text import plain

_JOB = "_import_job"


def start(files: Sequence[Any], chosen: Options, workspace: str | None, *, ready: bool) -> None:
    """The button that begins; nothing can be taken while a file has a problem."""
    with st.container(border=True):
        st.caption(words.BACKGROUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            unmatched = st.selectbox(
                "Where no id exists in the workspace",
                list(words.POLICY),
                format_func=words.POLICY.__getitem__,
                width=360,
                help="The ids are compared before anything is written.",
            )
            pressed = st.button("Add results", key="add_now", type="primary", disabled=not ready)
    if pressed:
        access.require()
        if len(files) == 1 and len(chosen.tables) == 1:  # the process is told of columns, not of files
            (table,) = chosen.tables.values()
            chosen = replace(chosen, columns=table.columns, row=table.row, without=table.without)
        st.session_state[_JOB] = background.begin(
            cache.store().path, files, chosen, workspace=workspace, unmatched=unmatched
        )
        st.rerun()


def underway() -> None:
    """An import of this visitor that runs, or that ended and waits for a decision; the page ends here then.

    Those that another visitor, or this one before a reload, has begun are named with a button each.
    """
    job: Job | None = st.session_state.get(_JOB)
    if job is None or not job.folder.is_dir():
        _others()
        return
    status = background.look(job)
    if status.state is State.FINISHED:
        _finish(job, status)
    elif status.state is State.RUNNING:
        _watch()
    else:
        _ended(job, status)
    end()


def _others() -> None:
    """Imports that nobody of this session has begun: each with its state, and a button to show it."""
    for job in background.open_jobs(cache.store().path):
        state = background.look(job).state
        with st.container(horizontal=True, vertical_alignment="center"):
            icon = ":material/hourglass_top:" if state is State.RUNNING else ":material/info:"
            st.info(f"The import of {plain(job.name)} {words.STATES.get(state, state)}.", icon=icon)
            st.button("Show it", on_click=_take_over, args=(job,), key=f"show_{job.folder.name}")


def _take_over(job: Job) -> None:
    st.session_state[_JOB] = job


@st.fragment(run_every=0.5)
def _watch() -> None:
    """Progress, looked at twice a second."""
    job: Job = st.session_state[_JOB]
    status = background.look(job)
    if status.state is not State.RUNNING:
        st.rerun()
    read, total, rows = status.counted, status.whole, int(status.facts.get("rows", 0))
    stage = status.stage or "starting"
    st.markdown(f"**{plain(job.name)}**")
    if stage == "reading" and total:
        told = f"Reading: {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {rows:,} rows"
        st.progress(min(1.0, read / total), told)
    else:
        st.progress(1.0 if rows else 0.0, f"{stage.capitalize()}: {rows:,} rows")
    st.caption("You may leave this page or close it: the import goes on, and this page shows how it ended.")
    if st.button("Cancel", icon=":material/stop:", key="cancel_import"):
        access.require()
        background.cancel(job)
        st.rerun()


def _finish(job: Job, status: Status) -> None:
    """It is in the store: show it as other imports are shown."""
    st.session_state.pop(_JOB)
    background.see(job)
    facts = status.facts
    finished(
        fresh=bool(facts["fresh"]),
        said=status.message,
        more=facts["more"],
        collection=facts.get("collection"),
        came=int(facts.get("came", 1)),
    )


def _ended(job: Job, status: Status) -> None:
    """It was refused or cancelled; things that were changed may be decided about now."""
    changed = [str(change) for change in status.facts.get("changed", ())]
    st.markdown(f"**{plain(job.name)}**")
    if changed:
        choice = decision(changed)
        pressed = st.button("Add results", key="add_now", type="primary", disabled=choice is None)
        if pressed and choice is not None:
            access.require()
            st.session_state[_JOB] = background.again(job, Path(cache.store().path), choice)
            st.rerun()
    elif status.state is State.CANCELLED:
        st.info("Cancelled; the store is as it was.", icon=":material/info:")
    else:
        st.error(plain(words.on_page(status.message)), icon=":material/error:")
        st.caption("Nothing was written.")
    st.button("Choose other files", on_click=_forget, args=(job,), key="import_other")


def _forget(job: Job) -> None:
    background.see(job)
    st.session_state.pop(_JOB, None)
