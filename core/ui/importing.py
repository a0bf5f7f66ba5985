"""The widgets of the Import page: options, reading, what will be taken, and the button that writes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import InputError
from core.importers import FORMATS, GRADE_MAPPINGS, Import, Options, mapping_text
from core.ui import access, cache, show
from core.ui.importing_done import finished
from core.ui.offering import mark
from core.ui.shell import show_error
from core.views.add import imports
from core.views.add.anchored import StoredDocuments
from core.views.add.changed import Choice, offers, told
from core.views.add.imports import Plan
from core.views.add.matching import Unmatched
from core.views.add.versions import settle
from core.views.tables import upright
from core.views.text import count, plain

_BY_CONTENT = "by their values"
_NOTES_OPEN = 4


def options() -> Options:
    """What the user decides before reading; everything may stay open."""
    snapshot = cache.snapshot(None)
    known = snapshot.collections()["collection_id"].to_list()
    titles = {each.name: each.title for each in FORMATS}
    place = iter(st.columns(5))
    collection = next(place).selectbox(
        "Collection",
        known,
        index=None,
        accept_new_options=True,
        placeholder="from the file name",
        help="The corpus that rankings and judgements belong to. Choose one of the store or type a new name.",
    )
    label = next(place).text_input(
        "Run name", placeholder="from the file", help="What the run is called in charts."
    )
    golden = next(place).text_input(
        "Golden set", placeholder="from the file", help="Name of the judgements' set."
    )
    grades = next(place).selectbox(
        "Grades are",
        [_BY_CONTENT, *GRADE_MAPPINGS],
        format_func=lambda name: mapping_text(name) if name in GRADE_MAPPINGS else name,
        accept_new_options=True,
        help="How grades become 1 to 5. Type another mapping as 0→1, 1→3, 2→5. It is recorded with the "
        "golden set, and the grades as they were given are kept.",
    )
    format_ = next(place).selectbox(
        "Format",
        list(titles),
        index=None,
        format_func=titles.__getitem__,
        placeholder="by content",
        help="Only where a file could be of several formats, or is taken for another.",
    )
    return Options(
        format=format_,
        collection_id=collection or None,
        label=label or None,
        golden_set_id=golden or None,
        grades=None if grades == _BY_CONTENT else grades,
        known_collections=frozenset(known),
        documents=StoredDocuments.of(snapshot),
    )


@st.cache_resource(show_spinner="Reading the files…", max_entries=4)
def _read(
    fingerprint: str, _files: Sequence[Any], _options: Options, workspace: str | None, unmatched: Unmatched
) -> Plan:
    """Read once per set of files and decisions, which `fingerprint` stands for."""
    del fingerprint
    snapshot = cache.snapshot(None)
    return imports.plan(_files, _options, snapshot, workspace=workspace, unmatched=unmatched)


def read(files: Sequence[Any], decided: Options, unmatched: Unmatched = "refuse") -> Plan:
    """Read what was offered, for the workspace that is open if no collection was chosen."""
    return _read(fingerprint(files, decided), files, decided, open_workspace(decided), unmatched)


def open_workspace(decided: Options) -> str | None:
    """The workspace of the sidebar, where it is for the ids to say whether the files belong to it."""
    chosen = st.session_state.get("ws")
    return chosen if decided.collection_id is None and chosen in decided.known_collections else None


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
    left, right = st.columns([2, 3])
    with left:
        columns = {
            "what": show.text_column("what"),
            "rows": st.column_config.NumberColumn(format="localized"),
        }
        st.dataframe(
            imports.taken(made),
            hide_index=True,
            width="stretch",
            height="content",
            column_config=columns,
        )
    with right:
        if not (listed := imports.makes(made)).is_empty():
            st.dataframe(
                upright(listed), hide_index=True, width="stretch", height=min(36 + 35 * listed.height, 420)
            )
    if made.notes:
        with st.expander(
            f"Decided and converted on the way: {count(len(made.notes), 'note')}",
            expanded=len(made.notes) <= _NOTES_OPEN,
        ):
            st.markdown("\n".join(f"- {plain(note)}" for note in made.notes))
    lost = imports.left_out(made)
    if not lost.is_empty():
        st.subheader("What will be left out", anchor=False)
        columns = {
            "how_many": st.column_config.NumberColumn("how many", format="localized", width="small"),
            "reason": show.text_column("what and why", width="large"),
            "first": show.text_column("first at"),
        }
        show.table(lost, "left_out", columns)


def write(made: Import, names: Sequence[str], unmatched: Unmatched, *, refused: bool) -> None:
    """The button that writes, in one transaction; nothing can be taken while it would be refused."""
    collection = imports.collection_of(made)
    for part in imports.missing_parts(cache.snapshot(None), made, collection or ""):
        st.info(plain(part[0].upper() + part[1:] + "."), icon=":material/info:")
    changes = settle(cache.snapshot(None), made).changes
    choice = decision([str(each) for each in changes]) if changes else None
    undecided = refused or (bool(changes) and choice is None)
    if st.button("Import", type="primary", icon=":material/download_done:", disabled=undecided):
        access.require()
        with st.spinner("Writing…", show_time=True):
            fresh, sentence = imports.bring(
                cache.store(), made, ", ".join(names)[:200], choice=choice, unmatched=unmatched
            )
        finished(
            fresh=fresh,
            said=sentence,
            more=imports.summary(made),
            collection=collection,
            came=imports.came(made),
        )


def decision(changed: Sequence[str]) -> Choice | None:
    """Ask what to do about what the store has with other content, or had; None until that is said."""
    st.warning(plain(told(changed)), icon=":material/difference:")
    found = offers(changed)
    chosen: Choice | None = st.radio(
        "What should become of it?", list(found), index=None, format_func=lambda each: found[each]
    )
    return chosen


def problem(plan: Plan) -> None:
    """Why the files cannot be taken as they are."""
    if plan.problem is not None:
        show_error(InputError(imports.on_page(str(plan.problem))))
        several = (
            "Leave the file out above, or mend it and offer it again. " if len(plan.previews) > 1 else ""
        )
        st.caption(f"{several}Nothing was written.")
