import gc
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import polars as pl
import pytest

from core.errors import ClqError
from core.pipeline import environment
from core.pipeline.demo import grid
from core.pipeline.evaluate import Outcome, Protocol, State
from core.pipeline.evaluate.folder import Status
from core.pipeline.index import DatabaseIndex, DenseIndex, make_index
from core.records import Origin, Stack
from core.tables import TABLES
from tests.pipeline.corpora import passages
from tests.pipeline.evaluate.helpers import QUESTIONS, STACKS, Sunk, job, protocol, run

STAGES = {
    "sparse": {"sparse"},
    "dense": {"embed", "retrieve"},
    "hybrid": {"sparse", "embed", "retrieve", "fuse"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Sunk]:
    return run(tmp_path_factory.mktemp("run"))


def test_every_stack_becomes_a_run(made: tuple[Outcome, Sunk]):
    outcome, sunk = made
    assert outcome.status.state is State.FINISHED
    assert {each.stack.stack_id for each in outcome.runs} == {stack.stack_id for stack in STACKS}
    assert len(set(sunk.run_ids)) == len(outcome.runs) == len(STACKS) == outcome.status.runs_done
    assert {each.origin for each in outcome.runs} == {Origin.RUN}
    assert all(each.pool and each.pool.endswith(f"@{each.stack.spec['candidates']}") for each in outcome.runs)
    assert outcome.spent == ()


def test_frames_follow_the_declared_tables(made: tuple[Outcome, Sunk]):
    frames = made[1].all.frames
    assert set(frames) == {"rankings", "timings", "usage", "signals"}
    for table in frames:
        rows = made[1].table(table)
        assert rows.schema == TABLES[table]
        assert rows.null_count().sum_horizontal().item() == 0


def test_rankings_reach_the_candidate_depth_of_their_stack(made: tuple[Outcome, Sunk]):
    rankings = made[1].table("rankings")
    assert rankings["stage"].unique().to_list() == ["final"]
    for each in made[0].runs:
        for query_id, rows in rankings.filter(run_id=each.run_id).group_by("query_id"):
            depth = each.stack.spec["candidates"]
            assert rows["rank"].to_list() == list(range(1, rows.height + 1))
            assert rows.height <= depth
            assert rows.height == depth or each.stack.spec["mode"] == "sparse" or query_id == ("q02",)
            assert rows["passage_id"].is_unique().all()
            assert rows["score"].is_sorted(descending=True)


def test_a_shallower_stack_ranks_a_prefix_of_the_one_search(made: tuple[Outcome, Sunk]):
    rankings = made[1].table("rankings")
    by_stack = {each.stack.stack_id: each.run_id for each in made[0].runs}
    for each in made[0].runs:
        if each.stack.spec["candidates"] == 5:
            deep = by_stack[Stack({**each.stack.spec, "candidates": 20}).stack_id]
            cut = rankings.filter((pl.col("run_id") == deep) & (pl.col("rank") <= 5)).drop("run_id")
            assert cut.equals(rankings.filter(run_id=each.run_id).drop("run_id"))


def test_timings_hold_every_stage_and_repeat(made: tuple[Outcome, Sunk]):
    timings = made[1].table("timings")
    assert (timings["ms"] >= 0).all()
    for each in made[0].runs:
        rows = timings.filter(run_id=each.run_id)
        stages = STAGES[each.stack.spec["mode"]]
        assert set(rows["stage"]) == stages
        assert (
            rows.height
            == len(stages) * len(QUESTIONS) * 3
            == rows.unique(["stage", "query_id", "repeat"]).height
        )
        assert set(rows["repeat"]) == {1, 2, 3}


def test_a_step_is_measured_once_for_all_stacks_that_contain_it(made: tuple[Outcome, Sunk]):
    timings = made[1].table("timings")
    sparse = timings.filter(stage="sparse").group_by("query_id", "repeat").agg(pl.col("ms").n_unique())
    assert sparse["ms"].unique().to_list() == [1]
    embed = timings.filter(stage="embed").group_by("query_id", "repeat").agg(pl.col("ms").n_unique())
    assert embed["ms"].max() == 2  # two dimensions


def test_usage_is_the_median_over_the_repeats(made: tuple[Outcome, Sunk]):
    usage, timings = made[1].table("usage"), made[1].table("timings")
    keys = ["run_id", "query_id", "stage"]
    medians = timings.group_by(keys).agg(pl.col("ms").median())
    joined = usage.join(medians, on=keys, how="full")
    assert joined.height == usage.height == medians.height
    engines = joined.filter(pl.col("stage") != "embed")  # an embedder tells its processor time by itself
    np.testing.assert_allclose(engines["amount"], engines["ms"])
    assert usage.select("item", "unit", "basis").unique().row(0) == ("local-cpu", "cpu_ms", "measured")


def test_what_an_approximate_index_finds_is_recorded_for_every_query(made: tuple[Outcome, Sunk]):
    signals = made[1].table("signals").filter(signal="ann_recall")
    approximate = [r for r in made[0].runs if r.stack.spec.get("index", "flat") != "flat"]
    assert set(signals["run_id"]) == {each.run_id for each in approximate}
    for each in approximate:
        rows = signals.filter(run_id=each.run_id)
        depth = 100 if each.stack.spec["mode"] == "hybrid" else each.stack.spec["candidates"]
        assert rows["k"].unique().to_list() == [depth]
        assert set(rows["query_id"]) == {"q00", "q01", "q02", "q03"}
        assert rows["value"].is_between(0, 1).all()
        told = each.manifest["indexes"][each.stack.spec["index"]]
        assert told["ann_recall"] == pytest.approx(rows["value"].mean())


@pytest.mark.slow
def test_stacks_that_differ_in_ef_share_one_index_and_find_what_they_would_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    built: list[tuple[str, Any]] = []

    def count(name: str, *args: Any, **options: Any) -> DenseIndex | DatabaseIndex:
        built.append((name, args[2]))
        return make_index(name, *args, **options)

    monkeypatch.setattr("core.pipeline.evaluate.build.make_index", count)
    spec = {"mode": "dense", "embedder": "fake", "dim": 32, "index": "hnsw-f32", "reranker": "none"}
    stacks = [
        Stack({**spec, "candidates": 2, "index_params": {"M": 2, "efConstruction": 4, **ef}})
        for ef in ({"efSearch": 1}, {"efSearch": 300}, {})
    ]
    outcome, sunk = run(tmp_path / "together", job(stacks, protocol=protocol(repeats=1)))
    assert sorted(built) == [("flat", {}), ("hnsw-f32", {"M": 2, "efConstruction": 4})]
    recalls = []
    for stack, together in zip(stacks, outcome.runs, strict=True):
        alone, other = run(tmp_path / stack.stack_id, job([stack], protocol=protocol(repeats=1)))
        assert [each.run_id for each in alone.runs] == [together.run_id]
        for table in ("rankings", "signals"):
            mine = sunk.table(table).filter(run_id=together.run_id)
            assert mine.equals(other.table(table))
        told = together.manifest["indexes"]["hnsw-f32"]
        assert told["efSearch"] == stack.spec["index_params"].get("efSearch", 128)
        recalls.append(told["ann_recall"])
    assert recalls[0] < recalls[1]


def test_the_manifest_tells_how_to_repeat_it(made: tuple[Outcome, Sunk]):
    hybrid = next(r for r in made[0].runs if r.stack.spec["mode"] == "hybrid")
    manifest = hybrid.manifest
    assert manifest["spec"] == hybrid.stack.spec
    assert manifest["protocol"]["repeats"] == 3
    assert manifest["corpus"]["indexed"] == 80
    assert manifest["queries"] == {"hash": manifest["hashes"]["queries"], "asked": 4}
    assert set(manifest["indexes"]) == {"bm25", hybrid.stack.spec["index"]}
    assert manifest["indexes"]["bm25"]["variant"] == "lucene"
    assert {"build_s", "bytes", "embed_s", "embed_usage", "metric"} <= set(
        manifest["indexes"][hybrid.stack.spec["index"]]
    )
    assert manifest["rounds"][0]["round"] == 1
    assert {"cpu", "cores", "memory_gib", "python", "packages", "load_average"} <= set(hybrid.environment)


@pytest.mark.slow
def test_two_evaluations_rank_alike_and_are_two(made: tuple[Outcome, Sunk], tmp_path: Path):
    outcome, sunk = run(tmp_path, job(protocol=protocol(seed=5, repeats=4)))
    assert {each.run_id for each in outcome.runs}.isdisjoint(made[1].run_ids)
    by = ["stack", "query_id", "rank"]

    def ranked(batch: Sunk) -> pl.DataFrame:
        stacks = {each.run_id: each.stack.stack_id for each in batch.all.runs}
        rows = batch.table("rankings")
        return rows.with_columns(stack=pl.col("run_id").replace(stacks)).drop("run_id").sort(by)

    assert ranked(made[1]).equals(ranked(sunk))


def test_progress_counts_up_to_its_total(tmp_path: Path):
    told: list[Status] = []
    run(tmp_path, job(STACKS[:3]), progress=told.append)
    done = [status.done for status in told]
    assert done == sorted(done)
    assert told[-1].done == told[-1].total == 3 + 3 + 3 * 3  # built, answered, measured
    assert {status.total for status in told} <= {0, told[-1].total}
    assert all(status.stage for status in told)
    assert told[-1].state is State.FINISHED


def test_passages_without_text_are_not_found_and_titles_are(tmp_path: Path):
    corpus = passages(["", " \n", "other words", ""], titles=[None, "", None, "lazy frame"])
    stacks = list(grid(embedder="fake", dims=(8,), depths=(10,)))
    outcome, sunk = run(tmp_path, job(stacks, texts=corpus, asked=["lazy frame"]))
    rankings = sunk.table("rankings")
    assert set(rankings["passage_id"]) == {"p002", "p003"}
    assert set(rankings.filter(rank=1)["passage_id"]) == {"p003"}
    told = outcome.runs[0].manifest["corpus"]
    assert (told["indexed"], told["without_text"]) == (2, 2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stacks": []}, "nothing to run"),
        ({"asked": []}, "nothing to run"),
        ({"stacks": STACKS[:1] * 2}, "stands twice"),
        ({"texts": passages([""])}, "No passage has text"),
    ],
)
def test_requests_that_cannot_run_are_refused(changes: dict[str, Any], says: str):
    with pytest.raises(ClqError, match=says):
        job(**changes)


