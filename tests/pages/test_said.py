"""A page says the same on screen, in the command line and in files."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from core.cli.app import app as commands
from core.errors import InputError, UnknownNameError
from core.report.page import say
from core.store import Store
from core.views.ask import Given
from core.views.blocks import (
    Answer,
    Blocks,
    Cards,
    Control,
    Fold,
    Section,
    SideBySide,
    Tabs,
    Text,
)
from core.views.columns import COLUMNS
from tests.pages.test_places import SCHEMA
from tests.stores import Lab


def run(*words: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(commands, words)


@pytest.mark.slow
def test_the_command_writes_every_form(demo_store: Path, tmp_path: Path):
    asked = ("--store", str(demo_store), "page", "latency", "--collection", "python-docs")
    done = run(*asked, "--section", "where the time goes")
    assert done.exit_code == 0
    assert "BM25 ⊕ " in done.stdout
    assert "BM25, K = 10" not in done.stdout  # which nothing reads
    done = run(*asked, "--set", "shape=box", "--format", "json")
    data = json.loads(done.stdout)
    assert data["choices"]["shape"]["value"] == "box"
    assert [block["kind"] for block in data["blocks"][-2:]] == ["table", "fold"]
    assert data["blocks"][-2]["columns"][0] == {
        "name": "name", "label": COLUMNS["name"].label, "form": "text", "help": None,
    }  # fmt: skip
    done = run(*asked, "--format", "csv")
    assert done.stdout.startswith("stage,n,p50")
    for form in ("html", "md"):
        assert run(*asked, "--format", form, "--out", str(tmp_path / form)).exit_code == 0
        assert (tmp_path / form).stat().st_size > 500


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--section", "generatr"), "No section 'generatr'"),
        (("--set", "shap=box"), "No choice 'shap'"),
        (("--set", "shape=pie"), "No shape 'pie'. Found: ECDF, box."),
        (("--set", "shape"), "Write --set KEY=VALUE."),
        (("--set", "lats=nobody"), "No stack 'nobody'"),
        (("--table", "nothing", "--format", "csv"), "No table 'nothing'"),
    ],
)
def test_what_cannot_be_asked_is_refused(demo_store: Path, more: tuple[str, ...], told: str):
    done = run("--store", str(demo_store), "page", "latency", "--collection", "python-docs", *more)
    assert done.exit_code == 1
    assert told in done.stderr


def test_the_library_is_of_the_store_and_needs_no_workspace(demo_store: Path, tmp_path: Path):
    asked = ("--store", str(demo_store), "page", "library", "--format", "json")
    data = json.loads(run(*asked, "--set", "kind=Golden sets").stdout)
    SCHEMA.validate(data)
    assert [data["workspace"][name] for name in ("collection", "quality", "prices")] == [None] * 3
    held, _, _, _, history, printed = data["blocks"][1:]
    (table,) = held["blocks"]
    golden = Store.open(demo_store).read().golden_sets()
    assert [row["golden_set_id"] for row in table["rows"]] == golden["golden_set_id"].to_list()
    assert [row["revision"] for row in history["blocks"][-1]["rows"]][-1] == 1
    assert len(printed["blocks"][-1]["rows"]) > 10
    assert "No collection 'nope'" in run(*asked, "--collection", "nope").stderr
    gone = Lab().judge({"q": {"p": 5}}).run("a", final={"q": ["p"]}).write(tmp_path / "store")
    with gone.write("delete") as writer:
        writer.remove("collection", ["lab"])
    done = run("--store", str(tmp_path / "store"), "page", "library", "--table", "collection_deleted",
               "--format", "csv")  # fmt: skip
    assert done.stdout.splitlines()[1].startswith("lab,")


def test_a_page_without_blocks_names_those_that_have_some(demo_store: Path):
    done = run("--store", str(demo_store), "page", "add", "--collection", "python-docs")
    assert done.exit_code == 1
    assert "headroom" in done.stderr


def test_a_number_is_refused_out_of_its_range():
    asked = Given({"a": ["12"], "b": ["x"], "c": ["3"]})
    assert asked.number("n", "c", None, 1.0) == 3
    with pytest.raises(InputError, match="out of range"):
        asked.number("n", "a", None, 1.0, 10.0)
    with pytest.raises(InputError, match="not a number"):
        asked.number("n", "b", None, 1.0)
    with pytest.raises(UnknownNameError, match="choice"):
        Given({"d": ["1"]}).unasked()
    assert math.isclose(Given({}).number("n", "e", 2.5, 0.0) or 0, 2.5)


def test_several_of_a_list_are_taken_or_the_usual_ones():
    offered = ("one", "two", "three")
    asked = Given({"a": ["two", "one"], "b": ["four"]})
    with asked.aside("Rules"):
        assert asked.several("n", offered, "a", usual=["three"]) == ["two", "one"]
    assert asked.several("n", offered, "c", usual=["three"]) == ["three"]
    with pytest.raises(UnknownNameError, match="four"):
        asked.several("n", offered, "b", usual=[])
    with pytest.raises(InputError, match="2 were given"):
        asked.several("n", offered, "a", usual=[], most=1)


def test_tabs_and_folds_are_kept_though_they_are_drawn_once():
    def draw(*_: object) -> Blocks:
        yield Tabs([Fold("tab", iter([Text("inside")]))])

    page = SimpleNamespace(name="own", drawn=lambda: [Section("", draw)])
    assert say(page, None, None, {}).blocks == (Fold("tab", (Text("inside"),)),)


def test_ranges_and_words_can_be_given():
    asked = Given({"b": ["0.75", "0.25"], "c": ["RBP@3"], "d": ["350"]})
    assert asked.slide("n", "b", (0.1, 0.2), 0, 1, step=0.1) == (0.25, 0.75)
    assert asked.typed("n", ["AP"], "c", usual="AP") == "RBP@3"
    assert asked.text("n", "d") == "350"
    usual = Given({})
    assert usual.slide("n", "b", (50,), 0, 100, step=5) == (50,)
    assert usual.typed("n", ["AP"], "c", usual="AP") == "AP"
    assert usual.text("n", "d") == ""
    with pytest.raises(InputError, match="2 numbers were given"):
        asked.slide("n", "b", (0.1,), 0, 1, step=0.1)


def test_a_later_answer_takes_the_place_of_the_one_before():
    first, then, line = Answer("At first."), Answer("In the end."), Text("Between.")
    cards = [Cards([("n", each, "")]) for each in "12"]

    def draw(*_: object) -> Blocks:
        yield from (first, cards[0], SideBySide([line], [Control("form")]), cards[1], then)

    page = SimpleNamespace(name="own", drawn=lambda: [Section("", draw)])
    assert say(page, None, None, {}).blocks == (then, cards[1], line)
