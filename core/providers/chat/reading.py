"""Reads a chat model's answer strictly, as JSON or lines of numbers; no text makes it raise."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.records import JsonMap

V = TypeVar("V")

LogprobRow = tuple[float, ...]

LONGEST_ANSWER = 200_000  # Characters of an answer that are examined

NUMBER = r"[+-]?\d{1,12}(?:\.\d{1,12})?"  # Pattern of a number in an answer

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json|text)?[ \t]*\n(.*)\n```\Z", re.DOTALL)
_JSON = re.compile(r"\{|\[\s*[\[\]]")  # "[1]: 7" begins a line, "[[1, 7]]" does not
_LINE = re.compile(rf"\[?(\d{{1,9}})\]?\s*(?:[:)=]\s*|\.\s+)({NUMBER}(?:(?:\s*[,;|]\s*|\s+){NUMBER})*)")
_RATINGS = "ratings"
_REASON = re.compile(r"\s*//\s*")
LONGEST_REASON = 300  # Characters of a reason that are stored


@dataclass(frozen=True, slots=True)
class AnswerReading(Generic[V]):
    """A value that was read from an answer."""

    value: V  # The usable part of it, possibly nothing
    # What is wrong with the answer, in words that can be sent back; empty if it is as requested. It never
    # repeats the answer's own text.
    problem: str = ""
    weight: float = 1.0  # How much is usable; the better of two readings has the greater weight


def bare(answer: str) -> str:
    """Return the answer without a leading thought ("<think>…</think>") and without a code fence around it."""
    text = _THOUGHT.sub("", answer[:LONGEST_ANSWER], count=1).strip()
    fenced = _FENCED.match(text)
    return fenced[1].strip() if fenced else text


def json_value(text: str) -> object:
    """Return the single JSON value that a text consists of.

    Raises:
        ValueError: If it is not JSON, nested too deeply, or holds NaN, an infinity or a key twice.
    """
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_double)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _no_double(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key twice")
    return mapping


def read_rows(answer: str) -> AnswerReading[list[LogprobRow]]:
    """Return rows of numbers, from ``{"ratings": [[1, 7], [2, 3]]}`` or from a line ``1: 7`` for each."""
    text = bare(answer)
    if not text:
        return AnswerReading([], "it was empty", 0)
    if _JSON.match(text):
        return _json_rows(text)
    rows: list[LogprobRow] = []
    wrong = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.fullmatch(line)
        if match:
            rows.append((float(match[1]), *map(float, re.findall(NUMBER, match[2]))))
        else:
            wrong += 1
    problem = f"{wrong} of its lines are not a passage's number, a colon and numbers" if wrong else ""
    return AnswerReading(rows, problem, len(rows))


def part_reasons(answer: str) -> tuple[str, dict[int, str]]:
    """Split off the reasons in an answer: ``1: 7 // why`` on lines, ``"reasons": [[1, "why"]]`` in JSON."""
    text = bare(answer)
    if _JSON.match(text):
        return text, _kept_reasons(_json_reasons(text))
    parts = [_REASON.split(line, maxsplit=1) for line in text.splitlines()]
    told = [(re.match(r"\s*\[?(\d{1,9})", part[0]), part[1]) for part in parts if len(part) > 1]
    said = [(int(number[1]), reason) for number, reason in told if number]
    return "\n".join(part[0] for part in parts), _kept_reasons(said)


def _json_reasons(text: str) -> list[tuple[int, str]]:
    try:
        value = json_value(text)
    except ValueError:
        return []
    given = value.get("reasons") if isinstance(value, Mapping) else None
    rows = (
        [row for row in given if isinstance(row, list) and len(row) == 2] if isinstance(given, list) else []
    )
    return [(row[0], row[1]) for row in rows if type(row[0]) is int and isinstance(row[1], str)]


