import gc
from typing import Any

import faiss
import numpy as np
import polars as pl
import pytest

from core.errors import ClqError
from core.pipeline import environment
from core.pipeline.run import run_stacks, step_count
from core.pipeline.spec import grid
from core.records import TABLES, Batch, Origin, Run, Stack
from tests.pipeline.corpora import passages, queries, random_texts

STACKS = grid(embedder="fake", dims=(16, 32), depths=(5, 20))
QUESTIONS = ["sort a frame", "lazy window mean", "zebra", "join columns by row"]
STAGES = {
    "sparse": {"sparse"},
    "dense": {"embed", "retrieve"},
    "hybrid": {"sparse", "embed", "retrieve", "fuse"},
}


def run(stacks: list[Stack] = STACKS, **options: Any) -> tuple[tuple[Run, ...], Batch]:
    sunk: list[Batch] = []
    runs = run_stacks(
        "c", passages(random_texts(80, seed=7)), queries(QUESTIONS), stacks, sink=sunk.append, **options
    )
    assert len(sunk) == 1
    return runs, sunk[0]


@pytest.fixture(scope="module")
def made() -> tuple[tuple[Run, ...], Batch]:
    return run()


def test_every_stack_becomes_a_run(made: tuple[tuple[Run, ...], Batch]):
    runs, batch = made
    assert batch.runs == runs
    assert [each.stack for each in runs] == STACKS
    assert len({each.run_id for each in runs}) == len(runs)
    assert {each.origin for each in runs} == {Origin.RUN}
    assert all(each.pool and each.pool.endswith(f"@{each.stack.spec['candidates']}") for each in runs)
    assert batch.collections == batch.golden_sets == ()


def test_frames_follow_the_declared_tables(made: tuple[tuple[Run, ...], Batch]):
    frames = made[1].frames
    assert set(frames) == {"rankings", "timings", "usage"}
    for table, rows in frames.items():
        assert isinstance(rows, pl.DataFrame)
        assert rows.schema == TABLES[table]
        assert rows.null_count().sum_horizontal().item() == 0


def test_rankings_reach_the_candidate_depth_of_their_stack(made: tuple[tuple[Run, ...], Batch]):
    runs, batch = made
    rankings = batch.frames["rankings"]
    assert isinstance(rankings, pl.DataFrame)
    assert rankings["stage"].unique().to_list() == ["final"]
    for each in runs:
        for query_id, rows in rankings.filter(run_id=each.run_id).group_by("query_id"):
            depth = each.stack.spec["candidates"]
            assert rows["rank"].to_list() == list(range(1, rows.height + 1))
            assert rows.height <= depth
            assert rows.height == depth or each.stack.spec["mode"] == "sparse" or query_id == ("q02",)
            assert rows["passage_id"].is_unique().all()
            assert rows["score"].is_sorted(descending=True)


def test_a_shallower_stack_ranks_a_prefix(made: tuple[tuple[Run, ...], Batch]):
    runs, batch = made
    rankings = batch.frames["rankings"]
    assert isinstance(rankings, pl.DataFrame)
    by_stack = {each.stack.stack_id: each.run_id for each in runs}
    for each in runs:
        if each.stack.spec["candidates"] == 5 and each.stack.spec.get("index") != "hnsw-f32":
            deep = by_stack[Stack({**each.stack.spec, "candidates": 20}).stack_id]
            cut = rankings.filter((pl.col("run_id") == deep) & (pl.col("rank") <= 5)).drop("run_id")
            assert cut.equals(rankings.filter(run_id=each.run_id).drop("run_id"))


def test_timings_hold_every_stage_and_repeat(made: tuple[tuple[Run, ...], Batch]):
    runs, batch = made
    timings = batch.frames["timings"]
    assert isinstance(timings, pl.DataFrame)
    assert (timings["ms"] > 0).all()
    for each in runs:
        rows = timings.filter(run_id=each.run_id)
        stages = STAGES[each.stack.spec["mode"]]
        assert set(rows["stage"]) == stages
        assert (
            rows.height
            == len(stages) * len(QUESTIONS) * 3
            == rows.unique(["stage", "query_id", "repeat"]).height
        )
        assert set(rows["repeat"]) == {1, 2, 3}


