"""The forms of page Library: deleting and restoring ticked rows, and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.view import Place
from core.bidi import strip_bidi_controls
from core.errors import ClqError
from core.exporters import FORMATS
from core.store import LedgerKind, Snapshot
from core.ui import access, cache, show
from core.ui.shell import show_error
from core.views.blocks import Table
from core.views.library import data
from core.views.library.data import NAMES, goes_along
from core.views.text import count, plain

ASKED, PACKED = "_delete_asked", "_packed"
NAMED = 8


def forbidden(snapshot: Snapshot) -> str:
    """Say why nothing may be deleted here, or return "" if it may."""
    if snapshot.revision != cache.store().revision():
        return "Pinned to an earlier revision: deleting works on the newest data."
    return access.forbidden()


def ticked(table: Table, kind: LedgerKind) -> list[str]:
    """Draw a table and return the ids of the ticked rows."""
    event = show.table(table.rows, table.of, on_select="rerun", selection_mode="multi-row")
    ids = table.rows[f"{kind}_id"]
    return [ids[row] for row in event["selection"]["rows"] if row < table.rows.height]


def held(*, snapshot: Snapshot, kind: LedgerKind, table: Table) -> None:
    """Draw a table of the existing things, and the two steps that delete some of them."""
    picked = ticked(table, kind)
    if reason := forbidden(snapshot):
        st.caption(reason)
        return
    st.button(
        f"Delete {count(len(picked), NAMES[kind])}…" if picked else "Delete…",
        icon=":material/delete:",
        disabled=not picked,
        key="delete_asked",
        on_click=ask,
        args=(kind, picked),
        help="Tick rows in the table first. Nothing is erased: they can be restored.",
    )
    confirm(snapshot, table.rows, kind)


def ask(kind: LedgerKind, ids: Sequence[str]) -> None:
    """Remember the ids to delete until confirmed; empty = cancelled."""
    st.session_state[ASKED] = (kind, list(ids))


def confirm(snapshot: Snapshot, rows: pl.DataFrame, kind: LedgerKind) -> None:
    """Draw the things to delete, what goes with them, and the button that deletes."""
    of, asked = st.session_state.get(ASKED, (kind, []))
    if of != kind or not asked:
        return
    named = "label" if kind == "run" else f"{kind}_id"
    names = rows.filter(pl.col(f"{kind}_id").is_in(asked))[named].to_list()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    with st.container(border=True):
        st.markdown(f"**Delete {count(len(names), NAMES[kind])}?** {plain('; '.join(names[:NAMED]))}{more}")
        if along := goes_along(snapshot, kind, asked):
            st.markdown(f"With {'it' if len(names) == 1 else 'them'} go **{plain(along)}**.")
        st.caption(
            "They leave every page from the next revision on; links that are pinned to an earlier one keep "
            "showing them, and “Deleted” brings them back."
        )
        with st.container(horizontal=True):
            st.button("Delete them", type="primary", key="delete_now", on_click=act,
                      args=(data.delete, kind, asked))  # fmt: skip
            st.button("Keep them", key="delete_not", on_click=ask, args=(kind, []))


def act(change: Any, kind: LedgerKind, ids: Sequence[str]) -> None:
    """Delete or restore; ticks are forgotten, as they may refer to deleted rows."""
    st.session_state.pop(ASKED, None)
    if access.act(change, cache.store(), ids, kind):
        tables = [f"table_{name}{end}" for name in NAMES for end in ("", "_deleted")]
        for key in ("runs", *tables):
            st.session_state.pop(key, None)


def permissions(*, snapshot: Snapshot, collection_id: str, rows: pl.DataFrame) -> None:
    """Draw the choice of fields that are permissions, and the button that stores it."""
    if reason := forbidden(snapshot):
        st.caption(reason)
        return
    now = rows.filter(permission=data.YES)["field"].to_list()
    key = f"permissions_{collection_id}_{snapshot.revision}"  # what was stored is what is offered
    picked = st.multiselect("Permissions", rows["field"].to_list(), default=now, key=key, width=480)
    st.button(
        "Store",
        icon=":material/lock:",
        disabled=set(picked) == set(now),
        key="permissions_store",
        on_click=marked,
        args=(collection_id, picked),
        help="One revision; choose again to undo it. Earlier revisions keep what they had.",
    )


def marked(collection_id: str, names: Sequence[str]) -> None:
    """Store which fields are permissions."""
    access.act(data.mark, cache.store(), collection_id, names)


def deleted(*, snapshot: Snapshot, kind: LedgerKind, table: Table) -> None:
    """Draw a table of deleted things, and how to restore them."""
    picked = ticked(table, kind)
    if forbidden(snapshot):
        return
    st.button(
        f"Restore {count(len(picked), NAMES[kind])}" if picked else "Restore",
        icon=":material/restore_from_trash:",
        disabled=not picked,
        key=f"restore_{kind}",
        on_click=act,
        args=(data.restore, kind, picked),
        help="Tick rows in the table first.",
    )


packed = cache.cached("Writing the export…", entries=2)(data.packed)


def export(*, place: Place) -> None:
    """Prepare an export, by default of the open collection, then offer its download."""
    snapshot, first = place.snapshot, place.scope.collection_id
    formats = data.formats()
    names = sorted(snapshot.collections()["collection_id"], key=lambda name: (name != first, name))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        title = st.selectbox("Format", list(formats), key="exported_as", width=320)
        collection = st.selectbox("What", [*names, data.ALL], key="exported", width=320)
        pressed = st.button("Prepare", icon=":material/package_2:", key="prepare")
    name = formats[title]
    st.caption(f"Contains {plain(FORMATS[name].holds)}.")
    only = None if collection == data.ALL else collection
    key = (str(cache.store().path), snapshot.revision, name, only)
    if pressed:
        try:
            st.session_state[PACKED] = (key, packed(snapshot, name, only))
        except ClqError as error:
            st.session_state.pop(PACKED, None)
            show_error(error)
    kept, made = st.session_state.get(PACKED, (None, None))
    if kept == key:
        st.markdown(plain(data.packed_words(made)))
        for note in made.written.notes:
            st.caption(plain(note))
        st.download_button(
            "Download",
            made.content,
            file_name=f"{'clq' if only is None else strip_bidi_controls(only)}-{name}.zip",
            mime="application/zip",
            on_click="ignore",
            icon=":material/download:",
            key="download_export",
        )
