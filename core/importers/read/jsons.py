"""Untrusted JSON of foreign tools, read whole, checked, and taken apart by type.

What Python's own reader accepts is refused here with the file and the key: nesting that would exhaust the
stack, a key that occurs twice in an object, halves of characters that no file can hold. Many tools write NaN
for "no number", so it means missing; an infinite number is refused wherever a number is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeVar, overload

from core.errors import InputError
from core.importers.read.member import GIB, MIB, Member, head_lines, per_member
from core.importers.read.text import blocks, place, shown, whole

Json = dict[str, Any]
Value = TypeVar("Value", str, int, float, bool, Json, list[Any])

MOST_BYTES = 512 * MIB  # Largest JSON file that is read whole; it takes several times its size in memory
MOST_LOOKED_AT = 16 * MIB  # Largest file, unpacked, in which a syntax error is located
MOST_HELD = 2 * GIB  # Approximate memory that the values of one JSON text may take
_HELD = {b"[": 72, b"{": 72, b'"': 30, b",": 8}  # Bytes in memory for each occurrence of these
DEEPEST = 60  # Deepest nesting; result files of the field have fewer than ten levels
_LARGEST = 1 << 63
_KINDS: Mapping[type, str] = {
    str: "text", int: "an integer", float: "a number", bool: "true or false", dict: "an object",
    list: "a list", type(None): "null",
}  # fmt: skip
_DEPTH = 6
_STARTS = {"{": "object", "[": "list", "null": "null", "true": "flag", "false": "flag"}
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:,])|(-?\d[\d.eE+-]*|NaN|-?Infinity)|(true|false|null)|\S')


def read_json(member: Member, most: int = MOST_BYTES) -> object:
    """Return one JSON value from a file."""
    if member.size > most:
        raise too_large(member, most)
    data = whole(member)
    if len(data) > most:
        raise too_large(member, most)
    return parsed(data, member.name)


def read_object(member: Member) -> Json:
    """Return one JSON object from a file."""
    value = read_json(member)
    if not isinstance(value, dict):
        raise InputError(f"It is {kind_of_value(value)}, not an object.", where=member.name)
    return value


def too_large(member: Member, most: int) -> InputError:
    """Return the error for a file that has to be held in memory but is too large for that."""
    problem = f"A JSON file of more than {most // MIB:,} MiB is not read."
    return InputError(problem, where=member.name, do="Offer it in parts.")


def parsed(data: bytes | str, name: str, line: int | None = None) -> object:
    """Return one JSON value from its text, checked as in `read_json`.

    Args:
        name: File (and key), for messages.
        line: Line number of the text, if it is one line of a file.

    Raises:
        InputError: As in `read_json`.
    """
    _check_held(data, place(name, line))
    try:
        value = json.loads(data, object_pairs_hook=once)
    except RecursionError:
        raise InputError("The JSON is nested too deeply.", where=place(name, line)) from None
    except json.JSONDecodeError as error:
        spot = place(name, error.lineno if line is None else line)
        problem = f"This is not valid JSON: {shown(error.msg)}, at character {error.colno} of the line."
        raise InputError(problem, where=spot) from error
    except ValueError as error:
        raise InputError(f"{not_json(error)}.", where=place(name, line)) from error
    halves = b"\\ud" in data.lower() if isinstance(data, bytes) else "\\ud" in data.lower()
    _check(value, place(name, line), halves=halves)
    return value


def not_json(error: ValueError) -> str:
    """Explain why a text is not valid JSON, omitting Python's advice."""
    if "int_max_str_digits" in str(error):
        return "This is not valid JSON: a whole number has more than 4,300 digits"
    return f"This is not valid JSON: {shown(error, 200)}"


