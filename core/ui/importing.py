"""The widgets of the Import page: options, previews, column mapping, what will be taken."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.importers import GRADE_MAPPINGS, ROLES, Import, Options, Preview, mapping_text
from core.ui import cache, show
from core.ui.offering import mark
from core.ui.shell import show_error
from core.ui.sidebar import go_to_workspace
from core.views import imports
from core.views.imports import Plan
from core.views.text import count, plain
from core.views.versions import CHOICES, Choice, settle

DONE = "_imported"
_BY_CONTENT = "choose by the values"
_NONE = "–"
_PREVIEW_ROWS = 8


def options() -> Options:
    """What the user decides before reading; everything may stay open."""
    snapshot = cache.snapshot(None)
    known = snapshot.collections()["collection_id"].to_list()
    first, second, third, fourth = st.columns(4)
    collection = first.selectbox(
        "Collection",
        known,
        index=None,
        accept_new_options=True,
        placeholder="from the file name",
        help="The corpus that rankings and judgements belong to. Choose one of the store or type a new name.",
    )
    label = second.text_input(
        "Run name", placeholder="from the file", help="What the run is called in charts."
    )
    golden = third.text_input("Golden set", placeholder="from the file", help="Name of the judgements' set.")
    grades = fourth.selectbox(
        "Grades are",
        [_BY_CONTENT, *GRADE_MAPPINGS],
        format_func=lambda name: mapping_text(name) if name in GRADE_MAPPINGS else name,
        accept_new_options=True,
        help="How grades become 1 to 5. Type another mapping as 0→1, 1→3, 2→5. It is recorded with the "
        "golden set, and the grades as they were given are kept.",
    )
    return Options(
        collection_id=collection or None,
        label=label or None,
        golden_set_id=golden or None,
        grades=None if grades == _BY_CONTENT else grades,
        known_collections=frozenset(known),
    )


def previews(found: Sequence[Preview]) -> tuple[dict[str, str], dict[str, str]]:
    """Show the beginning of every file and ask what is open.

    Returns:
        Role → column as mapped by the user, and the choices made: split of a BEIR collection, sheet.
    """
    mapping: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for place, each in enumerate(found):
        with st.container(border=True):
            st.markdown(f"**{plain(each.name)}** · {each.title or 'not recognised'} · {each.bytes:,} bytes")
            if not each.rows.is_empty():
                st.dataframe(
                    each.rows.head(_PREVIEW_ROWS), hide_index=True, width="stretch", key=f"look{place}"
                )
            if each.columns:
                mapping |= _map_columns(each, place)
            if splits := each.choices.get("split"):
                chosen["split"] = st.selectbox("Split", ["all", *splits], key=f"split{place}")
            if sheets := each.choices.get("sheet"):
                chosen["sheet"] = st.selectbox("Sheet", sheets, key=f"sheet{place}")
    return mapping, chosen


def _map_columns(each: Preview, place: int) -> dict[str, str]:
    """A list per role; the recognised column is chosen already."""
    asked: dict[str, str] = {}
    with st.expander("Columns: what each one means", expanded=bool(each.problem)):
        boxes = st.columns(5)
        for position, (role, about) in enumerate(ROLES.items()):
            known = each.mapping.get(role)
            chosen = boxes[position % 5].selectbox(
                about.title,
                [_NONE, *each.columns],
                index=each.columns.index(known) + 1 if known in each.columns else 0,
                key=f"map{place}_{role}",
            )
            if chosen not in (_NONE, known):
                asked[role] = chosen
    return asked


@st.cache_resource(show_spinner="Reading the files…", max_entries=4)
def read(fingerprint: str, _files: Sequence[Any], _options: Options) -> Plan:
    """Read once per set of files and decisions, which `fingerprint` stands for."""
    del fingerprint
    return imports.plan(_files, _options)


def fingerprint(files: Sequence[Any], decided: Options) -> str:
    """What identifies the files and decisions of a reading."""
    digest = hashlib.blake2b(digest_size=16)
    for each in files:
        digest.update(each.name.encode())
        digest.update(hashlib.blake2b(mark(each)).digest())
    digest.update(repr(decided).encode())
    return digest.hexdigest()


def outcome(made: Import) -> None:
    """Show what will be taken, what is left out and what was decided on the way."""
    st.subheader("What will be taken", anchor=False)
    left, right = st.columns([1, 2])
    with left:
        st.dataframe(imports.taken(made), hide_index=True, width="stretch")
    with right:
        for run in made.runs[:20]:
            st.text(f"run  {run.label}")
        for golden in made.golden_sets:
            st.text(f"golden set  {golden.name} (grades: {golden.mapping})")
        for note in made.notes:
            st.caption(plain(note))
    lost = imports.left_out(made)
    if not lost.is_empty():
        st.warning(
            f"{count(int(lost['rows'].sum()), 'row')} will be left out:", icon=":material/content_cut:"
        )
        columns: Mapping[str, Any] = {
            "rows": show.number_column("rows", 0),
            "reason": show.text_column("why", width="large"),
            "first": show.text_column("first at"),
        }
        show.table(lost, "left_out", columns)


def write(made: Import, names: Sequence[str]) -> None:
    """The button that writes, in one transaction."""
    collection = imports.collection_of(made)
    for part in imports.missing_parts(cache.snapshot(None), made, collection or ""):
        st.info(plain(part[0].upper() + part[1:] + "."), icon=":material/info:")
    changes = settle(cache.snapshot(None), made).changes
    choice = decision([str(each) for each in changes]) if changes else None
    undecided = bool(changes) and choice is None
    if st.button("Import", type="primary", icon=":material/download_done:", disabled=undecided):
        with st.spinner("Writing…", show_time=True):
            fresh, sentence = imports.bring(cache.store(), made, ", ".join(names)[:200], choice=choice)
        st.session_state[DONE] = (fresh, sentence, ())
        if collection:
            go_to_workspace(collection)
        st.rerun()


def decision(changed: Sequence[str]) -> Choice | None:
    """Ask what to do about things that are in the store with other content; None until that is said."""
    named = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if changed[5:] else "")
    st.warning(f"In the store already with other content: {plain(named)}.", icon=":material/difference:")
    chosen: Choice | None = st.radio(
        "What should become of it?", list(CHOICES), index=None, format_func=lambda each: CHOICES[each]
    )
    return chosen


def done() -> None:
    """After an import: what happened, where to look at it, or on to the next; the page ends here then."""
    if DONE not in st.session_state:
        return
    fresh, sentence, more = st.session_state[DONE]
    (st.success if fresh else st.info)(plain(sentence), icon=":material/check:")
    for line in more:
        st.caption(plain(line))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link("pages/pareto.py", label="See it on the Pareto chart", icon=":material/scatter_plot:")
        st.page_link("pages/queries.py", label="See its queries", icon=":material/manage_search:")
        st.button("Import more files", on_click=_leave, key="import_more")
    st.stop()


def _leave() -> None:
    """Forget the finished import."""
    st.session_state.pop(DONE, None)


def problem(plan: Plan) -> None:
    """Why the files cannot be taken as they are."""
    if plan.problem is not None:
        show_error(plan.problem)
        st.caption("Nothing was written.")
