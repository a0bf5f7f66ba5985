"""Folders that hold a saved index: written whole or not at all, and checked before they are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from core.errors import InputError
from core.records import JsonMap

FORMAT = 1
_ABOUT = "about.json"


@contextmanager
def new_folder(path: Path, kind: str, about: JsonMap) -> Iterator[Path]:
    """A folder to write into, which takes its name when the block ends without an error.

    Args:
        path: Where it will be; replaced if it exists.
        kind: What it holds, for `about_folder`.
        about: Anything JSON that a reader needs before the other files.

    Yields:
        The folder beside `path` to write into.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    partial.mkdir()
    try:
        yield partial
        text = json.dumps({"format": FORMAT, "kind": kind, **about}, ensure_ascii=False, indent=1)
        (partial / _ABOUT).write_text(text + "\n", encoding="utf-8")
        if path.exists():
            shutil.rmtree(path)
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def about_folder(path: Path, kind: str) -> dict[str, Any]:
    """What was written about a folder.

    Args:
        path: The folder.
        kind: What it must hold.

    Returns:
        The mapping given to `new_folder`, with "format" and "kind".

    Raises:
        InputError: If there is no such folder, or it holds something else or another format.
    """
    try:
        about = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict) or (about.get("format"), about.get("kind")) != (FORMAT, kind):
        found = "nothing" if about is None else "something else"
        raise InputError(f"Found {found} instead of a saved {kind}.", where=str(path), do="Build it again.")
    return about
