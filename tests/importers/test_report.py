"""Every column, key and file of a format is named as taken or left out; counted anew by a naive reader."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import cbor2
import lz4.frame
import polars as pl
import pyfive
import pytest

from core.errors import ClqError
from core.importers import Import, load
from core.importers.formats.annbench import HDF5
from core.importers.read.database import MAGIC
from core.importers.report import FileReport, keyed, sentences, settled
from tests.importers.formats import test_excel
from tests.importers.fuzzing import OPTIONS
from tests.importers.helpers import members, read, up, zipped
from tests.importers.samples import LONG, SAMPLES, by_name

LINES = {"trec-run": 6, "trec-qrels": 4, "msmarco-run": 3, "topics": 2, "eval-output": 3}


def unpacked(data: bytes) -> bytes:
    while data[:2] in (b"\x1f\x8b", b"\x04\x22"):
        data = gzip.decompress(data) if data[:1] == b"\x1f" else lz4.frame.decompress(data)
    return data


def leaves(value: object, path: str = "") -> Iterator[str]:
    """Paths of all keys of a JSON value down to what is no map; lists are what they hold."""
    if isinstance(value, list) and value:
        for each in value:
            yield from leaves(each, path)
    elif isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif path:
        yield path


def json_values(text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def parts_of(data: bytes) -> set[str]:  # noqa: PLR0911
    """The columns or key paths of a file, by the plainest reader."""
    data = unpacked(data)
    if data.startswith(b"PAR1"):
        return set(pl.read_parquet(io.BytesIO(data)).columns)
    if data.startswith(b"PK"):
        return set(test_excel.ROWS[0])
    if data.startswith(MAGIC):
        return tables_of(data)
    if data.startswith(HDF5):
        with pyfive.File(io.BytesIO(data)) as file:
            return {*file, *(f"attrs.{name}" for name in file.attrs)}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return set(leaves(cbor2.loads(data)))
    if text.lstrip()[:1] in "{[":
        return {path for value in json_values(text) for path in leaves(value)}
    if text.startswith("# "):
        return heads_of(text)
    first = text.splitlines()[0]
    return set(next(csv.reader([first], delimiter="\t" if "\t" in first else ",")))


def in_table(path: str, paths: set[str]) -> str:
    """The column of a key path of JSON rows (of objects within, with the key above); beside rows the key."""
    if not any(each.startswith("rows.") for each in paths):
        return path.replace(".", "_")
    above, _, below = path.partition(".")
    return below.replace(".", "_") if above == "rows" else above


def tables_of(data: bytes) -> set[str]:
    """The columns of all tables of a database, with the table before them."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(data)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {
            f"{name}.{row[1]}" for name in tables for row in connection.execute(f"PRAGMA table_info({name})")
        }


