"""Crafted workbooks and packed JSON in a process that may take 4 GB: refused or read, and it lives."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zipfile

import pytest

from core.importers.read.jsons import MOST_LOOKED_AT, broken
from core.importers.read.piece import Limits
from core.importers.read.source import opened
from tests.importers.formats.test_excel import SHEET, book, changed
from tests.importers.helpers import up, zipped

_LOOK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from core.errors import ClqError
from core.importers.load import load, preview
preview([sys.argv[1]])
try:
    load([sys.argv[1]])
except ClqError as error:
    print(type(error).__name__)
"""


def _counted() -> bytes:
    """A workbook that claims four billion shared texts."""
    source = zipfile.ZipFile(io.BytesIO(book()))
    parts = {name: source.read(name) for name in source.namelist()}
    text = parts["xl/sharedStrings.xml"]
    parts["xl/sharedStrings.xml"] = re.sub(rb'nique[Cc]ount="\d+"', b'niqueCount="4294967295"', text)
    return zipped(parts)


def _far(cell: bytes) -> bytes:
    return changed(book(), SHEET, (b"</sheetData>", cell + b"</sheetData>"))


FILES = {
    "shared-count.xlsx": _counted,
    "angle-in-attribute.xlsx": lambda: _far(b'<row r="9"><c a=">" r="XFD1048576"><v>1</v></c></row>'),
    "row-in-attribute.xlsx": lambda: _far(
        b'<row a=">" r="1048576"><c a=">" r="XFD1048576"><v>1</v></c></row>'
    ),
    "without-r.xlsx": lambda: _far(b"<row>" + b"<c><v>1</v></c>" * 20_000 + b"</row>"),
    "wide-and-long.xlsx": lambda: _far(
        b'<row r="2">' + b"<c><v>1</v></c>" * 16_000 + b'</row><row a=">" r="1048576"><c><v>1</v></c></row>'
    ),
    "lists.json.gz": lambda: gzip.compress(b"[" + b"[]," * 40_000_000 + b"[]]"),
    "lists.jsonl.gz": lambda: gzip.compress((b'{"a":[' + b"[]," * 1_000_000 + b"[]]}\n") * 20),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_crafted_file_ends_no_process(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    ended = subprocess.run(
        [sys.executable, "-c", _LOOK, str(path)], capture_output=True, timeout=120, check=False, text=True
    )
    assert ended.returncode == 0, ended.stderr[-600:]


def test_where_packed_json_is_broken_is_looked_for_in_small_files_only():
    small, large = (gzip.compress(b"[" + b"1," * values + b"x]") for values in (1_000, MOST_LOOKED_AT // 2))
    with opened([up("a.json.gz", small), up("b.json.gz", large)], Limits()) as (one, other):
        assert broken(one.pieces[0]) is not None
        assert broken(other.pieces[0]) is None
