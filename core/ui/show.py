"""Display elements of pages: the answer, the table behind a chart with its download."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import polars as pl
import streamlit as st

from core.analysis.workspace.comparable import MANY_HOLES, unjudged_words
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.number_format import SHARED_DIGITS, CostUnit
from core.ui import prices
from core.ui.address.state import PHONE
from core.ui.view import current_frame, current_page, find_view
from core.views import columns as cols
from core.views import text
from core.views.columns import Column, Rows
from core.views.text import plain, to_csv, to_parquet, upright
from core.views.units import in_ms, in_unit, unit_of
from core.views.words.choice import axis
from core.views.words.judging import provenance

UNJUDGED_ON = "confidence"  # The page that states what is unjudged
GRADED_ON = "decision"  # The page that states who graded the evidence
_PERCENT, _USD, _CHANGE = "%.1f %%", "%.3g", "%+.3g"
_DOLLARS = (_USD, _CHANGE)
_DECIMALS = re.compile(r"%\+?,?\.\df")
_SPLIT = re.compile(r" (?=[=:] \d)|(?<= [=:]) (?=\d)|(?<=\d) (?=(?:%|ms|s)\b|%)")
"""Blanks in a heading at which no line may break: in K = 50, 1 : 1.3, 7 ms."""
_WORD = re.compile(r"(?<!\S)(?=\S*\w\\?-\w)\S{1,24}(?!\S)")
"""Words of a heading with a hyphen, at which no line may break either: RA-nWG@10, rerank-2.5.

They are emphasised, which the style sheet draws like the rest: a copied name has nothing added."""
_WHOLE = 8  # Columns of a table visible without scrolling in a desktop window
_WHOLE_ON_PHONE = 2
_ON_PHONE = 140  # Pixels of a column of names on a phone
_LETTERS = 20  # Letters per line in it
_SEVERAL_LINES = 66  # Pixels of a row in which Streamlit wraps text: more than 4 rem
_CENTS = 0.1  # Dollars below which two decimals are too coarse
_FINEST = 9  # Maximum decimals of a column
ROWS_SHOWN = 100
"""Rows that a page sends to the browser; every one of them slows the repaint after a slider move."""
_FILES = (("CSV", "text/csv", to_csv), ("Parquet", "application/vnd.apache.parquet", to_parquet))


_APART = cols.Rows("set_apart", "name", cols.text("why", "not compared because"))


def head(
    answer: str, details: str = "", warning: str = "", caveats: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Draw the answer at the top of a page, replacing an earlier one.

    Args:
        answer: The answer; names in it may come from users and are shown as text.
        caveats: Other weaknesses, as a sentence keyed by the words of its chip; empty sentences are left out.
    """
    frame = current_frame()
    frame.headed = True
    with frame.head.container(gap="xsmall"):
        view = find_view()
        graded = view is not None and current_page().name == GRADED_ON
        given_by = provenance(view.snapshot, view.scope) if view is not None and graded else ""
        if above := " ".join(filter(None, (frame.question, plain(given_by)))):
            st.caption(above)
        whole = _WORD.sub(r"*\g<0>*", plain(_SPLIT.sub("\u00a0", answer)))
        counts = axis(view.quality) if view is not None and view.quality.name in answer else ""
        st.title(whole, anchor=False, help=plain(counts) or None)
        line = st.container(horizontal=True, gap="small", vertical_alignment="center")
        with line:
            if details:
                st.markdown(plain(details), width="content")
            if view is not None:
                prices.chip(view)
                _differing(view)
            _chips({**_grouped(view), **caveats})
            if warning:
                st.markdown(f":material/warning: {plain(warning)}", width="content")


def _grouped(view: View | None) -> dict[str, str]:
    """Return a chip if a workspace's questions come in groups: a few words, and the consequence."""
    said = "" if view is None else view.compared.grouped
    return {said.partition(":")[0]: said} if said else {}


def _differing(view: View) -> None:
    """Draw the differences between the workspace's runs, as a chip on pages that compare them.

    Unjudged passages of feasible stacks are shown only on Confidence.
    """
    left, compared = view.feasible, view.compared
    if compared.unjudged(left) and current_page().name != UNJUDGED_ON:
        compared = replace(compared, offers=())
    if not (compared.sentences or compared.offers) or not current_page().compares:
        return
    apart, many = compared.apart, compared.unjudged(left) > MANY_HOLES
    whose = unjudged_words(left, f"Top-{view.quality.k}", among=left.height) if many else ""
    said = filter(None, (whose, *compared.sentences, *compared.offers))
    sentences = [plain(sentence) for sentence in said]
    label = compared.chip(left)
    icon = "warning" if many else "balance"
    with st.popover(label, icon=f":material/{icon}:", type="tertiary", width="content"):
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
        if apart.height:
            table(apart, _APART)


