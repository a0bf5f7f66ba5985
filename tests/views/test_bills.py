"""What less machine time saves, and what to check where nobody checked the grades."""

import json
from pathlib import Path

import polars as pl
import pytest

from core.analysis.stack_cost import machines_needed
from core.answers import BY_PEOPLE
from core.api.workspace import Workspace
from core.decide.switching import Terms
from core.store import Store
from core.views.decision.words import savings
from core.views.golden.judging import leading
from core.views.words.advice import second_row
from core.views.words.bills import ONE_MACHINE, PLANNED, SAME_BILL, bill, one_machine, rented_words, same_bill
from core.views.words.judging import check_first, unchecked

BILL = pl.DataFrame({"unit": ["cpu_hour", "cpu_hour", "tokens"], "units_per_query": [5e-5, 2e-5, 90.0]})


@pytest.mark.parametrize(("queries", "machines"), [(0, 0), (1, 1), (1e7, 1), (1.1e7, 2), (1e8, 10)])
def test_machines_are_counted_by_their_hours_of_a_month(queries: float, machines: int):
    assert machines_needed(BILL, queries) == machines


@pytest.mark.slow
def test_a_saving_of_machine_time_is_said_in_machines_where_the_traffic_is_given(shipped_store: Path):
    view = Workspace(Store.open(shipped_store), "docs-search").decide(sla_ms=500.0).view
    assert rented_words(view) == ONE_MACHINE.format(most := 4.7e6)
    assert one_machine(view) == most
    own = bill(view, view.table["run_id"][view.decision.chosen])
    assert machines_needed(own, most / PLANNED) == 1 < machines_needed(own, 1.1 * most / PLANNED)
    others = [other.row for other in view.sure.alternatives]
    assert all(same_bill(view, row) for row in others)
    for queries, said in (
        (1e6, "At 1,000,000 queries a month, going without late interaction saves 0 machines at full load."),
        (
            1e8,
            "At 100,000,000 queries a month, going without late interaction saves 10 machines at full load.",
        ),
    ):
        busy = view.replace(terms=Terms(queries_per_month=queries))
        assert rented_words(busy) == said
        assert same_bill(busy, others[0]) == (queries == 1e6)
        assert (SAME_BILL in savings(busy.sure.alternatives[0], busy)) == (queries == 1e6)
        assert ("$" in savings(busy.sure.alternatives[0], busy)) == (queries == 1e8)
    assert check_first(view) == "Check the grades: judge 30 questions by hand"
    named = view.table["run_id"].gather([view.decision.chosen, second_row(view)])
    assert leading(view) == tuple(named), "the form that the link opens draws what these two rank"


@pytest.mark.parametrize(
    ("judge", "manifest", "others", "said"),
    [
        ("language models, checked by nobody", {}, (), True),
        ("a-model", {"policy": "one judge"}, (), True),
        ("Ann", {"made_by": BY_PEOPLE}, (), False),
        (None, {}, (), False),
        ("a-model", {"policy": "one judge"}, ((BY_PEOPLE, 30),), False),
        ("a-model", {"policy": "one judge"}, ((BY_PEOPLE, 29), ("adding", 30)), True),
        ("a-model", {"policy": "one judge"}, (("sheet", 31),), False),
    ],
)
def test_grades_of_models_are_unchecked_until_people_judged_enough_questions(
    judge: str | None, manifest: dict[str, str], others: tuple[tuple[str, int], ...], said: bool
):
    rows = [("own", judge, manifest, 150)]
    rows += [(f"other-{made}", "b", {"made_by": made}, queries) for made, queries in others]
    sets = pl.DataFrame(
        [(name, by, json.dumps(how), queries) for name, by, how, queries in rows],
        schema={"golden_set_id": pl.String, "judge": pl.String, "manifest": pl.String, "queries": pl.Int64},
        orient="row",
    )
    assert unchecked(sets, "own") is said
