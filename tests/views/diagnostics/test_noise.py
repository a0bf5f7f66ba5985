"""What the store holds of perturbed runs, gathered for page and command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.perturbed import drops, effect_table, gather, per_query, robust_table
from core.analysis.workspace.scope import Ids, Quality, Scope
from core.cli.app import app
from core.metrics import Measure
from core.pipeline.evaluate import build
from core.providers import embed
from core.store import Snapshot
from tests.stores import Lab
from tests.views.made import LAB

ASKED = [f"q{n}" for n in range(1, 13)]
BM25 = {"name": "bm25", "mode": "sparse", "sparse": "bm25", "candidates": 3}
QUALITY = Quality("Success", 1)


def ranked(right: Sequence[str]) -> dict[str, list[str]]:
    return {query: ([f"p-{query}"] if query in right else []) + [f"x-{query}"] for query in ASKED}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Lab().judge({query: {f"p-{query}": 5, f"x-{query}": 1} for query in ASKED})
    for run_id, (right, more) in {
        "clean": (ASKED[:10], {}),
        "noise": (ASKED[:4], {"perturb": {"noise": 4}}),
        "typo": (ASKED[2:10], {"perturb": {"typo": 1}}),
        "rules": (ASKED[:10], {"rewrite": "rules"}),
        "rules-noise": (ASKED[:9], {"rewrite": "rules", "perturb": {"noise": 4}}),
    }.items():
        made.run(run_id, final=ranked(right), spec={**BM25, **more})
    path = tmp_path_factory.mktemp("noise") / "store"
    made.write(path)
    return path


@pytest.fixture(scope="module")
def snapshot(store: Path) -> Snapshot:
    from core.store import Store

    return Store.open(store).read()


def test_effects_of_a_store(snapshot: Snapshot):
    rows = {
        row["run_id"]: row
        for row in effect_table(snapshot, gather(snapshot, LAB, QUALITY), QUALITY).to_dicts()
    }
    assert rows["noise"]["change"] == pytest.approx(-6 / 12)
    assert rows["rules-noise"]["won"] == pytest.approx(5 / 12)
    assert rows["noise"]["overlap"] == pytest.approx(6 / 12)
    assert rows["noise"]["rewrite_ms"] is None


@pytest.mark.parametrize(
    ("scope", "stacks", "n"),
    [
        (LAB, {"clean", "other"}, 1),
        (replace(LAB, run_ids=("rules",)), {"BM25, K = 3"}, 12),
        (replace(LAB, run_ids=("noise",)), {"BM25, K = 3"}, 12),
        (replace(LAB, apart=Ids.of(["other"])), {"clean"}, 12),
        (replace(LAB, run_ids=("clean", "short"), shared=Ids.of(ASKED[:3])), {"clean"}, 3),
    ],
)
def test_stacks_and_queries_are_the_workspaces(tmp_path: Path, scope: Scope, stacks: set[str], n: int):
    made = Lab().judge({query: {f"p-{query}": 5} for query in ASKED})
    other, noise = {**BM25, "name": "other", "candidates": 2}, {"perturb": {"noise": 4}}
    for run_id, spec, asked in (
        ("clean", BM25, ASKED), ("noise", {**BM25, **noise}, ASKED),
        ("rules", {**BM25, "rewrite": "rules"}, ASKED), ("short", {**BM25, "candidates": 1}, ASKED[:3]),
        ("other", other, ASKED[:1]), ("other-noise", {**other, **noise}, ASKED[:1]),
    ):  # fmt: skip
        made.run(run_id, final={query: [f"p-{query}"] for query in asked}, spec=spec)
    found = gather(made.write(tmp_path / "store").read(), scope, QUALITY)
    assert (set(found.rows["stack"]), len(found.query_ids)) == (stacks, n)


@pytest.mark.slow
def test_vectors_are_those_of_the_workspaces_stacks_and_queries(tmp_path: Path):
    made = (
        Lab()
        .ask({query: f"what is {query}" for query in ASKED})
        .judge({query: {f"p-{query}": 5} for query in ASKED})
    )
    for dim, asked in ((64, ASKED), (128, ASKED[:3])):
        spec = {"name": f"w{dim}", "mode": "dense", "embedder": "wordllama", "dim": dim}
        for run_id, more in (("clean", {}), ("noise", {"perturb": {"noise": 1}})):
            final = {query: [f"p-{query}"] for query in asked}
            made.run(f"{run_id}{dim}", final=final, spec={**spec, **more})
    read = made.write(tmp_path / "store").read()
    for ids, dims, n in ((("clean64",), {64}, 12), (("clean128",), {128}, 3), ((), {64, 128}, 3)):
        scope = replace(LAB, run_ids=ids) if ids else LAB
        rows = drops(read, gather(read, scope, QUALITY)).filter(source="measured")
        assert set(rows["model"]) == {f"wordllama {dim} d" for dim in dims}
        assert set(rows["n"]) == {n}


def robust(snapshot: Snapshot, measure: str, perturbed: str) -> pl.DataFrame:
    asked = Measure.parse(f"Robust[{measure}]@1({perturbed})")
    return robust_table(snapshot, LAB, gather(snapshot, LAB, Quality(measure, 1)), asked)


def test_robust_is_the_worst_per_query_and_absent_runs_are_said(snapshot: Snapshot):
    rows = {row["run_id"]: row for row in robust(snapshot, "Success", "noise=4,typo=1").to_dicts()}
    assert rows["clean"]["robust"] == pytest.approx(2 / 12), "q3 and q4 alone survive both"
    assert rows["clean"]["lost"] == pytest.approx(-8 / 12)
    assert rows["rules"]["robust"] is None
    assert rows["rules"]["reason"] == "needs a run of the stack with typo 1"
    harm = robust(snapshot, "Harm", "noise=4").to_dicts()
    assert all(row["robust"] >= row["clean"] for row in harm), "of harm the worst is the most"


def test_queries_name_what_hurts_them_most(snapshot: Snapshot):
    found = gather(snapshot, LAB, QUALITY)
    rows = per_query(found, found.rows["family"][0])
    hurt = dict(rows.select("query_id", "hurt_by").iter_rows())
    assert (hurt["q1"], hurt["q9"], hurt["q3"]) == ("typo 1", "noise 4", None)
    assert rows["lost"][0] == -1.0


def test_of_a_measure_that_is_better_lower_the_most_hurts(snapshot: Snapshot):
    found = gather(snapshot, LAB, QUALITY)
    family = found.rows["family"][0]
    harmful = replace(found, values={run_id: 1 - each for run_id, each in found.values.items()})
    rows = per_query(harmful, family, higher_is_better=False)
    usual = per_query(found, family)
    for column in ("query_id", "hurt_by"):
        assert rows[column].to_list() == usual[column].to_list()
    assert rows["lost"][0] == 1.0


@pytest.mark.parametrize("quality", [Quality("Unheard", 1), QUALITY])
def test_nothing_perturbed_is_nothing(tmp_path: Path, quality: Quality):
    made = Lab().judge({"q1": {"p": 5}}).run("clean", final={"q1": ["p"]}, spec=BM25)
    read = made.write(tmp_path / "store").read()
    found = gather(read, LAB, quality)
    assert not found
    assert effect_table(read, found, quality).is_empty()
    assert robust_table(read, LAB, found, Measure.parse("Robust[Success]@1")).is_empty()


def test_the_commands_print_json(store: Path):
    def said(*words: str) -> list[dict[str, object]]:
        done = CliRunner().invoke(app, ["--store", str(store), "diagnose", *words, "--format", "json"])
        assert done.exit_code == 0, done.output
        rows = json.loads(done.stdout)
        assert isinstance(rows, list)
        return rows

    rows = {row["run_id"]: row for row in said("noise", "--measure", "Success@1")}
    assert rows["noise"]["change"] == pytest.approx(-0.5)
    (first, second) = said("robust", "--measure", "Success@1", "--perturb", "noise=4")
    assert (first["run_id"], second["run_id"]) == ("rules", "clean")


@pytest.mark.parametrize("perturb", ["noise", "noise=x", "shouting=1", "noise=9"])
def test_a_perturbation_that_is_none_is_refused(store: Path, perturb: str):
    done = CliRunner().invoke(app, ["--store", str(store), "diagnose", "robust", "--perturb", perturb])
    assert done.exit_code == 1
    assert "error" in done.stderr


def test_an_embedder_that_is_paid_for_needs_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = Lab().ask({"q1": "where do cats sleep", "q2": "who sang"}).run("clean", final={"q1": ["p"]})
    made.judge({"q1": {"p": 5}}).write(tmp_path / "store")
    fake = embed.make_embedder("fake", 8)
    monkeypatch.setattr(build, "make_embedder", lambda *_, **__: fake)
    asked = ["--store", str(tmp_path / "store"), "diagnose", "noise", "--embedder", "voyage-3.5"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert "10 texts" in done.stderr, "two queries at five levels"
    assert "about $0.0" in done.stderr
    planned = CliRunner().invoke(app, [*asked, "--dry-run"])
    assert (planned.exit_code, "10 texts" in planned.stderr) == (0, True)
    assert CliRunner().invoke(app, [*asked, "--yes"]).exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "not a table"),
        ("", "not a table"),
        ("id,text\nq1,where\n", "No column 'query_id'"),
        ("query_id,words\nq1,where\n", "No column 'text'"),
        ("query_id,text\nq1,where\nq1,there\n", "restated twice"),
        ("query_id,text\nq9,where\n", "no queries with text"),
        ("query_id,text\nq1,cats sleep where\nq2,\n", ""),
    ],
)
def test_references_that_cannot_be_used_are_refused(tmp_path: Path, text: str | None, said: str):
    made = Lab().ask({"q1": "where do cats sleep", "q2": "who sang"}).judge({"q1": {"p": 5}})
    made.run("clean", final={"q1": ["p"]}).write(tmp_path / "store")
    table = tmp_path / "ideal.csv"
    if text is not None:
        table.write_text(text, encoding="utf-8")
    asked = ["--embedder", "fake", "--dim", "8", "--references", str(table), "--format", "json"]
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "diagnose", "noise", *asked])
    assert done.exit_code == bool(said), done.output
    assert said in done.stderr
    if not said:
        own = [row for row in json.loads(done.stdout) if row["source"] == "measured"]
        assert {row["n"] for row in own} == {1}
