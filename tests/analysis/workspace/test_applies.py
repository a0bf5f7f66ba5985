"""A measure that no query has a value of names the grades that were found, wherever it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.scoring.table import score_table
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.metrics import parse_list
from core.views.decision.words import answer
from tests.stores import Lab
from tests.views.made import BOOK, asking

WAY_OUT = "import the judgements again with another mapping (--grades)"
LOW = {"q1": {"p1": 1, "p2": 2}, "q2": {"p1": 2, "p3": 1}}
CASES = [
    (LOW, "RA-nWG@3", "the grades found are 1, 2 of 1 to 5"),
    (LOW, "R@3", "the grades found are 1, 2 of 1 to 5"),
    ({"q1": {"p1": 4}}, "N-Recall5@3", "the grades found are 4 of 1 to 5"),
    ({"q1": {"p1": 5}}, "R@3", None),
]


@pytest.mark.parametrize(("judged", "measure", "said"), CASES)
def test_the_grades_found_and_the_way_out(judged, measure, said, tmp_path: Path):
    lab = Lab().judge(judged).run("a", final={query: ["p1", "p2"] for query in judged})
    snapshot = lab.write(tmp_path / "s").read()
    (asked,) = parse_list(measure)
    (reason,) = score_table(snapshot, snapshot.runs(), "gold", [asked])["reason"]
    assert (reason is None) == (said is None)
    if said:
        assert said in reason
        assert WAY_OUT in reason


def test_the_decision_says_the_same(tmp_path: Path):
    lab = Lab().judge(LOW).run("a", final={query: ["p1", "p2"] for query in LOW})
    snapshot = lab.write(tmp_path / "s").read()
    quality, latency = Quality("RA-nWG", 3), Latency()
    table = stack_table(snapshot, Scope("lab", "gold"), quality, latency, BOOK)
    said = answer(asking(table, quality=quality))
    assert said.sentence == "No stack here has a known RA-nWG@3."
    assert said.reason.startswith("It applies to none of the 2 judged queries: the grades found are 1, 2")
    assert WAY_OUT in said.reason