def test_without_repeats_there_are_rankings_and_no_times(tmp_path: Path):
    _, sunk = run(tmp_path, job(STACKS[:2], protocol=Protocol(repeats=0)))
    assert set(sunk.all.frames) == {"rankings", "signals"}


def test_rounds_are_further_repeats(tmp_path: Path):
    outcome, sunk = run(tmp_path, job(STACKS[:6], protocol=protocol(repeats=2, rounds=3, pause_s=0.02)))
    assert sunk.table("timings")["repeat"].unique().sort().to_list() == [1, 2, 3, 4, 5, 6]
    rounds = outcome.runs[0].manifest["rounds"]
    assert [each["round"] for each in rounds] == [1, 2, 3]
    assert [each["began"] for each in rounds] == sorted(each["began"] for each in rounds)


def test_the_process_is_left_as_it_was(tmp_path: Path):
    threads = faiss.omp_get_max_threads()
    run(tmp_path, job(STACKS[:1]))
    assert gc.isenabled()

    def fail(status: Status) -> None:
        if status.stage.startswith("Timing BM25, pass 1 of "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "other", job(STACKS[:1]), progress=fail)
    assert gc.isenabled()
    assert faiss.omp_get_max_threads() == threads


def test_the_environment_names_the_machine_and_the_versions():
    told = environment.describe(packages=("numpy", "no-such-package"))
    assert told["packages"] == {"numpy": np.__version__}
    assert told["cores"] >= 1
    assert told["cpu"]
