"""Widgets of the data page: choose runs, delete and restore them, download exports, read the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.errors import ClqError
from core.exporters import FORMATS
from core.store import Snapshot
from core.ui import cache, show
from core.ui.pick import still_offered
from core.ui.shell import show_error
from core.views import inventory
from core.views.text import count, plain

_ASKED, _SAID, _FAILED, _PACKED = "_delete_asked", "_inventory_said", "_inventory_failed", "_packed"
_NAMED = 8

RUNS: dict[str, Any] = {
    "label": show.text_column("run", width=290),
    "collection_id": show.text_column("collection"),
    "origin": show.text_column("figures are"),
    "pool": show.text_column("pool"),
    "n": show.number_column("n", 0, "Queries that it ranks, or that its averages rest on."),
    "passages": show.number_column("ranked passages", 0),
    "created_at": st.column_config.DatetimeColumn("made (UTC)", format="YYYY-MM-DD HH:mm"),
    "added_revision": show.number_column("revision", 0, "The revision that brought it."),
    "run_id": show.text_column("id"),
}


def outcome() -> None:
    """What the last action did, once."""
    if _SAID in st.session_state:
        st.success(plain(st.session_state.pop(_SAID)), icon=":material/check:")
    if _FAILED in st.session_state:
        show_error(st.session_state.pop(_FAILED))


def runs(snapshot: Snapshot, *, writable: bool) -> None:
    """The runs, and the two steps that delete some."""
    rows = _runs(str(cache.store().path), snapshot.revision, removed=False)
    if rows.is_empty():
        st.markdown("No runs are here.")
        return
    left, right = st.columns(2)
    names = [inventory.ALL, *rows["collection_id"].unique().sort()]
    still_offered("held", names)
    with left:
        collection = st.selectbox("Collection", names, key="held", bind="query-params")
    with right:
        words = st.text_input("Runs whose name holds", key="named", bind="query-params")
    shown = inventory.chosen(rows, collection, words)
    picked = _ticked(shown, "runs_held")
    if not writable:
        st.caption("Pinned to an earlier revision: deleting works on the newest data.")
        return
    st.button(
        f"Delete {count(len(picked), 'run')}…" if picked else "Delete…",
        icon=":material/delete:",
        disabled=not picked,
        key="delete_asked",
        on_click=_ask,
        args=(picked,),
        help="Tick runs in the table first. Nothing is erased: they can be restored.",
    )
    _confirm(rows)


@st.cache_resource(show_spinner=False, max_entries=16)
def _runs(path: str, revision: int, *, removed: bool) -> pl.DataFrame:
    del path  # part of the key
    return inventory.runs(cache.snapshot(revision), removed=removed)


def _ticked(rows: pl.DataFrame, name: str) -> list[str]:
    """Draw a table of runs; returns the ids of those that are ticked."""
    event = show.table(rows, name, RUNS, on_select="rerun", selection_mode="multi-row")
    return [rows["run_id"][row] for row in event["selection"]["rows"] if row < rows.height]


def _ask(run_ids: Sequence[str]) -> None:
    st.session_state[_ASKED] = list(run_ids)


def _confirm(rows: pl.DataFrame) -> None:
    asked = st.session_state.get(_ASKED)
    if not asked:
        return
    labels = rows.filter(pl.col("run_id").is_in(asked))["label"].to_list()
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    with st.container(border=True):
        st.markdown(f"**Delete {count(len(labels), 'run')}?** {plain('; '.join(labels[:_NAMED]))}{more}")
        st.caption(
            "They leave every page from the next revision on, in one transaction. Links that are pinned to "
            "an earlier revision keep showing them, and “Deleted” brings them back."
        )
        with st.container(horizontal=True):
            st.button("Delete them", type="primary", key="delete_now", on_click=_delete, args=(asked,))
            st.button("Keep them", key="delete_not", on_click=_ask, args=([],))


def _delete(run_ids: Sequence[str]) -> None:
    st.session_state.pop(_ASKED, None)
    _act(inventory.delete, run_ids)


def _act(change: Callable[..., str], run_ids: Sequence[str]) -> None:
    """In a callback, so that the sidebar of the next script run shows the new revision."""
    try:
        st.session_state[_SAID] = change(cache.store(), run_ids)
    except ClqError as error:
        st.session_state[_FAILED] = error
        return
    for key in ("runs", "table_runs_held", "table_runs_deleted"):  # they may name what is gone
        st.session_state.pop(key, None)


def deleted(snapshot: Snapshot, *, writable: bool) -> None:
    """The deleted runs, and the way back."""
    rows = _runs(str(cache.store().path), snapshot.revision, removed=True)
    if rows.is_empty():
        st.markdown("Nothing is deleted.")
        return
    picked = _ticked(rows, "runs_deleted")
    if writable:
        st.button(
            f"Restore {count(len(picked), 'run')}" if picked else "Restore",
            icon=":material/restore_from_trash:",
            disabled=not picked,
            key="restore_now",
            on_click=_act,
            args=(inventory.restore, picked),
            help="Tick runs in the table first.",
        )


def records(snapshot: Snapshot) -> None:
    """Collections and golden sets."""
    st.subheader("Collections", anchor=False)
    show.table(
        inventory.collections(snapshot),
        "collections",
        {
            "collection_id": show.text_column("collection"),
            "name": show.text_column("name", width="medium"),
            "queries": show.number_column("queries", 0),
            "passages": show.number_column("passages", 0),
            "source": show.text_column("from", width="medium"),
            "notes": show.text_column("notes", width="large"),
        },
    )
    st.subheader("Golden sets", anchor=False)
    show.table(
        inventory.golden_sets(snapshot),
        "golden_sets",
        {
            "golden_set_id": show.text_column("golden set"),
            "collection_id": show.text_column("collection"),
            "queries": show.number_column("judged queries", 0),
            "judgements": show.number_column("judgements", 0),
            "spans": show.number_column("anchored grades", 0, "Grades of characters of documents."),
            "judge": show.text_column("judge", width="medium"),
            "mapping": show.text_column("grades", width="medium"),
            "notes": show.text_column("notes", width="large"),
        },
    )


def exports(snapshot: Snapshot, first: str | None) -> None:
    """Prepare an export, of one collection first, then download it."""
    formats = inventory.formats()
    names = sorted(snapshot.collections()["collection_id"], key=lambda name: (name != first, name))
    left, right = st.columns(2)
    title = left.selectbox("Format", list(formats), key="exported_as")
    collection = right.selectbox("What", [*names, inventory.ALL], key="exported")
    name = formats[title]
    st.caption(f"Holds {plain(FORMATS[name].holds)}.")
    key = (
        str(cache.store().path),
        snapshot.revision,
        name,
        None if collection == inventory.ALL else collection,
    )
    if st.button("Prepare", icon=":material/package_2:", key="prepare"):
        try:
            st.session_state[_PACKED] = (key, _packed(key))
        except ClqError as error:
            st.session_state.pop(_PACKED, None)
            show_error(error)
    kept, made = st.session_state.get(_PACKED, (None, None))
    if kept == key:
        counts = ", ".join(f"{number:,} {what}" for what, number in made.written.counts.items())
        st.markdown(plain(f"{counts}; {len(made.content) / 1e6:.2f} MB."))
        for note in made.written.notes:
            st.caption(plain(note))
        st.download_button(
            "Download",
            made.content,
            file_name=f"{'clq' if collection == inventory.ALL else collection}-{name}.zip",
            mime="application/zip",
            on_click="ignore",
            icon=":material/download:",
            key="download_export",
        )
    st.markdown(
        "To MLflow, or for a choice of runs: `python -m core export http://host:5000 --format mlflow`, "
        "`python -m core export out.zip --format trec --run RUN`."
    )


@st.cache_resource(show_spinner="Writing the export…", max_entries=2)
def _packed(key: tuple[str, int, str, str | None]) -> inventory.Packed:
    _, revision, name, collection = key
    return inventory.packed(cache.snapshot(revision), name, collection_id=collection, run_ids=None)


def history(snapshot: Snapshot) -> None:
    """What happened when."""
    st.caption("“Data as of revision” in the sidebar shows the store as it was at any of these.")
    show.table(
        inventory.history(snapshot),
        "revisions",
        {
            "revision": show.number_column("revision", 0),
            "at": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm:ss"),
            "action": show.text_column("what"),
            "note": show.text_column("note", width="large"),
        },
    )