def cards(*cards: tuple[str, str, str]) -> None:
    """Draw the numbers of a page's answer, at most four.

    Args:
        cards: Label, number and the small text below it; names in them may come from users.
    """
    row = st.container(horizontal=True, gap="small")  # two of them share it on a phone
    for label, value, note in cards:
        with row.container(border=True, gap=None, width="stretch", height="stretch"):
            st.metric(plain(label), plain(value))
            st.caption(plain(note) or "&nbsp;")


def _chips(sentences: Mapping[str, str]) -> None:
    """Draw a chip per sentence that is not empty."""
    for label, sentence in sentences.items():
        if sentence:
            with st.popover(plain(label), icon=":material/info:", type="tertiary", width="content"):
                st.markdown(plain(sentence))


def table(
    rows: pl.DataFrame,
    of: Rows,
    *,
    whole: pl.DataFrame | None = None,
    cells: Sequence[Mapping[str, str]] = (),
    **options: Any,
) -> Any:
    """Show a table and offer all of it as CSV and as Parquet; empty columns are hidden.

    Args:
        rows: The table; only declared columns are shown, all columns are downloaded.
        of: Its declaration.
        whole: The rows to download; None = the rows shown.
        cells: How single numbers are written, row by row, if a column mixes units.
        options: Passed to `st.dataframe`.

    Returns:
        The result of `st.dataframe` (the selection, if requested).
    """
    place = st.container()
    bar = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center")
    name, declared = of.name, of.columns
    if any(_holds(rows[each.name]) for each in of.more) and bar.toggle("more columns", key=f"more_{name}"):
        declared = of.every
    columns = configured([in_ms(each, rows) for each in declared if _holds(rows[each.name])])
    view = find_view()
    columns, told = _in_unit(rows, columns, None if view is None else text.cost_unit(view.table))
    # Arrow goes to the browser unchanged; a Polars frame would pass through pandas.
    shown = rows.head(ROWS_SHOWN).select(told.get(name, pl.col(name)) for name in columns)
    phone = st.session_state.get(PHONE)
    if len(columns) > (_WHOLE_ON_PHONE if phone else _WHOLE):  # the row's name stays in sight, if paler
        first = next(iter(columns))
        columns |= {first: _pinned(columns[first])}
    if phone:
        cut = {name for name, about in columns.items() if _wide(about)}
        columns = {
            name: {**about, "width": _ON_PHONE} if name in cut else about for name, about in columns.items()
        }
        if any(_long(shown[name]) for name in cut):  # a truncated name may equal another's
            options = {"row_height": _SEVERAL_LINES, **options}
    data, settings = _signed(upright(shown), columns, cells)
    result = place.dataframe(
        data,
        key=f"table_{name}",
        column_config={name: _same_digits(about, shown[name]) for name, about in settings.items()},
        hide_index=True,
        width="stretch",
        **{"placeholder": "–", **options},
    )
    if rows.height > ROWS_SHOWN:
        bar.caption(f"The first {ROWS_SHOWN:,} of {rows.height:,} rows; the download has all.")
    for label, mime, written in _FILES:
        bar.download_button(
            label,
            partial(written, rows if whole is None else whole),
            file_name=f"{name}.{label.lower()}",
            mime=mime,
            key=f"{label.lower()}_{name}",
            on_click="ignore",
            icon=":material/download:",
        )
    return result


def _in_unit(
    rows: pl.DataFrame, columns: Mapping[str, Any], said: CostUnit | None
) -> tuple[dict[str, Any], dict[str, pl.Expr]]:
    """Return columns with labels in the page's unit, and the values of converted columns.

    Args:
        said: The page's cost unit; None = the rows' own unit, or one that suits them.
    """
    labels = {name: about["label"] for name, about in columns.items() if _format(about) in _DOLLARS}
    said = said or unit_of(rows, labels)
    costs = {name: in_unit(rows, name, label, said) for name, label in labels.items()}
    shares = {name: pl.col(name) * 100.0 for name, about in columns.items() if _format(about) == _PERCENT}
    told = {
        name: {**columns[name], "label": said.label(label), "help": said.label(columns[name]["help"] or "")}
        for name, label in labels.items()
    }
    return {**columns, **told}, costs | shares


def _pinned(about: Any) -> Any:
    """Return the settings of a column that stays in place while others scroll; its label may fill it."""
    return {**(about if isinstance(about, Mapping) else {"label": about}), "pinned": True}


def _wide(about: Any) -> bool:
    """Return whether a column is narrowed on a phone, where numbers beside a long name must be visible."""
    width = about.get("width") if isinstance(about, Mapping) else None
    return width == "large" or (isinstance(width, int) and width > _ON_PHONE)


def _long(values: pl.Series) -> bool:
    return values.dtype == pl.String and (values.str.len_chars() > _LETTERS).any()


