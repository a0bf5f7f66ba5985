"""Results on their way to the sink."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.pipeline.evaluate.folder import StepTimes
from core.pipeline.evaluate.measure import FIRST, StepResults
from core.pipeline.evaluate.results import Outbox, merged, waited
from core.pipeline.evaluate.steps import Identities, graph
from core.records import Batch, Origin, Run, Stack
from core.tables import frame
from tests.jobs.test_status import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(number: int, **frames: pl.DataFrame) -> Batch:
    stack = Stack({"n": number})
    run = Run(run_id=f"r{number}", collection_id="c", stack=stack, label="l", origin=Origin.RUN)
    return Batch(runs=(run,), frames=frames)


def test_runs_that_finish_together_are_handed_over_together(clock: Clock):
    sunk: list[Batch] = []
    stored: list[int] = []
    outbox = Outbox(sunk.append, stored.append, clock=clock)
    rows = [{"run_id": "r", "query_id": "q", "stage": "embed", "repeat": 1, "ms": 1.0}]
    for number in range(3):
        outbox.add(made(number, timings=frame("timings", rows), usage=frame("usage", [])))
    assert sunk == []
    clock.now += 6
    outbox.add(made(3))
    assert [len(batch.runs) for batch in sunk] == stored == [4]
    assert {name: rows.height for name, rows in merged(sunk).frames.items()} == {"timings": 3}
    outbox.add(made(4))
    outbox.flush()
    outbox.flush()
    assert stored == [4, 1]
    assert [each.run_id for each in outbox.runs] == ["r0", "r1", "r2", "r3", "r4"]


def test_what_the_sink_refuses_is_kept(clock: Clock):
    def refuse(batch: Batch) -> None:
        raise OSError("full")

    outbox = Outbox(refuse, clock=clock)
    outbox.add(made(0))
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            outbox.flush()
    assert outbox.runs == []


def test_steps_of_one_stage_wait_together():
    stack = {"mode": "sparse", "rewrite": "multi-query:m", "reranker": "none", "candidates": 10}
    (route,) = graph([Stack(stack)], Identities(corpora={None: "h"})).routes
    results = {
        step: StepResults([], [], [], {FIRST: StepTimes(np.ones(1), None, 5.0 * (step.kind == "rewrite"))})
        for step in route.steps
    }
    assert waited(route, results) == {"rewrite": 5.0}
