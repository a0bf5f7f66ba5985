"""A stack has one colour in every chart of a view; charts side by side name the same things in one order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

import core.api as clq
from core.report import snapshot
from core.views import theme
from core.views.blocks import Block, Chart, Fold, SideBySide
from core.views.legend import colours_of
from core.views.theme import colour_of
from tests.stores import Lab

ALIKE = ("alpha", "good", "one")
"""Names whose own colour is the same."""
QUERIES = [f"q{number}" for number in range(1, 21)]


def ranking(found: int) -> dict[str, list[str]]:
    return {query: ["p", "x"] if place < found else ["x", "p"] for place, query in enumerate(QUERIES)}


@pytest.fixture(scope="module")
def decision(tmp_path_factory: pytest.TempPathFactory) -> clq.Decision:
    lab = Lab().ask(dict.fromkeys(QUERIES, "text")).judge({query: {"p": 5, "x": 1} for query in QUERIES})
    for name, found, ms in (("one", 18, 90.0), ("good", 12, 30.0), ("alpha", 7, 20.0), ("slow", 5, 99.0)):
        lab.run(name, final=ranking(found), ms={"retrieve": [ms] * len(QUERIES), "rerank": [1.0] * 20})
    made = lab.write(tmp_path_factory.mktemp("legend") / "store")
    return clq.open(made.path).workspace("lab").decide(measure="RR@10", sla_ms=200)


def charts(blocks: Iterable[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, SideBySide):
            yield from charts((*block.left, *block.right))
        elif isinstance(block, Fold):
            yield from charts(block.blocks)


def legend(chart: Chart) -> list[tuple[str, str]]:
    """Return the entries of a chart's legend with their colours."""
    found = []
    for trace in chart.figure.data:
        colour = (trace.line.color if trace.type == "scatter" else None) or trace.marker.color
        if trace.name and trace.showlegend is not False and isinstance(colour, str):
            found.append((trace.name, colour))
    return list(dict.fromkeys(found))


@pytest.mark.slow
@pytest.mark.parametrize("shown", [("one", "good", "alpha"), ("one", "alpha"), ("alpha", "good")])
def test_a_stack_has_one_colour_in_every_chart_of_a_view(decision: clq.Decision, shown: tuple[str, ...]):
    assert len({colour_of(name) for name in ALIKE}) == 1
    own = colours_of(decision.view, ("one", "good", "alpha"))
    assert len(set(own.values())) == 3
    drawn = [
        *charts(decision.page("curves", choices={"curves": list(shown)}).blocks),
        *charts(decision.page("latency", choices={"lats": list(shown)}).blocks),
    ]
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for chart in drawn:
        for name, colour in legend(chart):
            seen[name].add(colour)
    assert {name: seen[name] for name in shown} == {name: {own[name]} for name in shown}


@pytest.mark.slow
def test_charts_side_by_side_say_the_same_in_one_order(decision: clq.Decision):
    own = colours_of(decision.view, ("one", "good"))
    blocks = decision.page("compare", choices={"stack": "one", "vs": "good"}).blocks
    by_name = {chart.name: legend(chart) for chart in charts(blocks)}
    assert by_name["scatter"] == by_name["deltas"]
    assert [name for name, _ in by_name["scatter"]] == ["A better (6)", "tie (14)"]
    assert by_name["scatter"][0][1] == own["one"]
    against = decision.page("queries", choices={"stack": "good", "vs": "one"}).blocks
    (bars,) = (chart for chart in charts(against) if chart.name == "queries")
    assert dict(legend(bars)) == {"one better (6)": own["one"], "tie (14)": by_name["deltas"][1][1]}


@pytest.mark.slow
def test_a_snapshot_has_the_colours_of_the_pages(decision: clq.Decision):
    own = colours_of(decision.view, ("one", "good"))
    _, drawn = snapshot.parts(decision.view, decision.verdict)
    assert {name: colour for name, colour in legend(drawn["curves"]) if name in own} == own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "choices", "measure"),
    [
        ("curves", {"curves": ["one", "good"]}, "RA-nWG@10"),
        ("latency", {"lats": ["one", "good"]}, "RA-nWG@10"),
        ("headroom", {}, "RA-nWG@10"),
        ("compare", {"stack": "one", "vs": "good"}, "RR@10"),
    ],
)
def test_the_stack_that_runs_today_has_its_mark_in_every_chart_of_stacks(
    decision: clq.Decision, page: str, choices: dict[str, object], measure: str
):
    workspace = clq.open(decision.view.snapshot.path).workspace("lab")
    for today, marked in (("one", True), ("none", False)):
        asked = workspace.decide(measure=measure, incumbent=today)
        drawn = [*charts(asked.page(page, choices=choices).blocks)]
        assert drawn
        assert {(chart.name, theme.TODAY in str(chart.figure.to_dict())) for chart in drawn} == {
            (chart.name, marked) for chart in drawn
        }