def _signed(
    shown: pl.DataFrame, columns: Mapping[str, Any], cells: Sequence[Mapping[str, str]]
) -> tuple[Any, Mapping[str, Any]]:
    """Return rows in display form, as the browser would write a hyphen for a minus sign."""
    arrow = shown.to_arrow(compat_level=pl.CompatLevel.oldest())
    forms = {name: _format(about) or "" for name, about in columns.items()}
    below = [name for name, form in forms.items() if _DECIMALS.fullmatch(form) and (shown[name] < 0).any()]
    if not below and not cells:
        return arrow, columns
    written = arrow.to_pandas().style
    for name in below:
        written = written.format(partial(_minus, form=forms[name][1:]), subset=[name], na_rep="–")
    for place, row in enumerate(cells):
        for name in row.keys() & columns.keys():
            written = written.format(partial(_said, words=row[name]), subset=([place], [name]))
    kind = {"type": "number", "format": None}  # the column remains numeric, and sorts as such
    names = {*below, *(name for row in cells for name in row)} & columns.keys()
    return written, {**columns, **{name: {**columns[name], "type_config": kind} for name in names}}


def _said(_: float, words: str) -> str:
    return words


def _minus(value: float, form: str) -> str:
    """Format a number with its sign and thousands separators; one that rounds to 0 isn't negative."""
    written = format(value, form.replace(",", "").replace(".", ",."))
    return written.replace("-", text.MINUS if float(written.replace(",", "")) else "+" * form.startswith("+"))


def _holds(values: pl.Series) -> bool:
    """Return whether a column has anything to show; in a table without rows every column has."""
    return values.is_empty() or values.null_count() < len(values)


def _same_digits(about: Any, values: pl.Series) -> Any:
    """Return a column's settings; dollars get enough digits to tell all of them apart, and no more.

    Cents where all are of such a size; below it significant digits, with the cents of the largest, as
    decimals that the least needs would say more of it than is known.
    """
    if _format(about) != _USD:
        return about
    each = values.cast(pl.Float64).drop_nulls().round_sig_figs(SHARED_DIGITS).unique()
    least = each.filter(each > 0).min()
    if isinstance(least, float) and least < _CENTS:
        rounded = (each.round_sig_figs(digits).n_unique() for digits in range(2, SHARED_DIGITS))
        most = max(least, *map(float, each))
        cents = min(SHARED_DIGITS, 3 + math.floor(math.log10(most)))  # as `usd` writes them
        form = f"%.{max(cents, 2 + sum(count < len(each) for count in rounded))}g"
    else:
        rounded = (each.round(digits).n_unique() for digits in range(2, _FINEST))
        form = f"%,.{2 + sum(count < len(each) for count in rounded)}f"
    return {**about, "type_config": {**about["type_config"], "format": form}}


def _format(about: Any) -> str | None:
    return (about.get("type_config") or {}).get("format") if isinstance(about, Mapping) else None


def configured(chosen: Sequence[Column]) -> dict[str, Any]:
    """Return the columns in the form of Streamlit's tables, by name."""
    return {column.name: _config(column) for column in chosen}


def _config(column: Column) -> Any:
    label, about, kinds = column.label, column.help or None, st.column_config
    match column.form:
        case "text":
            return kinds.TextColumn(label, help=about, width=column.width)
        case "list":
            return kinds.ListColumn(label, help=about)
        case "date":
            return kinds.DateColumn(label, help=about)
        case "time":
            return kinds.DatetimeColumn(label, format="YYYY-MM-DD HH:mm", help=about)
    sign = "+" if column.form == "signed" else ","
    return kinds.NumberColumn(
        label, format=_FORMATS.get(column.form, f"%{sign}.{column.digits}f"), help=about
    )


_FORMATS = {"score": "%.3f", "change": _CHANGE, "share": _PERCENT, "usd": _USD, "exact": "%.6g"}
"""How numbers are written; `table` multiplies shares, and gives dollars the decimals that the least needs."""


def card(rows: pl.DataFrame, run_id: str | None, quality: Quality) -> None:
    """Draw three numbers of one stack, with how each was obtained."""
    own = rows.clear() if run_id is None else rows.filter(pl.col("run_id") == run_id)
    if own.is_empty():
        return
    row = own.row(0, named=True)
    with st.container(border=True):
        st.markdown(f"**{plain(row['name'])}**")
        left, middle, right = st.columns(3)
        interval = text.interval(row["quality_low"], row["quality_high"])
        left.metric(plain(quality.name), text.score(row["quality"]))
        left.caption(f"{plain(interval.strip())} {text.sample(row)} · {row['quality_basis'] or ''}")
        middle.metric("Latency", text.ms(row["latency_ms"]))
        spread = (
            f"{text.ms(row['latency_low'])} to {text.ms(row['latency_high'])} · "
            if row["latency_low"]
            else ""
        )
        middle.caption(f"{spread}{_known(row['latency_basis'], row['latency_note'])}")
        cost, many = text.cost_of_many(row)
        right.metric("Cost", plain(cost))
        right.caption(f"per {many} queries · {_known(row['cost_basis'], row['cost_note'])}")


def _known(basis: str | None, note: str | None) -> str:
    """Join a number's source and its note for display."""
    return " · ".join(part for part in (basis or "", plain(note or "")) if part)
