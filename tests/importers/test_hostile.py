"""Hostile input, one row each: refused with an error that names the file, or taken as plain text."""

from __future__ import annotations

import gzip
import io
import pickle
import stat
import zipfile

import pytest

from core.importers import Limits
from core.store import Store
from core.views.imports import bring, plan
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
    "NaN score": (RUN.replace("9.0", "nan").encode(), "not a finite number"),
    "infinite score": (RUN.replace("9.0", "inf").encode(), "not a finite number"),
    "passage twice": (RUN.replace(" b ", " a ").encode(), "occurs twice"),
    "negative rank of a table": (TABLE.replace("a,1", "a,-1").encode(), "not 1..n"),
    "10 MB in one cell": (f"query_id,passage_id,rank\nq1,{'x' * (10 << 20)}y,1\n".encode(), "longer than"),
    "10 MB in one field": (f"{RUN}q1 Q0 {'x' * (10 << 20)}y 3 8.5 bm25\n".encode(), "longer than"),
}
LIMITS = Limits(grace_bytes=1 << 20)


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_and_nothing_written(data, message, tmp_path):
    from core.importers import Options

    made = plan([up("evil", data)], Options(limits=LIMITS))
    assert made.made is None
    assert "evil" in str(made.problem)
    assert message in str(made.problem)
    assert "Traceback" not in str(made.problem)
    assert not (tmp_path / "store").exists()


def test_negative_ranks_of_a_run_are_no_order_and_scores_decide():
    made = read(up("x", RUN.replace(" 1 ", " -1 ").replace(" 2 ", " -2 ")))
    assert rows(made, "rankings")["passage_id"].to_list() == ["a", "b"]
    assert any("ordered by score" in note for note in made.notes)


def test_html_markdown_and_formulas_are_kept_as_plain_text(tmp_path):
    nasty = ["<script>alert(1)</script>", "[x](javascript:alert(1))", "=HYPERLINK(1)", "**b**"]
    text = "query_id\tpassage_id\trank\trun\n" + "".join(f"q1\t{name}\t1\t{name}\n" for name in nasty)
    made = read(up("<b>.tsv", text), collection_id="c")
    store = Store(tmp_path / "store")
    bring(store, made, "")
    snapshot = store.read()
    assert sorted(snapshot.runs()["label"]) == sorted(nasty)
    ids = snapshot.runs()["run_id"].to_list()
    assert sorted(snapshot.rankings(ids)["passage_id"]) == sorted(nasty)
