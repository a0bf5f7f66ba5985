"""Imports too large to wait for: read and written in the background, watched and cancelled from the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.importers import Import, Options
from core.jobs import JobStatus, Launch, State
from core.ui import access, cache, show
from core.ui.address.links import go, link
from core.ui.view import end
from core.ui.workspace import go_to_workspace
from core.views import columns as cols
from core.views.text import plain, upright
from core.work.imports import background, imports, words
from core.work.imports.background import IfStored, as_sentence, offers
from core.work.imports.matching import Unmatched
from core.work.imports.versions import settle

_DONE, _LEFT = "_imported", "_imported_left"


_LEFT_OUT = cols.Rows(
    "left_out",
    cols.count("how_many"),
    cols.text("reason", "left out, and why", width=400),
    cols.text("first", "first at"),
)


def bar(imported: Import, names: Sequence[str], unmatched: Unmatched, waiting: Sequence[str]) -> None:
    """Draw what the button will add, the open questions before it can, and the button that writes all."""
    with st.container(border=True):
        changes = () if waiting else settle(cache.snapshot(None), imported).changes
        choice = decision([str(change) for change in changes]) if changes else None
        said, button = st.columns([3, 2], vertical_alignment="center")
        waits = words.waits(waiting, changed=bool(changes) and choice is None)
        said.markdown(plain(words.adds(imported) + waits))
        if unranked := words.unranked(imported):
            said.warning(plain(unranked), icon=":material/warning:")
        open_ = bool(waits)
        label = f"Add {words.things(imported)}"
        pressed = button.button(label, key="add_now", type="primary", disabled=open_, width="stretch")
        lacks = words.missing_parts(cache.snapshot(None), imported, imports.collection_of(imported) or "")
        if lacks:
            st.caption(plain(f"Still missing: {'; '.join(lacks)}."))
        if assumed := words.assumptions(imported):
            st.caption(plain(assumed))
        with st.expander("What is taken, left out and decided"):
            _details(imported)
    if pressed:
        write(imported, names, unmatched, choice)


def write(imported: Import, names: Sequence[str], unmatched: Unmatched, choice: IfStored | None) -> None:
    """Write an import, and show the outcome in the next script run."""
    access.require()
    with st.spinner("Writing…", show_time=True):
        done = imports.store_import(
            cache.store(), imported, ", ".join(names)[:200], choice=choice, unmatched=unmatched
        )
    finished(
        fresh=done.fresh,
        said=done.said,
        more=words.summary(imported),
        collection=imports.collection_of(imported),
        came=imports.came(imported),
    )


def decision(changed: Sequence[str]) -> IfStored | None:
    """Ask what to do about things with other content in the store, or deleted; None until it is chosen."""
    st.markdown(f":material/difference: {plain(as_sentence(changed))}")
    ways = offers(changed)
    chosen: IfStored | None = st.radio(
        "What should become of it?", list(ways), index=None, format_func=ways.__getitem__
    )
    return chosen


def _details(imported: Import) -> None:
    left, right = st.columns([2, 3])
    number = st.column_config.NumberColumn
    left.dataframe(words.taken(imported), hide_index=True, height="content",
                   column_config={"rows": number(format="localized")})  # fmt: skip
    if not (listed := words.makes(imported)).is_empty():
        right.dataframe(upright(listed), hide_index=True, height=min(36 + 35 * listed.height, 420))
    if not (lost := words.left_out(imported)).is_empty():
        show.table(lost, _LEFT_OUT)
    st.markdown("\n".join(f"- {plain(words.on_page(note))}" for note in imported.notes))


def finished(*, fresh: bool, said: str, more: Sequence[str], collection: str | None, came: int) -> None:
    """Keep the outcome for the next script run, which shows the workspace of the import."""
    st.session_state[_DONE] = (fresh, said, tuple(more), collection, came)
    st.session_state.pop(_LEFT, None)
    if collection:
        go_to_workspace(collection)
    st.rerun()


def done() -> None:
    """Draw the outcome of an import, with links to it or to the next one; the page then ends here.

    After a visit to another page this becomes a quiet line above the ordinary page.
    """
    if _DONE not in st.session_state:
        return
    fresh, said, more, collection, came = st.session_state[_DONE]
    shown = st.session_state.get(_LEFT)  # the button below is forgotten when another page is shown
    if shown and (shown == "left" or "add_more" not in st.session_state):
        st.session_state[_LEFT] = "left"
        st.caption(plain(said))
        return
    st.session_state[_LEFT] = "here"
    (st.success if fresh else st.info)(plain(said), icon=":material/check:")
    (first, *others), hint = words.next_steps(cache.snapshot(None), collection, came)
    if collection:
        st.markdown(f"The workspace is now **{plain(collection)}**. {plain(hint)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        again = partial(st.button, on_click=st.session_state.pop, args=(_DONE, None), key="add_more")
        if first == "add":
            again(words.PAGES[first], type="primary")
        elif st.button(words.PAGES[first], type="primary", key="see_it"):
            go(first)
        for page in others:
            link(page, words.PAGES[page])
        if first != "add":
            again("Add more")
    if more:
        with st.expander("What was read, left out and decided"):
            st.markdown("\n".join(f"- {plain(line)}" for line in more))
    end()


_JOB = "_import_job"


def start(files: Sequence[Any], chosen: Options, workspace: str | None, *, ready: bool) -> None:
    """Draw the start button; it is disabled while a file has a problem."""
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
        if len(files) == 1 and len(chosen.tables) == 1:  # the process gets columns, not files
            (table,) = chosen.tables.values()
            chosen = replace(chosen, columns=table.columns, row=table.row, without=table.without)
        st.session_state[_JOB] = background.begin(
            cache.store().path, files, chosen, workspace=workspace, unmatched=unmatched
        )
        st.rerun()


def underway() -> None:
    """Draw this visitor's running or waiting import; the page then ends here.

    Imports started by another visitor, or by this one before a reload, are listed with a button each.
    """
    job: Launch | None = st.session_state.get(_JOB)
    if job is None or not job.folder.is_dir():
        for other in background.open_jobs(cache.store().path):
            state = background.look(other).state
            with st.container(horizontal=True, vertical_alignment="center"):
                icon = ":material/hourglass_top:" if state is State.RUNNING else ":material/info:"
                st.info(f"The import of {plain(other.name)} {words.STATES.get(state, state)}.", icon=icon)
                key = f"show_{other.folder.name}"
                st.button("Show it", on_click=st.session_state.update, kwargs={_JOB: other}, key=key)
        return
    status = background.look(job)
    if status.state is State.FINISHED:
        _finish(job, status)
    elif status.state is State.RUNNING:
        _watch()
    else:
        _ended(job, status)
    end()


@st.fragment(run_every=0.5)
def _watch() -> None:
    """Draw progress, refreshed twice a second."""
    job: Launch = st.session_state[_JOB]
    status = background.look(job)
    if status.state is not State.RUNNING:
        st.rerun()
    read, total, rows = status.counted, status.whole, int(status.facts.get("rows", 0))
    stage = status.stage or "starting"
    st.markdown(f"**{plain(job.name)}**")
    if stage == "reading" and total:
        line = f"Reading: {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {rows:,} rows"
        st.progress(min(1.0, read / total), line)
    else:
        st.progress(1.0 if rows else 0.0, f"{stage.capitalize()}: {rows:,} rows")
    st.caption("You may leave this page or close it: the import goes on, and this page shows how it ended.")
    if st.button("Cancel", icon=":material/stop:", key="cancel_import"):
        access.require()
        background.cancel(job)
        st.rerun()


def _finish(job: Launch, status: JobStatus) -> None:
    """Show the outcome like any other import's."""
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


def _ended(job: Launch, status: JobStatus) -> None:
    """Draw a refused or cancelled import; changed things can now be decided on."""
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


def _forget(job: Launch) -> None:
    background.see(job)
    st.session_state.pop(_JOB, None)
