from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.paths import ROOT
from tools.twice import MOST, Run, run, twice

ALL = ["-n", "2", "-m", "slow"]


def ended(code: int, **tests: str) -> Run:
    return Run(code, tests, collected=len(tests))


@pytest.mark.parametrize(
    ("first", "second", "code", "lines"),
    [
        (ended(0, a="passed", b="skipped"), None, 0, []),
        (ended(1, a="passed", b="failed"), ended(0, b="passed"), 0, ["FLAKY: b", "2 passed, 0 failed"]),
        (
            ended(1, a="passed", b="failed"),
            ended(1, b="failed"),
            1,
            ["FAILED TWICE: b", "1 passed, 1 failed"],
        ),
        (
            ended(1, a="failed", b="failed", c="passed"),
            ended(1, a="passed", b="failed"),
            1,
            ["FLAKY: a", "FAILED TWICE: b", "2 passed, 1 failed"],
        ),
        # a second run that passes nothing proves nothing
        (
            ended(1, a="failed"),
            ended(0, a="skipped"),
            1,
            ["1 did not get to pass a second time", "0 passed, 1 failed"],
        ),
        (ended(1, a="failed"), ended(-11), 1, ["1 did not get to pass a second time", "0 passed, 1 failed"]),
        (ended(1, a="failed"), ended(3, a="passed"), 1, ["FLAKY: a", "1 passed, 0 failed"]),
        # what is more than a test that failed is not run again
        (Run(1, {"a": "failed"}, ["test_b.py"], 1), None, 1, []),
        (Run(1, {"a": "failed"}, [], 7), None, 1, []),  # workers crashed too often for six of them to run
        (Run(1, {}, [], 0), None, 1, []),
        (ended(2, a="failed"), None, 2, []),  # interrupted
        (ended(3, a="failed"), None, 3, []),
        (ended(4), None, 4, []),
        (ended(5), None, 5, []),
        (ended(-9, a="failed"), None, -9, []),
    ],
)
def test_a_test_fails_that_fails_twice(
    first: Run, second: Run | None, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
):
    asked: list[Sequence[str]] = []
    answers = iter([first, second])

    def runs(arguments: Sequence[str]) -> Run:
        asked.append(arguments)
        return next(answers) or pytest.fail("it ran again")

    assert twice(ALL, runs) == code
    again = [["-n0", f"--maxfail={MOST}", *first.named("failed")]] if second else []
    assert asked == [ALL, *again]
    assert capsys.readouterr().out.split("\n")[2 if second else 0 : -1] == lines


TESTS = """
import os, pathlib, pytest

def first(name):
    path = pathlib.Path(name)
    return not path.exists() and not path.write_text("")

def test_passes(): pass
def test_skips(): pytest.skip()
def test_fails_at_first(): assert not first("call")
def test_never_passes(): assert False

@pytest.fixture
def torn():
    yield
    assert not first("torn")

def test_fails_when_torn_down(torn): pass
@pytest.mark.parametrize("name", ["x y", "a::b", "é"])
def test_crashes_at_first(name): first("crash" + name[0]) and os._exit(1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose tests run with no other plugins, as they are found."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist.plugin\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.slow
def test_tests_that_fail_or_crash_at_first_are_flaky(folder: Path, capfd: pytest.CaptureFixture[str]):
    assert twice(["-n2", "--dist", "worksteal"]) == 1
    said = capfd.readouterr().out.splitlines()
    crashing = [rf"FLAKY: test_it.py::test_crashes_at_first[{name}]" for name in ("x y", "a::b", r"\xe9")]
    named = [
        "FLAKY: test_it.py::test_fails_at_first",
        "FLAKY: test_it.py::test_fails_when_torn_down",
        *crashing,
    ]
    assert sorted(line for line in said if line.startswith("FLAKY")) == sorted(named)
    assert [line for line in said if line.startswith("FAILED TWICE")] == [
        "FAILED TWICE: test_it.py::test_never_passes"
    ]
    assert said[-1] == "6 passed, 1 failed"
    (folder / "call").unlink()
    assert twice(["-n2", "--deselect", "test_it.py::test_never_passes"]) == 0
    said = capfd.readouterr().out.splitlines()
    assert said[-2:] == ["FLAKY: test_it.py::test_fails_at_first", "6 passed, 0 failed"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_what_cannot_be_collected_fails_at_once(
    folder: Path, processes: str, capfd: pytest.CaptureFixture[str]
):
    (folder / "test_other.py").write_text("import nothing_of_that_name")
    assert twice([processes]) in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    assert "run once more" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_run_in_which_all_pass_is_the_only_one(folder: Path, capfd: pytest.CaptureFixture[str]):
    assert twice(["-n2", "-k", "(passes or skips) and not never"]) == 0
    assert "1 passed, 1 skipped" in capfd.readouterr().out.splitlines()[-1]
    assert run(["-k", "nothing"]).code == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.slow
def test_workers_that_crash_too_often_end_the_run(folder: Path, capfd: pytest.CaptureFixture[str]):
    assert twice(["-n2", "--max-worker-restart=1"]) == pytest.ExitCode.TESTS_FAILED
    assert "run once more" not in capfd.readouterr().out
