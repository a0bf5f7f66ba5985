"""The link and the command of a case in which not everything compares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.workspace.narrow import NarrowChoices, judging, narrow
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.report.files import command, pinned_link
from tests.stores import Lab
from tests.views.made import BOOK

LAB, RANK = Scope("lab", "gold"), Quality("RR", 10)


@pytest.fixture
def case(tmp_path: Path) -> View:
    queries = [f"q{number}" for number in range(1, 13)]
    lab = Lab().judge({query: {"p": 5} for query in queries})
    lab.run(
        "a", final={query: ["p"] for query in queries}, ms={"sparse": [1.0] * 12}, environment={"cpu": "Big"}
    )
    lab.run(
        "b", final={query: ["p"] for query in queries[:11]}, ms={"sparse": [1.0]}, environment={"cpu": "Tiny"}
    )
    snapshot = lab.write(tmp_path / "store").read()
    return View(snapshot, LAB, quality=RANK, latency=Latency(), book=BOOK)


@pytest.mark.slow
def test_what_is_usual_needs_no_words(case: View):
    found = narrow(case.snapshot, LAB, RANK, Latency(), BOOK)
    usual = replace(case, scope=found.scope, latency=found.latency, compared=found.compared)
    assert "--together" not in str(command(usual))
    assert pinned_link(usual, "http://h/").endswith("&env=Big+%28imported%29&rev=1")
    other = replace(usual, latency=Latency(machine="Tiny (imported)"))
    assert command(other) is None, "no option names a machine"


def test_what_was_put_together_is_put_together_again(case: View):
    found = narrow(case.snapshot, LAB, RANK, Latency(), BOOK, choices=NarrowChoices(as_they_are=True))
    assert len(found.compared.sentences) == 2
    whole = replace(case, compared=found.compared)
    assert str(command(whole)).endswith(" --together")
    assert "&cq=all+queries&figs=all&env=all+machines&" in pinned_link(whole, "http://h/")
    assert "--together" not in str(command(case))


@pytest.mark.slow
def test_well_judged_queries_are_asked_for_again(case: View):
    wanted = judging(RANK.k, "all", everywhere=True)
    found = narrow(case.snapshot, LAB, RANK, Latency(), BOOK, choices=NarrowChoices(wanted))
    strict = replace(case, scope=found.scope, latency=found.latency, compared=found.compared)
    assert "--judged all" in str(command(strict))
    assert str(command(strict)).endswith(" --every-golden-set")
    assert "&gq=every+set&jq=all&" in pinned_link(strict, "http://h/")
