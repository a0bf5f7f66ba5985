"""The widgets of imports that are read and written in the background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.importers import Options, Preview, preview
from core.ui import cache
from core.ui.importing import DONE, decision
from core.ui.sidebar import go_to_workspace
from core.views import background
from core.views.background import Job
from core.views.text import plain

_JOB = "_import_job"


@st.cache_resource(show_spinner="Looking at the files…", max_entries=4)
def looked(fingerprint: str, _files: Sequence[Any], _options: Options) -> tuple[Preview, ...]:
    """The beginning of every file, once per set of files and decisions."""
    del fingerprint
    return preview(_files, _options)


def start(files: Sequence[Any], decided: Options, found: Sequence[Preview]) -> None:
    """The button that begins; nothing can be taken while a file has a problem."""
    problems = [each for each in found if each.problem]
    for each in problems:
        st.error(plain(each.problem), icon=":material/error:")
    st.caption("Large files are read in the background. Cancelling leaves the store as it was.")
    if st.button("Import", type="primary", icon=":material/download_done:", disabled=bool(problems)):
        st.session_state[_JOB] = background.begin(cache.store().path, files, decided)
        st.rerun()


def underway() -> None:
    """An import that runs, or that ended and waits for a decision; the page ends here then."""
    job: Job | None = st.session_state.get(_JOB)
    if job is None:
        found = background.newest(cache.store().path)
        if found is None or found.state != "running":
            return
        job = st.session_state[_JOB] = found
    job = background.look(job)
    if job.state == "done":
        _finish(job)
    elif job.state == "running":
        _watch()
    else:
        _ended(job)
    st.stop()


@st.fragment(run_every=0.5)
def _watch() -> None:
    """Progress, looked at twice a second."""
    job = background.look(st.session_state[_JOB])
    if job.state != "running":
        st.rerun()
    facts = job.facts
    read, total, rows = (int(facts.get(name, 0)) for name in ("read", "total", "rows"))
    stage = str(facts.get("stage", "starting"))
    st.markdown(f"**{plain(job.name)}**")
    if stage == "reading" and total:
        words = f"Reading: {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {rows:,} rows"
        st.progress(min(1.0, read / total), words)
    else:
        st.progress(1.0 if rows else 0.0, f"{stage.capitalize()}: {rows:,} rows")
    if st.button("Cancel", icon=":material/stop:", key="cancel_import"):
        st.session_state[_JOB] = background.cancel(job)
        st.rerun()


def _finish(job: Job) -> None:
    """It is in the store: show it as other imports are shown."""
    st.session_state.pop(_JOB)
    facts = job.facts
    st.session_state[DONE] = (bool(facts["fresh"]), str(facts["said"]), tuple(facts["more"]))
    if facts.get("collection"):
        go_to_workspace(str(facts["collection"]))
    st.rerun()


def _ended(job: Job) -> None:
    """It was refused or cancelled; things that were changed may be decided about now."""
    cancelled = job.state == "cancelled"
    said = "Cancelled; the store is as it was." if cancelled else str(job.facts.get("said", ""))
    changed = [str(each) for each in job.facts.get("changed", ())]
    if changed:
        choice = decision(changed)
        if st.button("Import", type="primary", disabled=choice is None) and choice is not None:
            st.session_state[_JOB] = background.again(job, Path(cache.store().path), choice)
            st.rerun()
    else:
        (st.info if cancelled else st.error)(plain(said), icon=":material/info:")
    st.button("Choose other files", on_click=_forget, key="import_other")


def _forget() -> None:
    st.session_state.pop(_JOB, None)