def heads_of(text: str) -> set[str]:
    """First cells of the rows of a page's tables that hold no numbers."""
    rows = [
        [cell.strip(" *`") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]
    return {row[0] for row in rows if not re.search(r"\d\.\d|--", "".join(row[1:]))}


def covers(name: str, path: str) -> bool:
    """Whether an entry of a report is for a path: the path itself, or keys above it."""
    pattern = re.escape(name).replace(r"\*", "[^.]*")
    return re.fullmatch(rf"{pattern}(\..*)?", path, re.DOTALL) is not None


def reports_of(name: str) -> dict[str, FileReport]:
    made = load([up("x", SAMPLES[name][1])], OPTIONS)
    found = {each.file.removeprefix("x/"): each for each in made.reports}
    assert len(found) == len(made.reports)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_taken_and_left_out_are_all_that_a_file_has(name):
    form, data = SAMPLES[name]
    file_reports = reports_of(name)
    files = members(data)
    assert file_reports.keys() == files.keys()
    for file, content in files.items():
        file_report = file_reports[file]
        named = [*file_report.taken, *file_report.left_out]
        assert len(named) == len(set(named))
        assert all(file_report.left_out.values())
        if file_report.kind == "file":
            assert [name.removeprefix("x/") for name in named] == [file]
        elif file_report.kind == "field":
            assert len(named) == LINES[form]
        elif file_report.kind == "column":
            parts = parts_of(content)
            if content[:1] in (b"{", b"["):
                parts = {in_table(path, parts) for path in parts}
            assert len(named) == len(parts)
            assert set(named) == parts
        else:
            paths = parts_of(content)
            of_each = {path: [each for each in named if covers(each, path)] for path in paths}
            assert all(of_each.values()), [path for path, found in of_each.items() if not found]
            assert {each for found in of_each.values() for each in found} == set(named)


def cells_of(data: bytes) -> Counter[str]:
    """Column or key path → how many cells a file has of it, by the plainest reader."""
    content = unpacked(data)
    parts = parts_of(data)
    if content.startswith(b"PAR1"):
        return Counter(dict.fromkeys(parts, pl.read_parquet(io.BytesIO(content)).height))
    text = content.decode("utf-8", "replace")
    if text.lstrip()[:1] in "{[" and not content.startswith((b"PK", MAGIC, HDF5)):
        return Counter(path for value in json_values(text) for path in leaves(value))
    return Counter(dict.fromkeys(parts, max(text.count("\n") - 1, 1)))


def balance(file_report: FileReport, cells: Counter[str]) -> dict[str, int]:
    """Cells that are taken, left out, named twice and not named at all: each by the longest name over it."""
    sums = dict.fromkeys(("taken", "left out", "twice", "not named"), 0)
    for path, count in cells.items():
        named = {"taken": file_report.taken, "left out": file_report.left_out}
        over = {
            side: max((len(name) for name in names if covers(name, path)), default=-1)
            for side, names in named.items()
        }
        best = max(over.values())
        sides = [side for side, length in over.items() if length == best]
        sums["not named" if best < 0 else "twice" if len(sides) > 1 else sides[0]] += count
    return sums


def grown(value: object, more: dict[str, object], source: random.Random) -> object:
    """A JSON value with keys that nothing knows at any of its maps."""
    if isinstance(value, list):
        return [grown(each, more, source) for each in value]
    if not isinstance(value, dict):
        return value
    own = {name: cell for name, cell in more.items() if source.random() < 0.5}
    return {**{key: grown(below, more, source) for key, below in value.items()}, **own}


def with_more(data: bytes, source: random.Random) -> bytes:
    """A file with columns or keys that nothing knows; of packed and binary ones the file as it is."""
    names = [f"zz {source.randint(1, 99)} {letter}" for letter in "abc"]
    if data.startswith(b"PAR1"):
        buffer = io.BytesIO()
        pl.read_parquet(io.BytesIO(data)).with_columns(pl.lit("x").alias(names[0])).write_parquet(buffer)
        return buffer.getvalue()
    try:
        text = data.decode()
        values = json_values(text) if text.lstrip()[:1] in "{[" else []
    except ValueError:
        return data
    if values:
        more = {name: source.choice([1, "x", None, [1, 2], {"a": 1}]) for name in names}
        return "".join(json.dumps(grown(value, more, source)) + "\n" for value in values).encode()
    mark = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=mark))
    if "\0" in text or text.startswith("# ") or {*map(len, rows)} <= {0, 1} or len({*map(len, rows)}) > 1:
        return data
    buffer = io.StringIO()
    at = source.randrange(len(rows[0]) + 1)
    cells = [[names[0]], *([source.choice(["x", "1", ""])] for _ in rows[1:])]
    csv.writer(buffer, delimiter=mark, lineterminator="\n").writerows(
        [*row[:at], *more, *row[at:]] for row, more in zip(rows, cells, strict=True)
    )
    return buffer.getvalue().encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_the_account_sums_to_the_cells_of_the_file(name):
    """Whatever columns and keys a file has besides, in every format; `SAMPLES` has a file of each."""
    form, data = SAMPLES[name]
    files = members(data)
    tried = 0
    for seed in range(1 if name in LONG else 4):
        source = random.Random(f"account {name} {seed}")  # noqa: S311
        made = {file: with_more(content, source) if seed else content for file, content in files.items()}
        if form.startswith("trec"):
            made = files
        offered = (made["x"] if files.keys() == {"x"} else zipped(made, 0)) if seed else data
        try:
            found = load([up("x", offered)], OPTIONS)
        except ClqError:
            continue  # with more it is of no format, or there is more than one reading
        for file_report in found.reports:
            if file_report.kind in ("column", "key"):
                content = made[file_report.file.removeprefix("x/")]
                cells = cells_of(content)
                if file_report.kind == "column" and content.lstrip()[:1] in (b"{", b"["):
                    columns: Counter[str] = Counter()
                    for path, count in cells.items():
                        columns[in_table(path, {*cells})] += count
                    cells = columns
                sums = balance(file_report, cells)
                assert (sums["twice"], sums["not named"]) == (0, 0), file_report
                assert sums["taken"] + sums["left out"] == sum(cells.values())
                tried += 1
            assert all(file_report.left_out.values())
    kinds = {each.kind for each in reports_of(name).values()}
    assert tried or not kinds & {"column", "key"}


def test_what_is_left_out_is_said():
    made = read(up("x", "stack,nDCG@10,notes\nA,0.5,first\n"))
    assert made.reports == (FileReport("x", "column", ("stack", "nDCG@10"), {"notes": "unknown meaning"}),)
    assert [(each.count, each.reason, each.first) for each in made.left_out] == [
        (1, "column `notes`: unknown meaning", "x")
    ]


