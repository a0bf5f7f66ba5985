"""What a visitor offers for import: files that are dropped, or paths where the dashboard is their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.errors import InputError
from core.importers import TEMPLATES, Offered
from core.ui import access
from core.ui.shell import show_error

LARGE = 64 << 20
"""Bytes from which on an import is read in the background, with progress."""


def offered() -> list[Offered]:
    """The files that were dropped and the paths that were typed; empty until there are any.

    Raises:
        AccessError: If the visitor may not import; what is typed here is read on this machine.
    """
    access.require()
    dropped: Sequence[Any] = (
        st.file_uploader(
            "Files",
            accept_multiple_files=True,
            help="Rankings, judgements, corpora, tables, output of evaluation tools: see page Formats. "
            "Plain, .gz or .zip; folders as .zip.",
        )
        or []
    )
    return [*dropped, *_paths()]


def templates() -> None:
    """Tables to fill in, one for each thing that a row may be."""
    with st.container(horizontal=True):
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
    with st.expander("Larger than an upload: a path on this machine"):
        typed = st.text_area(
            "Paths",
            key="_paths",
            height=80,
            placeholder="/data/runs/bm25.trec.gz",
            help="Files or folders of the machine that runs the dashboard, one a line. They are read where "
            "they are, and may be larger than memory.",
        )
    paths: list[Offered] = []
    for line in typed.splitlines():
        path = Path(line.strip()).expanduser()
        if line.strip() and not path.exists():
            show_error(InputError("There is no such file or folder.", where=line.strip()[:200]))
        elif line.strip():
            paths.append(path)
    return paths


def size(item: Any) -> int:
    """Bytes of what was offered."""
    if not isinstance(item, os.PathLike):
        return int(item.size)
    path = Path(item)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file() and not each.is_symlink())


def large(files: Sequence[Any]) -> bool:
    """Whether reading them takes so long, or so much memory, that it is done in the background."""
    return sum(map(size, files)) > LARGE


def mark(item: Any) -> bytes:
    """What identifies the content of what was offered."""
    if not isinstance(item, os.PathLike):
        return bytes(item.getvalue())
    path = Path(item)
    changed = max((each.stat().st_mtime_ns for each in [path, *path.rglob("*")]), default=0)
    return f"{path.absolute()} {size(item)} {changed}".encode()