def test_usage_is_the_median_over_the_repeats(made: tuple[tuple[Run, ...], Batch]):
    _, batch = made
    usage, timings = batch.frames["usage"], batch.frames["timings"]
    assert isinstance(usage, pl.DataFrame)
    assert isinstance(timings, pl.DataFrame)
    keys = ["run_id", "query_id", "stage"]
    medians = timings.group_by(keys).agg(pl.col("ms").median())
    joined = usage.join(medians, on=keys, how="full")
    assert joined.height == usage.height == medians.height
    np.testing.assert_allclose(joined["amount"], joined["ms"])
    assert usage.select("item", "unit", "basis").unique().row(0) == ("local-cpu", "cpu_ms", "measured")


def test_the_manifest_tells_how_to_repeat_it(made: tuple[tuple[Run, ...], Batch]):
    hybrid = made[0][-1]
    assert hybrid.manifest["spec"] == hybrid.stack.spec
    assert hybrid.manifest["protocol"]["repeats"] == 3
    assert hybrid.manifest["corpus"]["indexed"] == 80
    assert set(hybrid.manifest["indexes"]) == {"bm25", "int8"}
    assert {"cpu", "cores", "memory_gib", "python", "packages", "load_average"} <= set(hybrid.environment)


def test_two_runs_rank_alike_and_are_two_runs(made: tuple[tuple[Run, ...], Batch]):
    again, batch = run(seed=5, repeats=4)
    assert {each.run_id for each in again}.isdisjoint(each.run_id for each in made[0])
    first, second = (each.frames["rankings"] for each in (made[1], batch))
    assert isinstance(first, pl.DataFrame)
    assert isinstance(second, pl.DataFrame)
    assert first.drop("run_id").equals(second.drop("run_id"))


def test_progress_reaches_its_total():
    told: list[tuple[int, int, str]] = []
    run(STACKS[:3], progress=lambda done, total, label: told.append((done, total, label)))
    assert [done for done, _, _ in told] == list(range(step_count(3) + 1))
    assert {total for _, total, _ in told} == {step_count(3)} == {16}
    assert all(label for _, _, label in told)


def test_passages_without_text_are_not_found_and_titles_are():
    sunk: list[Batch] = []
    corpus = passages(["", " \n", "other words", ""], titles=[None, "", None, "lazy frame"])
    stacks = list(grid(embedder="fake", dims=(8,), depths=(10,)))
    runs = run_stacks("c", corpus, queries(["lazy frame"]), stacks, sink=sunk.append)
    rankings = sunk[0].frames["rankings"]
    assert isinstance(rankings, pl.DataFrame)
    assert set(rankings["passage_id"]) == {"p002", "p003"}
    assert set(rankings.filter(rank=1)["passage_id"]) == {"p003"}
    assert runs[0].manifest["corpus"] == {
        "hash": runs[0].manifest["corpus"]["hash"],
        "indexed": 2,
        "without_text": 2,
    }


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stacks": []}, "nothing to run"),
        ({"queries": queries([])}, "nothing to run"),
        ({"repeats": 2}, "repeats = 2"),
        ({"stacks": STACKS[:1] * 2}, "stands twice"),
        ({"stacks": [Stack({"mode": "sparse", "sparse": "bm25"})]}, "candidates = None"),
        ({"passages": passages([""])}, "No passage has text"),
    ],
)
def test_requests_that_cannot_run_emit_nothing(changes: dict[str, Any], says: str):
    request = {
        "passages": passages(["lazy frame"]),
        "queries": queries(["frame"]),
        "stacks": STACKS[:1],
        "repeats": 3,
    } | changes
    sunk: list[Batch] = []
    with pytest.raises(ClqError, match=says):
        run_stacks("c", sink=sunk.append, **request)
    assert sunk == []


def test_the_process_is_left_as_it_was():
    threads = faiss.omp_get_max_threads()
    run(STACKS[:1])
    assert gc.isenabled()

    def fail(done: int, total: int, label: str) -> None:
        if label.startswith("measure"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(STACKS[:1], progress=fail)
    assert gc.isenabled()
    assert faiss.omp_get_max_threads() == threads


def test_the_environment_names_the_machine_and_the_versions():
    told = environment.describe(packages=("numpy", "no-such-package"))
    assert told["packages"] == {"numpy": np.__version__}
    assert told["cores"] >= 1
    assert told["cpu"]
