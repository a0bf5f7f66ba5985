"""Hostile input, one row each: refused with an error that names the file, or taken as plain text."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
import stat
import zipfile
from functools import partial

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.importers import Options, ReadLimits
from core.store import Store
from core.views.text import to_csv
from core.work.imports import imports
from core.work.imports.imports import plan, store_import
from tests.importers.formats.test_autorag import project
from tests.importers.formats.test_excel import book, changed
from tests.importers.helpers import read, rows, up, zipped

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\n"
TABLE = "query_id,passage_id,rank\nq1,a,1\n"
LAUGHS = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
)
YAML = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)


def linked() -> bytes:
    """An archive that holds a symbolic link."""
    info = zipfile.ZipInfo("run.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


REFUSED: dict[str, tuple[bytes, str]] = {
    "zip bomb": (zipped({"run.txt": RUN * 400_000}), "times its size"),
    "gzip bomb": (gzip.compress(RUN.encode() * 400_000), "times its size"),
    "path traversal": (zipped({"../../run.txt": RUN}), "names a file outside itself"),
    "symbolic link": (linked(), "symbolic link"),
    "a workbook with entities": (
        changed(book(), "xl/workbook.xml", (b"<workbook", b'<!DOCTYPE l [<!ENTITY a "ha">]><workbook')),
        "declares a document type",
    ),
    "YAML with aliases in a project": (zipped(project(**{"0__config.yaml": YAML})), "anchors or aliases"),
    "pickle in an archive": (zipped({"run.pkl": pickle.dumps({"q1": {"a": 1.0}})}), "no format known"),
    "pickle": (pickle.dumps({"q1": {"a": 1.0}}), "no format known"),
    "billion laughs, XML": (f"{LAUGHS}]><l>&j;</l>".encode(), "no format known"),
    "billion laughs, YAML": (YAML.encode(), "no format known"),
    "a million columns": (",".join(map(str, range(1_000_000))).encode() + b"\n1\n", "evil"),
    "a table of too many columns": (
        ",".join(["query_id", "passage_id", "rank", *map(str, range(20_000))]).encode() + b"\nq1,a,1\n",
        "evil",
    ),
    "UTF-16": (RUN.encode("utf-16"), "UTF-16"),
    "UTF-16 table": (TABLE.encode("utf-16"), "UTF-16"),
    "Latin-1": (
        (RUN + "q2 Q0 caf\xe9 1 1.5 bm25\n").encode("latin-1"),
        "not valid UTF-8. It is probably Latin-1",
    ),
    "Latin-1 after UTF-8": (
        "q1 Q0 café 1 9.5 bm25\n".encode() + "q1 Q0 café2 2 9.0 bm25\n".encode("latin-1"),
        "evil:2",
    ),
    "NaN score": (RUN.replace("9.0", "nan").encode(), "not a finite number"),
    "infinite score": (RUN.replace("9.0", "inf").encode(), "not a finite number"),
    "passage twice": (RUN.replace(" b 2 9.0", " a 1 9.9").encode(), "occurs twice"),
    "passage judged twice": (b"q1 0 a 1\nq1 0 b 0\nq1 0 a 2\n", "judged twice"),
    "NaN score of a table": (b"query_id,passage_id,score\nq1,a,NaN\n", "not a finite number"),
    "infinite score in JSON": (
        b'{"query_id": "q1", "passage_id": "a", "score": 1e999}\n',
        "1e999 is larger than any number",
    ),
    "negative rank of a table": (TABLE.replace("a,1", "a,-1").encode(), "not 1..n"),
    "10 MB in one cell": (f"query_id,passage_id,rank\nq1,{'x' * (10 << 20)}y,1\n".encode(), "longer than"),
    "10 MB in one field": (f"{RUN}q1 Q0 {'x' * (10 << 20)}y 3 8.5 bm25\n".encode(), "longer than"),
}
LIMITS = ReadLimits(grace_bytes=1 << 20)


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_and_nothing_written(data, message, tmp_path):
    made = plan([up("evil", data)], Options(limits=LIMITS), Store(tmp_path / "none").read())
    assert made.made is None
    assert "evil" in str(made.problem)
    assert message in str(made.problem)
    assert "Traceback" not in str(made.problem)


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_by_the_command_line(data, message, tmp_path, monkeypatch):
    """Exit code 1, one line on standard error, no revision."""
    monkeypatch.setattr(imports, "Options", partial(Options, limits=LIMITS))
    (tmp_path / "evil").write_bytes(data)
    said = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "import", str(tmp_path / "evil")])
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[-1].startswith("error: evil")
    assert message in said.stderr
    assert Store(tmp_path / "store").revision() == 0


def test_a_link_on_the_disk_is_not_followed(tmp_path):
    folder = tmp_path / "offered"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text(RUN)
    (folder / "run.txt").write_text(RUN.replace("q1", "q2"))
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    made = read(folder)
    assert rows(made, "rankings")["query_id"].unique().to_list() == ["q2"]
    assert [(each.count, each.first) for each in made.left_out] == [(1, "link.txt")]


def test_negative_ranks_of_a_run_are_no_order_and_scores_decide():
    made = read(up("x", RUN.replace(" 1 ", " -1 ").replace(" 2 ", " -2 ")))
    assert rows(made, "rankings")["passage_id"].to_list() == ["a", "b"]
    assert any("ordered by score" in note for note in made.notes)


def test_html_markdown_and_formulas_are_kept_as_plain_text(tmp_path):
    nasty = ["<script>alert(1)</script>", "[x](javascript:alert(1))", "=HYPERLINK(1)", "**b**"]
    text = "query_id\tpassage_id\trank\trun\n" + "".join(f"q1\t{name}\t1\t{name}\n" for name in nasty)
    made = read(up("<b>.tsv", text), collection_id="c")
    store = Store(tmp_path / "store")
    store_import(store, made, "")
    snapshot = store.read()
    assert sorted(snapshot.runs()["label"]) == sorted(nasty)
    ids = snapshot.runs()["run_id"].to_list()
    assert sorted(snapshot.rankings(ids)["passage_id"]) == sorted(nasty)
    written = list(csv.DictReader(io.StringIO(to_csv(snapshot.runs()).decode())))
    assert {row["label"] for row in written} == {*nasty, "'=HYPERLINK(1)"} - {"=HYPERLINK(1)"}
