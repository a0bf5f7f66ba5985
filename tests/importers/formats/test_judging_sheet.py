import io
from pathlib import Path

import fastexcel
import polars as pl
import pytest
import xlsxwriter

from core.golden.book import Item, Queue
from core.importers import ReadLimits
from core.importers.formats.judging_sheet import COLUMNS, SHEET
from core.importers.read.source import opened
from core.importers.read.tabular import first_rows
from core.store import Store
from core.views.golden.judging import Card
from core.views.golden.reviewing import sheet, to_excel
from core.views.text import to_csv
from core.work.imports.imports import store_import
from tests.importers.helpers import read, refusal, up
from tests.stores import HOSTILE, Lab

CSV = """\
collection,queue,judge,query_id,question,passage_id,title,passage,grade,note
lab,Anne-1,Anne,q1,a question,p1,,some text,4,sure
lab,Anne-1,Anne,q1,a question,p2,,"'=1+1",1,
lab,Anne-1,Anne,q2,another,'-p3,A title,"two
lines",5,"'=HYPERLINK(""x"")"
lab,Anne-1,Anne,q2,another,p4,,,,
"""
OFFERS = {"judging-sheet": ("judging-sheet", CSV.encode())}


def workbook(csv: str) -> bytes:
    """The sheet as a workbook that somebody has filled in."""
    file = io.BytesIO()
    rows = pl.read_csv(io.StringIO(csv), infer_schema=False)
    with xlsxwriter.Workbook(file) as book:
        page = book.add_worksheet(SHEET)
        for place, name in enumerate(rows.columns):
            page.write_string(0, place, name)
            for line, text in enumerate(rows[name], 1):
                if text is not None:
                    page.write_number(line, place, int(text)) if name == "grade" else page.write_string(
                        line, place, text
                    )
        book.add_worksheet("rubric").write(0, 0, "5")
    return file.getvalue()


@pytest.mark.parametrize("data", [CSV.encode(), workbook(CSV), CSV.replace(",", ";").encode()])
def test_a_filled_in_sheet_is_the_judges_golden_set(data: bytes):
    made = read(up("sheet", data))
    (golden,) = made.golden_sets
    assert (golden.golden_set_id, golden.collection_id, golden.judge) == ("lab-Anne", "lab", "Anne")
    judged = made.frames["judgements"].lazy().collect()
    assert judged.select("query_id", "passage_id", "grade", "judge").rows() == [
        ("q1", "p1", 4, "Anne"),
        ("q1", "p2", 1, "Anne"),
        ("q2", "-p3", 5, "Anne"),
    ]
    notes = made.frames["gradings"].lazy().collect()["note"].to_list()
    assert notes == ["sure", "", '=HYPERLINK("x")']
    assert [(each.count, each.reason) for each in made.left_out if not each.part] == [
        (1, "rows without a grade")
    ]
    assert made.frames.keys() == {"judgements", "gradings"}


def test_grades_of_one_kind_are_no_other_scale():
    ones = CSV.replace(",4,sure", ",1,").replace(',5,"', ',1,"')
    assert set(read(up("sheet", ones)).frames["judgements"].lazy().collect()["grade"]) == {1}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (",4,sure", ",6,sure", "sheet:2, column `grade`: The grade is 6; it is 1 to 5."),
        (",4,sure", ",4.5,sure", "sheet:2, column `grade`: '4.5' is not an integer."),
        (",4,sure", ",good,sure", "sheet:2, column `grade`: 'good' is not an integer."),
        ("Anne-1,Anne,q1,a question,p1", "Anne-1,,q1,a question,p1", "sheet:2, column `judge`: Nobody"),
        ("q1,a question,p2", "q1,a question,", "sheet:3, column `passage_id`: The id is empty."),
        (",p4,,,,", ",p4,,,0,", "sheet:5, column `grade`: The grade is 0"),
        ("q1,a question,p2", "q1,a question,p1", "sheet:3: Passage 'p1' is judged twice by 'Anne'"),
    ],
)
def test_mistakes_are_named_by_row_and_column(old: str, new: str, found: str):
    assert found in refusal(up("sheet", CSV.replace(old, new)))


