"""A queue as a sheet for people without the dashboard: CSV and Excel, blind, with no executable content."""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl
import xlsxwriter

from core.golden.book import Item, Queue
from core.golden.by_hand import RUBRIC
from core.importers.formats.judging_sheet import COLUMNS, SHEET
from core.views.golden.judging import Card
from core.views.text import upright

_WIDTHS = {"question": 34, "title": 24, "passage": 90, "grade": 8, "note": 30}
_CELL = 32_767  # Maximum characters in a cell of a workbook


def sheet(queue: Queue, items: Sequence[Item], cards: Sequence[Card]) -> pl.DataFrame:
    """Return the remaining cards of a queue, with empty grades: the columns of `COLUMNS`."""
    rows = [
        (queue.collection_id, queue.queue_id, queue.judge, item.query_id, card.question, item.passage_id,
         card.title, card.text, None, item.note or None)
        for item, card in zip(items, cards, strict=True) if item.at is None
    ]  # fmt: skip
    texts = {name: pl.Int8 if name == "grade" else pl.String for name in COLUMNS}
    return upright(pl.DataFrame(rows, schema=texts, orient="row"))


def to_excel(rows: pl.DataFrame) -> bytes:
    """Write a sheet as a workbook: texts as texts, grades 1 to 5 only, the rubric on a separate sheet."""
    file = io.BytesIO()
    # Nothing in a text becomes a formula, a link or a number.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(file, {**options, "in_memory": True}) as book:
        bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
        page = book.add_worksheet(SHEET)
        for place, name in enumerate(rows.columns):
            page.set_column(place, place, _WIDTHS.get(name, 14), wrapped)
            page.write_string(0, place, name, bold)
            for line, text in enumerate(rows[name].to_list(), 1):
                if text is not None:
                    page.write_string(line, place, str(text)[:_CELL], wrapped)
        grade = rows.columns.index("grade")
        rule = {"validate": "integer", "criteria": "between", "minimum": 1, "maximum": 5}
        page.data_validation(1, grade, max(rows.height, 1), grade, rule)
        page.freeze_panes(1, 0)
        meanings = book.add_worksheet("rubric")
        for line, (number, meaning) in enumerate(sorted(RUBRIC.items(), reverse=True)):
            meanings.write_number(line, 0, number)
            meanings.write_string(line, 1, meaning)
    return file.getvalue()
