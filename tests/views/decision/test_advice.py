"""What to do before the choice is shipped, and who wins where what nobody judged is like the judged."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.judging import NEAR, TARGET, waiting
from core.analysis.workspace.view import View
from core.api.workspace import Workspace
from core.decide.axes import COST
from core.decide.joint import JointSample
from core.decide.rules import Constraints
from core.stats.significance import queries_needed
from core.store import Store
from core.views.confidence.words import held, plan_answer
from core.views.decision.charts import pareto_of
from core.views.decision.sections import alternative_rows
from core.views.decision.tiles import Tile, confidence
from core.views.decision.words import answer, title, why
from core.views.text import percent, score, signed
from core.views.words.advice import JUDGE, MEETS, NOTHING, PAYS, advice, objection, roles, second_row
from core.views.words.facts import if_judged
from core.views.words.trade import Trade, trade
from tests.views.golden.test_value import lab
from tests.views.made import asking, stacks

LONGEST = 14  # words; the name of a stack counts as one


def of_queries(values: np.ndarray) -> View:
    """Two stacks of which only the results per query are known."""
    table = stacks(name=["a", "b"], quality=values.mean(axis=1).tolist(), n=[values.shape[1]] * 2)
    none = np.full(2, np.nan)
    return asking(
        table,
        Constraints(delta=0.01),
        sample=JointSample(values, np.full(values.shape, np.nan), none, none, none),
    )


RANDOM = np.random.default_rng(3)
ALIKE = RANDOM.normal(0.5, 0.2, (2, 20))
EQUAL = np.stack([ALIKE[0], ALIKE[0] + RANDOM.normal(0, 0.001, 20)])
APART = np.stack([RANDOM.normal(0.8, 0.05, 40), RANDOM.normal(0.3, 0.05, 40)])


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (of_queries(APART), NOTHING),
        (of_queries(EQUAL), "20 more queries find a stack 0.01 better in {found} of simulations."),
        (of_queries(ALIKE), "Ask 20 more queries first: {rival} may be better."),
        (of_queries(ALIKE[:, :4]), ""),
        (asking(stacks(name=["a", "b"], quality=[0.5, 0.6])), ""),
        (asking(stacks(quality=[0.5]), Constraints(min_quality=0.9)), ""),
    ],
    ids=[
        "surely the best",
        "surely good enough",
        "not sure",
        "too few queries",
        "averages",
        "nothing chosen",
    ],
)
def test_without_holes_the_confidence_says_what_to_do(view: View, said: str):
    rival = view.sure.rival
    found, name = view.sure.p_better_found, None if rival is None else view.table["name"][rival]
    assert advice(view) == said.format(rival=name, found=None if found is None else percent(found))
    assert objection(view) == (advice(view) if said.startswith("Ask") else "")
    assert (rival is None) == (("rival" not in said and view.sure.pgs != 1.0) or view.sure.pgs in (None, 1.0))


@pytest.mark.parametrize("lead", [0.0, 0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_asking_more_pays_as_often_as_it_shows_a_better_stack(lead: float, seed: int):
    values = np.random.default_rng(seed).normal(0.5, 0.2, (2, 40))
    values += np.array([[0.5 + lead], [0.5]]) - values.mean(axis=1, keepdims=True)
    view = of_queries(values)
    found, rows = (
        view.sure.p_better_found,
        pl.DataFrame(
            {"more": [0, 10, 40], "n": [40, 50, 80], "usd": [0.0, 1.0, 4.0], "flip": [0.0, 0.4, 0.4]}
        ),
    )
    assert 0 <= found <= 1 - view.sure.pgs, "what questions without end would show"
    page, details = plan_answer(view, rows, 10)
    asked = (
        advice(view)
        == f"Ask 40 more queries first: {view.table['name'][view.sure.rival or 0]} may be better."
    )
    assert asked == page.startswith("Worth it: ") == (found >= PAYS)
    would = f"40 more queries find a stack 0.01 better in {percent(found)} of simulations."
    assert page.endswith(f": {would}")
    assert asked != page.startswith("Not worth it: ")
    mostly = ", mostly by less than 0.01" if found < 0.2 else ""
    assert (
        details == f"In 40.0 % of all simulations the choice changes{mostly}. $1.00 pay for 10 more queries."
    )


@pytest.mark.parametrize(
    ("above", "high", "again"), [(0.02, 11.0, True), (2.0, 11.0, False), (0.02, 9.0, False)]
)
def test_where_the_latency_is_in_doubt_it_is_timed_again_first(above: float, high: float, again: bool):
    took = np.random.default_rng(5).normal(10.0, 1.0, (2, 60))
    values = np.random.default_rng(6).normal([[0.8], [0.3]], 0.05, (2, 60))
    middle = np.median(took, axis=1).tolist()
    table = stacks(
        name=["a", "b"], quality=values.mean(axis=1).tolist(), latency_ms=middle, latency_high=[high, high]
    )
    none = np.full(2, np.nan)
    sample = JointSample(values, took, none, none, none)
    view = asking(table, Constraints(sla_ms=middle[0] + above, delta=0.01), sample=sample)
    assert advice(view).startswith("Time it again first: it meets the limits in ") == again
    assert (view.sure.p_feasible < MEETS) == (above < 1)


@pytest.mark.parametrize("holes", [False, True])
def test_where_the_unjudged_decide_they_are_judged_first(holes: bool, tmp_path: Path):
    view = lab(tmp_path / "store", holes=holes)
    told = waiting(view)
    assert (told is not None) == holes
    if told is None:
        assert if_judged(view) is None
        return
    assert told.matters == (told.filled < min(view.sure.pgs - NEAR, TARGET))
    assert told.first == 24, "both passages that nobody judged, of each question"
    if told.matters:
        assert advice(view).startswith(f"{JUDGE} 24 passages first; graded like the rest, other ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [{}, {"sla_ms": 20.0}, {"sla_ms": 5.0}, {"sla_ms": 20.0, "budget": 0.001, "min_quality": 0.5}]
)
def test_every_surface_says_the_same_advice_in_few_words(shipped_store: Path, limits: dict[str, float]):
    decided = Workspace(Store.open(shipped_store), "docs-search").decide(**limits)
    view = decided.view
    said, names = advice(view), view.table["name"].to_list()
    page, sure = decided.page("decision"), decided.page("confidence", "would it hold")
    assert said
    assert said in str(page.blocks)
    assert said in str(sure.blocks)
    assert said == decided.data["advice"]
    pays = decided.page("confidence", "worth measuring more").sentence
    if " may be as good for " not in said:  # which goes before asking, whether or not that would pay
        assert pays.startswith("Worth it: " if said.startswith("Ask ") else "Not worth it: ")
    for name in sorted(names, key=len, reverse=True):
        said = said.replace(name, "NAME")
    assert len(re.findall(r"\S*\w\S*", said)) <= LONGEST


@pytest.mark.parametrize(
    ("own", "other", "called", "heading"),
    [
        ("a + x, K = 20 · rrf", "a · rrf", "x", "a · rrf with x, or 10 times cheaper without"),
        ("a int8", "a", "int8", "a with int8, or 10 times cheaper without"),
        ("a · rrf 1 : 2", "a · rrf 1 : 3", "", "a · rrf 1 : 2, or a · rrf 1 : 3 for 1/10 of the cost"),
        ("a", "a int8", "", "a, or a int8 for 1/10 of the cost"),
        ("a b", "c", "", "a b, or c for 1/10 of the cost"),
        (f"a {'x' * 31}", "a", "", f"a {'x' * 31}, or a for 1/10 of the cost"),
    ],
)
def test_two_stacks_are_called_by_the_one_part_that_they_differ_in(
    own: str, other: str, called: str, heading: str
):
    sides, new = ({"name": own}, {"name": other}), ({}, {})
    made = Trade("r", "", sides, new, "1/10 of the cost", (0.5, 0.5), "−0.001 RA-nWG@10", 0.04, 0.03)
    words = (f"with {called}", f"without {called}") if called else ("with the first", "with the second")
    assert (made.called, made.title) == (words, heading)
    assert made.now == f"Go {words[1]} unless losing up to 0.040 matters; it may gain 0.030."
    assert made.beside.startswith(f"{words[1].capitalize()}: −0.001 RA-nWG@10, ")


@pytest.mark.parametrize(("cost", "first"), [(0.1, True), (1.0, False)])
def test_a_stack_as_good_for_a_tenth_of_the_cost_is_considered_first(cost: float, first: bool):
    values = np.random.default_rng(3).normal(0.5, 0.2, (2, 60))
    values[1] += values[0].mean() - values[1].mean() - 0.001
    table = stacks(
        name=["a", "b"],
        quality=values.mean(axis=1).tolist(),
        n=[60, 60],
        latency_ms=[9.0, 9.0],
        cost=[1.0, cost],
    )
    none = np.full(2, np.nan)
    sample = JointSample(values, np.full(values.shape, np.nan), table["cost"].to_numpy(), none, none)
    view = asking(table, Constraints(delta=0.01), sample=sample)
    assert advice(view).startswith("b may be as good for 1/10 of the cost: −0.001 [") == first
    if first:
        assert objection(view) == "", "the offer says it beside the answer"
        assert title(view) == "No clear winner: a, or b for 1/10 of the cost"
        taken = asking(table, Constraints(delta=0.01), sample=sample, take="r1").sure.pgs
        assert taken == view.sure.alternatives[0].pgs, "both are held against the same best"
        assert trade(view).beside.startswith("With the second: −0.001 [")
        assert trade(view).beside.endswith("] RA-nWG@10, 95 % interval of this pair alone.")
        needed = int(queries_needed((values[0] - values[1]).std(ddof=1), 0.01))
        assert needed > 60
        assert trade(view).settled_by == needed
        number = f"{float(f'{needed:.2g}'):,.0f}"
        settles = f"About {number} judged queries would show a difference of 0.01 (80 % power)."
        loss, gain = score(-view.sure.alternatives[0].low), score(view.sure.alternatives[0].high)
        now = f"Go with the second unless losing up to {loss} matters; it may gain {gain}."
        assert why(view) == f"{now} {settles}"
        assert trade(view).settles == settles
        assert settles in why(view)
        assert settles in answer(view).reason
        assert held(view).endswith(f"of resamples, b in {percent(view.sure.alternatives[0].pgs)}.")
        (offered,) = alternative_rows(view).to_dicts()
        assert offered["gap"] == f"−0.001 [{signed(offered['low'])}, {signed(offered['high'])}]"
        assert roles(view) == {"r0": "first by the rule", "r1": "advised"}
        assert second_row(view) == 1
    else:
        assert (roles(view), second_row(view)) == ({}, None)
    told = [number for number, _ in Tile.of(confidence(view)).numbers]
    firm = [view.sure.pgs, *([view.sure.alternatives[0].pgs] if first else [])]
    assert told == [percent(one) for one in firm]
    if first:
        figure = pareto_of(view, COST).figure
        ringed = [trace for trace in figure.data if trace.marker.symbol == "circle-open"]
        assert [trace.x[0] for trace in ringed] == [1.0, cost], "both are ringed"
        bold = [note.text for note in figure.layout.annotations if "<b>" in note.text]
        assert sorted(bold) == ["<b>a</b>", "<b>b</b>"]
    else:
        assert title(view).startswith("Best so far: a; ask ")
