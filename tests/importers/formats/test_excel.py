import io
import sys
import zipfile
from datetime import UTC, datetime

import polars as pl
import pytest
import xlsxwriter

from tests.importers.helpers import read, refusal, rows, up, zipped

ROWS = [["qid", "did", "score"], ["q1", "a", 0.75], ["q1", "007", 5.0], ["q2", "b\nc", 1e-7]]


def book(sheets=None, *, hidden: str = "", top: int = 0) -> bytes:
    """A workbook of sheets, each a list of rows that begins at row `top`, column B."""
    buffer = io.BytesIO()
    made = xlsxwriter.Workbook(buffer)
    made.set_properties({"created": datetime(2026, 1, 1, tzinfo=UTC)})
    for name, cells in ({"Run": ROWS} if sheets is None else sheets).items():
        sheet = made.add_worksheet(name)
        for row, values in enumerate(cells, top):
            sheet.write_row(row, 1, values)
        if name == hidden:
            sheet.hide()
    made.close()
    return buffer.getvalue()


def changed(data: bytes, part: str, *changes: tuple[bytes, bytes]) -> bytes:
    """The workbook with replacements in one of its parts."""
    source = zipfile.ZipFile(io.BytesIO(data))
    members = {name: source.read(name) for name in source.namelist()}
    for old, new in changes:
        assert old in members[part]
        members[part] = members[part].replace(old, new)
    return zipped(members)


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.slow
@pytest.mark.parametrize("top", [0, 3])
def test_a_sheet_is_a_table(top):
    made = read(up("bm25.xlsx", book(top=top)))
    assert made.detected[0].format == "excel"
    table = rows(made, "rankings").sort("query_id", "rank")
    assert table.select("query_id", "passage_id", "score").rows() == [
        ("q1", "007", 5.0), ("q1", "a", 0.75), ("q2", "b\nc", 1e-7)
    ]  # fmt: skip
    assert made.runs[0].label == "bm25"


@pytest.mark.slow
def test_the_line_of_an_error_is_the_row_of_the_sheet():
    cells = [*ROWS[:2], [], ["q1", "x", "high"]]
    message = refusal(up("x.xlsx", book({"Run": cells}, top=2)))
    assert "x.xlsx:6, column `score`: 'high' is not a finite number" in message


@pytest.mark.slow
def test_sheets_are_chosen():
    two = {"Notes": [["hello"]], "A": ROWS, "B": [["qid", "did", "rel"], ["q1", "a", 1]], "C": ROWS}
    data = book(two, hidden="C")
    assert "Several sheets hold tables: A, B. Choose one (--sheet)" in refusal(up("x.xlsx", data))
    made = read(up("x.xlsx", data), sheet="B")
    assert made.taken["judgements"] == 1
    assert (made.left_out[-1].count, made.left_out[-1].reason) == (3, "sheets that were not chosen")
    assert read(up("x.xlsx", data), sheet="C").taken["rankings"] == 3
    assert "No sheet 'Z'" in refusal(up("x.xlsx", data), sheet="Z")
    only = {"hidden notes": [["hello"]], "A": ROWS}
    assert read(up("x.xlsx", book(only))).taken["rankings"] == 3


@pytest.mark.slow
def test_columns_are_mapped():
    data = book({"Run": [["frage", "absatz", "wert"], ["q1", "a", 0.5]]})
    assert "no column" in refusal(up("x.xlsx", data))
    columns = {"query_id": "frage", "passage_id": "absatz", "score": "wert"}
    assert read(up("x.xlsx", data), columns=columns).taken["rankings"] == 1


@pytest.mark.slow
def test_formulas_count_as_saved_and_errors_are_empty():
    buffer = io.BytesIO()
    made = xlsxwriter.Workbook(buffer)
    sheet = made.add_worksheet("Run")
    for row, values in enumerate(ROWS):
        sheet.write_row(row, 0, values)
    sheet.write_formula(4, 0, '="q"&"2"', None, "q2")
    sheet.write_formula(4, 1, '=HYPERLINK("http://x","y")', None, "y")
    sheet.write_formula(4, 2, "=1/3", None, 0.5)
    made.close()
    table = rows(read(up("x.xlsx", buffer.getvalue())), "rankings")
    assert ("q2", "y", 0.5) in table.select("query_id", "passage_id", "score").rows()


@pytest.mark.slow
def test_a_workbook_in_an_archive_and_a_folder(tmp_path):
    (tmp_path / "run.xlsx").write_bytes(book())
    assert read(tmp_path).taken["rankings"] == 3
    assert read(up("x.zip", zipped({"a/run.xlsx": book()}))).taken["rankings"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(b'r="B4"', b'r="XFD1048576"')], "spans 1,048,576 rows and 16,384 columns"),
        ([(b'r="B4"', b"r='B9999999'")], "spans 9,999,999 rows"),
        ([(b'<row r="4"', b'<row r="99999999"')], "spans 99,999,999 rows"),
        ([(b'r="B4"', b'r="ZZZZB4"')], "columns"),
        ([(b"<worksheet ", b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet ')], "declares a document type"),
    ],
)
def test_hostile_sheets_are_refused(changes, message):
    assert message in refusal(up("x.xlsx", changed(book(), SHEET, *changes)), format="excel")


@pytest.mark.slow
def test_a_text_that_is_used_a_million_times(monkeypatch):
    data = book({"Run": [["qid", "did", "score"], *([f"q{n}", "x" * 3000, 1] for n in range(50))]})
    assert read(up("x.xlsx", data)).taken["rankings"] == 50
    monkeypatch.setattr("core.importers.read.workbook._MOST_TEXT", 100_000)
    assert "more than 100,000 bytes of text" in refusal(up("y.xlsx", data), format="excel")


@pytest.mark.slow
def test_other_files_with_such_names():
    assert "not an .xlsx workbook" in refusal(up("x.xlsx", b"q1 0 a 1\n"), format="excel")
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
    assert "save it as .xlsx without a password" in refusal(up("x.xls", old))
    assert "x.xlsx" in refusal(up("x.xlsx", book()[:-60]))
    assert "no rows below its header" in refusal(up("x.xlsx", book({"Run": ROWS[:1]})))
    assert "'qid' occurs twice" in refusal(up("x.xlsx", book({"Run": [["qid", "qid"], ["a", "b"]]})))


@pytest.mark.slow
def test_stacks_of_a_sheet():
    cells = [["stack", "nDCG@10", "rerank_p50_s"], ["A", 0.5, 0.25], ["B", None, 0.5]]
    made = read(up("x.xlsx", book({"Results": cells})))
    assert set(rows(made, "aggregates").select("measure", "k", "value").rows()) == {
        ("nDCG", 10, 0.5), ("latency_p50", None, 250.0), ("latency_p50", None, 500.0)
    }  # fmt: skip
    assert pl.Series([each.count for each in made.left_out]).sum() == 1


def test_without_its_reader_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    assert "pip install fastexcel" in refusal(up("other.xlsx", book({"Other": ROWS})))


OFFERS = {
    "excel": ("excel", book()),
}
