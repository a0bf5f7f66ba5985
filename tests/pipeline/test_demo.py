from pathlib import Path

import polars as pl
import pytest

from core.pipeline import demo_data
from core.pipeline.demo import REPEATS, run_demo
from core.pipeline.spec import grid
from core.records import Batch, Stack
from core.store import Store


def few(stacks: list[Stack]) -> list[Stack]:
    return [stack for stack in stacks if stack.spec.get("index", "flat") == "flat"]


def test_the_collection_comes_first_and_then_all_runs(tmp_path: Path):
    store = Store(tmp_path / "store")
    sunk: list[Batch] = []

    def sink(batch: Batch) -> None:
        sunk.append(batch)
        with store.write("demo") as writer:
            writer.add(batch)

    told: list[tuple[int, int]] = []
    stacks = few(grid(embedder="fake", dims=(32,), depths=(20, 50)))
    demo = run_demo(sink, lambda done, total, _: told.append((done, total)), stacks=stacks)

    done = [step for step, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1] > len(stacks) * REPEATS / 2
    assert len({total for _, total in told[2:]}) == 1
    assert [len(batch.runs) for batch in sunk] == [0, len(stacks)]
    assert str(len(stacks)) in demo.summary

    read = store.read()
    assert read.revision == 2
    collection = read.collections().row(0, named=True)
    assert collection["queries"] >= 40
    assert collection["passages"] > 3000
    run_ids = [run.run_id for run in demo.runs]
    graded = read.graded(run_ids, demo_data.GOLDEN_SET_ID, depth=10)
    assert graded.grades.shape == (len(stacks), demo.judged["query_id"].n_unique(), 10)
    assert not graded.unjudged_queries.any()
    timings = read.timings(run_ids)
    assert timings["repeat"].unique().sort().to_list() == list(range(1, REPEATS + 1))
    assert timings.select(pl.col("ms").is_between(0, 1000, closed="right").all()).item()


@pytest.mark.slow
def test_the_whole_grid_ranks_every_question():
    sunk: list[Batch] = []
    demo = run_demo(sunk.append)
    assert len(demo.runs) == 76
    rankings = sunk[1].frames["rankings"]
    assert isinstance(rankings, pl.DataFrame)
    asked = rankings.group_by("run_id").agg(pl.col("query_id").n_unique())
    assert asked["query_id"].unique().to_list() == [demo_data.queries().height]
