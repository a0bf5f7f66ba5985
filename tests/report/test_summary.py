"""What a record says first can be read without background, and is the same in every file."""

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.decide.rules import Constraints
from core.metrics.measure import REGISTRY
from core.report.data import Verdict, record_data, verdict
from core.report.files import record_file
from core.report.summary import CHANGES, GRADES, MEASURED, changes, measured, summary
from core.report.tables import LETTERS
from core.report.words import _noted
from core.views.words.advice import NOTHING
from tests.report.test_record import NOW, case_of, spaced
from tests.views.made import AT_10, DEMO, PAPER

CASES = {
    "demo": ("demo_store", DEMO, Constraints(sla_ms=50)),
    "free": ("demo_store", DEMO, Constraints()),
    "paper": ("published_store", PAPER, Constraints(sla_ms=500, budget=2.5)),
    "none": ("published_store", PAPER, Constraints(sla_ms=1)),
}
LONGEST = 14  # words of a sentence; a name counts as one, and a number with its unit


@pytest.fixture(scope="module", params=CASES)
def made(request: pytest.FixtureRequest) -> tuple[View, Verdict, dict[str, Any]]:
    """A case with its decision and its record."""
    store, scope, limits = CASES[request.param]
    case = case_of(request.getfixturevalue(store), scope, limits)
    found = verdict(case)
    return case, found, record_data(case, found, link="", made_at=NOW)


def words_of(sentence: str, names: list[str]) -> list[str]:
    """The words of a sentence, the name of a stack and a number with its unit as one."""
    for name in sorted(names, key=len, reverse=True):
        sentence = sentence.replace(name, "NAME")
    return re.findall(r"\S*\w\S*", re.sub(r"(\d) (ms|s|%)", r"\1", sentence))


@pytest.mark.slow
def test_three_short_sentences_come_first_in_every_file(made):
    case, found, data = made
    said, names = data["summary"], [row["stack"] for row in data["stacks"]]
    assert len(said) == 3
    for sentence in (*said, *changes(data)):
        assert sentence.endswith(".")
        each = re.split(r"(?<=[a-z%)]\.) (?=[A-Z])", sentence)
        assert max(len(words_of(part, names)) for part in each) <= LONGEST, sentence
    html, md, written = (
        record_file(ending, case, found, address="", made_at=NOW) for ending in (".html", ".md", ".json")
    )
    assert list(json.loads(written))[:3] == ["format", "version", "summary"]
    page = BeautifulSoup(html, "html.parser")
    assert [page.find("h1").get_text(), *(each.get_text() for each in page.find_all(class_="lead"))] == said
    prose = BeautifulSoup(MarkdownIt().enable("table").render(md), "html.parser")
    assert [spaced(each.get_text()) for each in prose.find_all("p")[:3]] == [spaced(one) for one in said]


@pytest.mark.slow
def test_what_kind_of_search_ships_is_said_without_its_names(made):
    case, found, data = made
    row = None if found.decision.chosen is None else case.table.row(found.decision.chosen, named=True)
    kind = data["answer"]["kind"]
    assert bool(kind) == (row is not None)
    assert (f" It is {kind[:1].lower()}{kind[1:]}." in data["summary"][0]) == bool(kind)
    assert not kind or ("reranked" in kind) == (row["reranker"] not in (None, "none"))


@pytest.mark.slow
def test_terms_are_explained_once_where_they_are_used(made):
    case, found, data = made
    page = BeautifulSoup(record_file(".html", case, found, address="", made_at=NOW), "html.parser")
    explained = [term.get_text() for term in page.select(".terms dt")]
    assert explained == [one["term"] for one in data["terms"]]
    assert len(set(explained)) == len(explained)
    for one in data["terms"]:
        assert len(words_of(one["means"], [])) <= 20, one
    row = data["chosen"]
    if row is None:
        assert not explained
        return
    used = {"stack", "RA-nWG@10", "p50"}
    used |= {"n"} if row["n"] is not None else set()
    used |= {"95 % interval"} if row["quality_low"] is not None else set()
    used |= {"PGS", "expected"} if row["pgs"] is not None else set()
    names = " | ".join(stack["stack"] for stack in data["stacks"])
    signs = {"⊕": "⊕", "BM25": "BM25", "K": "K = ", "int8": "int8", "rrf": "rrf", "hygiene": "hygiene"}
    assert used <= set(explained)
    assert {term for term in signs if term in explained} == {
        term for term, sign in signs.items() if sign in names
    }
    written = page.get_text()
    for term in ("%PROC", "frontier"):
        assert (term in explained) == (written.count(term) > (term in explained)), term


