"""Values of other kinds than expected, put into what is otherwise sound: JSON, tables of text, words."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 2**63, 10**400, "", " ", "1", "NaN", "\ud800",
    "a\0b", "=1+1", "<b>", "\u202e", [], {}, [None], [[]], {"a": 1}, [1, "a"], ["a", "a"], {"": ""},
)  # fmt: skip
"""Values that JSON can say."""
RAW = (
    "1e999", "-1e999", "-0", "-0.0", "1" * 5_000, "[" * 70 + "]" * 70, "[" * 3_000 + "]" * 3_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000, '{"a": 1, "a": 2}', '"\\udc00"', "undefined", "'a'", "",
    "01", "[1,]", '"' + "x" * 70_000 + '"',
)  # fmt: skip
"""Text where a JSON value stands that no value is written as; the last one fills a file's head."""
CELLS = (
    "", " ", "-1", "0", "1.5", "1e400", "nan", "inf", "-inf", "None", "null", "True", "1_000", "1,5", "٣",
    "１", "0x10", str(2**63), "9" * 400, "=1+1", "<b>", "a\0b", "\u202e", "\ufeff", '"', "a\nb", "a\r\nb",
    "[[", "{'a': 1", "[" * 500, "[" * 200 + "]" * 200, "{}", "[]", "[nan]", '{"a": 1}', "2024-13-45T99:99:99",
    "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59", "x" * 70_000,
)  # fmt: skip
"""Texts where a number, a name, a time or a nested value stands."""
_MARK = "@@here@@"
_DELIMITERS = "\t,;|"
Path = tuple[Any, ...]


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """The way to every value within a JSON value."""
    if path:
        yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in within:
        yield from places(each, (*path, key))


def reached(value: Any, path: Path) -> Any:
    """What stands at the end of a way."""
    for key in path:
        value = value[key]
    return value


def odd_within(value: Any, source: random.Random) -> Any:
    """A JSON value with one value in it replaced, removed, repeated, renamed, wrapped or moved."""
    value = copy.deepcopy(value)
    found = list(places(value))
    if not found:
        return copy.deepcopy(source.choice(ODD))
    *way, last = source.choice(found)
    holder = reached(value, tuple(way))
    kind = source.randrange(8)
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    elif kind == 2 and isinstance(holder, dict):
        holder[str(source.choice(CELLS))] = holder.pop(last)
    elif kind == 3:
        holder[last] = source.choice([[holder[last]], {"a": holder[last]}, str(holder[last])])
    elif kind == 4:
        holder[last] = copy.deepcopy(reached(value, source.choice(found)))
    else:
        holder[last] = copy.deepcopy(source.choice(ODD))
    return value


def odd_json(text: str, source: random.Random) -> str:
    """JSON with one thing in it that is not as expected, or that is no JSON at all."""
    value = json.loads(text)
    if source.randrange(4) or not isinstance(value, dict | list) or not value:
        return json.dumps(odd_within(value, source))
    *way, last = source.choice(list(places(value)))
    holder = reached(value, tuple(way))
    if isinstance(holder, dict) and source.randrange(2):  # the key a second time
        written = json.dumps(last)
        holder[last], other = _MARK, json.dumps(holder[last])
        raw = f"{other}, {written}: {other}"
    else:
        holder[last], raw = _MARK, source.choice(RAW)
    return json.dumps(value).replace(f'"{_MARK}"', raw, 1)


def odd_lines(text: str, source: random.Random) -> str:
    """JSON lines with one of them changed, removed or repeated."""
    lines = text.splitlines()
    place = source.randrange(len(lines))
    kind = source.randrange(8)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, lines[place])
    else:
        lines[place] = odd_json(lines[place], source)
    return "\n".join(lines)


def odd_table(text: str, delimiter: str, source: random.Random) -> str:
    """A table of text with one cell, row, column or name changed."""
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    row = source.choice(rows)
    column = source.randrange(len(row) or 1)
    kind = source.randrange(9)
    if kind == 0:
        rows.insert(source.randrange(len(rows)), list(row))
    elif kind == 1:
        rows.remove(row)
    elif kind == 2:
        rows = [[*each, *each[column : column + 1]] for each in rows]
    elif kind == 3:
        rows = [each[:column] + each[column + 1 :] for each in rows]
    elif kind == 4 and rows[0]:
        rows[0][source.randrange(len(rows[0]))] = source.choice([*CELLS, *rows[0]])
    elif kind == 5:
        fill = source.choice(CELLS[:-1])
        rows = rows[:1] + [[*each[:column], fill, *each[column + 1 :]] for each in rows[1:]]
    elif row:
        row[column] = _odd_cell(row[column], source)
    sink = io.StringIO(newline="")
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return sink.getvalue()


def _odd_cell(cell: str, source: random.Random) -> str:
    """A cell of JSON with one value in it changed, or another text altogether."""
    if cell[:1] in ("{", "[") and source.randrange(2):
        try:
            return odd_json(cell, source)
        except ValueError:
            pass
    return source.choice(CELLS)


def odd_words(text: str, source: random.Random) -> str:
    """Text with a word or a line of it replaced, removed or repeated."""
    lines = text.split("\n")
    place = source.choice([number for number, line in enumerate(lines) if line.strip()] or [0])
    words = lines[place].split(" ")
    word = source.randrange(len(words))
    kind = source.randrange(6)
    if kind == 0:
        lines.insert(place, lines[place])
    elif kind == 1:
        del lines[place]
    elif kind == 2:
        del words[word]
    else:
        words[word] = source.choice([*CELLS, source.choice(text.split() or [""])])
    if kind > 1:
        lines[place] = " ".join(words)
    return "\n".join(lines)


def odd_text(text: str, source: random.Random) -> str:
    """Text with one thing in it changed, by what it is: JSON, JSON lines, a table or words."""
    try:
        return odd_json(text, source)
    except ValueError:
        pass
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    if first.startswith("{"):
        try:
            return odd_lines(text, source)
        except ValueError:
            return odd_words(text, source)
    best = max(_DELIMITERS, key=first.count)
    return odd_table(text, best, source) if best in first else odd_words(text, source)
