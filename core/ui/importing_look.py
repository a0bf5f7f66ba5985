"""The beginning of what is offered for import, file by file, with the questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.importers import Options, Preview, Row, TableAs
from core.views.add import mapping
from core.views.add.imports import weight
from core.views.tables import upright
from core.views.text import count, plain

_ROWS = 8
_BESIDE, _MOST_ASKED = 6, 24
"""Columns that are asked about side by side, and in all."""
_HELP = "Choose what the column holds, or type it: any measure with its cutoff, such as MRR@5."
_OPEN = 2
"""Files whose beginning is shown at once; more are folded away."""


def previews(found: Sequence[Preview], decided: Options) -> Options:
    """Show the beginning of every file and ask what is open.

    Returns:
        `decided` with rows and columns of tables as the user says, the split of a BEIR collection, the sheet,
        and the files to leave out.
    """
    skip = frozenset(_left_out(found))
    tables: dict[str, TableAs] = {}
    chosen: dict[str, str] = {}
    for place, each in enumerate(found):
        if each.name in skip:
            continue
        title = f"**{plain(each.name)}** · {plain(each.title) or 'not recognised'} · {weight(each.bytes)}"
        icon = ":material/error:" if each.problem else ":material/description:"
        with st.expander(title, expanded=len(found) <= _OPEN or bool(each.choices), icon=icon):
            if (said := _map_columns(each, place)) is not None:
                tables[each.name] = said
            _rows(each.rows, place)
        chosen |= _choose(each.choices, place)
    return replace(
        decided,
        tables=tables,
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
        st.dataframe(upright(rows.head(_ROWS)), hide_index=True, width="stretch", key=f"look{place}")


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


def _map_columns(each: Preview, place: int) -> TableAs | None:
    """Ask what a row is, and under each column what it means; what is recognised is chosen already."""
    if not each.columns:
        return None
    row: Row | None = st.segmented_control(
        "One row is",
        list(mapping.ROWS),
        default=each.row,
        format_func=mapping.ROWS.__getitem__,
        key=f"row{place}",
    )
    row = row or each.row
    known = mapping.columns_of(each, row)
    chosen: dict[str, str] = {}
    asked = each.columns[:_MOST_ASKED]
    boxes: list[DeltaGenerator] = []
    for position, column in enumerate(asked):
        boxes = boxes or st.columns(min(_BESIDE, len(asked)))
        options = mapping.choices(row, known, column)
        chosen[column] = boxes.pop(0).selectbox(
            plain(column) or "(no name)",
            options,
            index=options.index(known.get(column, mapping.LEFT_OUT)),
            format_func=mapping.words,
            accept_new_options=True,
            key=f"map{place}_{row}_{position}",
            help=_HELP if position == 0 else None,
        )
    if more := len(each.columns) - len(asked):
        st.caption(
            f"{count(more, 'more column')} as recognised; `--column` on the command line maps them too."
        )
    for meaning in mapping.twice(chosen):
        st.warning(f"Two columns mean {plain(meaning)}: one is taken.", icon=":material/warning:")
    return mapping.said(each, row, chosen)
