"""Texts for pages and files: safe in Markdown, in charts and in spreadsheets.

Numbers are formatted by `core.number_format`, whose names are re-exported here.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

import polars as pl
import polars.selectors as cs
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from core.bidi import CONTROLS, isolated
from core.number_format import (
    MINUS,
    NOT_APPLICABLE,
    UNIT,
    UNKNOWN,
    CostUnit,
    Written,
    cost,
    cost_of,
    cost_of_many,
    cost_unit,
    count,
    dollars_of,
    duration,
    format_bytes,
    interval,
    known,
    ms,
    percent,
    quoted,
    sample,
    score,
    shorten,
    signed,
    told,
    usd,
)

__all__ = (
    "MINUS",
    "NOT_APPLICABLE",
    "UNIT",
    "UNKNOWN",
    "CostUnit",
    "Written",
    "cost",
    "cost_of",
    "cost_of_many",
    "cost_unit",
    "count",
    "dollars_of",
    "duration",
    "format_bytes",
    "interval",
    "known",
    "ms",
    "percent",
    "quoted",
    "sample",
    "score",
    "shorten",
    "signed",
    "told",
    "usd",
)
_MARKDOWN = frozenset("\\`*_{}[]()<>#+-.!|~$:&^=\"'")
_HARMLESS = re.compile(r"(?!\d+[.)](?: |$))[^\W_](?:[^\W_]|[ ,;%@/()+=?.…·⊕≈–×-])*")
"""Words with signs that mean nothing within a line that begins with a letter or a digit."""
_WORD_JOINER = "\u2060"
_REPLACED_LATE = re.compile(
    r"://|www\.|@(?=[-\w]+\.[-\w])|:(?=(?:material/)?\w+:)|<?->|<-|-{2,}|[<>~]=", re.IGNORECASE
)
_CALM = re.compile(r"(?![0-9]+[.)] )[^\W_](?:[^\W_]|[ ,.%/·]|[-+](?![-+>]))*")
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""Start of a text that a spreadsheet runs; some also accept the wide signs of East Asian keyboards."""


def more_questions(low: float | None, likely: float | None, high: float | None) -> str:
    """Say how many questions would prove an observed difference (`core.stats.significance.needed_limits`).

    Takes the lower bound, the estimate and the upper bound; None = no number would.
    """
    if likely is None or low is None:
        return "No number of queries shows a difference of 0."
    if high is None:
        return f"About {likely:,.0f} queries would show it, at least {low:,.0f}; no number may."
    return f"{low:,.0f} to {high:,.0f} queries would show it (80 % power)."


def capital(words: str) -> str:
    """Begin words with a capital."""
    return words[:1].upper() + words[1:]


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """List the first names and how many more there are; a single one more is named instead."""
    shown = len(names) if len(names) == most + 1 else most
    return between.join(names[:shown]) + (f" and {len(names) - shown:,} more" if names[shown:] else "")


def unlike(names: Sequence[str], length: int) -> list[str]:
    """Cut names to a length; if some are then equal, leave out the words that all names begin with."""
    cut = [shorten(name, length) for name in names]
    if len(set(cut)) == len(set(names)):
        return cut
    words = [name.split() for name in names]
    alike = sum(1 for _ in takewhile(lambda first: len(set(first)) == 1, zip(*words, strict=False)))
    return [shorten(f"…{' '.join(own[min(alike, len(own) - 1) :])}", length) for own in words]


def escape(text: str) -> str:
    """Make untrusted text safe for Plotly, which renders a few HTML tags and links in its labels."""
    return isolated(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str) -> str:
    """Make untrusted text safe inside Markdown, on one line.

    Every character with a meaning there is escaped, if a text has any that could take effect: screen
    readers read the labels of widgets with the backslashes. Streamlit turns addresses into links, icon
    names into icons and ``->`` into an arrow after unescaping; an invisible word joiner prevents
    that.
    """
    line = isolated(" ".join(text.splitlines()))
    if _HARMLESS.fullmatch(line) and not _REPLACED_LATE.search(line):
        return line
    joined = _REPLACED_LATE.sub(lambda match: "".join(char + _WORD_JOINER for char in match[0]), line)
    return "".join(f"\\{char}" if char in _MARKDOWN else char for char in joined)


def label(text: str) -> str:
    """Return a name as a widget's label.

    It is unchanged if Markdown leaves it alone, so that screen readers read it well.
    """
    calm = _CALM.fullmatch(text) is not None and "www." not in text.lower()
    return text if calm else plain(text)


def to_csv(rows: pl.DataFrame) -> bytes:
    """Serialise a table as CSV (UTF-8, with a header row).

    Text that a spreadsheet would read as a formula gets a leading apostrophe, as do column names; numbers
    are unchanged; nested values become JSON.
    """
    return defused(rows).write_csv().encode()


def to_parquet(rows: pl.DataFrame) -> bytes:
    """Serialise a table as Parquet: types, nested values and texts unchanged."""
    file = io.BytesIO()
    rows.write_parquet(file)
    return file.getvalue()


def defused(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the table with flat columns and no text that a spreadsheet would run as a formula."""
    flat = rows.with_columns(_as_json(rows[name]) for name in cs.expand_selector(rows, cs.nested()))
    flat = upright(flat.with_columns((cs.categorical() | cs.enum()).cast(pl.String)))
    dangerous = cs.string().str.contains(_FORMULA)
    safe = flat.with_columns(
        pl.when(dangerous).then(pl.lit("'") + cs.string()).otherwise(cs.string()).name.keep()
    )
    return safe.rename(_safe_names(safe.columns))


def upright(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the table without the bidirectional control characters in its texts."""
    lists = [name for name, dtype in rows.schema.items() if dtype == pl.List(pl.String)]
    return rows.with_columns(
        cs.string().str.replace_all(f"[{CONTROLS}]", ""),
        *(pl.col(name).list.eval(pl.element().str.replace_all(f"[{CONTROLS}]", "")) for name in lists),
    )


def _safe_names(names: Sequence[str]) -> dict[str, str]:
    """Return new names for the columns whose names a spreadsheet would run; all remain distinct."""
    taken, renamed = set(names), {}
    for name in names:
        if re.match(_FORMULA, name):
            safe = f"'{name}"
            while safe in taken:
                safe = f"'{safe}"
            taken.add(safe)
            renamed[name] = safe
    return renamed


def _as_json(values: pl.Series) -> pl.Series:
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str)
        for value in values.to_list()
    ]
    return pl.Series(values.name, texts, dtype=pl.String)


def ruled(heads: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of texts for a terminal; numbers stay on one line.

    Args:
        heads: The heading of each column, and whether it contains numbers.
        rows: Any cell may contain others' text: none is read as markup.
    """
    table = Table(box=SIMPLE_HEAD, show_header=any(name for name, _ in heads))
    for name, numeric in heads:
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        table.add_row(*map(Text, row))
    return table
