import pytest

from tools.columns import beside, found

HEAD = "from core.views import columns as cols\nfrom core.views.columns import COLUMNS, Column\n"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("T = cols.Rows('t', 'name', cols.score('quality'), more=(cols.count('n'),))", []),
        ("A = cols.score('quality')\nT = cols.Rows('t', A)", [3]),
        ("A, B = Column('a'), COLUMNS['n'].replace(label='b')", [3, 3]),
        ("B = cols.COLUMNS['n'].replace(label='b')\nc = 'x'.replace('x', 'y')", [3]),
        ("def of(k):\n    return [cols.points(f'{k}')]", [4]),
        ("text.count(3, 'stack')\ncols.columns('n')", []),
    ],
)
def test_columns_beside_tables_are_counted(source: str, lines: list[int]):
    assert [line for line, _ in beside(HEAD + source)] == lines


def test_few_columns_stand_beside_tables():
    assert len(found()) < 40
