"""The first look: shipped results over the demo's texts that have a trade-off to feel."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.pipeline import demo, first_look
from core.store import Store


@pytest.mark.slow
def test_what_is_shipped_is_loaded_and_spans_three_orders_of_magnitude(tmp_path: Path):
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "demo", "--shipped"])
    assert done.exit_code == 0, done.output
    snapshot = Store.open(tmp_path / "store").read()
    runs = snapshot.runs(first_look.COLLECTION_ID)
    assert runs.height == 18
    rankings = snapshot.rankings(runs["run_id"].to_list()).filter(stage="final")
    assert rankings.group_by("run_id").agg(pl.col("query_id").n_unique())["query_id"].unique().to_list() == [
        64
    ]
    assert set(rankings["passage_id"]) <= set(demo.passages()["passage_id"])
    timings = snapshot.timings(runs["run_id"].to_list())
    whole = timings.group_by("run_id", "query_id", "repeat").agg(pl.col("ms").sum())
    times = whole.group_by("run_id").agg(pl.col("ms").median())["ms"]
    assert times.max() > 1000 * times.min() > 0
    assert "python-docs" not in snapshot.collections()["collection_id"], "nothing was measured"


def test_shipped_results_are_small_and_say_how_they_were_timed():
    assert sum(file.stat().st_size for file in first_look.RESULTS.iterdir()) < 1_000_000
    batch = first_look.batch()
    assert all("processor time" in run.environment["reported"] for run in batch.runs)
    assert all("/demo/" not in str(run.manifest) for run in batch.runs)
