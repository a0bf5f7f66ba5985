"""The beginning of what is offered for import, file by file, with the questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
import streamlit as st

from core.importers import ROLES, Options, Preview
from core.views.imports import weight
from core.views.text import plain

_NONE = "–"
_ROWS = 8
_OPEN = 2
"""Files whose beginning is shown at once; more are folded away."""


def previews(found: Sequence[Preview], decided: Options) -> Options:
    """Show the beginning of every file and ask what is open.

    Returns:
        `decided` with the columns as mapped by the user, the split of a BEIR collection, the sheet, and the
        files to leave out.
    """
    skip = frozenset(_left_out(found))
    mapping: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for place, each in enumerate(found):
        if each.name in skip:
            continue
        title = f"**{plain(each.name)}** · {plain(each.title) or 'not recognised'} · {weight(each.bytes)}"
        icon = ":material/error:" if each.problem else ":material/description:"
        with st.expander(title, expanded=len(found) <= _OPEN or bool(each.choices), icon=icon):
            _rows(each.rows, place)
            mapping |= _map_columns(each, place)
        chosen |= _choose(each.choices, place)
    return replace(
        decided,
        columns=mapping,
        skip=skip,
        split=chosen.get("split"),
        sheet=chosen.get("sheet"),
        all_tasks=chosen.get("tasks") == "all",
    )


def _left_out(found: Sequence[Preview]) -> list[str]:
    """Files of several that the user does not want."""
    if len(found) < 2:
        return []
    return st.multiselect(
        f"Leave out of the {len(found)} files",
        list(dict.fromkeys(each.name for each in found)),
        placeholder="nothing",
        help="For a file that cannot be read, or that belongs to something else.",
    )


def _rows(rows: pl.DataFrame, place: int) -> None:
    if rows.is_empty():
        st.caption("Nothing of it can be shown as text.")
    else:
        st.dataframe(rows.head(_ROWS), hide_index=True, width="stretch", key=f"look{place}")


def _choose(choices: Mapping[str, Sequence[str]], place: int) -> dict[str, str]:
    """The split, the sheet or the tasks to take, where there are several."""
    chosen: dict[str, str] = {}
    if splits := choices.get("split"):
        chosen["split"] = st.selectbox("Split", ["all", *splits], key=f"split{place}")
    if sheets := choices.get("sheet"):
        chosen["sheet"] = st.selectbox("Sheet", sheets, key=f"sheet{place}")
    if tasks := choices.get("tasks"):
        chosen["tasks"] = st.selectbox("Tasks", tasks, key=f"tasks{place}")
    return chosen


def _map_columns(each: Preview, place: int) -> dict[str, str]:
    """A list per role; the recognised column is chosen already."""
    asked: dict[str, str] = {}
    if not each.columns or not st.toggle(
        "Say what each column means", value=bool(each.problem), key=f"ask{place}"
    ):
        return asked
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