@pytest.mark.slow
def test_the_first_alternatives_stand_below_what_ships(made):
    case, found, data = made
    page = BeautifulSoup(record_file(".html", case, found, address="", made_at=NOW), "html.parser")
    tables = page.select("table.cards")
    shown = next((table for table in tables if "difference" in table.thead.get_text()), None)
    if not data["alternatives"]:
        assert shown is None
        return
    labels = [cell.get_text() for cell in shown.select("thead th")]
    cells = [[cell.get_text() for cell in row.find_all("td")] for row in shown.select("tbody tr")]
    twins = Counter(one["alike_to"] for one in data["alternatives"])
    offered = [one for one in data["alternatives"] if one["alike_to"] is None][: len(LETTERS)]
    names = [f"{one['stack']} (+{twins[one['stack']]} alike)".replace(" (+0 alike)", "") for one in offered]
    assert [row[:2] for row in cells] == [
        ["chosen", data["chosen"]["stack"]],
        *([letter, name] for letter, name in zip(LETTERS, names, strict=False)),
    ]
    for row, one in zip(cells[1:], offered, strict=True):
        said = dict(zip(labels, row, strict=True))
        new, difference = one["expected_quality"], one["difference"]
        assert said.get("expected on new queries", "") == (
            "" if new is None else f"{new:.3f} [{one['expected_low']:.3f}, {one['expected_high']:.3f}]"
        )
        assert said["difference [95 % interval of this pair alone]"].startswith(
            f"{'−' if difference < 0 else '+'}{abs(difference):.3f}"
        )
        time, cost = (
            next(said[label] for label in labels if label.startswith(of)) for of in ("time", "cost")
        )
        assert ("less" in time) >= (one["latency_told_apart"] and one["saves_ms"] > 0)
        assert ("less" in cost) >= (one["saves_usd_per_1k"] is not None and one["saves_usd_per_1k"] > 0)
    names = [each.get_text() for each in page.select(".broad text")]
    assert {"chosen", *LETTERS[: len(offered)]} <= set(names)


@pytest.mark.slow
def test_a_person_who_took_one_is_named(published_store: Path):
    case = case_of(published_store, PAPER, Constraints(sla_ms=500, budget=2.5))
    first = record_data(case, verdict(case), link="", made_at=NOW)
    other = first["alternatives"][0]
    taken = case.replace(take=other["run_id"])
    data = record_data(taken, verdict(taken), link="", made_at=NOW)
    words = f"Taken by hand: {other['stack']}; confidence unknown. Its first "
    assert data["summary"][0].startswith(words)


@pytest.mark.parametrize("name", MEASURED)
def test_a_measure_is_said_in_words_with_its_number(name: str):
    assert name in REGISTRY
    said = measured(0.619, Quality(name, 10))
    assert "62 %" in said or "0.619" in said
    assert "{" not in said
    assert len(words_of(said, [])) <= LONGEST - 2, "a name and a verb come before it"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RA-nWG", 0.619, "its first 10 results hold 62 % of the best possible evidence"),
        ("AP", 0.5, "its AP@10 is 0.500, where 1 is best"),
        ("PROC[RA-nWG]", 0.5, "its PROC[RA-nWG]@10 is 0.500, where 1 is best"),
        ("Robust[Harm]", 0.5, "its Robust[Harm]@10 is 0.500, where 0 is best"),
        ("RA-nWG(alpha=0.5)", 0.5, "its first 10 results hold 50 % of the best possible evidence"),
        ("GMAP", 0.5, "its GMAP@10 is 0.500"),
        ("RA-nWG", None, "its RA-nWG@10 is unknown"),
    ],
)
def test_other_measures_are_said_by_name(name: str, value: float | None, said: str):
    assert measured(value, Quality(name, 10)) == said


