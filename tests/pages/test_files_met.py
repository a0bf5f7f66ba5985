"""Files that people have, taken by the command and by the page alike: what comes of each, or what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app as command
from core.store import Store
from tests.pages.conftest import OpenPage
from tests.pages.reading import everything, unescaped

FALLING = '{"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d3": 3, "d1": 2}}'
TAKEN = {
    "blanks in ids between tabs": (
        {
            "f2.run": "q 1\tQ0\td1\t1\t2.0\tx\nq 1\tQ0\td2\t2\t1.0\tx\nq 2\tQ0\td3\t1\t3.0\tx\n",
            "f2.qrels": "q 1\tI0\td1\t1\nq 2\tI0\td3\t1\n",
        },
        {"rankings": 3, "judgements": 2, "runs": 1},
    ),
    "a run and judgements with repeats": (
        {
            "r.run": "1 Q0 A 1 12.893000 x\n1 Q0 A 2 12.892999 x\n1 Q0 B 3 12.8149 x\n",
            "q.qrels": "1 0 A 1\n1 0 A 1\n1 0 B 0\n",
        },
        {"rankings": 2, "judgements": 2, "runs": 1},
    ),
    "a page of Anserini": (
        {"t37.md": "MAP | BM25 | +RM3 | QL | +RM3 |\n:--|--|--|--|--|\nCore| 0.25 | 0.29 | 0.24 | 0.27 |\n"},
        {"aggregates": 4, "runs": 4},
    ),
    "a page with a table of stacks": (
        {"page.md": "# Results\n\n| Stack | nDCG@10 |\n|---|---|\n| A | 0.51 |\n| B | 0.48 |\n"},
        {"aggregates": 2, "runs": 2},
    ),
    "output of trec_eval by query": (
        {"t.txt": "ndcg_cut_10           \tq1\t0.40\nndcg_cut_10           \tall\t0.40\n"},
        {"aggregates": 1, "signals": 1, "runs": 1},
    ),
    "output of ir_measures": ({"t.txt": "nDCG@10\t0.47\nR@100\t0.81\n"}, {"aggregates": 2, "runs": 1}),
    "a run of whole numbers and qrels, by their names": (
        {"bm25.json": FALLING, "qrels.json": '{"q1": {"d2": 1}, "q2": {"d3": 1}}'},
        {"rankings": 5, "judgements": 2, "runs": 1},
    ),
}
"""Case → files, and rows per table."""
REFUSED = {
    "blanks in ids between blanks": (
        {"my.run": "q1 Q0 my doc 1 12.4 bm25\n"},
        "my.run:1: More fields between blanks than 6: an id may hold a blank.",
    ),
    "whole numbers that may be scores or grades": (
        {"a.json": FALLING},
        "a.json: This may be ranx-run or ranx-qrels.",
    ),
}
"""Case → files, and what is said."""


def _import(files: dict[str, str], folder: Path) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    paths = [str(folder / name) for name in files]
    said = CliRunner().invoke(
        command, ["--store", str(folder / "store"), "import", *paths, "--format", "csv"]
    )
    return said.output


@pytest.mark.parametrize(("files", "taken"), TAKEN.values(), ids=TAKEN.keys())
def test_taken(open_page: OpenPage, tmp_path: Path, files: dict[str, str], taken: dict[str, int]) -> None:
    said = _import(files, tmp_path).splitlines()
    for table, rows in taken.items():
        assert f"taken,{table},{rows}," in [line[: len(f"taken,{table},{rows},")] for line in said], said
    app = open_page(tmp_path / "other", "add")
    app.file_uploader[0].set_value([(name, text.encode(), "text/plain") for name, text in files.items()])
    app.run()
    assert not app.exception
    assert not app.error
    app.button(key="add_now").click().run()
    assert app.success[0].value.startswith("Added as revision 1")


def test_own_ids_are_left_out_by_a_button(open_page: OpenPage, tmp_path: Path) -> None:
    app = open_page(tmp_path / "store", "add")
    run = b"a Q0 a 1 9 x\na Q0 p 2 8 x\nb Q0 p 1 9 x\nb Q0 b 2 8 x\n"
    app.file_uploader[0].set_value([("x.run", run, "text/plain")])
    app.run()
    assert "2 of 2 queries retrieve the passage of their own id." in unescaped(everything(app))
    app.button(key="drop_own").click().run()
    assert app.button(key="undo_own")
    app.button(key="add_now").click().run()
    snapshot = Store.open(tmp_path / "store").read()
    (run_id,) = snapshot.runs()["run_id"]
    assert snapshot.rankings([run_id])["passage_id"].to_list() == ["p", "p"]


@pytest.mark.parametrize(("files", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(open_page: OpenPage, tmp_path: Path, files: dict[str, str], message: str) -> None:
    assert message in " ".join(_import(files, tmp_path).split())
    app = open_page(tmp_path / "other", "add")
    app.file_uploader[0].set_value([(name, text.encode(), "text/plain") for name, text in files.items()])
    app.run()
    assert not app.exception
    assert message in unescaped(everything(app))
    assert not [button for button in app.button if button.key == "add_now"]


def test_the_page_asks_what_a_file_holds(open_page: OpenPage, tmp_path: Path) -> None:
    app = open_page(tmp_path / "store", "add")
    app.file_uploader[0].set_value([("a.json", FALLING.encode(), "application/json")])
    app.run()
    app.segmented_control(key="format0").set_value("ranx-qrels").run()
    assert not app.exception
    assert not app.error
    app.button(key="add_now").click().run()
    assert Store.open(tmp_path / "store").read().golden_sets()["judgements"].to_list() == [5]
