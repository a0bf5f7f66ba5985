"""The first look: shipped results over the demo's texts that have a trade-off to feel."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.api import Results
from core.api import open as open_store
from core.cli.app import app
from core.paths import ROOT
from core.pipeline import demo, first_look
from core.store import Store
from core.views.blocks import Way


@pytest.mark.slow
def test_what_is_shipped_is_loaded_and_spans_three_orders_of_magnitude(tmp_path: Path):
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "demo"])
    assert done.exit_code == 0, done.output
    snapshot = Store.open(tmp_path / "store").read()
    runs = snapshot.runs(first_look.COLLECTION_ID)
    assert runs.height == 42
    rankings = snapshot.rankings(runs["run_id"].to_list()).filter(stage="final")
    asked = rankings.group_by("run_id").agg(pl.col("query_id").n_unique()).join(runs, on="run_id")
    fewer = asked.filter(pl.col("query_id") < 64)
    assert fewer["label"].str.contains("rebel-rules").all(), "which drops passages, all of one query"
    assert fewer.height == 1
    assert set(rankings["passage_id"]) <= set(demo.passages()["passage_id"])
    timings = snapshot.timings(runs["run_id"].to_list())
    whole = timings.group_by("run_id", "query_id", "repeat").agg(pl.col("ms").sum())
    times = whole.group_by("run_id").agg(pl.col("ms").median())["ms"]
    assert times.max() > 10_000 * times.min() > 0
    assert snapshot.answers(runs["run_id"].to_list())["reader"].unique().to_list() == ["fake"]
    assert snapshot.sizes("diagnostics").height == 4, "names in embedders"
    assert "python-docs" not in snapshot.collections()["collection_id"], "nothing was measured"
    assert_pages_agree(open_store(tmp_path / "store"))


def assert_pages_agree(results: Results):
    """No page says that nothing was measured of which another shows what was; README's numbers are so."""
    space = results.workspace(first_look.COLLECTION_ID)
    assert "(59 published, 42 measured) on" in space.page("library").sentence, "elsewhere: it is shipped"
    empty = space.page("latency", "indexes")
    assert empty.sentence == "No index was measured by itself, or imported."
    kinds = space.page("latency", "index loss").tables["index_loss"]["index"].n_unique()
    ways = [(block.section, block.label) for block in empty.blocks if isinstance(block, Way)]
    assert ways == [("index loss", f"What stacks here lose by {kinds} kinds of index")]
    table = space.decide().table
    least, most = (
        float(end) for end in table.select(low=pl.min("latency_ms"), high=pl.max("latency_ms")).row(0)
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    span = f"`docs-search`, {table.height} stacks from {least:.1f} ms to {most / 1000:.1f} s over"
    assert span in readme
    assert f"with {demo.queries().height} graded questions" in readme
    unperturbed = [stack for stack in demo._all() if "perturb" not in stack.spec]
    assert f"`python-docs`: {len(unperturbed)} stacks really run" in readme


def test_shipped_results_are_small_and_say_how_they_were_timed():
    assert sum(file.stat().st_size for file in first_look.RESULTS.iterdir()) < 1_000_000
    batch, _ = first_look.shipped()
    assert all("processor time" in run.environment["reported"] for run in batch.runs)
    assert all("/demo/" not in str(run.manifest) for run in batch.runs)


def test_grades_of_later_candidates_name_their_judge_and_repeat_none():
    workspace, _ = first_look.shipped()
    judged = workspace.frames["judgements"].lazy().collect()
    graded = judged.filter(golden_set_id=first_look.GOLDEN_SET_ID)
    assert not graded.select("query_id", "passage_id").is_duplicated().any()
    counts = dict(graded.group_by("judge").len().iter_rows())
    assert counts == {first_look.LATER_JUDGE: 483, demo.golden_set().judge: demo.judgements().height}
    readme = (demo.DEMO / "README.md").read_text(encoding="utf-8")
    assert "483 more grades" in readme
