"""What a visitor offers: files that are dropped, or paths where the dashboard is their own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.errors import InputError
from core.importers import TEMPLATES, Offered, Options, Preview, preview
from core.ui import cache, door
from core.ui.shell import show_error
from core.views.add import words

LARGE = 64 << 20
"""Bytes from which on an import is read in the background, with progress."""


def offered() -> list[Offered]:
    """The files that were dropped and the paths that were typed; empty until there are any.

    Raises:
        AccessError: If the visitor may not import; what is typed here is read on this machine.
    """
    door.require()
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
    """Tables to fill in, one for each thing that a row may be."""
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
    """Files and folders of this machine, which are read where they are: for what is too large to upload."""
    with st.popover("A path on this machine", icon=":material/folder_open:"):
        typed: list[str] = []
        while not typed or typed[-1]:  # an empty field follows the last that is filled
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
    """Whether reading them takes so long, or so much memory, that it is done in the background."""
    return sum(map(_size, items)) > LARGE


def fingerprint(items: Sequence[Any], *decided: object) -> str:
    """What identifies what was offered and what was decided about it."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        digest.update(item.name.encode())
        digest.update(hashlib.blake2b(_mark(item)).digest())
    digest.update(repr(decided).encode())
    return digest.hexdigest()


def looked(items: Sequence[Any], options: Options) -> tuple[Preview, ...]:
    """The beginning of every file, once per set of files and decisions."""
    return _looked(fingerprint(items, options), items, options)


@cache.cached("Looking at the files…", entries=4)
def _looked(fingerprint: str, _items: Sequence[Any], _options: Options) -> tuple[Preview, ...]:
    del fingerprint  # the key
    return preview(_items, _options)


def _size(item: Any) -> int:
    """Bytes of what was offered."""
    if not isinstance(item, os.PathLike):
        return int(item.size)
    path = Path(item)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def _mark(item: Any) -> bytes:
    """What identifies the content of what was offered."""
    if not isinstance(item, os.PathLike):
        return bytes(item.getvalue())
    path = Path(item)
    changed = max((file.stat().st_mtime_ns for file in [path, *path.rglob("*")]), default=0)
    return f"{path.absolute()} {_size(item)} {changed}".encode()
