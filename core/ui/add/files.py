"""A block for each file: its recognised format, columns and choices; and the files that may be offered."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import InputError
from core.importers import FORMATS, TEMPLATES, Offered, Options, Preview, RowMeaning, TableAs, preview
from core.ui import access, cache
from core.ui.shell import show_error
from core.views.text import count, format_bytes, plain, shorten, upright
from core.work.imports import words
from core.work.imports.words import on_page

SKIP = "_left_out"
_ROWS, _VALUES = 8, 4  # Rows shown for a file, and values under the meaning of a column
_WHOLE = 8  # Maximum rows of a table whose values are all shown
_BESIDE, _MOST_ASKED = 5, 25  # Maximum columns asked about side by side, and in total
_BLOCKS = 12  # Maximum files with separate blocks; above that, only those with a problem have one
_WIDE = 28
_CHOICES: Mapping[str, tuple[str, Sequence[str]]] = {
    "split": ("Split", ["all"]),
    "sheet": ("Sheet", []),
    "tasks": ("Tasks", []),
}
"""Questions about a file that contains several: their title, and options besides the file's own."""
_HELP = "Choose the meaning of the column, or type it: any measure with its cutoff, such as MRR@5."


def blocks(seen: Sequence[Preview], decided: Options) -> tuple[Options, dict[str, DeltaGenerator]]:
    """Show the beginning of every file and ask the open questions.

    Returns:
        `decided` with the user's rows and columns of tables, the split of a BEIR collection, the sheet,
        and the files to leave out; and the container of each file for its problems.
    """
    skip = frozenset(_left_out(seen))
    tables: dict[str, TableAs] = {}
    chosen: dict[str, str] = {}
    formats: dict[str, str] = {}
    places: dict[str, DeltaGenerator] = {}
    for place, file in enumerate(seen):
        if file.name in skip or (place >= _BLOCKS and not file.problem):
            continue
        row = _head(file, place, alone=len(seen) == 1)
        places[file.name] = st.container()
        if format_ := _format(file, place):
            formats[file.name] = format_
        if (said := _columns(file, row, place)) is not None:
            tables[file.name] = said
        for what, (title, first) in _CHOICES.items():
            if options := file.choices.get(what):
                chosen[what] = st.selectbox(title, [*first, *options], key=f"{what}{place}", width=320)
    if more := len(seen) - len(places) - len(skip):
        st.caption(f"And {count(more, 'more file')}.")
    return replace(
        decided,
        tables=tables,
        formats=formats,
        skip=skip,
        split=chosen.get("split"),
        sheet=chosen.get("sheet"),
        all_tasks=chosen.get("tasks") == "all",
    ), places


def problems(seen: Sequence[Preview], places: Mapping[str, DeltaGenerator], skip: frozenset[str]) -> bool:
    """Show in the block of a file why it cannot be read; return whether there is such a file."""
    wrong = [file for file in seen if file.problem and file.name not in skip]
    for file in wrong:
        place = places.get(file.name) or st.container()
        place.error(plain(on_page(file.problem)), icon=":material/error:")
    return bool(wrong)


def leave_out(*names: str) -> None:
    """Leave the chosen files out from the next script run on."""
    st.session_state[SKIP] = list(dict.fromkeys([*st.session_state.get(SKIP, ()), *names]))


def _left_out(seen: Sequence[Preview]) -> list[str]:
    """Return the files that the user has left out, if there are several."""
    names = list(dict.fromkeys(file.name for file in seen))
    left = [name for name in st.session_state.get(SKIP, ()) if name in names]
    if len(seen) < 2 or not (left or len(seen) > _BLOCKS):
        return []
    st.session_state[SKIP] = left
    return st.multiselect("Left out", names, key=SKIP, placeholder="nothing")


def _head(file: Preview, place: int, *, alone: bool) -> RowMeaning | None:
    """Show name, format and size of a file, the kind of its rows, and the button that leaves it out."""
    row = file.row
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(file.name)}**", width="content")
        title = f"{file.title or 'unknown format'}, {format_bytes(file.bytes)}"
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


def _format(file: Preview, place: int) -> str | None:
    """Ask for the format of an ambiguous file; None until it is chosen."""
    if not (formats := file.choices.get("format")):
        return None
    chosen: str | None = st.segmented_control(
        f"What does {plain(file.name)} hold?",
        formats,
        format_func={known.name: known.title for known in FORMATS}.__getitem__,
        key=f"format{place}",
    )
    return chosen


def _columns(file: Preview, row: RowMeaning | None, place: int) -> TableAs | None:
    """Ask what each column means, above it; recognised columns are preselected."""
    if not file.columns:
        return None
    stacks = words.stack_columns(file, row)
    cells = _cells(place) if stacks else None
    chosen = dict(_meanings(file, row, place))
    if more := len(file.columns) - len(chosen):
        st.caption(f"{count(more, 'more column')} as recognised; the command import maps these too.")
    for meaning in words.twice(chosen):
        st.warning(f"Two columns mean {plain(meaning)}: one is taken.", icon=":material/warning:")
    return words.said(file, row, chosen, cells)


