"""Columns of tables are said once."""

from collections import Counter

from core.views import columns


def test_no_name_is_declared_twice():
    names = Counter(column.name for column in columns._EVERY)
    assert [name for name, times in names.items() if times > 1] == []
