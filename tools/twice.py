"""Runs tests, then reruns the failed ones: a test fails if it fails twice, and is flaky otherwise.

``python -m tools.twice ARGUMENTS`` (``make rest``) takes pytest's arguments. It is for tests that wait for a
browser, a disk or other processes; unit tests are never rerun. It is also the pytest plugin that records
the outcome of each test.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MOST = 5
"""Number of tests failing twice that ends the second run: more of them would tell nothing new."""


@dataclass
class Run:
    """The outcome of a run of tests.

    Attributes:
        code: Its exit code, as defined by pytest.
        tests: How each test ended: ``passed``, ``skipped`` or ``failed``.
        broken: The files that could not be collected.
        collected: The number of tests to run.
    """

    code: int = 0
    tests: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    collected: int = 0

    def named(self, outcome: str) -> list[str]:
        """Return the tests with this outcome."""
        return [test for test, ended in self.tests.items() if ended == outcome]

    @property
    def only_tests_failed(self) -> bool:
        """Return whether all was collected and run to the end, and some tests failed."""
        whole = not self.broken and len(self.tests) == self.collected
        return self.code == pytest.ExitCode.TESTS_FAILED and whole and bool(self.named("failed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file of outcomes."""
    parser.addoption("--outcomes", type=Path, help="File to note in what became of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Record outcomes, except in a worker: its tests are reported to the process that started it."""
    if config.option.outcomes and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(config.option.outcomes))


class _Notes:
    """Records each report at once, so that a crash leaves the earlier ones."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(["test", report.nodeid, report.outcome])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(["broken", report.nodeid, ""])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._note(["collected", "", session.testscollected])

    def _note(self, what: list[object]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


def run(arguments: Sequence[str]) -> Run:
    """Run pytest in a separate process and return the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outcomes")
        path.touch()
        command = [sys.executable, "-m", "pytest", "-p", "tools.twice", f"--outcomes={path}", *arguments]
        made = Run(subprocess.run(command, check=False).returncode)  # noqa: S603 - a developer's own words
        for kind, name, value in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if kind == "test":  # setup, call and teardown report separately: the worst one counts
                made.tests[name] = max(made.tests.get(name, ""), value, key=_RANKS.index)
            elif kind == "broken":
                made.broken.append(name)
            else:
                made.collected = value
    return made


_RANKS = ("", "passed", "skipped", "failed")


def twice(arguments: Sequence[str], runs: Callable[[Sequence[str]], Run] = run) -> int:
    """Run tests, then rerun the failed ones alone in one process; print the flaky ones.

    Args:
        arguments: Arguments of pytest.
        runs: Runs pytest.

    Returns:
        0 if every test passed eventually, otherwise an exit code of pytest.
    """
    first = runs(arguments)
    if not first.only_tests_failed:
        return first.code
    failed = first.named("failed")
    _say(f"\n{len(failed)} failed and run once more, alone:")
    second = runs(["-n0", f"--maxfail={MOST}", *failed])
    flaky = [test for test in failed if second.tests.get(test) == "passed"]
    again = [test for test in failed if second.tests.get(test) == "failed"]
    unknown = len(failed) - len(flaky) - len(again)
    for word, tests in (("FLAKY", flaky), ("FAILED TWICE", again)):
        for test in tests:
            _say(f"{word}: {test}")
    if unknown:
        _say(f"{unknown} did not get to pass a second time")
    _say(f"{len(first.named('passed')) + len(flaky)} passed, {len(failed) - len(flaky)} failed")
    return int(len(flaky) < len(failed) or second.code != pytest.ExitCode.OK)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what a command says


if __name__ == "__main__":
    sys.exit(twice(sys.argv[1:]))
