"""What is known of documents beside their text: front matter, folders, other columns of tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.filters import decoded, fields_of, kinds
from core.pipeline.documents import read_documents
from core.pipeline.documents.formats import MATTER_CHARACTERS, front_matter


@pytest.mark.parametrize(
    ("matter", "fields"),
    [
        ("tenant: a\nacl: [x, 7]", {"tenant": "a", "acl": ["x", 7]}),
        ("on: 2025-01-31\nat: 2025-01-31T10:00:00Z", {True: "", "at": "2025-01-31T10:00:00+00:00"}),
        ("draft: true\nnothing:\nstars: 4.5", {"draft": True, "stars": 4.5}),
        ("deep: {a: {b: c}}", {"deep": {"a": {"b": "c"}}}),
        ("", {}),
        ("just a text", None),
        ("a: [", None),
        ("when: 2025-13-45", None),
        ("n: .nan", None),
        ("a: !!python/object/apply:os.system [ls]", None),
        ("a: &x [1]\nb: *x", None),
        ("[" * 5000, None),
        ("a: " + "b" * MATTER_CHARACTERS, None),
    ],
)
def test_front_matter_is_data(matter: str, fields: dict[str, object] | None):
    found = front_matter(f"---\n{matter}\n---\n# Title\n")
    if fields is not None and True in fields:  # YAML reads the key `on` as true
        assert found is not None
        assert found.pop("True") == "2025-01-31"
        fields.pop(True)  # type: ignore[call-overload]
    assert found == fields


def test_only_what_stands_at_the_start_between_two_lines_is_front_matter():
    assert front_matter("# Title\n---\ntenant: a\n---\n") == {}
    assert front_matter("---\ntenant: a\n") == {}
    assert front_matter("---\n---\n# Title") == {}


def test_folders_and_front_matter_are_fields(tmp_path: Path):
    files = {
        "top.md": "# Top",
        "a/one.txt": "one",
        "a/b/two.md": '---\ntenant: "7"\nfolder: own\n---\ntwo',
        "a/b/bad.md": "---\na: [\n---\nbad",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = read_documents(tmp_path)
    known = {source: json.loads(text) for source, text in read.metadata.iter_rows()}
    assert known == {
        "a/one.txt": {"folder": "a", "folders": ["a"]},
        "a/b/two.md": {"folder": "own", "folders": ["a", "a/b"], "tenant": "7"},
        "a/b/bad.md": {"folder": "a/b", "folders": ["a", "a/b"]},
    }
    assert sum("front matter cannot be read" in note for note in read.notes) == 1
    assert {
        name: kind.value for name, kind in kinds(fields_of(decoded(read.metadata["metadata"]))).items()
    } == {
        "folder": "text",
        "folders": "list of texts",
        "tenant": "text",
    }


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_other_columns_of_a_table_are_fields(tmp_path: Path, form: str):
    rows = [
        {"id": "d1", "text": "one", "year": 2024, "tenant": "007"},
        {"id": "d2", "text": "two", "year": 2025},
    ]
    if form == "csv":
        (tmp_path / "docs.csv").write_text("id,text,year,tenant\nd1,one,2024,007\nd2,two,2025,\n")
    else:
        (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_documents(tmp_path / f"docs.{form}")
    assert {source: json.loads(text) for source, text in read.metadata.iter_rows()} == {
        "d1": {"year": 2024, "tenant": "007"},
        "d2": {"year": 2025},
    }
