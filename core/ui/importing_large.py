"""The widgets of imports that are read and written in the background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.importers import Options, Preview, preview
from core.jobs import Job, State, Status
from core.ui import access, cache, importing_match
from core.ui.importing import decision
from core.ui.importing_done import finished
from core.ui.view import end
from core.views.add import background
from core.views.add.imports import on_page
from core.views.text import plain

_JOB = "_import_job"
_STATES = {
    State.RUNNING: "is under way",
    State.FINISHED: "is finished",
    State.FAILED: "was refused",
    State.CANCELLED: "was cancelled",
    State.KILLED: "ended early",
}


@st.cache_resource(show_spinner="Looking at the files…", max_entries=4)
def looked(fingerprint: str, _files: Sequence[Any], _options: Options) -> tuple[Preview, ...]:
    """The beginning of every file, once per set of files and decisions."""
    del fingerprint
    return preview(_files, _options)


def start(files: Sequence[Any], decided: Options, found: Sequence[Preview], workspace: str | None) -> None:
    """The button that begins; nothing can be taken while a file has a problem."""
    problems = [each for each in found if each.problem and each.name not in decided.skip]
    for each in problems:
        st.error(plain(on_page(each.problem)), icon=":material/error:")
    st.caption(
        "Large files are read in the background, where their contents are checked; you may leave the page "
        "meanwhile. Cancelling leaves the store as it was."
    )
    unmatched = importing_match.policy()
    if st.button("Import", type="primary", icon=":material/download_done:", disabled=bool(problems)):
        access.require()
        st.session_state[_JOB] = background.begin(
            cache.store().path, files, decided, workspace=workspace, unmatched=unmatched
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
            st.info(
                f"The import of {plain(job.name)} {_STATES.get(state, state)}.",
                icon=":material/hourglass_top:" if state is State.RUNNING else ":material/info:",
            )
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
        words = f"Reading: {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {rows:,} rows"
        st.progress(min(1.0, read / total), words)
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
    cancelled = status.state is State.CANCELLED
    said = "Cancelled; the store is as it was." if cancelled else status.message
    changed = [str(each) for each in status.facts.get("changed", ())]
    st.markdown(f"**{plain(job.name)}**")
    if changed:
        choice = decision(changed)
        if st.button("Import", type="primary", disabled=choice is None) and choice is not None:
            access.require()
            st.session_state[_JOB] = background.again(job, Path(cache.store().path), choice)
            st.rerun()
    elif cancelled:
        st.info(said, icon=":material/info:")
    else:
        st.error(plain(on_page(said)), icon=":material/error:")
        st.caption("Nothing was written.")
    st.button("Choose other files", on_click=_forget, args=(job,), key="import_other")


def _forget(job: Job) -> None:
    background.see(job)
    st.session_state.pop(_JOB, None)
