from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from core.errors import ClqError
from core.exporters import FORMATS
from core.store import Kind, Snapshot
from core.ui import cache, door, show
from core.ui.pick import pick_listed
from core.ui.shell import show_error
from core.ui.state import linked
from core.ui.view import end, find_place
from core.views.library import inventory
from core.views.library.inventory import NAMES, goes_along, printed, printed_tables
from core.views.text import count, plain
from core.written import upright

ASKED, PACKED = "_delete_asked", "_packed"
TITLES: dict[Kind, str] = {"run": "Runs", "collection": "Collections", "golden_set": "Golden sets"}
NAMED = 8
text, number = show.text_column, show.number_column
COLUMNS: dict[Kind, dict[str, Any]] = {
    "run": {
        "label": text("run", width=290),
        "collection_id": text("collection"),
        "origin": text("figures are"),
        "n": number("n", 0, "Queries that it ranks, or that its averages rest on."),
        "passages": number("ranked passages", 0),
        "created_at": show.time_column("made (UTC)"),
    },
    "collection": {
        "collection_id": text("collection"),
        "name": text("name", width="medium"),
        "runs": number("runs", 0),
        "golden_sets": number("golden sets", 0),
        "queries": number("queries", 0),
        "passages": number("passages", 0, "The chunks of its chunkings are counted too."),
        "source": text("from", width="medium"),
    },
    "golden_set": {
        "golden_set_id": text("golden set"),
        "collection_id": text("collection"),
        "queries": number("judged queries", 0),
        "judgements": number("judgements", 0),
        "spans": number("anchored grades", 0, "Grades of characters of documents."),
        "judge": text("judge", width="medium"),
        "mapping": text("grades", width="medium"),
    },
}
NOTES = {"notes": text("notes", width="large")}
MORE: dict[Kind, dict[str, Any]] = {
    "run": {
        "pool": text("pool"),
        "added_revision": number("revision", 0, "The revision that brought it."),
        "run_id": text("id"),
    },
    "collection": NOTES,
    "golden_set": NOTES,
}


@cache.cached()
def rows_of(snapshot: Snapshot, kind: Kind, *, removed: bool = False) -> pl.DataFrame:
    """List what there is of a kind, or was deleted."""
    return inventory.LISTS[kind](snapshot, removed=removed)


