"""Pipelines in processes of their own: what they may be, and every way in which they fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ProviderError
from core.pipeline.own.config import OwnStack
from core.pipeline.own.process import Ended, OwnWorker

CODE = """
import asyncio, ctypes, os, sys, time
from clq_worker import clq_stage

def plain(query, k=10, alpha=1.0):
    print("printed", query)
    return [(f"p{i}", alpha / (i + 1)) for i in range(k)]

async def waited(query):
    await asyncio.sleep(0)
    return [query]

def lazily(query):
    yield "a"
    yield "b"

async def gathered(query):
    yield "a"

def staged(query):
    with clq_stage("outer"):
        time.sleep(0.02)
        with clq_stage("inner"):
            time.sleep(0.02)
    return ["a"]

class Shop:
    kind = "shop"
    def find(self, query):
        return [self.kind]

class Retriever:
    def __init__(self, size=1):
        self.size = size
    def invoke(self, query):
        return ["a"] * self.size

retriever = Retriever()

def faulty(query):
    if query == "raise": raise KeyError("no such shelf")
    if query == "exit": sys.exit(3)
    if query == "gone": os._exit(7)
    if query == "segfault": ctypes.string_at(0)
    if query == "hang": time.sleep(60)
    if query == "memory": bytearray(10**10)
    if query == "nan": return [("a", float("nan")), ("b", 1.0)]
    if query == "large": return [{"id": "a", "text": "x" * 10_000_000}]
    if query == "none": return None
    return ["fine"]
