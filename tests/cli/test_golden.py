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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "advice"), [(5.0, "map is recommended"), (0.6, "locks is recommended")])
def test_a_plan_recommends_a_way_to_refine_that_the_budget_pays_for(
    demo_store: Path, tmp_path: Path, budget: float, advice: str
):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f"""
        name = "graded"
        collection.stored = "python-docs"
        queries.limit = 10
        budget_usd = {budget}
        golden.judge.models = ["gpt-5-mini"]
        golden.refine.method = "auto"
        [[golden.pool]]
        stack.sparse = "bm25"
        depth = 50
        """
    )
    words = ["--store", str(demo_store), "golden", "plan", str(spec)]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert advice in said.stdout
    assert "calls a question" in said.stdout
    plan = json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).stdout)
    assert [way["method"] for way in plan["ways"]] == ["none", "locks", "map"]
    ordering = sum(stage["calls"] for stage in plan["stages"] if stage["stage"] == "refine")
    (chosen,) = [way for way in plan["ways"] if way["recommended"]]
    assert ordering == pytest.approx(10 * chosen["turns"], abs=1)
