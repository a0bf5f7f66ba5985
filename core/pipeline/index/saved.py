"""Folders with a saved index, checked before they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import read_json, replacing, write_json
from core.records import JsonMap

_FORMAT = 1
_ABOUT = "about.json"


@contextmanager
def new_folder(path: Path, kind: str, about: JsonMap) -> Iterator[Path]:
    """Yield a folder to write into, for `about_folder`.

    It gets its final name when the block ends without an error.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.mkdir()
        yield draft
        write_json(draft / _ABOUT, {"format": _FORMAT, "kind": kind, **about})


def about_folder(path: Path, *kinds: str) -> dict[str, Any]:
    """Return the metadata of a folder of one of these kinds; refuse any other folder."""
    about = read_json(path / _ABOUT)
    if about is None or about.get("format") != _FORMAT or about.get("kind") not in kinds:
        kind = "nothing" if about is None else "something else"
        do = "Build it again."
        raise InputError(f"Found {kind} instead of a saved {kinds[0]}.", where=str(path), do=do)
    return about