def held(snapshot: Snapshot, forbidden: str) -> None:
    """A table of what is there, and the two steps that delete some of it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind: Kind = st.segmented_control(
            "Kind", list(TITLES), default="run", required=True, format_func=TITLES.__getitem__,
            key="kind", label_visibility="collapsed",
        )  # fmt: skip
        rows = rows_of(snapshot, kind)
        if kind == "run" and not rows.is_empty():
            rows = sought(rows)
    if rows.is_empty():
        st.markdown(f"No {TITLES[kind].lower()} are here.")
        return
    picked = ticked(rows, kind, removed=False)
    if forbidden:
        st.caption(forbidden)
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
    confirm(snapshot, rows, kind)


def sought(rows: pl.DataFrame) -> pl.DataFrame:
    """The runs of one collection, or with some words in their name."""
    names = [inventory.ALL, *rows["collection_id"].unique().sort()]
    collection = pick_listed("Collection", names, "held", width=240)
    words = st.text_input("Runs whose name holds", width=240, **linked("named"))
    return inventory.chosen(rows, collection, words)


def ticked(rows: pl.DataFrame, kind: Kind, *, removed: bool) -> list[str]:
    """Draw a table; returns the ids of the rows that are ticked."""
    name = f"{kind}_deleted" if removed else kind
    event = show.table(
        rows, name, COLUMNS[kind], more=MORE[kind], on_select="rerun", selection_mode="multi-row"
    )
    return [rows[f"{kind}_id"][row] for row in event["selection"]["rows"] if row < rows.height]


def ask(kind: Kind, ids: Sequence[str]) -> None:
    """Keep what is to be deleted until it is confirmed; nothing = not after all."""
    st.session_state[ASKED] = (kind, list(ids))


def confirm(snapshot: Snapshot, rows: pl.DataFrame, kind: Kind) -> None:
    """Draw what would go, with what else, and the button that does it."""
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
                      args=(inventory.delete, kind, asked))  # fmt: skip
            st.button("Keep them", key="delete_not", on_click=ask, args=(kind, []))


def act(change: Any, kind: Kind, ids: Sequence[str]) -> None:
    """Delete or restore; ticks are forgotten, for they may name what is gone."""
    st.session_state.pop(ASKED, None)
    if door.act(change, cache.store(), ids, kind):
        tables = [f"table_{name}{end}" for name in TITLES for end in ("", "_deleted")]
        for key in ("runs", *tables):
            st.session_state.pop(key, None)


def deleted(snapshot: Snapshot, forbidden: str) -> None:
    """Draw what was deleted, and the way back."""
    kinds: tuple[Kind, ...] = ("collection", "golden_set", "run")
    gone = {kind: rows_of(snapshot, kind, removed=True) for kind in kinds}
    if all(rows.is_empty() for rows in gone.values()):
        st.markdown("Nothing is deleted.")
    for kind, rows in gone.items():
        if rows.is_empty():
            continue
        st.subheader(TITLES[kind], anchor=False)
        if kind == "collection":
            st.caption(
                "With a collection come back its runs and golden sets that were not deleted before it."
            )
        picked = ticked(rows, kind, removed=True)
        if not forbidden:
            st.button(
                f"Restore {count(len(picked), NAMES[kind])}" if picked else "Restore",
                icon=":material/restore_from_trash:",
                disabled=not picked,
                key=f"restore_{kind}",
                on_click=act,
                args=(inventory.restore, kind, picked),
                help="Tick rows in the table first.",
            )


def download(snapshot: Snapshot, first: str | None) -> None:
    """Prepare an export, of one collection first, then download it."""
    formats = inventory.formats()
    names = sorted(snapshot.collections()["collection_id"], key=lambda name: (name != first, name))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        title = st.selectbox("Format", list(formats), key="exported_as", width=320)
        collection = st.selectbox("What", [*names, inventory.ALL], key="exported", width=320)
        pressed = st.button("Prepare", icon=":material/package_2:", key="prepare")
    name = formats[title]
    st.caption(f"Holds {plain(FORMATS[name].holds)}.")
    only = None if collection == inventory.ALL else collection
    key = (str(cache.store().path), snapshot.revision, name, only)
    if pressed:
        try:
            st.session_state[PACKED] = (key, packed(snapshot, name, only))
        except ClqError as error:
            st.session_state.pop(PACKED, None)
            show_error(error)
    kept, export = st.session_state.get(PACKED, (None, None))
    if kept == key:
        st.markdown(plain(inventory.packed_words(export)))
        for note in export.written.notes:
            st.caption(plain(note))
        st.download_button(
            "Download",
            export.content,
            file_name=f"{'clq' if only is None else upright(only)}-{name}.zip",
            mime="application/zip",
            on_click="ignore",
            icon=":material/download:",
            key="download_export",
        )
    st.caption(
        "To MLflow, or for a choice of runs: `python -m core export http://host:5000 --format mlflow`, "
        "`python -m core export out.zip --format trec --run RUN`."
    )


packed = cache.cached("Writing the export…", entries=2)(inventory.packed)


def history(snapshot: Snapshot) -> None:
    """Draw what happened when."""
    st.caption("“Data as of revision” under Settings shows the store as it was at any of these.")
    columns = {
        "revision": number("revision", 0),
        "at": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm:ss"),
        "action": text("what"),
        "note": text("note", width="large"),
    }
    show.table(snapshot.revisions().sort("revision", descending=True), "revisions", columns)


def published() -> None:
    """The tables of the papers that the product ships."""
    tables = printed_tables()
    name = pick_listed(
        "Table", tables["name"], "printed",
        help="What papers print, number by number, for comparison; nothing of it was measured here.",
    )  # fmt: skip
    row = tables.row(by_predicate=pl.col("name") == name, named=True)
    figures = printed(row["file"], row["table"])
    columns = {
        column: st.column_config.Column(
            inventory.HEADINGS.get(column, column), help=f"Column {column} of {row['file']}."
        )
        for column in figures.columns
    }
    show.table(figures, "published", columns)


view = find_place()
snapshot = cache.snapshot(None) if view is None else view.snapshot
pinned = snapshot.revision != cache.store().revision()
forbidden = (
    "Pinned to an earlier revision: deleting works on the newest data." if pinned else door.forbidden()
)
show.head(inventory.answer(snapshot))
with st.container():  # always there, so that the tabs below keep their place
    door.outcome()
if snapshot.revision == 0:
    st.info("The store is empty: add results, or load the demo with `make demo`.", icon=":material/inbox:")
    st.page_link("pages/add.py", label="Add results", icon=":material/upload:")
    end()
places = st.tabs(["In the store", "Deleted", "Download", "History", "Published tables"])
with places[0]:
    held(snapshot, forbidden)
with places[1]:
    deleted(snapshot, forbidden)
with places[2]:
    download(snapshot, view.scope.collection_id if view else None)
with places[3]:
    history(snapshot)
with places[4]:
    published()
