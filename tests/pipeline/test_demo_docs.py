"""The first look: shipped results over the demo's texts that have a trade-off to feel."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.api import Results
from core.api import open as open_store
from core.cli.app import app
from core.paths import ROOT
from core.pipeline import demo, demo_docs
from core.store import Store
from core.views.blocks import Way
from core.work import incumbent
from tools.demo.pool import write_tables


@pytest.mark.slow
def test_what_is_shipped_is_loaded_and_spans_three_orders_of_magnitude(tmp_path: Path):
    done = CliRunner().invoke(app, ["--store", str(tmp_path / "store"), "demo"])
    assert done.exit_code == 0, done.output
    snapshot = Store.open(tmp_path / "store").read()
    runs = snapshot.runs(demo_docs.COLLECTION_ID)
    assert runs.height == 25
    rankings = snapshot.rankings(runs["run_id"].to_list()).filter(stage="final")
    asked = rankings.group_by("run_id").agg(pl.col("query_id").n_unique()).join(runs, on="run_id")
    fewer = dict(asked.filter(pl.col("query_id") < 150).select("label", "query_id").iter_rows())
    dropped = {"BM25 ⊕ MiniLM + rebel-rules, K = 50 · rrf 1 : 1.3": 148}
    assert fewer == {"BM25": 147, "BM25 + late interaction, K = 20": 147, **dropped}, "no word in common"
    assert set(rankings["passage_id"]) <= set(demo.passages()["passage_id"])
    timings = snapshot.timings(runs["run_id"].to_list())
    whole = timings.group_by("run_id", "query_id", "repeat").agg(pl.col("ms").sum())
    times = whole.group_by("run_id").agg(pl.col("ms").median())["ms"]
    assert times.max() > 10_000 * times.min() > 0
    assert snapshot.answers(runs["run_id"].to_list())["reader"].unique().to_list() == ["fake"]
    assert snapshot.sizes("diagnostics").height == 4, "names in embedders"
    assert "python-docs" not in snapshot.collections()["collection_id"], "nothing was measured"
    marked = snapshot.runs(demo_docs.RUNNING_ID).filter(label=demo_docs.RUNS_TODAY)["run_id"].to_list()
    assert incumbent.marked(snapshot)["run_id"].to_list() == marked
    assert snapshot.runs(demo_docs.RUNNING_ID).height == len(demo_docs.CANDIDATES) + 1
    assert_pages_agree(open_store(tmp_path / "store"))


@pytest.mark.slow
def test_where_a_stack_runs_today_its_steps_name_a_fusion_that_nobody_ran(shipped_store: Path):
    """The second workspace has the texts, grades and results of the first, of its later questions alone."""
    results = open_store(shipped_store)
    space = results.workspace(demo_docs.RUNNING_ID)
    said = space.switch()
    assert (said["incumbent"], said["answer"]) == (demo_docs.RUNS_TODAY, "stay")
    steps = space.page("what_if", "steps").tables["steps"]
    assert steps.drop_nulls("in_sample").height == 2
    assert steps["step"].to_list()[0] == "a setting"
    assert set(steps["step"]) == {"a setting", "a new index", "embedding again"}
    assert results.workspace(demo_docs.COLLECTION_ID).decide().data["stay_or_switch"] is None
    whole = results.workspace(demo_docs.COLLECTION_ID).score("RA-nWG@10", per_query=True)
    own = space.score("RA-nWG@10", per_query=True)
    both = own.join(whole, on=["query_id", "stack"], suffix="_whole")
    assert both.height == own.height
    assert both["value"].to_list() == pytest.approx(both["value_whole"].to_list())


def assert_pages_agree(results: Results):
    """No page says that nothing was measured of which another shows what was; README's numbers are so."""
    space = results.workspace(demo_docs.COLLECTION_ID)
    assert "59 from papers, 43 measured." in str(space.page("library")), "elsewhere: it is shipped"
    empty = space.page("latency", "indexes")
    assert empty.sentence == "No stand-alone index benchmark yet."
    kinds = space.page("latency", "index loss").tables["index_loss"]["index"].n_unique()
    ways = [(block.section, block.label) for block in empty.blocks if isinstance(block, Way)]
    assert ways == [("index loss", f"What {kinds} kinds of index lose here")]
    table = space.decide().table
    least, most = (
        float(end) for end in table.select(low=pl.min("latency_ms"), high=pl.max("latency_ms")).row(0)
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    span = f"`docs-search`, {table.height} stacks from {least:.2f} ms to {most / 1000:.1f} s over"
    assert span in readme
    assert f"with {demo_docs.queries().height} graded questions" in readme
    measured = (*demo.grid(), *demo.noisy(), *demo.reranked())
    unperturbed = {stack.stack_id for stack in measured if "perturb" not in stack.spec}
    assert f"`python-docs`: {len(unperturbed)} stacks really run" in readme


def test_shipped_results_are_small_and_say_how_they_were_timed():
    assert sum(file.stat().st_size for file in demo_docs.RESULTS.iterdir()) < 1_200_000
    batch, _ = demo_docs.shipped()
    assert all("processor time" in run.environment["reported"] for run in batch.runs)
    assert all("/demo/" not in str(run.manifest) for run in batch.runs)


def test_grades_name_their_judges_repeat_none_and_leave_no_first_ten_unjudged():
    workspace, _ = demo_docs.shipped()
    judged = workspace.frames["judgements"].lazy().collect()
    graded = judged.filter(golden_set_id=demo_docs.GOLDEN_SET_ID)
    assert not graded.select("query_id", "passage_id").is_duplicated().any()
    counts = dict(graded.group_by("judge").len().iter_rows())
    later = dict(zip(demo_docs.LATER.values(), (483, 3622), strict=True))
    assert counts == {demo.golden_set().judge: demo.judgements().height, **later}
    readme = (demo.DEMO / "README.md").read_text(encoding="utf-8")
    assert all(f"{count:,} grades" in readme for count in later.values())
    assert set(graded["query_id"]) == set(demo_docs.queries()["query_id"])
    offered = [run.run_id for run in workspace.runs if "perturb" not in run.stack.spec]
    ranked = workspace.frames["rankings"].lazy().filter(pl.col("run_id").is_in(offered), stage="final")
    first = ranked.filter(pl.col("rank") <= 10).collect()
    assert first.join(graded, on=["query_id", "passage_id"], how="anti").is_empty()


def test_more_questions_are_of_three_packages_and_have_their_answers_graded():
    asked, graded = demo_docs.queries(), demo_docs.texts().frames["judgements"].lazy().collect()
    assert asked.height == asked["query_id"].n_unique() == asked["text"].n_unique() == 150
    rows = [json.loads(line) for line in demo_docs.MORE.read_text(encoding="utf-8").splitlines()]
    hoped = {(row["query_id"], answer) for row in rows for answer in row["answers"]}
    assert hoped <= set(graded.select("query_id", "passage_id").iter_rows())
    tags = Counter(tag for row in rows for tag in row["tags"])
    assert all(tags[f"package={name}"] >= 20 for name in ("numpy", "polars", "streamlit"))


def test_what_is_left_to_judge_is_written_as_tables_that_tell_no_rank(tmp_path: Path, monkeypatch):
    assert write_tables(tmp_path / "none") == 0
    kept = {file: judge for file, judge in demo_docs.LATER.items() if "whole" not in file.name}
    monkeypatch.setattr(demo_docs, "LATER", kept)
    pairs = write_tables(tmp_path / "all")
    tables = [pl.read_csv(file, separator="\t", quote_char=None) for file in (tmp_path / "all").iterdir()]
    assert {tuple(table.columns) for table in tables} == {("query_id", "passage_id", "text", "title", "body")}
    assert sum(table.height for table in tables) == pairs > 2000
