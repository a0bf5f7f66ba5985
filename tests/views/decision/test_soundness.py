import json

import numpy as np
import pytest

from core.analysis.workspace.comparable import environment
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.views.headroom import limiting
from core.views.words.facts import soundness
from core.views.words.lead import nearest_rival
from tests.views.made import AT_10, stacks


def row(**columns: object) -> dict[str, object]:
    return stacks(**{name: [value] for name, value in columns.items()}).row(0, named=True)


@pytest.mark.parametrize(
    ("quality", "proc", "pool", "words"),
    [
        (0.5, 0.9, "dense@50", ["order", "0.400", "dense@50", "%PROC 55.6 %"]),
        (0.5, 0.6, None, ["pool limits first", "0.400", "not stated", "%PROC 83.3 %"]),
        (0.0, 0.0, "bm25@5", ["pool limits first", "1.000 is lost in retrieval", "%PROC –"]),
        (0.8, 0.79, None, ["%PROC 100.0 %"]),
        (None, 0.5, None, ["Not known"]),
        (0.5, None, None, ["Not known", "RA-nWG@10"]),
    ],
)
def test_what_limits_a_stack(quality: float | None, proc: float | None, pool: str | None, words: list[str]):
    rows = stacks(quality=[quality], proc=[proc], proc_pool=[pool])
    said = limiting(rows.row(0, named=True), AT_10, rows, [True])
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("n", "good", "words"),
    [(64, True, "The mean is over 64 queries."), (50, True, "The mean is over 50 queries."),
     (1, False, "The mean is over 1 query; the paper used 50."),
     (None, False, "The number of queries is unknown.")],
)  # fmt: skip
def test_few_queries_speak_against_trust(n: int | None, good: bool, words: str):
    finding = soundness(row(n=n), None, AT_10)[0]
    assert (finding.good, finding.sentence) == (good, words)


@pytest.mark.parametrize(
    ("interval", "good", "words"),
    [
        ((None, None), False, "No interval: these figures came without per-query data."),
        ((0.4, 0.6), True, "95 % interval of RA-nWG@10 by itself: [0.400, 0.600]."),
    ],
)
def test_an_interval_is_told(interval: tuple[float | None, float | None], good: bool, words: str):
    chosen = row(quality=0.5, quality_low=interval[0], quality_high=interval[1])
    finding = soundness(chosen, None, AT_10)[1]
    assert (finding.good, finding.sentence) == (good, words)


@pytest.mark.parametrize(
    ("gaps", "good", "words"),
    [
        ([0.1] * 12, True, "+0.100 [+0.100, +0.100] ahead of the nearest rival, stack 1."),
        ([0.3, -0.3] * 6, False, "ahead of the nearest rival, stack 1; it may be behind."),
        (None, None, None),
    ],
)
def test_a_lead_is_told_query_by_query(gaps: list[float] | None, good: bool | None, words: str | None):
    both = stacks(quality=[0.5, 0.4], quality_low=[0.4, 0.3], quality_high=[0.6, 0.5]).to_dicts()
    values = None if gaps is None else np.array([np.full(12, 0.4) + gaps, np.full(12, 0.4)])
    paired = None if values is None else Paired([each["run_id"] for each in both], values)
    found = [one for one in soundness(both[0], both[1], AT_10, paired) if "nearest rival" in one.sentence]
    assert [one.good for one in found] == ([] if good is None else [good])
    assert all(one.sentence.endswith(words or "") for one in found)


@pytest.mark.parametrize(
    ("columns", "good", "words"),
    [
        ({"latency_ms": 5.0, "latency_basis": "measured", "latency_n": 64}, True,
         "Latency is measured, n = 64."),
        ({"latency_ms": 5.0, "latency_basis": "published", "latency_note": "sum of 2 stage medians"}, False,
         "Latency is published (sum of 2 stage medians)."),
        ({"latency_note": "no timings recorded"}, False, "Latency unknown: no timings recorded."),
    ],
)  # fmt: skip
def test_a_latency_says_how_it_is_known(columns: dict[str, object], good: bool, words: str):
    finding = soundness(row(**columns), None, AT_10)[2]
    assert (finding.good, finding.sentence) == (good, words)


@pytest.mark.parametrize(("hole", "good"), [(0.0, True), (0.1, True), (0.11, False)])
def test_holes_make_the_score_a_lower_bound(hole: float, good: bool):
    finding = soundness(row(hole=hole), None, AT_10)[3]
    assert finding.good is good
    assert ("of the Top-10 is unjudged" in finding.sentence) == (hole > 0)
    assert (finding.sentence == "Every passage of the Top-10 is judged.") == (hole == 0)


@pytest.mark.parametrize(
    ("unjudged", "words"), [(0, None), (None, None), (1, "1 ranked query"), (7, "7 ranked queries")]
)
def test_queries_left_out_are_counted(unjudged: int | None, words: str | None):
    found = [each.sentence for each in soundness(row(unjudged_queries=unjudged), None, AT_10)]
    assert [each for each in found if "left out" in each] == (
        [] if words is None else [f"{words} without judgements left out."]
    )


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ([], "The machine that was timed is not on record."),
        ([None], "The machine that was timed is not on record."),
        (["A"], "Timed on A."),
        (["A", "A", None], "Timed on A."),
        (["A", "B"], "Timed on 2 different machines: latencies do not compare."),
    ],
)
def test_machines_are_those_of_the_stacks(cpus: list[str | None], words: str):
    assert environment(stacks(environment=[json.dumps({"cpu": cpu} if cpu else {}) for cpu in cpus])) == words


def test_the_nearest_rival_is_the_one_the_choice_is_least_surely_ahead_of():
    table = stacks(quality=[0.5, 0.4, 0.39, 0.5], n=[12] * 4)
    even = np.full(12, 0.5)
    values = np.array([even, even - 0.1, even - np.tile([0.5, -0.28], 6), even])
    paired = Paired(table["run_id"].to_list(), values)
    decision = decide(table, Constraints(), "quality", paired=paired)
    rival = nearest_rival(table, decision, paired)
    assert decision.chosen in (0, 3)
    assert rival is not None
    assert rival["name"] == table["name"][2]  # Further behind on average, less surely; the last is the same.


def test_of_rivals_with_equal_results_the_nearest_is_the_cheapest():
    table = stacks(quality=[0.5, 0.4, 0.4], n=[12] * 3, cost=[5.0, 3.0, 1.0], latency_ms=[9.0, 1.0, 8.0])
    even = np.full(12, 0.5)
    values = np.array([even, even - np.tile([0.4, -0.2], 6), even - np.tile([0.4, -0.2], 6)])
    paired = Paired(table["run_id"].to_list(), values)
    rival = nearest_rival(table, decide(table, Constraints(), "quality", paired=paired), paired)
    assert rival is not None
    assert rival["name"] == table["name"][2]
