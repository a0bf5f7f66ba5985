"""Processes that are known by their numbers."""

import os
from pathlib import Path

import pytest

from core.pipeline import child

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes by /proc")


def test_a_number_that_another_process_has_by_now_is_left_alone():
    assert child.ended(os.getpid())
    child.stop(os.getpid())


@pytest.mark.parametrize(
    ("printed", "words"), [("a\nerror: b\nc\n", "error: b\nc"), ("all is well", ""), ("", "")]
)
def test_last_words(tmp_path: Path, printed: str, words: str):
    file = tmp_path / "printed.txt"
    assert child.last_words(file) == ""
    file.write_text(printed)
    assert child.last_words(file) == words


def test_what_it_prints_is_kept(tmp_path: Path):
    pid = child.start(["no-such-command"], tmp_path / "printed.txt", {"COLUMNS": "200"})
    child._children[pid].wait(timeout=60)
    assert child.ended(pid)
    assert "no-such-command" in (tmp_path / "printed.txt").read_text()
