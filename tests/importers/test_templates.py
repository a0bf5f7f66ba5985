"""The tables to begin with are complete: all of them is taken, and nothing has to be assumed."""

from typing import get_args

import pytest

from core.importers import TEMPLATES, RowMeaning, preview
from tests.importers.helpers import read, up

BRINGS = {
    "stack": {"collections": 1, "runs": 3, "aggregates": 12},
    "query": {"collections": 1, "runs": 2, "answer_scores": 4, "answers": 4, "timings": 4, "usage": 4},
    "passage": {"collections": 1, "runs": 2, "rankings": 6},
    "nugget": {"collections": 1, "golden sets": 1, "judgements": 3, "nuggets": 4},
}


@pytest.mark.parametrize("row", TEMPLATES)
def test_a_template_is_taken_whole(row):
    file = up(TEMPLATES[row].file, TEMPLATES[row].text)
    (seen,) = preview([file])
    known = row if row in get_args(RowMeaning) else None
    assert (seen.row, seen.problem) == (known, "")
    made = read(file)
    assert made.taken == BRINGS[row]
    assert made.left_out == ()
    assert not made.reports[0].left_out
    assert not [note for note in made.notes if "taken as" in note]
