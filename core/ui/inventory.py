"""Widgets of the data page: what is there, what was deleted, download exports, read the history."""

from __future__ import annotations

import polars as pl
import streamlit as st

from core.bidi import upright
from core.errors import ClqError
from core.exporters import FORMATS
from core.store import Kind, Snapshot
from core.ui import cache, deleting, show
from core.ui.pick import still_offered
from core.ui.shell import show_error
from core.views.library import deletion, inventory
from core.views.library.published import printed, printed_tables
from core.views.text import plain

_PACKED = "_packed"


def runs(snapshot: Snapshot, *, why_not: str) -> None:
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
    deleting.offer(snapshot, shown, "run", why_not=why_not)


@st.cache_resource(show_spinner=False, max_entries=16)
def _runs(path: str, revision: int, *, removed: bool) -> pl.DataFrame:
    del path  # part of the key
    return inventory.runs(cache.snapshot(revision), removed=removed)


def deleted(snapshot: Snapshot, *, why_not: str) -> None:
    """What was deleted, and the way back."""
    tables: tuple[tuple[Kind, str, pl.DataFrame], ...] = (
        ("collection", "Collections", deletion.collections(snapshot, removed=True)),
        ("golden_set", "Golden sets", deletion.golden_sets(snapshot, removed=True)),
        ("run", "Runs", _runs(str(cache.store().path), snapshot.revision, removed=True)),
    )
    found = [each for each in tables if not each[2].is_empty()]
    if not found:
        st.markdown("Nothing is deleted.")
    for kind, title, rows in found:
        st.subheader(title, anchor=False)
        if kind == "collection":
            st.caption(
                "With a collection come back its runs and golden sets that were not deleted before it."
            )
        deleting.deleted(rows, kind, why_not=why_not)


def records(snapshot: Snapshot, *, why_not: str) -> None:
    """Collections and golden sets, and the two steps that delete some."""
    st.subheader("Collections", anchor=False)
    deleting.offer(snapshot, deletion.collections(snapshot), "collection", why_not=why_not)
    st.subheader("Golden sets", anchor=False)
    deleting.offer(snapshot, deletion.golden_sets(snapshot), "golden_set", why_not=why_not)


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
            file_name=f"{'clq' if collection == inventory.ALL else upright(collection)}-{name}.zip",
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


def published() -> None:
    """The tables of the papers that the product ships."""
    tables = printed_tables()
    st.caption("What papers print, number by number, for comparison; nothing of it was measured here.")
    name: str = st.selectbox("Table", tables["name"].to_list(), key="printed", bind="query-params")
    row = tables.row(by_predicate=pl.col("name") == name, named=True)
    figures = printed(row["file"], row["table"])
    show.table(figures, "published", dict.fromkeys(figures.columns))


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
