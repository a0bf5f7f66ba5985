"""A mean is used where nothing better is known of any stack, and named; it never stands for a p50."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.choices import choices
from core.analysis.workspace.figures.latencies import MEAN_SAID, latencies
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.scope import MEAN, Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.importers import Options, Upload, load
from core.store import Store
from core.views.decision.words import answer
from core.work.imports.imports import store_import
from tests.stores import Lab
from tests.views.made import BOOK

SUMMARY = """strategy,recall_at_5,mrr,{column}
fixed,0.23,0.12,38.0
semantic,0.13,0.11,33.2
sentence,0.30,0.18,37.7
"""
MIXED = "stack,nDCG@10,latency_p50_ms,latency_mean_ms\na,0.7,20,25\nb,0.8,,24\nc,0.6,18,\n"


def brought(folder: Path, data: str) -> Store:
    store = Store.open(folder / "store")
    store_import(store, load([Upload("x.csv", data.encode())], Options()), "x")
    return store


def asked(store: Store, **question: object) -> View:
    return resolve(Question(**question), store.read(), BOOK)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("column", ["avg_total_latency_ms", "mean_latency_ms", "latency_mean_ms"])
def test_of_means_alone_the_mean_is_asked_for(column: str, tmp_path: Path):
    store = brought(tmp_path, SUMMARY.format(column=column))
    view = asked(store, sla_ms=37.0)
    assert view.latency.name == "Retrieval latency mean (ms)"
    assert view.table["latency_ms"].to_list() == [38.0, 33.2, 37.7]
    assert set(view.table["latency_note"]) == {MEAN_SAID}
    assert view.table["name"][view.decision.chosen or 0] == "semantic"

    path = tmp_path / "files.csv"
    path.write_text(SUMMARY.format(column=column))
    for words in (["import", str(path)], ["decide", "--sla-ms", "37", "--format", "json"]):
        made = CliRunner().invoke(app, ["--store", str(tmp_path / "other"), *words])
        assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert found["asked"]["latency"] == "Retrieval latency mean (ms)"
    assert (found["chosen"]["stack"], found["chosen"]["latency_note"]) == ("semantic", MEAN_SAID)

    decided = open_store(store.path).workspace("x").decide(sla_ms=37.0)
    assert "33.2 ms (mean)" in answer(decided.view).sentence
    html = decided.record(tmp_path / "r.json", tmp_path / "r.html")[1].read_text()
    assert "Retrieval latency mean (ms)" in html
    assert MEAN_SAID in html
    assert "One search takes 33.2 ms on average (mean) (limit 37.0 ms)" in html
    blocks = decided.page("decision").blocks
    cards = {card[0]: card[1] for block in blocks for card in getattr(block, "cards", ())}
    assert cards["Latency mean"] == "33.2 ms"


def test_where_some_have_a_p50_a_mean_is_not_taken_for_one(tmp_path: Path):
    store = brought(tmp_path, MIXED)
    view = asked(store, sla_ms=30.0)
    assert view.latency.percentile == "p50"
    assert view.table["latency_ms"].to_list() == [20.0, None, 18.0]
    assert "only a mean was reported" in view.table["latency_note"][1]
    assert view.table["name"][view.decision.chosen or 0] == "a"

    view = asked(store, sla_ms=30.0, on=MEAN)
    assert view.table["latency_ms"].to_list() == [25.0, 24.0, None]
    assert "only a p50 was reported" in view.table["latency_note"][2]
    assert view.table["name"][view.decision.chosen or 0] == "b"


def test_the_mean_of_what_was_timed(tmp_path: Path):
    took = [10.0, 20.0, 30.0, 100.0, 15.0, 25.0, 35.0, 45.0, 12.0, 22.0, 32.0]
    lab = Lab().judge({f"q{n}": {"p": 5} for n in range(11)})
    lab.run("a", final={f"q{n}": ["p"] for n in range(11)}, ms={"sparse": took}).run("b")
    stages = [{"measure": "latency_mean", "stage": stage, "value": 5.0} for stage in ("embed", "retrieve")]
    snapshot = lab.run("c", figures=stages, spec={"mode": "dense"}).write(tmp_path / "s").read()
    found = latencies(snapshot, runs_in(snapshot, Scope("lab")), Latency(MEAN))
    rows = {row["run_id"]: row for row in found.iter_rows(named=True)}
    assert (rows["a"]["latency_ms"], rows["a"]["latency_n"]) == (pytest.approx(np.mean(took)), 11)
    assert rows["a"]["latency_low"] < np.mean(took) < rows["a"]["latency_high"]
    assert (rows["b"]["latency_ms"], rows["b"]["latency_note"]) == (None, "no timings recorded")
    assert (rows["c"]["latency_ms"], rows["c"]["latency_note"]) == (
        10.0,
        f"{MEAN_SAID}; sum of 2 stage means",
    )
    assert choices(snapshot, Scope("lab", "gold")).percentile == "p50"