def test_mistakes_in_a_workbook_are_named_too():
    said = refusal(up("filled.xlsx", workbook(CSV.replace(",4,sure", ",9,sure"))))
    assert "filled.xlsx, sheet judging:2, column `grade`: The grade is 9" in said


def test_an_empty_sheet_is_refused():
    lines = CSV.splitlines()
    assert "No row has a grade" in refusal(up("sheet", "\n".join([lines[0], lines[-1]])))


def test_several_sheets_and_judges():
    ben = CSV.replace("Anne", "Ben").replace("q1", "q7")
    more = CSV.replace("Anne-1", "Anne-2").replace("q1", "q8").replace("q2", "q9")
    made = read(up("a", CSV), up("b", ben), up("c", more))
    counts = made.frames["judgements"].lazy().collect().group_by("golden_set_id").len().sort("golden_set_id")
    assert counts.rows() == [("lab-Anne", 6), ("lab-Ben", 3)]
    assert "p1" in refusal(up("a", CSV), up("b", CSV.replace("Anne-1", "Anne-2")))


@pytest.mark.slow
def test_what_is_written_is_read_again_and_nothing_runs(tmp_path: Path):
    pairs = [(f"q{place}", text) for place, text in enumerate(HOSTILE)] + [("=q", "@p"), ("-q", "'p")]
    queue = Queue(queue_id="Anne-1", collection_id="lab", judge="Anne")
    items = [Item(place, *pair) for place, pair in enumerate(pairs)]
    items.append(Item(99, "done", "done", 4, at="2026-01-01"))
    cards = [Card(HOSTILE[place % 8], "+title", HOSTILE[place % 8] * 2) for place in range(len(items))]
    blank = sheet(queue, items, cards)
    assert blank.columns == list(COLUMNS)
    assert blank.height == len(pairs), "what is judged is not asked again"
    assert blank["grade"].null_count() == len(pairs)
    text = to_csv(blank).decode()
    cells = pl.read_csv(io.StringIO(text), infer_schema=False)
    assert not [cell for name in cells.columns for cell in cells[name] if cell and cell[0] in "=+-@"]
    book = fastexcel.read_excel(to_excel(blank))
    assert book.sheet_names == [SHEET, "rubric"]
    shown = pl.DataFrame(book.load_sheet(SHEET, dtypes="string"))
    assert shown["passage"].to_list() == blank["passage"].to_list(), "as text, to the letter"
    filled = blank.with_columns(grade=pl.lit(3, pl.Int8))
    lab = Lab().ask({query: "text" for query, _ in pairs}).hold({passage: "text" for _, passage in pairs})
    store = Lab.write(lab, tmp_path / "store")
    for name, data in (("filled.csv", to_csv(filled)), ("filled.xlsx", to_excel(filled))):
        made = read(up(name, data))
        assert set(made.frames["judgements"].lazy().collect().select("query_id", "passage_id").rows()) == set(
            pairs
        )
    store_import(store, made, "sheet")
    assert Store.open(store.path).read().judgements("lab-Anne")["grade"].to_list() == [3] * len(pairs)


@pytest.mark.parametrize("lines", [30, 12_000])  # more than are looked at; more than the head of a file
def test_texts_of_many_lines_are_looked_at_in_whole_rows(lines: int):
    csv = CSV.replace("lines", "lines\n" * lines)
    with opened([up("sheet.csv", csv)], ReadLimits()) as archives:
        shown = first_rows(archives[0].members[0], 3)
    assert shown is not None
    assert shown["passage_id"].to_list() == ["p1", "p2", "'-p3"][: 3 if lines == 30 else 2]
    assert len(read(up("sheet.csv", csv)).golden_sets) == 1
