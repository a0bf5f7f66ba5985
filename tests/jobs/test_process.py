"""Processes that are known by their numbers, and those that share work."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from core.jobs import process


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes by /proc")
def test_a_number_that_another_process_has_by_now_is_left_alone():
    assert process.ended(os.getpid())
    process.stop(os.getpid())


@pytest.mark.parametrize(
    ("printed", "words"), [("a\nerror: b\nc\n", "error: b\nc"), ("all is well", ""), ("", "")]
)
def test_last_words(tmp_path: Path, printed: str, words: str):
    file = tmp_path / "printed.txt"
    assert process.last_words(file) == ""
    file.write_text(printed)
    assert process.last_words(file) == words


@pytest.mark.slow
def test_what_it_prints_is_kept(tmp_path: Path):
    pid = process.start(["no-such-command"], tmp_path / "printed.txt", {"COLUMNS": "200"})
    process._children[pid].wait(timeout=60)
    assert process.ended(pid)
    assert "no-such-command" in (tmp_path / "printed.txt").read_text()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_work_is_shared_and_gathered_in_order(workers: int, count: int):
    assert process.spread(abs, list(range(-count, 0)), workers, list) == list(range(count, 0, -1))


@pytest.mark.parametrize(("workers", "by_others"), [(1, 0), (2, 3)])
def test_others_do_what_is_shared(workers: int, by_others: int):
    seen: list[int] = []

    def others(task: Callable[[int], int], blocks: Sequence[int]) -> Iterator[int]:
        seen.extend(blocks)
        return map(task, blocks)

    with process.spread_over(others):
        assert process.spread(abs, [-3, -2, -1], workers, list) == [3, 2, 1]
    assert len(seen) == by_others
    assert process.spread(abs, [-1], workers, list) == [1]
