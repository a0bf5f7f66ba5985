import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.golden.book import Book
from core.store import Store
from core.views.golden.judging import book_path


def simulated(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["golden", "simulate", *words])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_simulation_as_json():
    words = ("--noise", "0.5", "--items", "12", "--confirmations", "2", "--stable", "4", "--runs", "6")
    (found,) = json.loads(simulated(*words, "--seed", "7", "--format", "json"))
    assert found["low"] <= found["tau"] <= found["high"]
    assert found["gain"] == pytest.approx(found["tau"] - found["grades"])
    assert (found["method"], found["items"], found["runs"], found["seed"]) == ("locks", 12, 6, 7)
    assert found["turns"] > 4
    (least,) = json.loads(
        simulated(*words, "--method", "map", "--turns", "10", "--seed", "7", "--format", "json")
    )
    assert least["grades"] == found["grades"]
    assert least["turns"] <= 10


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--items", "1"), 1),
        (("--runs", "0"), 1),
        (("--turns", "0"), 1),
        (("--method", "x"), 2),
        (("--sure", "3"), 1),
    ],
)
def test_what_cannot_be_simulated(words: tuple[str, ...], code: int):
    simulated("--noise", "1", *words, code=code)


def test_what_to_judge_next(demo_store: Path, tmp_path: Path):
    store = tmp_path / "own" / "store"
    shutil.copytree(demo_store, store)
    asked = ["--collection", "python-docs", "--n", "7", "--format", "json"]
    words = ["--store", str(store), "golden", "next", *asked]
    said = json.loads(CliRunner().invoke(app, words).stdout)
    assert len(said["next"]) == 7 <= said["waiting"]
    assert not said["reached"]
    values = [row["value"] for row in said["next"]]
    assert values == sorted(values, reverse=True)
    assert said["queue"] is None
    named = json.loads(CliRunner().invoke(app, [*words, "--queue"]).stdout)["queue"]
    book = Book(book_path(Store.open(store)))
    assert [(each.query_id, each.passage_id) for each in book.items(named)] == [
        (row["query_id"], row["passage_id"]) for row in said["next"]
    ]
    reached = json.loads(CliRunner().invoke(app, [*words, "--target", "0"]).stdout)
    assert reached["reached"]
    assert reached["next"] == []
