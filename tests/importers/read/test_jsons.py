import io
import json
import math

import polars as pl
import pytest

from core.errors import InputError
from core.importers import ReadLimits
from core.importers.read.jsons import (
    at,
    expect,
    json_rows,
    number,
    optional,
    outline,
    parsed,
    plain,
    read_json,
    texts,
)
from core.importers.read.member import Member
from core.importers.read.tabular import read_objects


def member(content: str | bytes) -> Member:
    data = content.encode() if isinstance(content, str) else content
    return Member("f.json", "f.json", len(data), ReadLimits(), lambda: io.BytesIO(data))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[" * 61 + "]" * 61, "nested deeper than 60 levels"),
        ('{"a": 1,\n"a": 2}', "the key 'a' stands twice"),
        ('{"a": "\\uD800"}', "half a character"),
        ('{"\\udc00": 1}', "half a character"),
        ('{"a": ' + "1" * 5000 + "}", "not valid JSON"),
        ('{"a": 1}\n}', "f.json:2"),
        ("", "not valid JSON"),
        (b'{"a": "\xff"}', "not valid UTF-8"),
        (b'{"a": "\0"}', "NUL byte"),
    ],
)
def test_hostile_json_is_refused(content, message):
    with pytest.raises(InputError, match=r"f\.json") as caught:
        read_json(member(content))
    assert message in str(caught.value)


def test_json_is_read_as_it_is():
    value = {"a": [1, 2.5, None, True, "ü\U0001f600"], "b": {"c": {}}}
    assert read_json(member(json.dumps(value))) == value
    assert read_json(member("[" * 60 + "]" * 60)) is not None
    assert math.isnan(read_json(member('{"a": NaN}'))["a"])
    with pytest.raises(InputError, match="not read"):
        read_json(member("[1, 2, 3, 4]"), most=4)


def test_lines_are_objects_with_their_numbers():
    assert list(json_rows(member('{"a": 1}\n\n{"a": 2}'))) == [(1, {"a": 1}), (3, {"a": 2})]
    for bad in ('{"a": 1}\n[2]', '{"a": 1}\n{"a": '):
        with pytest.raises(InputError, match=r"f\.json:2"):
            list(json_rows(member(bad)))


def test_rows_that_are_kept_are_bounded():
    with pytest.raises(InputError, match="not read"):
        list(json_rows(member('{"a": 1}\n' * 5), most=20))


def test_values_are_taken_by_type():
    holder = parsed(
        '{"t": "x", "i": 3, "f": 0.5, "n": NaN, "z": null, "b": true, "inf": 1e999, '
        '"big": 9223372036854775808, "l": ["a"], "m": ["a", 1]}',
        "f.json",
    )
    assert expect(holder, "t", str, "here") == "x"
    assert expect(holder, "i", int, "here") == 3
    assert number(holder, "i", "here") == 3.0
    assert [number(holder, key, "here") for key in ("n", "z", "absent")] == [None, None, None]
    assert texts(holder, "l", "here") == ["a"]
    assert texts(holder, "z", "here") is None
    refused = [
        (lambda: expect(holder, "z", str, "here"), "no 'z'"),
        (lambda: expect(holder, "b", int, "here"), "'b' is true or false, not an integer"),
        (lambda: number(holder, "t", "here"), "'t' is text, not a number"),
        (lambda: number(holder, "inf", "here"), "infinite"),
        (lambda: number(holder, "big", "here"), "64 bits"),
        (lambda: texts(holder, "m", "here"), "holds an integer where texts stand"),
        (lambda: optional([], "a", str, "here"), "It is a list, not an object"),
    ]
    for call, message in refused:
        with pytest.raises(InputError, match=r"^here: ") as caught:
            call()
        assert message in str(caught.value)


def test_what_goes_into_a_manifest_is_plain():
    value = {
        "a": [float("nan"), float("inf"), 1, 2**70, "x" * 3000],
        "b\n": (1, None, True),
        "c": {1: object},
        "d": "\ud800",
    }
    made = plain(value)
    assert made["a"] == [None, None, 1, str(2**70), "x" * 2000]
    assert made["b\\x0a"] == [1, None, True]
    assert made["d"] == "?"
    json.dumps(made, allow_nan=False)


def test_a_place_is_readable():
    assert at("f.json", "results", 3, "metrics") == "f.json, key `results[3].metrics`"
    assert at("f.json", line=4) == "f.json:4"


def test_the_outline_of_a_head():
    value = {"cases": [{"input": "x {\\", "n": 1, "on": False, "none": None}], "k": {"q": {"d": 1}}}
    found = outline(member(json.dumps(value)))
    assert found["cases[].input"] == {"text"}
    assert found["cases[].on"] == {"flag"}
    assert found["k.q.d"] == {"number"}
    assert outline(member(json.dumps(value)[:60]))["cases[].n"] == {"number"}
    assert outline(member('{"a": 1}\n{"b": "x"}')) == {"": {"object"}, "a": {"number"}, "b": {"text"}}
    assert outline(member("[[1], [null]]"))["[][]"] == {"number", "null"}
    for other in ("a,b\n1,2", "", '"text"', b"PAR1\0"):
        assert outline(member(other)) == {}
    for odd in ("]" * 5, "{]:,", "{" * 5000, "[:", '{"a" "b"}', "[1}"):
        outline(member(odd))


WITHIN = [
    {"a": "x\\y"}, {"a": "t\tb"}, {"a": 'q"q'}, {"é\t\\": "\n\x01\u2028"}, [1.5, {"c": "\\"}, ["\t"]], {}, [],
]  # fmt: skip
"""JSON where a field is text."""


def test_json_within_json_stays_json():
    lines = [{"id": place, "field": value} for place, value in enumerate([*WITHIN, "text \\ \t", "{\t"])]
    data = "\n\n".join(map(json.dumps, lines)).encode()
    read = read_objects(data, {"id": pl.Int64, "field": pl.String})["field"].to_list()
    assert [*map(json.loads, read[:-2])] == WITHIN
    assert read[-2:] == ["text \\ \t", "{\t"]


def test_json_within_lists_of_json_stays_json():
    schema = {"field": pl.List(pl.String)}
    lines = [{"field": [value, "{\t", None]} for value in WITHIN]
    read = read_objects("\n".join(map(json.dumps, lines)).encode(), schema)["field"].to_list()
    assert [json.loads(each[0]) for each in read] == WITHIN
    assert {(*each[1:],) for each in read} == {("{\t", None)}
