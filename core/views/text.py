"""Numbers and names as people read them: fixed decimals, units, intervals, unknown shown as unknown.

Tables as files: CSV that a spreadsheet cannot be tricked with, and Parquet with every value as it is.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
import polars.selectors as cs
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from core.written import (
    CONTROLS,
    MINUS,
    NOT_APPLICABLE,
    UNIT,
    UNKNOWN,
    CostUnit,
    isolated,
    known,
    ms,
    score,
    usd,
)

__all__ = ("MINUS", "NOT_APPLICABLE", "UNIT", "UNKNOWN", "CostUnit", "known", "ms", "score", "usd")


Written = Callable[[float | None], str]
"""What writes a number as people read it."""


def interval(low: float | None, high: float | None) -> str:
    """Return an interval of qualities, `` [0.750, 0.850]`` with a leading blank; empty when there is none."""
    if low is None or high is None or not (known(low) and known(high)):
        return ""
    return f" [{score(low)}, {score(high)}]"


def signed(value: float, written: Callable[[float], str] = score) -> str:
    """Return a difference with its sign: ``+0.031``, ``−0.500``; none where it is written as 0."""
    shown = written(abs(value))
    return shown if shown == written(0.0) else f"{MINUS if value < 0 else '+'}{shown}"


def cost_unit(table: pl.DataFrame) -> CostUnit:
    """Return how a table of stacks says its costs: as it says, else as suits them."""
    if table.height and set(UNIT) <= set(table.columns):
        return CostUnit.of(table.select(UNIT).row(0, named=True))
    known = [name for name in ("cost", "cost_least") if name in table.columns]
    return CostUnit.among(cost for name in known for cost in table[name])


def dollars_of(table: pl.DataFrame) -> Written:
    """Return what writes costs as those of a table of stacks are said, with their unit."""
    per = table["cost_per"].first() if "cost_per" in table.columns and table.height else None
    return partial(cost_unit(table).usd, of="correct" if per == "correct answer" else "")


def cost_of(row: Mapping[str, Any], *, bare: bool = False) -> str:
    """Return the cost of a row of the stack table, in its unit.

    ``≥ $1.25 / 1k, embedding not priced`` where a stage of it is not known.

    Args:
        bare: Without the unit, which stands elsewhere.
    """
    said = CostUnit.of(row)
    of = "correct" if row.get("cost_per") == "correct answer" else ""
    written = said.bare if bare else partial(said.usd, of=of)
    return cost(row["cost"], row["cost_least"], row["cost_missing"], written)


def cost(value: float | None, least: float | None, missing: str | None, written: Written) -> str:
    """Return a cost, or what it is at least and what is missing, as dollars are `written`."""
    return written(value) if least is None else f"≥ {written(least)}, {missing}"


def cost_of_many(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return `cost_of` a row without its unit, and of how many it is: ``1,000`` or ``million``."""
    return cost_of(row, bare=True), CostUnit.of(row).many


def told(what: str, written: str) -> str:
    """Return a number as it is written, with what it is where that is not known: ``latency unknown``."""
    return f"{what} {written}" if written == UNKNOWN else written


def percent(value: float | None) -> str:
    """Return a share in 0..1 as ``85.2 %``."""
    return f"{100 * value:.1f} %" if value is not None and known(value) else NOT_APPLICABLE


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 passage``, ``3,512 queries``."""
    several = many or (f"{one[:-1]}ies" if one.endswith("ry") else f"{one}s")
    return f"{number:,} {one if number == 1 else several}"


def weight(size: float) -> str:
    """Return bytes in words: ``512 bytes``, ``4.6 kB``, ``3.8 MB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return count(int(size), "byte")


def more_questions(low: float | None, likely: float | None, high: float | None) -> str:
    """Say how many questions would show an observed difference (`core.stats.significance.needed_limits`).

    Takes the fewest, the number itself and the most; None = no number does.
    """
    if likely is None or low is None:
        return "No number of questions shows a difference of 0."
    if high is None:
        return f"About {likely:,.0f} questions would show it, at least {low:,.0f}; it may be none."
    return f"Plan for {high:,.0f} questions to show it with 80 % power; {low:,.0f} may do."