def fake(**more: Any) -> dict[str, Any]:
    """The record of a stack whose numbers are given or unknown."""
    row = {
        "run_id": "r", "stack": "a", "quality": 0.5, "quality_low": None, "quality_high": None, "n": None,
        "latency_ms": None, "cost": None, "cost_least": None, "cost_missing": None, "cost_per": None,
        "cost_basis": None, "pgs": None, "expected_quality": None,
    }  # fmt: skip
    row |= {name: more.pop(name) for name in row.keys() & more.keys()}
    return {
        "answer": {"title": "Ship a", "kind": "", "either": ""},
        "asked": {"sla_ms": None, "budget_usd_per_1k": None},
        "question": {"on": "p50", "latency": "path"},
        "chosen": row,
        "stacks": [row],
        **dict.fromkeys(("near_misses", "promising", "would_turn", "warnings"), ()),
        "taken": None,
        "pgs_if_judged": None,
        "advice": None,
        "objection": None,
        "doubt": None,
        "slow": None,
        "price_entries": (),
        "delta": 0.01,
        "resamples": 500,
        "stack": {"spec": {}, "environment": {}},
        **more,
    }


ASKED = SimpleNamespace(quality=AT_10, decision=SimpleNamespace(rule="quality", delta=0.01))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "How fast it is and what it costs is unknown."),
        ({"latency_ms": 12.0}, "A typical search takes 12.0 ms; its cost is unknown."),
        ({"cost": 1.25}, "How fast it is, is unknown. 1,000 searches cost $1.25."),
        (
            {
                "latency_ms": 9.06,
                "cost": 0.00015,
                "asked": {"sla_ms": 20.0, "budget_usd_per_1k": 0.0002, "cost_shown_per": 1_000_000},
            },
            "A typical search takes 9.06 ms (limit 20.0 ms). A million searches cost $0.15 (limit $0.20).",
        ),
        (
            {"latency_ms": 9.0, "cost_least": 1.25, "cost_missing": "embedding not priced"},
            "A typical search takes 9.00 ms. 1,000 searches cost at least $1.25, embedding not priced.",
        ),
        (
            {
                "latency_ms": 9.0,
                "cost": 2.0,
                "cost_per": "correct answer",
                "question": {"on": "p95", "latency": "end-to-end"},
            },
            "95 of 100 answers take at most 9.00 ms. 1,000 correct answers cost $2.00.",
        ),
    ],
)
def test_time_and_cost_are_said_as_far_as_they_are_known(more: dict[str, Any], said: str):
    assert summary(fake(**more), ASKED)[1] == said


def test_processor_time_and_a_machine_that_waits_are_said_with_the_numbers():
    machine = {"of_chosen": True, "unit": "cpu_hour", "price": 0.05, "per": 1}
    data = fake(latency_ms=9.06, cost=1.25, price_entries=(machine,))
    data["stack"]["environment"] = {"reported": "processor time of one core, of one thread"}
    fast, dear = summary(data, ASKED)[1].split(" or queue. ")
    assert fast == "A typical search takes 9.06 ms of processor time, no network"
    assert dear == "1,000 searches cost $1.25, idle time excluded; a machine costs $36.50 monthly."


