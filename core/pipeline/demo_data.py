"""The demo's questions and judgements, kept in data/demo/ (its README says how they were made)."""

from __future__ import annotations

import json
from collections.abc import Collection as Members
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from core.errors import InputError
from core.paths import DEMO
from core.pipeline.docstrings import COLLECTION_ID, versions
from core.records import Collection, GoldenSet
from core.tables import TABLES, frame

GOLDEN_SET_ID = "python-docs-graded"
FIELDS = {"query_id": str, "text": str, "tags": list}
JUDGE = "an AI assistant of the team, reading each passage; one judge"
QUERIES = DEMO / "queries.jsonl"
JUDGEMENTS = DEMO / "judgements.tsv"
HEADER = ("query_id", "passage_id", "grade")
GRADES = range(1, 6)


def collection() -> Collection:
    """The demo collection: the docstrings of installed packages."""
    installed = ", ".join(f"{name} {version}" for name, version in versions().items())
    return Collection(
        collection_id=COLLECTION_ID,
        name="Python documentation",
        source=f"Docstrings of the installed {installed}",
        notes="Read at run time; the passages change with the package versions.",
    )


def golden_set() -> GoldenSet:
    """The graded judgements of the demo collection."""
    return GoldenSet(
        golden_set_id=GOLDEN_SET_ID,
        collection_id=COLLECTION_ID,
        name="Python documentation, graded",
        judge=JUDGE,
        notes="Pool: the top 15 of BM25 and of wordllama 256 d, and answers that the author of a question"
        " knew; passages outside the pool are unjudged. See data/demo/README.md.",
    )


def queries(path: Path = QUERIES) -> pl.DataFrame:
    """Read the questions.

    Args:
        path: JSON lines with query_id, text and tags.

    Returns:
        Frame of `TABLES["queries"]`, in the order of the file.

    Raises:
        InputError: If the file cannot be read, a line lacks a field, or a query_id stands twice.
    """
    rows = [{**row, "collection_id": COLLECTION_ID} for row in _questions(path)]
    return frame("queries", [{name: row[name] for name in TABLES["queries"]} for row in rows])


def expected_answers(path: Path = QUERIES) -> dict[str, list[str]]:
    """By query_id, the passages that the author of the question had in mind.

    Raises:
        InputError: As `queries`.
    """
    return {row["query_id"]: row.get("answers", []) for row in _questions(path)}


def judgements(
    known_passage_ids: Members[str], path: Path = JUDGEMENTS, known_query_ids: Members[str] | None = None
) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """Read the judgements of passages that exist here.

    Args:
        known_passage_ids: The passages that were read from the installed packages.
        path: Tab-separated values with the header query_id, passage_id, grade.
        known_query_ids: The questions; those of `queries` by default.

    Returns:
        A frame of `TABLES["judgements"]`, and the (query_id, passage_id) of judgements whose passage no
        longer exists: other package versions have other docstrings.

    Raises:
        InputError: If the file cannot be read, or a line has another number of columns, an unknown question,
            a grade other than 1 to 5, or a pair that was judged before.
    """
    questions = set(queries()["query_id"] if known_query_ids is None else known_query_ids)
    passages = set(known_passage_ids)
    lines = _lines(path)
    place, header = next(lines, (str(path), ""))
    if tuple(header.split("\t")) != HEADER:
        raise InputError("The header is not query_id, passage_id, grade, separated by tabs.", where=place)
    judged = [(place, *_judgement(place, line, questions)) for place, line in lines]
    _refuse_repeats([(place, (query, passage)) for place, query, passage, _ in judged], "Judgement of")
    kept = [(query, passage, grade) for _, query, passage, grade in judged if passage in passages]
    missing = [(query, passage) for _, query, passage, _ in judged if passage not in passages]
    return _frame_of(kept), missing


def describe(judged: pl.DataFrame, missing: list[tuple[str, str]]) -> str:
    """What was loaded, as one line for people: counts per grade, and the judgements that were lost."""
    counts = dict(judged.group_by("grade").len().iter_rows())
    grades = ", ".join(f"{counts.get(grade, 0)} of grade {grade}" for grade in reversed(GRADES))
    lost = f"; {len(missing)} left out, their passage is not in the installed versions" if missing else ""
    return f"{judged.height} judgements of {judged['query_id'].n_unique()} questions ({grades}){lost}"


def _frame_of(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    return frame(
        "judgements",
        [
            {
                "golden_set_id": GOLDEN_SET_ID,
                "query_id": query,
                "passage_id": passage,
                "grade": grade,
                "raw": grade,
                "judge": JUDGE,
            }
            for query, passage, grade in rows
        ],
    )


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines that are not empty, each with its place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The file cannot be read: {error}.", where=str(path)) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f"{path.name} line {number}", line


def _questions(path: Path) -> list[dict[str, Any]]:
    rows = [(place, _question(place, line)) for place, line in _lines(path)]
    _refuse_repeats([(place, row["query_id"]) for place, row in rows], "Question")
    return [row for _, row in rows]


def _question(place: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"This is not JSON: {error.msg}.", where=place) from error
    if not isinstance(row, dict):
        raise InputError("This is not a JSON object.", where=place)
    for name, kind in FIELDS.items():
        if not isinstance(row.get(name), kind) or not row[name]:
            raise InputError(f"The field {name!r} is missing, empty or of another type.", where=place)
    return row


def _judgement(place: str, line: str, questions: set[str]) -> tuple[str, str, int]:
    cells = line.split("\t")
    if len(cells) != len(HEADER):
        raise InputError(f"{len(cells)} columns instead of {len(HEADER)}.", where=place)
    query, passage, grade = cells
    if query not in questions:
        raise InputError(f"There is no question {query!r}.", where=place)
    if grade not in {str(known) for known in GRADES}:
        raise InputError(f"The grade {grade!r} is not one of 1, 2, 3, 4, 5.", where=place)
    return query, passage, int(grade)


def _refuse_repeats(keys: list[tuple[str, object]], kind: str) -> None:
    first: dict[object, str] = {}
    for place, key in keys:
        if key in first:
            raise InputError(f"{kind} {key!r} stands twice, first in {first[key]}.", where=place)
        first[key] = place