def sample(n: object) -> str:
    """Return the number of queries that a mean rests on: ``n = 2,837``, or ``n unknown``.

    Args:
        n: The number, or the row of a table that holds it, with clusters and cluster_kind where the queries
            come in groups: ``n = 64 from 25 documents``.
    """
    if isinstance(n, Mapping):
        clusters = n.get("clusters")
        of = "" if clusters is None else f" from {count(clusters, n['cluster_kind'])}"
        return f"{sample(n['n'])}{of}"
    return f"n = {n:,}" if isinstance(n, int) else f"n = {n}" if n is not None else f"n {UNKNOWN}"


def escape(text: str) -> str:
    """Make untrusted text safe for Plotly, which renders a few HTML tags and links in its labels."""
    return isolated(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str) -> str:
    """Make untrusted text safe inside Markdown, on one line.

    Every character with a meaning there is escaped, in a text that has any that could be meant: screen
    readers read the labels of widgets with the backslashes. Streamlit turns addresses into links, icon
    names into icons and ``->`` into an arrow after the escapes are gone; an invisible word joiner keeps it
    from that.
    """
    line = isolated(" ".join(text.splitlines()))
    if _HARMLESS.fullmatch(line) and not _REPLACED_LATE.search(line):
        return line
    joined = _REPLACED_LATE.sub(lambda match: "".join(char + _WORD_JOINER for char in match[0]), line)
    return "".join(f"\\{char}" if char in _MARKDOWN else char for char in joined)


_MARKDOWN = frozenset("\\`*_{}[]()<>#+-.!|~$:&^=\"'")
_HARMLESS = re.compile(r"(?!\d+[.)](?: |$))[^\W_](?:[^\W_]|[ ,;%@/()+=?.…·⊕≈–×-])*")
"""Words with signs that mean nothing within a line that begins with a letter or a digit."""
_WORD_JOINER = "\u2060"
_REPLACED_LATE = re.compile(
    r"://|www\.|@(?=[-\w]+\.[-\w])|:(?=(?:material/)?\w+:)|<?->|<-|-{2,}|[<>~]=", re.IGNORECASE
)


_CALM = re.compile(r"(?![0-9]+[.)] )[^\W_](?:[^\W_]|[ ,.%/·]|[-+](?![-+>]))*")


def label(text: str) -> str:
    """Return a name as a widget's label.

    As it is where Markdown leaves it alone, so that it is read out well.
    """
    calm = _CALM.fullmatch(text) is not None and "www." not in text.lower()
    return text if calm else plain(text)


def shorten(text: str, length: int = 60) -> str:
    """Cut a text to a length, with an ellipsis where something was cut."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def quoted(query_id: str, question: str | None) -> str:
    """Return a query by its id and the start of its question, where that is known."""
    start = shorten(" ".join((question or "").split()))
    return f"{query_id} “{start}”" if start else query_id


def duration(seconds: float) -> str:
    """Return a time as people say it: 40 s, 12 min, 3.5 h, 2.1 d."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36)):
        if seconds < most * length:
            return f"{seconds / length:.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{seconds / 86_400:.1f} d"


_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""How a text begins that a spreadsheet runs; some take the wide signs of East Asian keyboards too."""


def to_csv(rows: pl.DataFrame) -> bytes:
    """Write a table as CSV (UTF-8, with a header row).

    Text that a spreadsheet would read as a formula gets an apostrophe in front, names of columns too; numbers
    stay as they are; nested values become JSON.
    """
    return defused(rows).write_csv().encode()


def to_parquet(rows: pl.DataFrame) -> bytes:
    """Write a table as Parquet: types, nested values and texts as they are."""
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
    """Return the table without the characters in its texts that say in which direction to read."""
    lists = [name for name, dtype in rows.schema.items() if dtype == pl.List(pl.String)]
    return rows.with_columns(
        cs.string().str.replace_all(f"[{CONTROLS}]", ""),
        *(pl.col(name).list.eval(pl.element().str.replace_all(f"[{CONTROLS}]", "")) for name in lists),
    )


def _safe_names(names: Sequence[str]) -> dict[str, str]:
    """Return new names for the columns whose names a spreadsheet would run; all stay distinct."""
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
    """Return a table of texts for a terminal.

    Args:
        heads: What stands above each column, and whether numbers stand in it.
        rows: Texts of others may stand in any cell: nothing in one is read as markup.
    """
    table = Table(box=SIMPLE_HEAD, show_header=any(name for name, _ in heads))
    for name, numeric in heads:
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
