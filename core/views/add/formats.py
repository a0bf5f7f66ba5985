"""The formats that can be imported, generated from the importers so that it cannot go stale."""

from __future__ import annotations

import polars as pl

from core.importers import FORMATS
from core.importers.base import Format

ALWAYS = (
    "Of every format, what is left out is counted and named with its reason; a missing figure stays missing; "
    "ids and texts are kept as they are."
)


def format_table() -> pl.DataFrame:
    """All formats, one row each.

    Returns:
        format, as (name for ``--as``), brings, recognised, units, left_out; all of them text, empty where
        there is nothing to say.
    """
    rows = [
        (
            known.title,
            known.name,
            ", ".join(known.brings),
            _recognised(known),
            known.units,
            " ".join(known.traps),
        )
        for known in FORMATS
    ]
    names = ("format", "as", "brings", "recognised", "units", "left_out")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def described(name: str) -> list[tuple[str, str]]:
    """Everything about one format, as pairs of what and how.

    Args:
        name: A name of `FORMATS`.
    """
    known = next(known for known in FORMATS if known.name == name)
    plainly = [table for table in known.brings if table not in known.takes]
    return [
        ("recognised by", _recognised(known)),
        *([("taken as they are", ", ".join(plainly))] if plainly else []),
        *known.takes.items(),
        *([("units", known.units)] if known.units else []),
        *(("left out", trap) for trap in known.traps),
    ]


def formats_markdown() -> str:
    """One row per format for the README: what it is, its name, what it brings."""
    lines = ["| format | `--as` | brings |", "|---|---|---|"]
    lines += [f"| {known.title} | `{known.name}` | {', '.join(known.brings)} |" for known in FORMATS]
    return "\n".join(lines)


def _recognised(known: Format) -> str:
    return known.recognised or (known.sniff.__doc__ or "").strip().split("\n")[0].rstrip(".")