"""


def worker(folder: Path, name: str, **changes: object) -> OwnWorker:
    (folder / "pipe.py").write_text(CODE)
    return OwnWorker(
        OwnStack.model_validate({"name": name, "call": f"pipe:{name}", "path": folder, **changes})
    )


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[OwnWorker]:
    one = worker(tmp_path, "faulty", timeout_s=0.5, memory_mb=2000)
    yield one
    one.close()


CALLS = {
    "plain": [["p0"], ["p1"]],
    "waited": [["cats"]],
    "lazily": [["a"], ["b"]],
    "gathered": [["a"]],
    "Shop.find": [["shop"]],
    "retriever": [["a"]],
    "Retriever": [["a"]],
}


@pytest.mark.parametrize("name", CALLS)
def test_whatever_can_be_called_is_asked(name: str, tmp_path: Path):
    one = worker(tmp_path, name)
    answer = one.ask("cats", 2, {})
    one.close()
    assert [hit[0] for hit in answer["hits"]] == CALLS[name]
    assert answer["ms"] > 0
    assert one.hello["python"] == ".".join(map(str, sys.version_info[:3]))
    assert one.begun == 1


@pytest.mark.slow
def test_parameters_are_keyword_arguments_or_build_it(tmp_path: Path):
    one = worker(tmp_path, "plain")
    assert one.ask("cats", 1, {"alpha": 0.5})["hits"][0][1] == 0.5
    with_other = one.ask("cats", 1, {"beta": 1})
    assert "takes no beta; it takes query, k, alpha" in with_other["fault"]["text"]
    one.close()
    built = worker(tmp_path, "Retriever()")
    assert len(built.ask("cats", 5, {"size": 3})["hits"]) == 3
    built.close()


def test_queries_in_a_row_are_answered_as_one_by_one(tmp_path: Path):
    one = worker(tmp_path, "plain")
    queries = ["cats", "dogs", "cows"]
    row = one.ask_all(queries, 2, {"alpha": 0.5})
    assert [answer["hits"] for answer in row] == [
        one.ask(each, 2, {"alpha": 0.5})["hits"] for each in queries
    ]
    assert all(answer["ms"] > 0 for answer in row)
    floors = one.echo(50, 5)
    assert len(floors) == 5
    assert max(floors) < 50
    one.close()
    assert one.echo(50, 5) == []


def test_stages_are_told_each_without_those_inside(tmp_path: Path):
    one = worker(tmp_path, "staged")
    answer = one.ask("cats", 1, {})
    one.close()
    assert answer["stages"].keys() == {"outer", "inner"}
    assert all(20 <= ms < answer["ms"] for ms in answer["stages"].values())
    assert sum(answer["stages"].values()) <= answer["ms"]


def test_what_it_prints_goes_to_a_log(tmp_path: Path):
    one = worker(tmp_path, "plain")
    one.ask("cats", 1, {})
    assert "printed cats" in one.printed()
    one.close()


def test_a_package_called_core_is_theirs(tmp_path: Path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").write_text("def retrieve(query): return ['theirs']\n")
    one = OwnWorker(OwnStack(name="core", call="core:retrieve", path=tmp_path))
    assert one.ask("cats", 1, {})["hits"][0][0] == ["theirs"]
    one.close()


BEGUN = {
    "absent:find": "No module named 'absent' in {folder}, which holds lacking, pipe",
    "pipe:fnd": "there is no 'fnd' in pipe",
    "pipe:needy": "needs tenant too: give it as a parameter",
    "pipe:deaf": "takes no query: the question is its first argument",
    "lacking:find": "No module named 'pandaz' (lacking.py:1 in <module>)",
}


@pytest.mark.parametrize("call", BEGUN)
def test_what_a_beginner_errs_in_is_said_before_any_question(call: str, tmp_path: Path):
    (tmp_path / "pipe.py").write_text("def needy(query, k, tenant): ...\ndef deaf(): ...\n")
    (tmp_path / "lacking.py").write_text("import pandaz\n")
    one = OwnWorker(OwnStack(name="shop", call=call, path=tmp_path), [{}])
    with pytest.raises(ProviderError) as caught:
        one.ask("cats", 1, {})
    assert BEGUN[call].format(folder=tmp_path) in str(caught.value)


def test_a_parameter_that_it_needs_may_be_given(tmp_path: Path):
    (tmp_path / "pipe.py").write_text("def needy(query, k, tenant): return [tenant]\n")
    one = OwnWorker(OwnStack(name="shop", call="pipe:needy", path=tmp_path), [{"tenant": "a"}])
    assert one.ask("cats", 1, {"tenant": "a"})["hits"][0][0] == ["a"]
    one.close()


FAULTS = {
    "raise": ("exception", "no such shelf", 1),
    "exit": ("exit", "SystemExit: 3", 1),
    "memory": ("memory", "MemoryError", 1),
    "large": ("too large", "10.0 MB", 1),
    "none": ("shape", "nothing came back", 1),
}
ENDS = {"gone": ("exit", "code 7"), "segfault": ("segfault", "SIGSEGV"), "hang": ("timeout", "within 0.5 s")}


def test_a_fault_is_told_and_the_process_goes_on(faulty: OwnWorker):
    for query, (kind, words, begun) in FAULTS.items():
        fault = faulty.ask(query, 5, {})["fault"]
        assert (fault["kind"], words in fault["text"], faulty.begun) == (kind, True, begun), fault
    assert faulty.ask("raise", 5, {})["fault"]["where"].startswith("pipe.py:")
    assert faulty.ask("nan", 5, {})["notes"] == {"not_a_number": 1}
    assert faulty.ask("fine", 5, {})["hits"][0][0] == ["fine"]


@pytest.mark.slow
def test_a_process_that_ended_is_begun_again(faulty: OwnWorker):
    for times, (query, (kind, words)) in enumerate(ENDS.items(), 1):
        with pytest.raises(Ended, match=words) as told:
            faulty.ask(query, 5, {})
        assert (told.value.kind, faulty.begun) == (kind, times)
        assert faulty.ask("fine", 5, {})["hits"][0][0] == ["fine"]


@pytest.mark.slow
def test_it_is_begun_again_a_bounded_number_of_times(tmp_path: Path):
    one = worker(tmp_path, "faulty", restarts=1)
    for _ in range(2):
        with pytest.raises(Ended):
            one.ask("gone", 5, {})
    with pytest.raises(ProviderError, match="ended 2 times"):
        one.ask("fine", 5, {})


STARTS = {
    "no module": ({"call": "nowhere:find"}, "No module named 'nowhere'"),
    "no name": ({"call": "pipe:nothing"}, "no 'nothing' in pipe"),
    "no interpreter": ({"python": "/nowhere/python"}, "cannot be started"),
    "not callable": ({"call": "pipe:CODE"}, "no 'CODE'"),
}


@pytest.mark.parametrize("name", STARTS)
def test_what_cannot_be_begun_is_refused_with_its_reason(name: str, tmp_path: Path):
    changes, words = STARTS[name]
    with pytest.raises(ProviderError, match=words):
        worker(tmp_path, "plain", **changes).ready()


def test_an_import_error_names_the_line_of_their_code(tmp_path: Path):
    (tmp_path / "bad.py").write_text("import os\nimport not_there\n")
    with pytest.raises(ProviderError, match=r"No module named 'not_there' \(bad.py:2 in <module>\)"):
        OwnWorker(OwnStack(name="bad", call="bad:find", path=tmp_path)).ready()


@pytest.mark.slow
def test_a_worker_ends_with_whoever_began_it(tmp_path: Path):
    """Also in the middle of a call: here its parent is killed while it hangs."""
    import os
    import signal
    import subprocess

    (tmp_path / "pipe.py").write_text(CODE)
    script = """
import pathlib, sys
from core.pipeline.own.config import OwnStack
from core.pipeline.own.process import OwnWorker
one = OwnWorker(OwnStack(name="x", call="pipe:faulty", path=pathlib.Path(sys.argv[1]), timeout_s=50))
one.ready()
print(one._process.pid, flush=True)
one.ask("hang", 1, {})
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    pid = int(driver.stdout.readline())
    time.sleep(0.3)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the worker outlived its driver")