def without_nan(value: object) -> object:
    """Return a JSON value with null for NaN, which many tools write for "no number"."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    return [without_nan(item) for item in value] if isinstance(value, list) else value


def _check_held(data: bytes | str, where: str) -> None:
    """Refuse a text that takes too much memory once parsed: an empty list takes thirty times its text."""
    if len(data) * max(_HELD.values()) > MOST_HELD:
        text = data.encode("utf-8", "replace") if isinstance(data, str) else data
        held = sum(text.count(mark) * size for mark, size in _HELD.items())
        if held > MOST_HELD:
            problem = (
                f"Its values would take {held / GIB:.1f} GiB of memory, more than {MOST_HELD // GIB} GiB."
            )
            raise InputError(problem, where=where, do="Offer it in parts.")


def broken(member: Member) -> InputError | None:
    """Return the error that locates where a file that begins as JSON stops being valid.

    The result is None if the file is sound, large, or not JSON at all.
    """
    lines = head_lines(member, 1)
    if not lines or lines[0].lstrip()[:1] not in ("{", "[") or exceeds(member, MOST_LOOKED_AT):
        return None
    try:
        for _ in json_rows(member) if _object(lines[0]) else [read_json(member)]:
            pass
    except InputError as error:
        return error
    return None


def exceeds(member: Member, most: int) -> bool:
    """Return whether a file unpacks to more than this many bytes, reading only slightly more than that."""
    with member.stream() as stream:
        return len(stream.read(most + 1)) > most


def _object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def json_rows(member: Member, most: int | None = None) -> Iterator[tuple[int, Json]]:
    """Yield the objects of a JSON lines file one at a time, each with its line; blank lines are skipped."""
    read = 0
    for block in blocks(member):
        read += len(block.data)
        if most is not None and read > most:
            raise too_large(member, most)
        for number, line in enumerate(block.data.split(b"\n"), block.first_line):
            if not line.strip():
                continue
            value = parsed(line, member.name, number)
            if not isinstance(value, dict):
                raise InputError("The line is not a JSON object.", where=place(member.name, number))
            yield number, value


def once(pairs: list[tuple[str, Any]]) -> Json:
    """Return an object of the pairs that `json.loads` found; refuse a key that occurs twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        again = next(key for key, other in pairwise(keys) if key == other)
        raise ValueError(f"the key {shown(again)!r} stands twice in one object")
    return mapping


def _check(value: object, where: str, *, halves: bool) -> None:
    """Refuse, level by level, deep nesting and texts that cannot be written to a file."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
                if halves:
                    below += item
            elif isinstance(item, list):
                below += item
            elif halves and isinstance(item, str) and any("\ud800" <= mark <= "\udfff" for mark in item):
                raise InputError(f"The text '{shown(ascii(item))}' holds half a character.", where=where)
        level = below if halves else [item for item in below if isinstance(item, dict | list)]
        if not level:
            return
    raise InputError(f"The JSON is nested deeper than {DEEPEST} levels.", where=where)


def at(name: str, *path: str | int, line: int | None = None) -> str:
    """Format the location of a value, as ``file, key `results[3].metrics```."""
    spot = place(name, line)
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in path).lstrip(".")
    return f"{spot}, key `{text}`" if text else spot


def kind_of_value(value: object) -> str:
    """Return the kind of a JSON value in words."""
    return _KINDS.get(type(value), type(value).__name__)


def expect(holder: object, key: str, kind: type[Value], where: str) -> Value:
    """Return a required value, checking its type (an integer counts as a float)."""
    value = optional(holder, key, kind, where)
    if value is None:
        raise InputError(f"There is no {shown(key)!r} here.", where=where)
    return value


def optional(holder: object, key: str, kind: type[Value], where: str) -> Value | None:
    """Do as `expect`, but return None if the key is absent or its value is null."""
    if not isinstance(holder, dict):
        raise InputError(f"It is {kind_of_value(holder)}, not an object.", where=where)
    value = holder.get(key)
    if value is None:
        return None
    if kind is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)
    if type(value) is int and not -_LARGEST <= value < _LARGEST:
        raise InputError(f"{shown(key)!r} is an integer of more than 64 bits.", where=where)
    if type(value) is not kind:
        wanted = kind_of_value(kind())
        raise InputError(f"{shown(key)!r} is {kind_of_value(value)}, not {wanted}.", where=where)
    return value


def number(holder: object, key: str, where: str) -> float | None:
    """Return a finite number, or None if it is absent, null or NaN (missing is never 0)."""
    value = optional(holder, key, float, where)
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise InputError(f"{shown(key)!r} is infinite.", where=where)
    return value


def amount(holder: object, key: str, where: str) -> float | None:
    """Return a number that isn't negative; see `number`."""
    value = number(holder, key, where)
    if value is not None and value < 0:
        raise InputError(f"{shown(key)!r} is negative.", where=where)
    return value


def texts(holder: object, key: str, where: str) -> list[str] | None:
    """Return a list of texts, or None if it is absent or null."""
    values = optional(holder, key, list, where)
    wrong = next((value for value in values or () if not isinstance(value, str)), None)
    if values is not None and any(not isinstance(value, str) for value in values):
        raise InputError(f"{shown(key)!r} holds {kind_of_value(wrong)} where texts stand.", where=where)
    return values


