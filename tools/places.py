"""Writes what every place of a store says, as JSON, so that ``diff -r`` compares two checkouts.

``python -m tools.places FOLDER`` asks ``page … --format json`` of every section for every workspace with runs
in the store (``CLQ_STORE``). A checkout that lacks this file runs that of another, on the same store:
``PYTHONPATH=. python OTHER/tools/places.py FOLDER``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from core.cli.app import app
from core.store import Store
from core.views.pages import PAGES


def workspaces() -> list[str]:
    """Return the collections of the default store that have runs, sorted."""
    return sorted(Store.open(None).read().runs()["collection_id"].unique())


def sections() -> Iterator[tuple[str, str]]:
    """Yield page and section of every place that the command line knows."""
    for page in PAGES.values():
        if page.home:
            yield from ((page.name, section.name) for section in page.drawn())


def said(page: str, section: str, collection: str) -> str:
    """Return what the command line says of a place, or the refusal that it prints instead."""
    named = ["--section", section] if section else []
    asked = ["page", page, *named, "--collection", collection, "--format", "json"]
    ended = CliRunner().invoke(app, asked)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.output


def write(folder: Path) -> int:
    """Write one file per workspace and place below a folder, and return their number."""
    files = 0
    for collection in workspaces():
        for page, section in sections():
            file = folder / collection / page / f"{section.replace('/', '-') or 'page'}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(said(page, section, collection), encoding="utf-8")
            files += 1
    return files


def main(given: list[str]) -> int:
    """Write all places into the folder that is named."""
    if len(given) != 1:
        sys.stderr.write("usage: python -m tools.places FOLDER\n")
        return 2
    sys.stdout.write(f"{write(Path(given[0]))} places in {given[0]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
