"""Families of statements keep their level, as bench/calibration/families.py simulates them."""

import pytest

from bench.calibration import families

pytestmark = pytest.mark.slow


def test_no_kind_of_question_wants_another_stack_where_all_are_alike():
    one, either = families.named(100)
    assert one <= 2
    assert either <= 9


def test_no_effort_of_an_index_is_surely_good_enough_where_all_lose_too_much():
    assert families.indexes(400) <= 5.5