def text(holder: object, key: str, where: str) -> str | None:
    """Return a text, or None if it is absent or null."""
    return optional(holder, key, str, where)


def words(holder: object, key: str, where: str) -> str | None:
    """Return a text, or None if it is absent, null or a list (texts and images, or turns of a dialogue)."""
    return (
        None if isinstance(holder, dict) and isinstance(holder.get(key), list) else text(holder, key, where)
    )


def mapping(holder: object, key: str, where: str) -> Json | None:
    """Return an object, or None if it is absent or null."""
    return optional(holder, key, dict, where)


def whatever(holder: object, key: str, where: str) -> object:  # noqa: ARG001
    """Return a value of any kind, or None if it is absent or null."""
    return holder.get(key) if isinstance(holder, dict) else None


def items(holder: object, key: str, where: str) -> list[Any] | None:
    """Return a list, or None if it is absent or null."""
    return optional(holder, key, list, where)


def identifier(holder: object, key: str, where: str) -> str | None:
    """Return an id, which may be an integer, or None if it is absent, null or empty."""
    if not isinstance(holder, dict):
        raise InputError(f"It is {kind_of_value(holder)}, not an object.", where=where)
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise InputError(f"{shown(key)!r} is {kind_of_value(value)}, not an id.", where=where)
    return None if value is None or value == "" else str(value)


@overload
def plain(value: Json, text_limit: int = ..., depth: int = ...) -> Json: ...
@overload
def plain(value: object, text_limit: int = ..., depth: int = ...) -> object: ...
def plain(value: object, text_limit: int = 2_000, depth: int = DEEPEST) -> object:
    """Return a JSON value for a manifest: NaN and infinite numbers as None, long texts cut.

    Halves of characters, which no file can hold, become question marks.
    """
    if isinstance(value, Mapping | list | tuple | set) and not depth:
        return "…"
    if isinstance(value, Mapping):
        return {_writable(shown(key, 200)): plain(item, text_limit, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item, text_limit, depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    kept = value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)
    return value if kept else _writable(str(value)[:text_limit])


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def objects(member: Member, *path: str, most: int | None = None) -> Iterator[tuple[str, Json]]:
    """Yield the objects of a file with their locations, in order."""
    head = member.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"[") and not path:
        for line, value in json_rows(member, most):
            yield place(member.name, line), value
        return
    whole = read_json(member)
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else whole
    if not isinstance(whole, list):
        where = at(member.name, *path)
        raise InputError(f"It is {kind_of_value(whole)}, not a list.", where=where)
    for index, value in enumerate(whole):
        where = at(member.name, *path, index)
        if not isinstance(value, dict):
            raise InputError(f"It is {kind_of_value(value)}, not an object.", where=where)
        yield where, value


@per_member
def outline(member: Member) -> Mapping[str, frozenset[str]]:
    """List the key paths in the first 64 KiB of JSON or JSON lines, each with the kinds of its values.

    Lists are part of a path as ``[]``: ``{"testCases": [{"input": "x"}]}`` gives ``testCases`` → list,
    ``testCases[]`` → object, ``testCases[].input`` → text; the path of the whole value is "". Kinds: object,
    list, text, number, flag, null. Empty if it does not look like JSON. A head that is cut off is no
    problem; errors further on are not seen.
    """
    text = member.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return {}
    by_path = _kinds_by_path(text.decode("utf-8", "replace"))
    return {path: frozenset(kinds) for path, kinds in by_path.items()}


def _kinds_by_path(text: str) -> dict[str, set[str]]:
    """Follow the brackets and keys of JSON token by token, as long as it is valid."""
    kinds: dict[str, set[str]] = {}
    path: list[str] = []  # one entry per open bracket: "[]", or "" and then the key being read
    at_key, key = False, ""
    for token in _TOKEN.finditer(text):
        quoted, mark, number, word = token.groups()
        if mark in (":", ",", "}", "]"):
            if not path:
                break
            if mark == ":":
                path[-1] = f".{key}"
                continue
            if mark != ",":
                path.pop()
            at_key = mark == "," and path[-1] != "[]"
        elif quoted is not None and at_key:
            key, at_key = quoted, False
        elif (
            kind := "text" if quoted is not None else "number" if number else _STARTS.get(mark or word or "")
        ):
            if len(path) <= _DEPTH:
                kinds.setdefault("".join(path).lstrip("."), set()).add(kind)
            if mark:
                path.append("[]" if mark == "[" else "")
                at_key = mark == "{"
        else:
            break
    return kinds
