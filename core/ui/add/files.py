"""A block for each file: what it was recognised as, what its columns mean, and the choices that it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.importers import Options, Preview, Row, TableAs
from core.views.add import words
from core.views.add.words import on_page
from core.views.tables import upright
from core.views.text import count, plain, shorten, weight

SKIP = "_left_out"
_ROWS, _VALUES = 8, 4
"""Rows shown of a file, and values under the meaning of a column."""
_BESIDE, _MOST_ASKED = 5, 25
"""Columns that are asked about side by side, and in all."""
_BLOCKS = 12
"""Files with a block of their own; of more only those with a problem have one."""
_WIDE = 28
_HELP = "Choose what the column holds, or type it: any measure with its cutoff, such as MRR@5."


def blocks(seen: Sequence[Preview], decided: Options) -> tuple[Options, dict[str, DeltaGenerator]]:
    """Show the beginning of every file and ask what is open.

    Returns:
        `decided` with rows and columns of tables as the user says, the split of a BEIR collection, the sheet,
        and the files to leave out; and the place of each file for what is wrong with it.
    """
    skip = frozenset(_left_out(seen))
    tables: dict[str, TableAs] = {}
    chosen: dict[str, str] = {}
    places: dict[str, DeltaGenerator] = {}
    for place, file in enumerate(seen):
        if file.name in skip or (place >= _BLOCKS and not file.problem):
            continue
        row = _head(file, place, alone=len(seen) == 1)
        places[file.name] = st.container()
        if (said := _columns(file, row, place)) is not None:
            tables[file.name] = said
        chosen |= _choose(file.choices, place)
    if more := len(seen) - len(places) - len(skip):
        st.caption(f"And {count(more, 'more file')}.")
    return replace(
        decided,
        tables=tables,
        skip=skip,
        split=chosen.get("split"),
        sheet=chosen.get("sheet"),
        all_tasks=chosen.get("tasks") == "all",
    ), places


def problems(seen: Sequence[Preview], places: Mapping[str, DeltaGenerator], skip: frozenset[str]) -> bool:
    """Say in the block of a file why it cannot be read; returns whether there is such a file."""
    wrong = [file for file in seen if file.problem and file.name not in skip]
    for file in wrong:
        place = places.get(file.name) or st.container()
        place.error(plain(on_page(file.problem)), icon=":material/error:")
    return bool(wrong)


def leave_out(*names: str) -> None:
    """Leave files out from the next run of the script on."""
    st.session_state[SKIP] = list(dict.fromkeys([*st.session_state.get(SKIP, ()), *names]))


def _left_out(seen: Sequence[Preview]) -> list[str]:
    """Files of several that the user does not want."""
    names = list(dict.fromkeys(file.name for file in seen))
    left = [name for name in st.session_state.get(SKIP, ()) if name in names]
    if len(seen) < 2 or not (left or len(seen) > _BLOCKS):
        return []
    st.session_state[SKIP] = left
    return st.multiselect("Left out", names, key=SKIP, placeholder="nothing")


def _head(file: Preview, place: int, *, alone: bool) -> Row | None:
    """Name, format and size of a file, what one of its rows is, and the button that leaves it out."""
    row = file.row
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(file.name)}**", width="content")
        title = f"{file.title or 'not recognised'}, {weight(file.bytes)}"
        st.badge(plain(title), color="orange" if file.problem else "gray")
        if file.columns:
            st.markdown("One row is", width="content")
            row = st.segmented_control(
                "One row is",
                list(words.ROWS),
                default=file.row,
                format_func=words.ROWS.__getitem__,
                key=f"row{place}",
                label_visibility="collapsed",
                width="content",
            )
        elif not file.rows.is_empty():
            with st.popover("First rows", type="tertiary", width="content"):
                rows = upright(file.rows.head(_ROWS))
                st.dataframe(rows, hide_index=True, width="stretch", key=f"look{place}")
        if not alone:
            st.button(
                "Leave out", key=f"leave{place}", type="tertiary", on_click=leave_out, args=(file.name,)
            )
    return row or file.row


def _choose(choices: Mapping[str, Sequence[str]], place: int) -> dict[str, str]:
    """The split, the sheet or the tasks to take, where there are several."""
    asked = {"split": ("Split", ["all"]), "sheet": ("Sheet", []), "tasks": ("Tasks", [])}
    return {
        what: st.selectbox(title, [*first, *choices[what]], key=f"{what}{place}", width=320)
        for what, (title, first) in asked.items()
        if choices.get(what)
    }


def _columns(file: Preview, row: Row | None, place: int) -> TableAs | None:
    """Ask above each column what it means; what is recognised is chosen already."""
    if not file.columns:
        return None
    chosen = dict(_meanings(file, row, place))
    if more := len(file.columns) - len(chosen):
        st.caption(f"{count(more, 'more column')} as recognised; --column on the command line maps them too.")
    for meaning in words.twice(chosen):
        st.warning(f"Two columns mean {plain(meaning)}: one is taken.", icon=":material/warning:")
    return words.said(file, row, chosen)


def _meanings(file: Preview, row: Row | None, place: int) -> Iterator[tuple[str, str]]:
    """Columns of a table with what the user says they mean, each above its first values."""
    known = words.columns_of(file, row)
    asked = file.columns[:_MOST_ASKED]
    boxes: list[DeltaGenerator] = []
    for position, column in enumerate(asked):
        boxes = boxes or st.columns(min(_BESIDE, len(asked)), gap="small")
        with boxes.pop(0):
            options = words.choices(row, known, column)
            meaning = st.selectbox(
                plain(column) or "(no name)",
                options,
                index=options.index(known.get(column, words.LEFT_OUT)),
                format_func=words.words,
                accept_new_options=True,
                key=f"map{place}_{row}_{position}",
                help=_HELP if position == 0 else None,
            )
            if column in file.rows:
                values = file.rows[column].head(_VALUES).fill_null("").to_list()
                st.markdown("  \n".join(plain(shorten(str(value), _WIDE)) or "–" for value in values))
            yield column, meaning
