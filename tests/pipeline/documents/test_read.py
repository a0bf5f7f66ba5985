"""From paths to documents."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError, UnknownNameError
from core.pipeline.documents import SCHEMA, read_documents
from tests.pipeline.documents.pdfs import pdf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    (made / "sub" / ".hidden").mkdir(parents=True)
    (made / "b.md").write_text("# Title of b\n\nText of b.")
    (made / "a.txt").write_text("Text of a.")
    (made / "sub" / "c.html").write_text("<p>Text of c.</p>")
    (made / "sub" / "d.pdf").write_bytes(pdf("Text of d.", "", title="Title of d"))
    (made / "sub" / "notes.docx").write_bytes(b"PK")
    (made / "empty.txt").write_text(" \n")
    (made / "sub" / ".hidden" / "e.txt").write_text("hidden")
    return made


def test_a_folder_of_files(folder):
    found = read_documents(folder)
    assert found.frame.schema == SCHEMA
    assert found.frame.select("source", "title", "text").rows() == [
        ("a.txt", "a", "Text of a."),
        ("b.md", "Title of b", "# Title of b\n\nText of b."),
        ("sub/c.html", "c", "Text of c."),
        ("sub/d.pdf", "Title of d", "Text of d."),
    ]
    assert found.notes == (
        "docs/sub/d.pdf: 1 of 2 pages have no text (pictures?).",
        "1 documents without text left out, the first docs/empty.txt.",
        "1 files that are not documents left out, the first docs/sub/notes.docx.",
    )


def test_links_are_not_followed(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f.txt").write_text("outside")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    found = read_documents(folder)
    assert found.frame.height == 4
    assert any(note.startswith("2 links or system files left out") for note in found.notes)


def test_one_file_and_packed_ones(folder, tmp_path):
    assert read_documents(folder / "b.md").frame["source"].to_list() == ["b.md"]
    (tmp_path / "more").mkdir()
    packed = tmp_path / "more" / "x.txt.gz"
    packed.write_bytes(gzip.compress(b"Packed text."))
    assert read_documents(packed.parent).frame.select("source", "title", "text").rows() == [
        ("x.txt.gz", "x", "Packed text.")
    ]
    # Text with commas is no table when its name says text.
    (tmp_path / "list.txt").write_text("id,text\n1,one\n")
    assert read_documents(tmp_path / "list.txt").frame.height == 1


ROWS = [{"id": "x", "text": " One. ", "title": "T"}, {"id": "y", "text": "", "title": ""}]
TABLES = {
    "t.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "t.csv": 'id,text,title\nx," One. ",T\ny,,\n',
    "t.tsv": "id\ttext\ttitle\nx\t One. \tT\ny\t\t\n",
}


@pytest.mark.parametrize("name", [*TABLES, "t.parquet"])
def test_tables(tmp_path, name):
    path = tmp_path / name
    if name in TABLES:
        path.write_text(TABLES[name])
    else:
        pl.DataFrame(ROWS).write_parquet(path)
    found = read_documents(path)
    assert found.frame.select("source", "title", "text").rows() == [("x", "T", " One. "), ("y", None, "")]
    assert found.frame.schema == SCHEMA
    assert found.frame["pages"].to_list() == [[], []]
    assert found.notes == ("1 documents have no text.",)


def test_columns_by_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("number,words,id\n1,One.,x\n")
    found = read_documents(path, columns={"source": "number", "text": "words"})
    assert found.frame.select("source", "text").rows() == [("1", "One.")]
    for columns, error, message in (
        ({"text": "gone"}, InputError, "no column `gone`"),
        ({"colour": "id"}, UnknownNameError, "role of a column 'colour'"),
        ({}, InputError, "no column `text`.*found: number, words, id"),
    ):
        with pytest.raises(error, match=message):
            read_documents(path, form="table", columns=columns)


def test_beir(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t2\n")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "One."}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "?"}\n')
    for found in (read_documents(tmp_path), read_documents(tmp_path, form="beir")):
        assert found.frame.rows() == [("d1", "T", "One.", [], [])]
        assert found.frame.schema == SCHEMA
    alone = read_documents(tmp_path / "corpus.jsonl")
    assert alone.frame.select("source", "title", "text").rows() == [("d1", "T", "One.")]
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match="has no corpus"):
        read_documents(tmp_path, form="beir")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"caf\xe9", r"a.txt:1: Byte 3 \(0xe9\) is not valid UTF-8"),
        ("a.txt", b"a\0b", "NUL byte"),
        ("a.md", "é".encode("utf-16"), "UTF-16"),
        ("a.html", b"<p>caf\xe9</p>", "a.html: The text is not utf-8"),
        ("a.pdf", b"%PDF-1.4 nothing", "a.pdf: The PDF cannot be read"),
        ("a.pdf", b"", "a.pdf: The PDF cannot be read"),
        ("a.pdf", pdf("Text")[:300], "a.pdf"),
        ("a.csv", b"id,text\n1,one\n1,two\n", "a.csv:3, column `id`: The id '1' occurs twice"),
        ("a.csv", b"id,text\n,one\n", "a.csv:2, column `id`: The id is empty"),
        ("a.docx", b"PK", "no documents with text"),
        ("a.txt", b" ", "no documents with text"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_documents(path)


def test_sizes_are_bounded(folder, monkeypatch):
    monkeypatch.setattr("core.pipeline.documents.formats.DOCUMENT_BYTES", 8)
    with pytest.raises(InputError, match=r"a\.txt: The document has more than 8 bytes"):
        read_documents(folder)


@pytest.mark.parametrize(
    ("path", "options", "error", "message"),
    [
        ("absent", {}, InputError, "no such file"),
        (".", {"form": "word"}, UnknownNameError, "format of documents 'word'"),
    ],
)
def test_what_is_not_there(tmp_path, path, options, error, message):
    with pytest.raises(error, match=message):
        read_documents(tmp_path / path, **options)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_are_left_alone(folder):
    os.mkfifo(folder / "pipe.txt")
    assert read_documents(folder).frame.height == 4
