"""Deleting and restoring on the data page: tick rows, be told what goes along, say yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.errors import ClqError
from core.store import Kind, Snapshot
from core.ui import access, cache, show
from core.ui.shell import show_error
from core.views.library import deletion
from core.views.library.deletion import NAMES, goes_along
from core.views.text import count, plain

_ASKED, _SAID, _FAILED = "_delete_asked", "_inventory_said", "_inventory_failed"
_NAMED = 8

COLUMNS: dict[Kind, dict[str, Any]] = {
    "run": {
        "label": show.text_column("run", width=290),
        "collection_id": show.text_column("collection"),
        "origin": show.text_column("figures are"),
        "pool": show.text_column("pool"),
        "n": show.number_column("n", 0, "Queries that it ranks, or that its averages rest on."),
        "passages": show.number_column("ranked passages", 0),
        "created_at": st.column_config.DatetimeColumn("made (UTC)", format="YYYY-MM-DD HH:mm"),
        "added_revision": show.number_column("revision", 0, "The revision that brought it."),
        "run_id": show.text_column("id"),
    },
    "collection": {
        "collection_id": show.text_column("collection"),
        "name": show.text_column("name", width="medium"),
        "runs": show.number_column("runs", 0),
        "golden_sets": show.number_column("golden sets", 0),
        "queries": show.number_column("queries", 0),
        "passages": show.number_column("passages", 0, "The chunks of its chunkings are counted too."),
        "source": show.text_column("from", width="medium"),
        "notes": show.text_column("notes", width="large"),
    },
    "golden_set": {
        "golden_set_id": show.text_column("golden set"),
        "collection_id": show.text_column("collection"),
        "queries": show.number_column("judged queries", 0),
        "judgements": show.number_column("judgements", 0),
        "spans": show.number_column("anchored grades", 0, "Grades of characters of documents."),
        "judge": show.text_column("judge", width="medium"),
        "mapping": show.text_column("grades", width="medium"),
        "notes": show.text_column("notes", width="large"),
    },
}
_TABLES: dict[Kind, str] = {"run": "runs", "golden_set": "golden_sets", "collection": "collections"}


def outcome() -> None:
    """What the last action did, once."""
    if _SAID in st.session_state:
        st.success(plain(st.session_state.pop(_SAID)), icon=":material/check:")
    if _FAILED in st.session_state:
        show_error(st.session_state.pop(_FAILED))


def forbidden(snapshot: Snapshot) -> str:
    """Why nothing can be deleted or restored here and now; empty where it can."""
    if snapshot.revision != cache.store().revision():
        return "Pinned to an earlier revision: deleting works on the newest data."
    return access.forbidden()


def offer(snapshot: Snapshot, rows: pl.DataFrame, kind: Kind, *, why_not: str) -> None:
    """A table of what is there, and the two steps that delete some of it.

    Args:
        snapshot: The data that is shown.
        rows: What is there, with the columns of `COLUMNS`.
        kind: What the rows are.
        why_not: From `forbidden`.
    """
    name = _TABLES[kind] if kind != "run" else "runs_held"
    picked = _ticked(rows, name, kind)
    if why_not:
        st.caption(why_not)
        return
    st.button(
        f"Delete {count(len(picked), NAMES[kind])}…" if picked else "Delete…",
        icon=":material/delete:",
        disabled=not picked,
        key=_key("delete_asked", kind),
        on_click=_ask,
        args=(kind, picked),
        help=f"Tick {NAMES[kind]}s in the table first. Nothing is erased: they can be restored.",
    )
    _confirm(snapshot, rows, kind)


def deleted(rows: pl.DataFrame, kind: Kind, *, why_not: str) -> None:
    """A table of what was deleted, and the way back."""
    picked = _ticked(rows, f"{_TABLES[kind]}_deleted", kind)
    if not why_not:
        st.button(
            f"Restore {count(len(picked), NAMES[kind])}" if picked else "Restore",
            icon=":material/restore_from_trash:",
            disabled=not picked,
            key=_key("restore_now", kind),
            on_click=_act,
            args=(deletion.restore, kind, picked),
            help=f"Tick {NAMES[kind]}s in the table first.",
        )


def _key(name: str, kind: Kind) -> str:
    return name if kind == "run" else f"{name}_{kind}"


def _ticked(rows: pl.DataFrame, name: str, kind: Kind) -> list[str]:
    """Draw a table; returns the ids of the rows that are ticked."""
    event = show.table(rows, name, COLUMNS[kind], on_select="rerun", selection_mode="multi-row")
    return [rows[f"{kind}_id"][row] for row in event["selection"]["rows"] if row < rows.height]


def _ask(kind: Kind, ids: Sequence[str]) -> None:
    st.session_state[_ASKED] = (kind, list(ids))


def _confirm(snapshot: Snapshot, rows: pl.DataFrame, kind: Kind) -> None:
    of, asked = st.session_state.get(_ASKED, (kind, []))
    if of != kind or not asked:
        return
    named = "label" if kind == "run" else f"{kind}_id"
    names = rows.filter(pl.col(f"{kind}_id").is_in(asked))[named].to_list()
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    with st.container(border=True):
        st.markdown(f"**Delete {count(len(names), NAMES[kind])}?** {plain('; '.join(names[:_NAMED]))}{more}")
        if along := goes_along(snapshot, kind, asked):
            st.markdown(f"With {'it' if len(names) == 1 else 'them'} go **{plain(along)}**.")
        st.caption(
            "They leave every page from the next revision on, in one transaction. Links that are pinned to "
            "an earlier revision keep showing them, and “Deleted” brings them back."
        )
        with st.container(horizontal=True):
            st.button("Delete them", type="primary", key="delete_now", on_click=_delete, args=(kind, asked))
            st.button("Keep them", key="delete_not", on_click=_ask, args=(kind, []))


def _delete(kind: Kind, ids: Sequence[str]) -> None:
    st.session_state.pop(_ASKED, None)
    _act(deletion.delete, kind, ids)


def _act(change: Callable[..., str], kind: Kind, ids: Sequence[str]) -> None:
    """In a callback, so that the sidebar of the next script run shows the new revision."""
    try:
        access.require()
        st.session_state[_SAID] = change(cache.store(), ids, kind)
    except ClqError as error:
        st.session_state[_FAILED] = error
        return
    tables = ("runs_held", *_TABLES.values(), *(f"{name}_deleted" for name in _TABLES.values()))
    for key in ("runs", *(f"table_{name}" for name in tables)):  # they may name what is gone
        st.session_state.pop(key, None)