def _cells(place: int) -> str | None:
    """Ask once what the cells contain if each column is a stack."""
    meaning: str | None = st.selectbox(
        "Each column is a stack? Then its cells hold",
        words.OF_QUERIES,
        index=None,
        format_func=words.words,
        placeholder="each column means something else",
        accept_new_options=True,
        on_change=_open_meant,
        args=(f"cells{place}", words.OF_QUERIES),
        key=f"cells{place}",
        help=_HELP,
        width=320,
    )
    return meaning


def _open_meant(key: str, options: Sequence[str]) -> None:
    """Open the option that matches a typed text (a callback)."""
    typed = st.session_state[key]
    if typed:
        st.session_state[key] = words.meant(typed, options)


def _meanings(file: Preview, row: RowMeaning | None, place: int) -> Iterator[tuple[str, str]]:
    """Yield columns of a table with the meanings set by the user, each above its first values."""
    known = words.columns_of(file, row)
    asked = file.columns[:_MOST_ASKED]
    boxes: list[DeltaGenerator] = []
    for position, column in enumerate(asked):
        boxes = boxes or st.columns(min(_BESIDE, len(asked)), gap="small")
        with boxes.pop(0):
            options, key = words.choices(row, known, column), f"map{place}_{row}_{position}"
            meaning = st.selectbox(
                plain(column) or "(no name)",
                options,
                index=options.index(known.get(column, words.LEFT_OUT)),
                format_func=words.words,
                accept_new_options=True,
                on_change=_open_meant,
                args=(key, options),
                key=key,
                help=_HELP if position == 0 else None,
            )
            if column in file.rows:
                shown = _WHOLE if file.rows.height <= _WHOLE else _VALUES
                values = file.rows[column].head(shown).fill_null("").to_list()
                st.markdown("  \n".join(plain(shorten(str(value), _WIDE)) or "–" for value in values))
            yield column, meaning


LARGE = 64 << 20  # Bytes above which an import is read in the background, with progress


def offered() -> list[Offered]:
    """Return the dropped files and the typed paths; empty until there are any.

    Raises:
        AccessError: If the visitor may not import, as a typed path is read on this machine.
    """
    access.require()
    dropped: Sequence[Any] = (
        st.file_uploader("Files", accept_multiple_files=True, label_visibility="collapsed") or []
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(words.EMPTY, width="stretch")
        paths = _paths()
        with st.popover("Templates", icon=":material/table:"):
            _templates()
    return [*dropped, *paths]


def _templates() -> None:
    """Offer downloadable templates, one for each kind of row."""
    st.caption("A table to fill in; as it is, it can be added to look around.")
    for row, template in TEMPLATES.items():
        st.download_button(
            template.title,
            template.text,
            template.file,
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"template_{row}",
        )


def _paths() -> list[Offered]:
    """Return files and folders of this machine, which are read in place.

    This is for data too large to upload.
    """
    with st.popover("A path on this machine", icon=":material/folder_open:"):
        typed: list[str] = []
        while not typed or typed[-1]:  # an empty field follows the last filled one
            field = st.text_input(
                "Another path" if typed else "Path",
                key=f"_path{len(typed)}",
                placeholder="/data/runs/bm25.trec.gz",
                help="A file or folder of the machine that runs the dashboard; it is read where it is, and "
                "may be larger than memory.",
            )
            typed.append(field.strip())
    paths: list[Offered] = []
    for line in filter(None, typed):
        path = Path(line).expanduser()
        if path.exists():
            paths.append(path)
        else:
            show_error(InputError("There is no such file or folder.", where=line[:200]))
    return paths


def large(items: Sequence[Any]) -> bool:
    """Return whether reading files takes so much time or memory that it runs in the background."""
    return sum(map(_size, items)) > LARGE


def fingerprint(items: Sequence[Any], *decided: object) -> str:
    """Return a key of the files offered and the decisions about them."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        content = item.getvalue() if not isinstance(item, os.PathLike) else _as_it_lies(Path(item))
        digest.update(item.name.encode())
        digest.update(hashlib.blake2b(content).digest())
    digest.update(repr(decided).encode())
    return digest.hexdigest()


def looked(items: Sequence[Any], options: Options) -> tuple[Preview, ...]:
    """Return the beginning of every file, once per set of files and decisions."""
    return _looked(fingerprint(items, options), items, options)


@cache.cached("Looking at the files…", entries=4)
def _looked(fingerprint: str, _items: Sequence[Any], _options: Options) -> tuple[Preview, ...]:
    del fingerprint  # part of the cache key
    return preview(_items, _options)


def _size(item: Any) -> int:
    if not isinstance(item, os.PathLike):
        return int(item.size)
    path = Path(item)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def _as_it_lies(path: Path) -> bytes:
    """Return a key of a path's content without reading it."""
    changed = max((file.stat().st_mtime_ns for file in [path, *path.rglob("*")]), default=0)
    return f"{path.absolute()} {_size(path)} {changed}".encode()
