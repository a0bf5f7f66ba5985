"""What a judge model is asked, and how its answers are read: a grade (S4), or an order of passages (S6).

Texts of a corpus are untrusted. They stand between marks that they cannot foresee; an answer that is not the
bare form asked for, or that repeats a mark, is refused and asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.golden.prompts import Language, prompt
from core.providers.chat.ask import Task, mark_for, marked
from core.providers.chat.reading import Reading, object_schema, only, whole_number

TRIES = 3
"""How often a judge is asked at most until its answer can be used; then it is counted."""
GRADE, ORDER = "grade_1_5", "order"
_ANSWER_TOKENS = 64
_GRADES = range(1, 6)


def grading(question: str, passage: str, language: Language) -> Task[int | None]:
    """The task of grading one passage.

    Args:
        question: The question as it was asked, never a rewrite.
        passage: The passage's text.
        language: Of the instructions.
    """
    mark = mark_for(question, passage)
    return Task(
        prompt("grade", language),
        f"{marked('question', question, mark)}\n\n{marked('passage', passage, mark)}",
        lambda answer: read_grade(answer, mark),
        _ANSWER_TOKENS,
        object_schema({GRADE: {"type": "integer", "enum": list(_GRADES)}}),
    )


def ordering(question: str, passages: Sequence[str], language: Language) -> Task[list[int]]:
    """The task of putting passages in order; the answer's positions count from 0, the best first."""
    mark = mark_for(question, *passages)
    shown = [marked("question", question, mark)]
    shown += [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    items = {"type": "array", "items": {"type": "integer", "enum": list(range(1, len(passages) + 1))}}
    return Task(
        prompt("order", language),
        "\n\n".join(shown),
        lambda answer: read_order(answer, len(passages), mark),
        _ANSWER_TOKENS,
        object_schema({ORDER: items}),
    )


def read_grade(answer: str, mark: str = "") -> Reading[int | None]:
    """A grade from an answer; None, with what is wrong, where it cannot be used."""
    return whole_number(answer, GRADE, _GRADES, mark)


def read_order(answer: str, count: int, mark: str = "") -> Reading[list[int]]:
    """An order from an answer; empty, with what is wrong, where it is no permutation."""
    value, problem = only(answer, ORDER, mark)
    given = value if isinstance(value, list) else []
    whole = all(type(each) is int for each in given)
    if not problem and not (whole and sorted(given) == list(range(1, count + 1))):
        problem = f'"{ORDER}" does not name each number from 1 to {count} exactly once'
    return Reading([], problem, 0) if problem else Reading([each - 1 for each in given])
