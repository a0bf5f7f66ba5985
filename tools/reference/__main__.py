"""Writes docs/reference from the code.

    python -m tools.reference [--check]

writes every page that differs (`make docs`); with --check it writes nothing, and ends with exit code 1 if one
is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence

from tools.reference.pages import FOLDER, stale, written


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the stale pages, or list them."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a page is stale"
    )
    check = parser.parse_args(arguments).check
    pages = written()
    names = stale(pages)
    if not check:
        _write(pages, names)
    _say(f"{name}: {'stale; run make docs' if check else 'written'}" for name in names)
    return int(check and bool(names))


def _write(pages: Mapping[str, str], names: Iterable[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        (FOLDER / name).write_text(pages[name], encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"docs/reference/{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
