"""The formats that can be imported, generated from the importers so that it cannot go stale."""

from __future__ import annotations

import polars as pl

from core.importers import FORMATS
from core.importers.base import Format
from core.views import text

_ALWAYS = (
    "Of every format: what is left out is counted and named with its reason; a missing figure stays missing; "
    "files that are not understood are refused with the format that they come nearest to; ids and texts are "
    "kept as they are."
)

_TAKEN = "taken"


def headline() -> tuple[str, str]:
    """The page's answer, and what holds for every format."""
    tables = {table for each in FORMATS for table in each.brings}
    return f"{text.count(len(FORMATS), 'format')} can be imported, {len(tables)} kinds of data.", _ALWAYS


def format_table() -> pl.DataFrame:
    """All formats, one row each.

    Returns:
        format, as (name for ``--as``), brings, recognised, units, left_out; all of them text, empty where
        there is nothing to say.
    """
    return pl.DataFrame(
        {
            "format": [each.title for each in FORMATS],
            "as": [each.name for each in FORMATS],
            "brings": [", ".join(each.brings) for each in FORMATS],
            "recognised": [_recognised(each) for each in FORMATS],
            "units": [each.units for each in FORMATS],
            "left_out": [" ".join(each.traps) for each in FORMATS],
        },
        schema=dict.fromkeys(("format", "as", "brings", "recognised", "units", "left_out"), pl.String),
    )


def matrix_table() -> pl.DataFrame:
    """Formats against tables: what of each format fills a table, "yes" where it does not say; else empty."""
    tables = list(dict.fromkeys(table for each in FORMATS for table in each.brings))
    columns = {
        table: [each.takes.get(table, "yes") if table in each.brings else "" for each in FORMATS]
        for table in tables
    }
    return pl.DataFrame({"format": [each.title for each in FORMATS], **columns})


def explained(name: str) -> list[tuple[str, str]]:
    """Everything about one format, as pairs of what and how.

    Args:
        name: A name of `FORMATS`.
    """
    each = next(each for each in FORMATS if each.name == name)
    pairs = [("recognised by", _recognised(each))]
    pairs += [*each.takes.items()]
    pairs += [(table, _TAKEN) for table in each.brings if table not in each.takes]
    pairs += [("units", each.units)] if each.units else []
    return [*pairs, *(("left out", trap) for trap in each.traps)]


def described(name: str) -> list[tuple[str, str]]:
    """As `explained`, with what needs no explanation in one pair.

    Args:
        name: A name of `FORMATS`.
    """
    first, *rest = explained(name)
    plainly = [what for what, how in rest if how == _TAKEN]
    pairs = [("taken as they are", ", ".join(plainly))] if plainly else []
    return [first, *pairs, *(pair for pair in rest if pair[1] != _TAKEN)]


def formats_markdown() -> str:
    """One row per format for the README: what it is, its name, what it brings."""
    lines = ["| format | `--as` | brings |", "|---|---|---|"]
    lines += [f"| {each.title} | `{each.name}` | {', '.join(each.brings)} |" for each in FORMATS]
    return "\n".join(lines)


def _recognised(each: Format) -> str:
    return each.recognised or (each.sniff.__doc__ or "").strip().split("\n")[0].rstrip(".")