KEYS = {
    "flat": ([{"a": 1, "b": 2}], {"a": ""}, (("a",), {"b": "unknown meaning"})),
    "a key stands for all below": ([{"a": {"b": {"c": 1}}}], {"a": ""}, (("a",), {})),
    "below lists": ([[{"a": [{"b": 1}, {"c": 1}]}]], {"a.b": "", "a.c": "why"}, (("a.b",), {"a.c": "why"})),
    "an exception below": ([{"a": {"b": 1, "c": 2}}], {"a": "", "a.c": "no"}, (("a.b",), {"a.c": "no"})),
    "any key": ([{"q1": {"d": 1}}, {"q2": {"e": 1}}], {"*.d": "", "*": ""}, (("*.d", "*.e"), {})),
    "part of a name": ([{"a_at_1": 1, "b": 2}], {"a_at_*": ""}, (("a_at_*",), {"b": "unknown meaning"})),
    "unknown below known": ([{"a": {"b": 1, "z": 2}}], {"a.b": ""}, (("a.b",), {"a.z": "unknown meaning"})),
    "no map where one is known": ([{"a": None}, {"a": []}], {"a.b": ""}, (("a",), {})),
    "empty": ([{}], {"a": ""}, ((), {})),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys(name):
    values, parts, (taken, left) = KEYS[name]
    found = keyed("x", values, parts)
    assert (found.taken, found.left_out) == (taken, left)


def test_many_parts_are_summed_up():
    file_report = settled("x", "column", [f"c{number}" for number in range(400)], {"c1*": ""})
    assert len(file_report.taken) == 111
    ((count, told, first, _),) = sentences([file_report, file_report])
    assert (count, first, told.count("`c")) == (289, "x", 200)
    assert "(+89 more)" in told


UNPACKED = [
    name
    for name, (form, data) in SAMPLES.items()
    if parts_of(data if members(data).keys() == {"x"} else b'{"a": 1}')
    and form
    not in ("clq", "ranx-run", "ranx-qrels", "optuna", "phoenix", "ann-benchmarks", "regressions", "excel")
    and not form.startswith("trec")
]
"""Samples whose columns or keys a test can take away."""
NO_EFFECT = {
    "context-grid": {"runs.metrics.faithfulness", "runs.per_query.hit"},
    "mteb": {"scores.test.mrr_at_10"},
    "vectordbbench": {"results.label"},
    "langsmith": {
        "error", "feedback_stats.correctness.n", "inputs.messages.content", "inputs.messages.role",
        "inputs.query", "name", "outputs.answer", "outputs.documents.metadata.source",
        "outputs.documents.type", "outputs.generations.text", "parent_run_id", "session_name", "status",
    },
    "openinference": {"parent_id", "status_code"},
    "openinference-csv": {"parent_id", "status_code"},
    "langfuse": {"level"},
}  # fmt: skip
"""What is read and changes nothing in a sample: empty values, flags as expected, what other keys repeat."""


def without(value: object, path: str) -> object:
    """A JSON value without the key of a path."""
    if isinstance(value, list):
        return [without(each, path) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without(below, path[len(key) + 1 :]) if path.startswith(f"{key}.") else below
        for key, below in value.items()
        if key != path
    }


def dropped(data: bytes, name: str) -> bytes:
    """A file without one of its columns or keys."""
    if data.startswith(b"PAR1"):
        buffer = io.BytesIO()
        pl.read_parquet(io.BytesIO(data)).drop(name).write_parquet(buffer)
        return buffer.getvalue()
    text = data.decode()
    if text.lstrip()[:1] in "{[":
        values = json_values(text)
        return "".join(json.dumps(without(value, name)) + "\n" for value in values).encode()
    mark = "\t" if "\t" in text.splitlines()[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=mark))
    at = rows[0].index(name)
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=mark, lineterminator="\n").writerows(
        row[:at] + row[at + 1 :] for row in rows
    )
    return buffer.getvalue().encode()


def essence(made: Import) -> tuple[object, ...]:
    """What an import brings, whatever its runs are called by."""
    tables = {
        name: sorted(map(repr, held.lazy().collect().drop("run_id", strict=False).rows()))
        for name, held in made.frames.items()
    }
    runs = sorted(
        repr((run.label, dict(run.stack.spec), run.pool, dict(run.environment))) for run in made.runs
    )
    kept = [{key: value for key, value in run.manifest.items() if key != "content"} for run in made.runs]
    return tables, runs, made.golden_sets, made.collections, sorted(map(repr, kept))


@pytest.mark.slow
@pytest.mark.parametrize("name", by_name(UNPACKED))
def test_what_is_said_is_so(name):
    """Without a part that is left out the same is brought; without one that is taken it is not."""
    files = members(SAMPLES[name][1])
    whole = load([up("x", SAMPLES[name][1])], OPTIONS)
    file_reports = reports_of(name)
    idle = set()
    for file, content in files.items():
        file_report = file_reports[file]
        for part in parts_of(content) if file_report.kind in ("column", "key") else ():
            changed = dropped(content, part)
            data = changed if len(files) == 1 else zipped({**files, file: changed}, 0)
            left = any(covers(each, part) for each in file_report.left_out)
            try:
                made = load([up("x", data)], OPTIONS)
            except ClqError:
                continue  # by this part the file is known for what it is
            if not left:
                idle |= {part} if essence(made) == essence(whole) else set()
            elif any(
                each.taken == file_report.taken and each.file == file_report.file for each in made.reports
            ):
                assert essence(made)[:4] == essence(whole)[:4], (file, part)
    assert len(files) > 1 or idle == NO_EFFECT.get(name, set())
