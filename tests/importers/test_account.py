"""Every column, key and file of a format is named as taken or left out; counted anew by a naive reader."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator

import cbor2
import lz4.frame
import polars as pl
import pytest

from core.importers import FORMATS, load
from core.importers.account import Account, keyed, sentences, settled
from tests.importers import test_excel
from tests.importers.fuzzing import OPTIONS
from tests.importers.helpers import members, read, up
from tests.importers.samples import SAMPLES

PENDING = {
    each.name
    for each in FORMATS
    if each.name not in ("trec-run", "trec-qrels", "table", "excel", "ragged", "rag-gs", "mteb", "published")
}  # fmt: skip
"""Formats that do not account for their files yet; to become empty."""
LINES = {"trec-run": 6, "trec-qrels": 4}


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


def parts_of(data: bytes) -> set[str]:
    """The columns or key paths of a file, by the plainest reader."""
    data = unpacked(data)
    if data.startswith(b"PAR1"):
        return set(pl.read_parquet(io.BytesIO(data)).columns)
    if data.startswith(b"PK"):
        return set(test_excel.ROWS[0])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return set(leaves(cbor2.loads(data)))
    if text.lstrip()[:1] in "{[":
        return {path for value in json_values(text) for path in leaves(value)}
    first = text.splitlines()[0]
    return set(next(csv.reader([first], delimiter="\t" if "\t" in first else ",")))


def covers(name: str, path: str) -> bool:
    """Whether an entry of an account is for a path: the path itself, or keys above it."""
    pattern = re.escape(name).replace(r"\*", "[^.]*")
    return re.fullmatch(rf"{pattern}(\..*)?", path, re.DOTALL) is not None


def accounts_of(name: str) -> dict[str, Account]:
    made = load([up("x", SAMPLES[name][1])], OPTIONS)
    found = {each.file.removeprefix("x/"): each for each in made.accounts}
    assert len(found) == len(made.accounts)
    return found


@pytest.mark.parametrize("name", [name for name, (form, _) in SAMPLES.items() if form not in PENDING])
def test_taken_and_left_out_are_all_that_a_file_has(name):
    form, data = SAMPLES[name]
    accounts = accounts_of(name)
    files = members(data)
    assert accounts.keys() == files.keys()
    for file, content in files.items():
        account = accounts[file]
        named = [*account.taken, *account.left_out]
        assert len(named) == len(set(named))
        assert all(account.left_out.values())
        if account.kind == "file":
            assert named == [file]
        elif account.kind == "field":
            assert len(named) == LINES[form]
        elif account.kind == "column":
            assert len(named) == len(parts_of(content))
            assert set(named) == parts_of(content)
        else:
            paths = parts_of(content)
            of_each = {path: [each for each in named if covers(each, path)] for path in paths}
            assert all(of_each.values()), [path for path, found in of_each.items() if not found]
            assert {each for found in of_each.values() for each in found} == set(named)


def test_formats_that_do_not_account_are_few_and_known():
    silent = {form for name, (form, _) in SAMPLES.items() if not accounts_of(name)}
    assert silent == PENDING


def test_what_is_left_out_is_said():
    made = read(up("x", "stack,nDCG@10,notes\nA,0.5,first\n"))
    assert made.accounts == (Account("x", "column", ("stack", "nDCG@10"), {"notes": "not recognised"}),)
    assert [(each.count, each.reason, each.first) for each in made.left_out] == [
        (1, "column `notes`: not recognised", "x")
    ]


KEYS = {
    "flat": ([{"a": 1, "b": 2}], {"a": ""}, (("a",), {"b": "not recognised"})),
    "a key stands for all below": ([{"a": {"b": {"c": 1}}}], {"a": ""}, (("a",), {})),
    "below lists": ([[{"a": [{"b": 1}, {"c": 1}]}]], {"a.b": "", "a.c": "why"}, (("a.b",), {"a.c": "why"})),
    "an exception below": ([{"a": {"b": 1, "c": 2}}], {"a": "", "a.c": "no"}, (("a.b",), {"a.c": "no"})),
    "any key": ([{"q1": {"d": 1}}, {"q2": {"e": 1}}], {"*.d": "", "*": ""}, (("*.d", "*.e"), {})),
    "part of a name": ([{"a_at_1": 1, "b": 2}], {"a_at_*": ""}, (("a_at_*",), {"b": "not recognised"})),
    "unknown below known": ([{"a": {"b": 1, "z": 2}}], {"a.b": ""}, (("a.b",), {"a.z": "not recognised"})),
    "no map where one is known": ([{"a": None}, {"a": []}], {"a.b": ""}, (("a",), {})),
    "empty": ([{}], {"a": ""}, ((), {})),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys(name):
    values, parts, (taken, left) = KEYS[name]
    found = keyed("x", values, parts)
    assert (found.taken, found.left_out) == (taken, left)


def test_many_parts_are_summed_up():
    account = settled("x", "column", [f"c{number}" for number in range(40)], {"c1*": ""})
    assert len(account.taken) == 11
    ((count, told, first),) = sentences([account, account])
    assert (count, first) == (29, "x")
    assert "(+17 more)" in told
