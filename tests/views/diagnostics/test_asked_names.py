"""Other names in questions: what the store holds of it, for page and command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.choices import workspaces
from core.analysis.workspace.scope import Quality
from core.cli.app import app
from core.store import Store
from core.views.diagnostics import asked_names
from core.views.diagnostics.names import figures
from core.work.names import stored
from tests.stores import Lab
from tests.views.made import LAB

ASKED = [f"q{n}" for n in range(1, 13)]
PEOPLE = ("Ada", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon")
TEXTS = {query: f"What did {name} do?" for query, name in zip(ASKED, PEOPLE, strict=False)}
TEXTS |= dict.fromkeys(ASKED[10:], "and then what happened")
DENSE = {"mode": "dense", "embedder": "wordllama", "dim": 64, "index": "flat", "candidates": 3}
BM25 = {"mode": "sparse", "sparse": "bm25", "candidates": 3}
QUALITY = Quality("N-Recall4+", 1)


def ranked(right: Sequence[str]) -> dict[str, list[str]]:
    return {query: ([f"p-{query}"] if query in right else []) + [f"x-{query}"] for query in ASKED}


def write(path: Path) -> Path:
    """Put stacks that were asked with other names into a store."""
    made = Lab().judge({query: {f"p-{query}": 5, f"x-{query}": 1} for query in ASKED})
    for run_id, (right, spec) in {
        "dense": (ASKED, DENSE),
        "dense-1": ([*ASKED[4:10], *ASKED[10:]], {**DENSE, "perturb": {"names": "1"}}),
        "dense-mask": (ASKED[10:], {**DENSE, "perturb": {"names": "mask"}}),
        "dense-noise": (ASKED[:5], {**DENSE, "perturb": {"noise": 4}}),
        "sparse": (ASKED[:9], BM25),
        "sparse-1": (ASKED[:4], {**BM25, "perturb": {"names": "1"}}),
        "other": (ASKED, {**BM25, "candidates": 2}),
    }.items():
        made.run(run_id, final=ranked(right), spec={"name": run_id.partition("-")[0], **spec})
    told = {f"p-{query}": f"This is what {name} did." for query, name in zip(ASKED, PEOPLE, strict=False)}
    made.ask(TEXTS).hold(told).write(path)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("named") / "store")


def test_quality_and_margin_stand_side_by_side(store: Path):
    snapshot = Store.open(store).read()
    found = asked_names.renamed(snapshot, LAB, QUALITY)
    assert found.gathered.query_ids == tuple(sorted(ASKED[:10])), "the others name nothing"
    assert set(found.gathered.rows["run_id"]) == {"dense", "dense-1", "dense-mask", "sparse", "sparse-1"}
    margins = asked_names.known_margins(snapshot, LAB, found)
    rows = asked_names.side_by_side(found, margins)
    assert rows["names"].to_list() == ["1", "mask", "1"]
    assert rows["clean"].to_list() == pytest.approx([1.0, 1.0, 0.9])
    assert rows["change"].to_list() == pytest.approx([-0.4, -1.0, -0.5])
    assert rows["n"].to_list() == [10, 10, 10]
    assert (rows["change_low"] <= rows["change"]).all()
    assert [each is None for each in rows["d_change"]] == [False, False, True], "BM25 has no vectors"
    base = margins.filter(condition="", measure="d_name")["value"].item()
    assert rows["d_name"].to_list() == [pytest.approx(base), pytest.approx(base), None]
    assert rows["d_change"][1] < rows["d_change"][0] < 0
    assert "0.600" in asked_names.answer(rows, QUALITY)
    drawn = asked_names.chart(rows, QUALITY)
    assert [list(trace.x) for trace in drawn.data if trace.name.startswith("sparse")] == [[-0.5]]


CHANGES = [(-10.0, -0.1), (-40.0, -0.2), (-70.0, -0.5), (-20.0, 0.0), (-50.0, -0.3), (-80.0, -0.25)]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        # ranks of the margins 6 4 2 5 3 1 and of the quality 5 4 1 6 2 3: 1 − 6·(1+0+1+1+1+4)/210
        ([*zip("aaabbb", CHANGES, strict=True)], "is +0.77 ["),
        ([*zip("aaaa", CHANGES[:4], strict=True)], "is +0.80 (one stack only, so no interval)"),
        (
            [("a", (-10.0, None)), ("a", (-20.0, -0.1))],
            "cannot be told: 1 pair of stack and form, 4 are needed.",
        ),
    ],
)
def test_margins_and_quality_are_correlated_over_stacks_and_forms(rows, says: str):
    named = [{"stack": stack, "d_change": of[0], "change": of[1]} for stack, of in rows]
    schema = {"stack": pl.String, "d_change": pl.Float64, "change": pl.Float64}
    assert says in asked_names.linked(pl.DataFrame(named, schema=schema), QUALITY)


def test_without_such_runs_there_is_nothing(tmp_path: Path):
    Lab().judge({"q1": {"p": 5}}).run("one", final={"q1": ["p"]}, spec=BM25).write(tmp_path / "store")
    snapshot = Store.open(tmp_path / "store").read()
    found = asked_names.renamed(snapshot, LAB, QUALITY)
    assert not found
    assert asked_names.embedders(snapshot, found) == {}
    assert asked_names.side_by_side(found, asked_names.known_margins(snapshot, LAB, found)).is_empty()


@pytest.mark.slow
def test_the_command_keeps_the_margins_for_the_page(store: Path):
    command = ["--store", str(store), "diagnose", "questions", "--measure", "N-Recall4+@1"]
    made = CliRunner().invoke(app, [*command, "--dry-run"])
    assert made.exit_code == 0, made.output
    made = CliRunner().invoke(app, [*command, "--format", "json"])
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert (told["measure"], told["questions"], len(told["rows"])) == ("N-Recall4+@1", 10, 3)
    assert told["paper"]["d_change"] == -71.0
    snapshot = Store.open(store).read()
    held = stored.diagnosed(snapshot, asked_names.DIAGNOSIS)
    assert set(held["condition"]) == {"", "names 1", "names mask"}
    assert set(held["embedder"]) == {"wordllama"}
    found = asked_names.renamed(snapshot, LAB, QUALITY)
    rows = asked_names.side_by_side(found, asked_names.known_margins(snapshot, LAB, found))
    assert rows["d_change"].to_list() == pytest.approx([row["d_change"] for row in told["rows"]])
    assert figures(snapshot)[0].is_empty(), "they are no bundles"
    assert list(workspaces(snapshot)) == ["lab"]
