"""`import clq`: results in, a decision out, with the numbers that the commands print; bad input refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import core as clq
from core.analysis.workspace.question import Question
from core.analysis.workspace.scope import Quality
from core.api.options import AskedOptions
from core.cli.app import app
from core.errors import ClqError, InputError, UnknownNameError
from core.paths import ROOT
from tests.documents import blocks
from tests.stores import Lab

ROWS = {
    "stack": ["BM25", "hybrid"],
    "RA-nWG@10": [0.49, 0.61],
    "p50 latency ms": [12.0, 80.0],
    "cost per 1k": [0.001, 0.4],
}
FRAMES: list[tuple[str, Callable[[], Any]]] = [
    ("polars", lambda: pl.DataFrame(ROWS)),
    ("lazy", lambda: pl.LazyFrame(ROWS)),
    ("pandas", lambda: pd.DataFrame(ROWS)),
    ("pandas with the stacks as index", lambda: pd.DataFrame(ROWS).set_index("stack")),
    ("arrow", lambda: pl.DataFrame(ROWS).to_arrow()),
]


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> clq.Workspace:
    return clq.open(demo_store).workspace("python-docs")


def printed(store: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, ["--store", str(store), *words, "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make for _, make in FRAMES], ids=[name for name, _ in FRAMES])
def test_a_frame_is_a_table(tmp_path: Path, make: Callable[[], Any]):
    results = clq.open(tmp_path / "store")
    added = results.add(make(), name="mine")
    assert (added.fresh, added.collection, results.workspaces) == (True, "mine", ("mine",))
    assert not results.add(make(), name="mine").fresh
    decided = results.decide(sla_ms=50)
    assert decided.chosen is not None
    numbers = decided.chosen.quality, decided.chosen.latency_ms, decided.chosen.cost
    assert (decided.chosen.name, numbers) == ("BM25", (0.49, 12.0, 0.001))
    assert decided.near_misses.select("stack", "limit", "over").rows() == [("hybrid", "sla_ms", 30.0)]
    assert decided.confidence is not None
    assert decided.confidence.words == "How sure this is, is unknown: there is nothing to choose from."
    assert (decided.confidence.pgs, decided.confidence.p_best) == (None, None)
    free = results.decide()
    assert free.chosen is not None
    assert free.chosen.name == "hybrid"
    (other,) = free.alternatives.to_dicts()
    assert (other["stack"], other["low"], other["p_within_delta"]) == ("BM25", None, None)
    assert other["difference"] == pytest.approx(-0.12)
    assert other["saves"] == "$0.40 / 1k"  # 68 ms are less than the paper's jitter band
    taken = results.decide(take="BM25")
    assert taken.chosen is not None
    assert taken.chosen.name == "BM25"
    assert taken.data["taken"]["instead_of"] == "hybrid"
    assert decided.table.to_pandas()["status"].tolist() == ["chosen", "excluded"]


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (3, "int is neither a path, a DataFrame nor a dict"),
        ([ROWS], "list is neither"),
        (pd.DataFrame({"stack": [1, "x"], "RA-nWG@10": [0.1, 0.2]}), "mixed values"),
        (pl.DataFrame({"colour": ["red"], "size": [3]}), "found: colour, size"),
        (pl.DataFrame(), "table"),
        ("nowhere.csv", "no such file"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, thing: object, said: str):
    results = clq.open(tmp_path / "store")
    with pytest.raises(ClqError, match=said):
        results.add(thing)
    assert results.revision == 0


@pytest.mark.slow
def test_ids_that_mean_other_questions_do_not_go_into_a_workspace(tmp_path: Path):
    results = clq.open(tmp_path / "store")
    asked = {"q1": "how long may I wait", "q2": "where is my parcel"}
    Lab().ask(asked).hold({"p": "text"}).write(results.path)

    def table(*questions: str) -> pl.DataFrame:
        columns = {"query_id": list(asked), "question": questions, "nDCG@10": [0.5, 0.4], "stack": ["a", "a"]}
        return pl.DataFrame(columns)

    other = table("What is it?", "Who is it?")
    with pytest.raises(ClqError, match="2 of 2 query ids exist in lab, 0 with the same text"):
        results.add(other, collection="lab")
    assert results.add(table("How long may I wait?", "Where is my parcel"), name="alike").collection == "lab"
    assert results.add(other, name="mine").collection == "mine"


@pytest.mark.slow
def test_it_decides_as_the_command_does(demo: clq.Workspace, demo_store: Path):
    limits = ["--collection", "python-docs", "--sla-ms", "50", "--min-quality", "0.1"]
    assert demo.decide(sla_ms=50, min_quality=0.1).data == printed(demo_store, "decide", *limits)
    with pytest.warns(DeprecationWarning, match="floor is called min_quality now"):
        assert demo.decide(sla_ms=50, floor=0.1).data == demo.decide(sla_ms=50, min_quality=0.1).data


def test_it_scores_as_the_command_does(demo: clq.Workspace, demo_store: Path):
    rows = demo.score(["RA-nWG@10", "N-Recall4+@5"], runs=["BM25, K = 10"])
    words = ["--measures", "RA-nWG@10,N-Recall4+@5", "--collection", "python-docs", "--run", "BM25, K = 10"]
    assert rows["run_id"].to_list() == rows["run"].to_list()
    assert rows.drop("run_id").to_dicts() == printed(demo_store, "score", *words)
    per_query = demo.score("RA-nWG@10", runs=["BM25, K = 10"], per_query=True)
    assert per_query.height == rows["n"][0]


def test_measures_of_sets_need_no_cutoff(demo: clq.Workspace, demo_store: Path):
    rows = demo.score("set_recall, set_P")
    assert rows.select("measure", "k").unique().sort("measure").rows() == [("P@50", 50), ("R@50", 50)]
    assert rows.drop("run_id").to_dicts() == printed(
        demo_store, "score", "--measures", "set_recall,set_P", "--collection", "python-docs"
    )
    assert demo.decide(measure="set_recall").view.quality == Quality("R", 50)


@pytest.mark.slow
def test_a_page_says_what_the_command_says(demo: clq.Workspace, demo_store: Path):
    page = demo.page("headroom")
    assert page.data == printed(demo_store, "page", "headroom", "--collection", "python-docs")
    assert list(page.tables) == list(page.figures) == ["headroom"]
    chosen = demo.page("curves", choices={"curves": ["BM25, K = 10"]})
    assert "BM25" in chosen.choices["curves"]["value"]


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda space: space.decide(sla_ms=-1), InputError, "sla_ms=-1 is out of range"),
        (lambda space: space.decide(sla_ms="50"), InputError, "not a number"),
        (lambda space: space.decide(sla_ms=float("nan")), InputError, "out of range"),
        (lambda space: space.decide(on="p51"), UnknownNameError, "No on 'p51'"),
        (lambda space: space.decide(slam_ms=5), UnknownNameError, "No argument 'slam_ms'. Nearest: sla_ms"),
        (lambda space: space.decide(prices="free"), UnknownNameError, "No price book 'free'"),
        (lambda space: space.decide(measure="Beauty@10"), UnknownNameError, "Beauty"),
        (lambda space: space.decide(together="yes"), InputError, "not true or false"),
        (lambda space: space.score("RA-nWG@10", runs=["nobody"]), UnknownNameError, "nobody"),
        (lambda space: space.page("weather"), UnknownNameError, "No page 'weather'"),
        (lambda space: space.page("headroom", choices={"rain": 1}), UnknownNameError, "No choice 'rain'"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    demo: clq.Workspace, ask: Callable[[Any], object], error: type[ClqError], said: str
):
    with pytest.raises(error, match=said):
        ask(demo)


def test_one_of_several_workspaces_must_be_named(demo_store: Path, empty_store: Path):
    with pytest.raises(InputError, match="2 workspaces"):
        clq.open(demo_store).decide()
    with pytest.raises(InputError, match="The store is empty"):
        clq.open(empty_store).workspace()
    with pytest.raises(UnknownNameError, match="No workspace 'nowhere'"):
        clq.open(demo_store).workspace("nowhere")


@pytest.mark.slow
def test_a_record_holds_until_it_does_not(demo: clq.Workspace, tmp_path: Path):
    decided = demo.decide(sla_ms=50)
    (file,) = decided.record(tmp_path / "record.json")
    with pytest.raises(InputError, match="exists already"):
        decided.record(file)
    held = demo.gate(file)
    assert held
    assert (held.findings.height, held.changes.height) == (0, 0)
    stricter = demo.decide(sla_ms=0.0001).gate(file)
    assert not stricter
    assert stricter.findings["check"].to_list()[0] == "limit"
    assert stricter.changes.rows() == [("limit", "sla ms", "50", "0.0001")]
    assert "sla_ms=50" in decided.link("https://clq.example/")


@pytest.mark.slow
def test_everything_shows_itself_and_no_name_is_markup(hostile_store: Path):
    results = clq.open(hostile_store)
    space = results.workspace(results.workspaces[0])
    for shown in (results, space, space.decide(), space.page("queries")):
        html = shown._repr_html_()
        assert "<img" not in html
        assert "<b>bold</b>" not in html
        assert "prefers-color-scheme: dark" in html
        assert html.count("<style>") == html.count("</style>") == 1
        assert shown.sentence.split(":")[0] in " ".join(repr(shown).split())  # however its lines are broken
        console = Console(width=80, file=io.StringIO())
        console.print(shown)
        assert console.file.getvalue().strip()


def test_choices_of_python_are_those_of_commands():
    limits = {"measure", "sla_ms", "budget", "min_quality", "max_harm", "collection", "golden_set"}
    assert set(AskedOptions.__annotations__) == {field.name for field in fields(Question)} - limits


@pytest.mark.slow
def test_the_package_is_loaded_with_its_first_use():
    code = "import core, sys; print('polars' in sys.modules); core.open; print('plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert set(clq.__all__) <= set(dir(clq))
    assert clq.prices.load_books()["list"].frame().height
    with pytest.raises(AttributeError):
        _ = clq.nothing


@pytest.mark.slow
def test_the_blocks_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "clq", clq)
    monkeypatch.chdir(tmp_path)
    marked = [block for block in blocks(ROOT / "docs" / "api.md") if block.note == "runs"]
    scope: dict[str, Any] = {}
    for block in marked:
        exec(compile(block.text, "docs/api.md", "exec"), scope)  # noqa: S102 - the guide's own
    assert scope["decision"].chosen.name == "hybrid"
    assert len(marked) == 3
    assert sorted(scope["dicts"].workspace().runs["stack"]) == ["first", "second"]
    assert (tmp_path / "decision.html").stat().st_size > 10_000
