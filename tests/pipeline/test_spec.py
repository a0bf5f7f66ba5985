import pytest

from core.pipeline.spec import grid
from core.pipeline.sweep.check import check_stacks
from core.pipeline.sweep.problems import Severity
from core.pipeline.sweep.rules import Facts


def test_the_demo_grid_has_76_different_stacks_that_can_run():
    stacks = grid()
    assert len({stack.stack_id for stack in stacks}) == len(stacks) == 76
    assert len({stack.label for stack in stacks}) == 76
    assert {each.severity for each in check_stacks(stacks, Facts())} == {
        Severity.WARNING
    }  # K = 200 of 2 · 100


@pytest.mark.parametrize(("mode", "count"), [("sparse", 4), ("dense", 36), ("hybrid", 36)])
def test_every_mode_at_every_depth(mode: str, count: int):
    assert sum(stack.spec["mode"] == mode for stack in grid()) == count
