"""Whether two stacks differ by more than chance, in words."""

from pathlib import Path

import pytest

from core.analysis.workspace.gaps import UNTESTED, gap
from core.analysis.workspace.gaps import tested as in_words
from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, LAB


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.01, 0.05, "significant, +0.030"),
        (-0.05, -0.01, "significant, +0.030"),
        (-0.01, 0.05, "no significant difference, +0.030, 95 % CI −0.010 to +0.050"),
        (None, None, UNTESTED),
    ],
)
def test_a_difference_is_significant_where_its_interval_leaves_out_0(
    low: float | None, high: float | None, said: str
):
    assert in_words(0.03, low, high).startswith(said)


def test_stacks_are_compared_query_by_query(tmp_path: Path):
    queries = [f"q{place}" for place in range(12)]
    lab = Lab().judge({query: {"a": 5, "b": 1} for query in queries})
    lab.run("good", final={query: ["a", "b"] for query in queries})
    lab.run("bad", final={query: ["b"] for query in queries})
    lab.run("few", final={query: ["a"] for query in queries[:3]})
    snapshot = lab.write(tmp_path / "store").read()
    view = View(snapshot=snapshot, scope=LAB, quality=AT_10, latency=Latency(), book=BOOK)
    assert gap(view, "good", "bad").startswith("significant, +1.000")
    assert gap(view, "bad", "good").startswith("significant, −1.000")
    assert gap(view, "good", "good").startswith("no significant difference, 0.000")
    averages = view.replace(quality=AT_10)
    averages.__dict__["paired"] = None
    assert gap(averages, "good", "bad") == UNTESTED
