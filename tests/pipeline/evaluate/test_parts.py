"""How stacks are divided among the tasks of a cluster."""

from __future__ import annotations

import pytest

from bench.ray_nodes import grid
from core.pipeline.evaluate.cluster.executor import ExecutorPart, parts
from core.pipeline.evaluate.steps import Identities, Route, Step, graph
from tests.pipeline.evaluate import helpers

NAMES = Identities(corpora={None: "c"})
PAPER, SMALL = (graph(stacks, NAMES).routes for stacks in (grid(), helpers.STACKS))


def everything(made: list[ExecutorPart]) -> list[ExecutorPart]:
    """All parts, what is needed before what needs it."""
    listed: dict[int, ExecutorPart] = {}
    for part in made:
        for each in (*everything(part.needs), part):
            listed.setdefault(id(each), each)
    return list(listed.values())


@pytest.mark.parametrize("slots", [1, 2, 64])
@pytest.mark.parametrize("routes", [PAPER, SMALL, PAPER[5:6], ()], ids=["paper", "small", "one", "none"])
def test_every_stack_and_every_step_stands_in_one_part(routes: tuple[Route, ...], slots: int):
    made = parts(routes, slots)
    assert sorted(id(route) for part in made for route in part.routes) == sorted(map(id, routes))
    steps = [step for part in everything(made) for step in part.steps]
    assert len(steps) == len(set(steps))
    assert set(steps) == {step for route in routes for step in route.steps}


@pytest.mark.parametrize("slots", [1, 2, 64])
@pytest.mark.parametrize("routes", [PAPER, SMALL], ids=["paper", "small"])
def test_what_a_part_takes_is_there_before(routes: tuple[Route, ...], slots: int):
    there: set[Step] = set()
    for part in everything(parts(routes, slots)):
        taken = {step for route in part.routes for step in route.steps} - set(part.steps)
        taken |= {each for step in part.steps for each in step.inputs} - set(part.steps)
        assert taken <= {step for each in part.needs for step in each.steps} <= there
        there |= set(part.steps)
        assert sum(part.counts) == len(part.steps)


@pytest.mark.parametrize(
    ("slots", "most", "tasks"),
    [(1, 32, 80), (2, 32, 80), (16, 10, 320)],
)
def test_few_tasks_of_even_size(slots: int, most: int, tasks: int):
    made = parts(PAPER, slots)
    assert max(len(part.routes) for part in made) <= most
    assert len(made) >= 4 * slots
    assert len(everything(made)) <= tasks, "a task for every stack and shared step would be 766"
