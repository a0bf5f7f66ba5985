"""What buttons hand out of a store of formulas and tags: data as they were written, of which nothing runs."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from streamlit.elements.widgets.button import ButtonMixin

from core.contrib.router.learned import files
from core.golden.book import FILE, Book, Queue
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound
from tests.stores import HOSTILE, Lab

pytestmark = pytest.mark.slow
FORMULA = tuple("=+-@\t\r＝＋－＠")
LIVE = re.compile(r"<(?:img|script)[^>]*(?:onerror|evil)|href=.?javascript:|onerror=alert\(1\)>")
Handed = dict[str, list[tuple[str, bytes]]]


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Handed:
    """Names and contents of all files that a page's buttons would hand out, by the label of the button."""
    found: Handed = defaultdict(list)
    drawn = ButtonMixin._download_button

    def caught(self: Any, label: str, data: Any, file_name: str | None = None, **given: Any) -> Any:
        content = data() if callable(data) else data
        found[label].append((str(file_name), content.encode() if isinstance(content, str) else content))
        return drawn(self, label, content, file_name, **given)

    monkeypatch.setattr(ButtonMixin, "_download_button", caught)
    return found


def _csv(content: bytes) -> None:
    for row in csv.reader(io.StringIO(content.decode())):
        assert not [cell for cell in row if cell.startswith(FORMULA) and not _number(cell)]


def _number(cell: str) -> bool:
    return re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell, re.IGNORECASE) is not None


def _xlsx(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        for name in book.namelist():
            if name.endswith(".xml"):
                tags = {tag.tag.rpartition("}")[2] for tag in ET.fromstring(book.read(name)).iter()}  # noqa: S314
                assert not {"f", "hyperlink"} & tags, name


def _html(content: bytes) -> None:
    assert not LIVE.search(content.decode())


def _markdown(content: bytes) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", content.decode(), flags=re.DOTALL)
    assert not [name for name in HOSTILE[:2] if name in prose]


READ: dict[str, Callable[[bytes], object]] = {
    "csv": _csv,
    "parquet": lambda content: pl.read_parquet(io.BytesIO(content)),
    "html": _html,
    "md": _markdown,
    "json": json.loads,
    "xlsx": _xlsx,
    "zip": lambda content: zipfile.ZipFile(io.BytesIO(content)).testzip(),
}


def look(handed: Handed) -> set[str]:
    """Read every file, and return the labels of the buttons."""
    assert handed
    for label, (name, content) in ((label, file) for label, every in handed.items() for file in every):
        assert re.fullmatch(r"[^/\\\x00-\x1f<>]{1,200}", name), (label, name)
        READ[name.rpartition(".")[2]](content)
    return set(handed)


@pytest.mark.parametrize("page", ["decision", "queries", "latency/by stage", "readers", "library"])
def test_tables(open_page: OpenPage, hostile_store: Path, handed: Handed, page: str) -> None:
    assert_sound(open_page(hostile_store, page))
    assert look(handed) >= {"CSV", "Parquet"}
    assert HOSTILE[3] in _texts(handed), "as it was written"


def _texts(handed: Handed) -> str:
    tables = [pl.read_parquet(io.BytesIO(content)) for _, content in handed["Parquet"]]
    return "\n".join(str(value) for table in tables for row in table.rows() for value in row)


def test_record_and_snapshot(open_page: OpenPage, hostile_store: Path, handed: Handed) -> None:
    app = open_page(hostile_store, "decision")
    app.session_state["record"] = True
    assert_sound(app.run())
    assert look(handed) >= {"HTML", "Markdown", "JSON", "Snapshot"}
    assert set(HOSTILE) <= set(_strings(json.loads(handed["JSON"][0][1]))), "as they were written"


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("title", ["TREC runs and qrels", "ranx runs and qrels (JSON)"])
def test_an_export(open_page: OpenPage, hostile_store: Path, handed: Handed, title: str) -> None:
    app = open_page(hostile_store, "library")
    app.selectbox(key="exported_as").set_value(title).run()
    app.button(key="prepare").click().run()
    assert_sound(app)
    assert "Download" in look(handed)
    with zipfile.ZipFile(io.BytesIO(handed["Download"][0][1])) as packed:
        names = packed.namelist()
    assert names
    assert not [name for name in names if name.startswith("/") or ".." in Path(name).parts or "<" in name]


def test_templates(open_page: OpenPage, hostile_store: Path, handed: Handed) -> None:
    assert_sound(open_page(hostile_store, "add"))
    assert len(look(handed)) >= 4


def test_a_sheet_to_judge_by(open_page: OpenPage, handed: Handed, tmp_path: Path) -> None:
    lab = Lab().judge({"q1": {f"p{at}": 1 for at in range(len(HOSTILE))}}).ask({"q1": HOSTILE[3]})
    lab.hold({f"p{at}": text for at, text in enumerate(HOSTILE)})
    lab.run("a stack", final={"q1": ["p0"]}).write(tmp_path / "store")
    queue = Queue(queue_id="Anne-1", collection_id="lab", judge="Anne")
    Book(tmp_path / FILE).start(queue, [("q1", f"p{at}") for at in range(len(HOSTILE))])
    assert_sound(open_page(tmp_path / "store", "golden/judge", queue="Anne-1"))
    assert look(handed) >= {"As a sheet, Excel", "As a sheet, CSV"}
    with zipfile.ZipFile(io.BytesIO(handed["As a sheet, Excel"][0][1])) as book:
        words = ET.fromstring(book.read("xl/sharedStrings.xml")).itertext()  # noqa: S314
    assert set(HOSTILE) <= {*words}, "as they were written"


def test_a_router() -> None:
    told = {"options": [{"name": name} for name in HOSTILE], "method": "threshold"}
    found = files(told)
    assert json.loads(found["router.json"]) == told
    assert not [name for name in HOSTILE if name in found["router.py"]], "names stand in data alone"
