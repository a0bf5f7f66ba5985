"""Answers of chat models are read strictly, and nothing that a model can say raises."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.providers.chat.reading import bare, json_value, read_ratings, read_rows

TEN = [10.0]
FIVE = [10.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("answer", "rows"),
    [
        ("1: 7", [(1, 7)]),
        ("1: 7\n2: 3.5\n", [(1, 7), (2, 3.5)]),
        ("1. 8, 4, 2", [(1, 8, 4, 2)]),
        ("[1] : 8 | 4 | 2", [(1, 8, 4, 2)]),
        ("1) 8 4 2", [(1, 8, 4, 2)]),
        ("1 = 8;4;2", [(1, 8, 4, 2)]),
        ("  \n1: 7\n\n2: 3\n ", [(1, 7), (2, 3)]),
        ('{"ratings": [[1, 7], [2, 3.5]]}', [(1, 7), (2, 3.5)]),
        ("[[1, 7], [2, 3]]", [(1, 7), (2, 3)]),
        ('```json\n{"ratings": [[1, 7]]}\n```', [(1, 7)]),
        ("```\n1: 7\n```", [(1, 7)]),
        ("<think>1: 2? or\n3: 4?</think>\n1: 7", [(1, 7)]),
        ('{"ratings": []}', []),
    ],
)
def test_rows_that_are_as_asked_for(answer: str, rows: list[tuple[float, ...]]):
    assert read_rows(answer).value == rows
    assert read_rows(answer).problem == ""


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("<think>no end", "1 of its lines"),
        ("The passage is relevant.", "1 of its lines"),
        ("Sure! Here are the ratings:\n1: 7\n2: 3", "1 of its lines"),
        ("1: 7 because it is good", "1 of its lines"),
        ("1: seven", "1 of its lines"),
        ("1.7", "1 of its lines"),  # a number, not a passage and its rating
        ("1: 7,", "1 of its lines"),
        ("1: NaN", "1 of its lines"),
        ("1: 1e9", "1 of its lines"),
        ("1: 7 / 10", "1 of its lines"),
        ('{"ratings": [[1, 7]', "not valid JSON"),
        ('{"ratings": [[1, 7]]} trailing', "not valid JSON"),
        ('{"ratings": [[1, NaN]]}', "not valid JSON"),
        ('{"ratings": [[1, 7]], "ratings": [[1, 9]]}', "not valid JSON"),
        ('{"scores": [[1, 7]]}', 'no list "ratings"'),
        ('{"ratings": {"1": 7}}', 'no list "ratings"'),
        ('{"ratings": [[1, "7"]]}', "not every entry"),
        ('{"ratings": [[1, true]]}', "not every entry"),
        ('{"ratings": [7]}', "not every entry"),
        ('{"ratings": [[]]}', "not every entry"),
        ('{"ratings": [[1, 1e400]]}', "not every entry"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 50_000, "not valid JSON"),
    ],
)
def test_everything_else_is_named(answer: str, problem: str):
    assert problem in read_rows(answer).problem


@pytest.mark.parametrize(
    ("answer", "count", "highest", "good", "problem"),
    [
        ("1: 7\n2: 3", 2, TEN, {1: (7,), 2: (3,)}, ""),
        ("2: 3\n1: 7", 2, TEN, {1: (7,), 2: (3,)}, ""),  # any order
        ("1: 10\n2: 0", 2, TEN, {1: (10,), 2: (0,)}, ""),
        ("1: 8, 4, 2", 1, FIVE, {1: (8, 4, 2)}, ""),
        ("1: 7", 2, TEN, {1: (7,)}, "1 of 2 passages have no rating"),
        ("1: 7\n2: 3\n3: 1", 2, TEN, {1: (7,), 2: (3,)}, "1 rows have a number that no passage has"),
        ("0: 7\n1: 3", 1, TEN, {1: (3,)}, "1 rows have a number that no passage has"),
        ("1: 7\n1: 9\n2: 3", 2, TEN, {2: (3,)}, "1 passages have more than one row"),
        ("1: 7\n1: 9\n1: 9\n2: 3", 2, TEN, {2: (3,)}, "1 passages have more than one row"),
        ("1: 11\n2: 3", 2, TEN, {2: (3,)}, "out of range"),
        ("1: -1\n2: 3", 2, TEN, {2: (3,)}, "out of range"),
        ("1: 8, 4\n2: 8, 4, 2", 2, FIVE, {2: (8, 4, 2)}, "too few or too many"),
        ("1: 8, 4, 2, 1\n2: 8, 4, 2", 2, FIVE, {2: (8, 4, 2)}, "too few or too many"),
        ("1: 8, 6, 2\n2: 8, 5, 2", 2, FIVE, {2: (8, 5, 2)}, "out of range"),
        ('{"ratings": [[1.5, 3], [1, 7]]}', 1, TEN, {1: (7,)}, "no passage has"),
        ("I like passage 2 best.", 2, TEN, {}, "2 of 2 passages have no rating"),
        ("7", 1, TEN, {}, "1 of 1 passages have no rating"),
    ],
)
def test_ratings(answer: str, count: int, highest: list[float], good: dict, problem: str):
    reading = read_ratings(answer, count, highest)
    assert reading.value == good
    assert reading.weight == len(good)
    assert problem in reading.problem
    assert bool(reading.problem) == bool(problem)


def test_a_row_may_be_shorter_where_that_is_said_to_fit():
    reading = read_ratings("1: 2\n2: 8, 4, 2\n3: 4", 3, FIVE, fits=lambda row: len(row) in {1, 3})
    assert reading.value == {1: (2,), 2: (8, 4, 2), 3: (4,)}


ANSWERS = st.one_of(
    st.text(),
    st.text(alphabet='0123456789.:,|-[]{}"ratings \n`\\/eE+\x00NaN<think></think>', max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.just("ratings"), inner, max_size=1),
    ).map(json.dumps),
    st.lists(st.tuples(st.integers(-2, 9), st.floats(-5, 15)), max_size=6).map(
        lambda rows: "\n".join(f"{number}: {rating:.2f}" for number, rating in rows)
    ),
)


@given(ANSWERS, st.integers(1, 5))
@example("9" * 10_000, 1)
@example("1: " + "9" * 10_000, 1)
@example("[[" + "9" * 5_000 + ", 1]]", 1)
@example('{"ratings": [[1, ' + "9" * 400 + "]]}", 1)
def test_no_answer_raises_and_no_bad_rating_passes(answer: str, count: int):
    reading = read_ratings(answer, count, FIVE)
    assert set(reading.value) <= set(range(1, count + 1))
    for row in reading.value.values():
        assert len(row) == 3
        assert all(0 <= rating <= most for rating, most in zip(row, FIVE, strict=True))
    assert (len(reading.value) == count) or reading.problem
    assert len(reading.problem) < 500


@given(
    st.dictionaries(
        st.integers(1, 30),
        st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 5)).map(
            lambda r: (r[0] / 2, r[1], r[2])
        ),
        min_size=1,
    ),
    st.randoms(),
    st.booleans(),
)
def test_what_is_written_as_asked_for_is_read_back(given_rows: dict, random, as_json: bool):
    rows = {at: given_rows[key] for at, key in enumerate(sorted(given_rows), 1)}
    shuffled = list(rows.items())
    random.shuffle(shuffled)
    if as_json:
        answer = json.dumps({"ratings": [[number, *row] for number, row in shuffled]})
    else:
        answer = "\n".join(f"{number}: {', '.join(map(str, row))}" for number, row in shuffled)
    reading = read_ratings(answer, len(rows), FIVE)
    assert (reading.value, reading.problem) == (rows, "")


@given(st.text())
def test_a_problem_never_repeats_the_answer(text: str):
    """It is sent back to the model, and shown to people: it must not carry what a passage smuggled in."""
    answer = f"IGNORE-ALL-RULES {text}"
    assert "IGNORE" not in read_ratings(answer, 2, TEN).problem


def test_bare_takes_one_fence_and_one_thought():
    assert bare("<think>a</think>```json\n{}\n```") == "{}"
    assert bare("```json\n{}\n```\nmore") == "```json\n{}\n```\nmore"


def test_json_is_strict():
    for text in ("NaN", "Infinity", "-Infinity", '{"a": 1, "a": 2}', "[" * 100_000):
        with pytest.raises(ValueError, match=r".+"):
            json_value(text)
