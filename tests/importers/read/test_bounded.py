"""Crafted files in a process that may take 4 GB: each is read whole or refused, and the process lives."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from core.errors import InputError
from core.importers.read.jsons import MOST_LOOKED_AT, broken, read_json
from core.importers.read.member import ReadLimits
from core.importers.read.source import opened
from core.sandbox import Bounded
from tests.importers.crafted import ARCHIVES, CRAFTED, HDF5, JSONS, PARQUET, SQLITE, TEXTS, WORKBOOKS
from tests.importers.fuzzing import chance
from tests.importers.helpers import refusal, up
from tests.importers.samples import SAMPLES
from tests.shared import EVERY_PAGE

_IMPORTS = """
import json, resource, sys, tempfile
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from core.errors import ClqError
from core.importers.load import load, preview
from core.store import Store
from core.work.imports.imports import store_import
for path in sys.argv[1:]:
    print(path, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        preview([path])
        store, said = Store.open(folder), ""
        try:
            store_import(store, load([path]), "crafted")
        except ClqError as error:
            said = str(error)
        print(json.dumps([store.revision(), said]), flush=True)
"""
"""Imports files, each into a store of its own: of each its path, then the revision and the refusal."""
GROUPS = (WORKBOOKS, PARQUET, HDF5, SQLITE, JSONS, TEXTS, ARCHIVES)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: next(iter(names)))
def test_a_crafted_file_ends_no_process(tmp_path: Path, names: dict[str, object]):
    for name in names:
        (tmp_path / name).write_bytes(CRAFTED[name]())
    for name, (revision, said) in imported([tmp_path / name for name in names]).items():
        assert (revision == 1) != bool(said), name  # read, or refused with nothing stored
        assert not said or Path(name).name in said


def imported(paths: Sequence[Path]) -> dict[str, tuple[int, str]]:
    """Import files in a process of its own; by name the revision of the store, and the refusal."""
    few = {"MALLOC_ARENA_MAX": "2"}  # else a gigabyte of addresses is set aside for threads, not for files
    ended = subprocess.run(
        [sys.executable, "-c", _IMPORTS, *map(str, paths)],
        capture_output=True, check=False, text=True, env=os.environ | few,
    )  # fmt: skip
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, f"{lines[-1:]}: {ended.stderr[-600:]}"
    assert lines[::2] == [str(path) for path in paths]
    assert not any(inside in line for inside in ("Traceback", "panicked") for line in lines)
    return {path.name: json.loads(line) for path, line in zip(paths, lines[1::2], strict=True)}


TEXT_SAMPLES = sorted(name for name, (_, data) in SAMPLES.items() if b"\0" not in data)
LONG_LINE = 10_000_000
PARTS = 6


def long_lines(data: bytes, name: str) -> Iterator[bytes]:
    """A text with one of its words ten megabytes long, and with a line of words as long as that."""
    start, end = chance(name).choice([each.span() for each in re.finditer(rb"\w+", data)])
    yield data[:start] + b"x" * LONG_LINE + data[end:]
    yield data.rstrip(b"\n") + b"\n" + b"word " * (LONG_LINE // 5) + b"\n"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS if EVERY_PAGE else 1))
def test_a_line_of_ten_megabytes_in_a_text_of_every_format(tmp_path: Path, part: int):
    paths = []
    for name in TEXT_SAMPLES[part::PARTS]:
        for number, data in enumerate(long_lines(SAMPLES[name][1], name)):
            paths.append(tmp_path / f"{name}-{number}".replace(" ", "-"))
            paths[-1].write_bytes(data)
    for where, (revision, said) in imported(paths).items():
        assert (revision == 1) != bool(said), where
        assert len(said) < 1_000, where


def test_there_are_crafted_files_of_every_kind():
    assert len(CRAFTED) == sum(map(len, GROUPS)) >= 100
    assert all(len(group) >= 9 for group in GROUPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one-text.parquet", "deep.parquet", "unstored-huge.hdf5", "ragged.csv"])
def test_what_a_small_file_claims_is_refused_by_its_name(name: str):
    assert refusal(up(name, CRAFTED[name]())).startswith(name)


def test_where_packed_json_is_broken_is_looked_for_in_small_files_only():
    small, large = (gzip.compress(b"[" + b"1," * values + b"x]") for values in (1_000, MOST_LOOKED_AT // 2))
    with opened([up("a.json.gz", small), up("b.json.gz", large)], ReadLimits()) as (one, other):
        assert broken(one.members[0]) is not None
        assert broken(other.members[0]) is None


def test_values_that_would_take_all_memory_are_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.importers.read.jsons.MOST_HELD", 1 << 20)
    with opened([up("a.json", b"[" + b"[]," * 20_000 + b"1]"), up("b.json", b"[" + b"1," * 20_000 + b"1]")],
                ReadLimits()) as (lists, numbers):  # fmt: skip
        assert read_json(numbers.members[0])
        with pytest.raises(InputError, match="GiB of memory"):
            read_json(lists.members[0])


_ANSWERS = """
import os, sys, time
for line in sys.stdin:
    if "die" in line:
        os.abort()
    if "sleep" in line:
        time.sleep(60)
    if "take" in line:
        bytearray(1 << 30)
    print(line, end="", flush=True)
"""


def test_a_process_that_dies_is_told_and_the_next_request_has_another(tmp_path: Path):
    script = tmp_path / "answers.py"
    script.write_text(_ANSWERS)
    asked = Bounded(script, memory=1 << 29, seconds=5.0)
    assert asked.ask({"say": 1}) == {"say": 1}
    for request in ("die", "take", "sleep"):
        with pytest.raises(ChildProcessError):
            asked.ask({"do": request})
        assert asked.ask({"say": 2}) == {"say": 2}
    asked.close()
    assert asked.ask({"say": 3}) == {"say": 3}
    asked.close()


def test_a_process_that_nobody_asks_ends(tmp_path: Path):
    (tmp_path / "answers.py").write_text(_ANSWERS)
    asked = Bounded(tmp_path / "answers.py", memory=1 << 29, seconds=5.0, idle_s=0.0)
    assert asked.ask({"say": 1}) == {"say": 1}
    process = asked._process
    assert process is None or process.wait(timeout=10) is not None