MISS = {
    "limit": "sla_ms", "set_to": 510.0, "near": True, "then": "b", "gain": 0.2,
    "value": 506.0, "over": 6.0, "cost_per": None,
}  # fmt: skip
TURN = {"stack": "b", "of": "quality", "now": 0.5, "then": 0.6, "by": 0.1, "winner": "b", "reason": None}
GOOD = "It is within 0.01 of the best in"
CORRECTED = "That is corrected for choosing among 1 stack."
JUDGE = "Judge 12 passages first; graded like the rest, b would lead."


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "How sure this is, is unknown; nothing close by could change it."),
        (
            {"pgs": 0.948},
            f"{GOOD} 94.8 % of 500 resamples. {CORRECTED} Nothing close by could change it.",
        ),
        (
            {"pgs": 1.0},
            f"{GOOD} 100.0 % of 500 resamples. {CORRECTED} Nothing close by could change it.",
        ),
        (
            {"pgs": 0.0},
            f"{GOOD} 0.0 % of 500 resamples. {CORRECTED} Nothing close by could change it.",
        ),
        (
            {"near_misses": [MISS], "pgs": 0.95, "advice": NOTHING},
            f"resamples. {CORRECTED} A time limit of 510 ms could change it.",
        ),
        (
            {"near_misses": [MISS], "pgs": 0.95, "pgs_if_judged": 0.51, "advice": JUDGE, "objection": JUDGE},
            f"It is within 0.01 of the best in 95.0 % of 500 resamples. {CORRECTED} {JUDGE}",
        ),
        (
            {"pgs": 0.6, "objection": "Ask more queries first: b may be better."},
            f"in 60.0 % of 500 resamples. {CORRECTED} Ask more queries first: b may be better.",
        ),
        ({"promising": [{"gain": 0.1}]}, "measuring more could change it."),
        (
            {"promising": [{"gain": -0.1}], "would_turn": [TURN]},
            "a quality of 0.600 instead of 0.500 for b could change it.",
        ),
        (
            {"would_turn": [{**TURN, "then": None}], "latency_ms": 9.0},
            "nothing close by could change it.",
        ),
    ],
)
def test_how_sure_it_is_and_what_would_change_it(more: dict[str, Any], said: str):
    assert summary(fake(**more), ASKED)[2].endswith(said)


LIMITED = {"sla_ms": 10.0, "budget_usd_per_1k": None}


def test_slow_searches_beyond_a_limit_on_the_typical_one_are_said():
    data = fake(latency_ms=9.06, cost=1.25, slow={"ms": 12.5}, asked=LIMITED)
    assert summary(data, ASKED)[1].startswith(
        "A typical search takes 9.06 ms (limit 10.0 ms); 5 of 100 take over 12.5 ms. "
    )


def test_what_would_change_it_names_what_then_ships():
    said = {"cost_shown_per": 1_000_000}
    both = [MISS, {**MISS, **said, "limit": "budget", "set_to": 0.0005, "near": False, "then": "c"}]
    data = fake(near_misses=both, advice=JUDGE, pgs_if_judged=0.51, would_turn=[TURN], latency_ms=9.0)
    assert changes(data) == [
        "A time limit of 510 ms: then b is chosen, +0.200.",
        "Judging more passages. With unjudged passages graded like the judged, it is good in 51.0 % "
        "of resamples.",
        "A budget of $0.5 / 1M: then c is chosen, +0.200.",
        "A quality of 0.600 instead of 0.500 for b: then it is chosen.",
    ]
    assert len(changes(data)) == CHANGES
    doubtful = fake(would_turn=[TURN], stacks=[{"stack": "b", "p_feasible": 0.78}])
    assert changes(doubtful)[0].endswith("for b: then it is chosen, which meets the limits in 78 %.")


def test_a_turn_that_costs_nothing_is_said_once_and_by_its_size():
    turns = [
        {**TURN, "stack": "a", "now": 0.5, "then": 0.491, "by": -0.009},
        {**TURN, "now": 0.491, "then": 0.5, "by": 0.009},
        {**TURN, "of": "latency", "now": 9.0, "then": 20.0, "by": 11.0, "stack": "a", "winner": "c"},
    ]
    rows = [{"stack": name, "quality": quality} for name, quality in (("a", 0.5), ("b", 0.491), ("c", 0.3))]
    data = fake(would_turn=turns, latency_ms=9.0, stacks=rows)
    assert changes(data) == [
        "A difference of 0.009 in quality: then b is chosen, within 0.01 of it today.",
        "Its latency above 20.0 ms instead of 9.00 ms: then c is chosen.",
    ]
    assert changes(data | {"check_grades": "Check them"})[0] == GRADES


def test_notes_that_differ_in_counts_are_one():
    many = "150 count as {} for the p50"
    said = {"a": many.format(32), "b": many.format(104), "c": None, "d": "r9.5 {x}"}
    rows = [{"stack": name, "note": note} for name, note in said.items()]
    assert list(_noted(rows, "Latency", "note")) == [
        "Latency of 2 stacks: 150 count as 32 to 104 for the p50.",
        "Latency of d: r9.5 {x}.",
    ]