def _kept_reasons(said: Sequence[tuple[int, str]]) -> dict[int, str]:
    """Return each number's first reason, with bounded white space and length."""
    kept: dict[int, str] = {}
    for number, reason in said:
        if short := " ".join(reason.split())[:LONGEST_REASON]:
            kept.setdefault(number, short)
    return kept


def _json_rows(text: str) -> AnswerReading[list[LogprobRow]]:
    try:
        value = json_value(text)
    except ValueError:
        return AnswerReading([], "it is not valid JSON", 0)
    given = value.get(_RATINGS) if isinstance(value, Mapping) else value
    if not isinstance(given, list):
        return AnswerReading([], f'it has no list "{_RATINGS}"', 0)
    rows = [
        tuple(map(float, row)) for row in given if isinstance(row, list) and row and all(map(_is_number, row))
    ]
    problem = "" if len(rows) == len(given) else f'not every entry of "{_RATINGS}" is a list of numbers'
    return AnswerReading(rows, problem, len(rows))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e12 and math.isfinite(value)


def read_ratings(
    answer: str, count: int, highest: Sequence[float], *, fits: Callable[[LogprobRow], bool] | None = None
) -> AnswerReading[dict[int, LogprobRow]]:
    """Return one row of ratings for each of `count` passages."""
    rows = read_rows(answer)
    good: dict[int, LogprobRow] = {}
    doubled: set[int] = set()
    unknown = wrong = 0
    for number, *ratings in rows.value:
        row = tuple(ratings)
        if not (number.is_integer() and 1 <= number <= count):
            unknown += 1
        elif int(number) in good or int(number) in doubled:
            doubled.add(int(number))
        elif not (
            (fits(row) if fits else len(row) == len(highest))
            and all(0 <= rating <= most for rating, most in zip(row, highest, strict=False))
        ):
            wrong += 1
        else:
            good[int(number)] = row
    for number in doubled:
        good.pop(int(number), None)
    left = count - len(good)
    problems = (
        rows.problem,
        f"{unknown} rows have a number that no passage has" if unknown else "",
        f"{len(doubled)} passages have more than one row" if doubled else "",
        f"{wrong} rows have too few or too many ratings, or one out of range" if wrong else "",
        f"{left} of {count} passages have no rating that can be used" if left else "",
    )
    return AnswerReading(good, "; ".join(filter(None, problems)), len(good))


def rows_schema(columns: int, *, fewest: int | None = None, reasons: bool = False) -> JsonMap:
    """Return JSON schema of ``{"ratings": [[number, rating, …], …]}``, with reasons ``[number, text]``."""
    row = {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 1 + (columns if fewest is None else fewest),
        "maxItems": 1 + columns,
    }
    listed: JsonMap = {"ratings": {"type": "array", "items": row}}
    if not reasons:
        return object_schema(listed)
    said = {"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 2, "maxItems": 2}
    return object_schema({**listed, "reasons": {"type": "array", "items": said}})


def object_schema(properties: JsonMap) -> JsonMap:
    """Return the JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def whole_number(answer: str, key: str, among: range, mark: str = "") -> AnswerReading[int | None]:
    """Return the whole number that is an answer's only value.

    If it is unusable, the value is None and the problem is stated.
    """
    value, problem = only(answer, key, mark)
    if not problem and (type(value) is not int or value not in among):
        problem = f'"{key}" is not a whole number from {among[0]} to {among[-1]}'
    if problem or not isinstance(value, int):
        return AnswerReading(None, problem, 0)
    return AnswerReading(value)


def only(answer: str, key: str, mark: str) -> tuple[object, str]:
    """Return an object's only value, or why there is none; marks of the prompt must not be repeated."""
    if mark and mark in answer:
        return None, "it repeats the marks"
    try:
        value = json_value(bare(answer))
    except ValueError:
        return None, "it is not valid JSON alone"
    if not isinstance(value, Mapping) or set(value) != {key}:
        return None, f'it is not an object with "{key}" alone'
    return value[key], ""
