"""How sure the choice is, as judged and were what is unjudged graded too: one stack, one yardstick."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import core as clq
from core.agents.answers import Answers
from core.analysis.judging import Next, to_judge, what_next
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.view import View
from core.api.workspace import Workspace
from core.records import Batch
from core.store import Store
from core.views.blocks import Way
from core.views.words.advice import advice, first_step
from core.views.words.judging import next_words
from tests.store import chunked
from tests.store.material import judgements, rankings, run
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, LAB

GRADES = {f"q{n}": {"a": 5, "b": 4, "c": 3, "x": 1} for n in range(12)}


def lab(path: Path, *, holes: bool) -> View:
    """One stack finds more of what was judged; the other ranks what nobody judged, where there is any."""
    made = Lab().judge(GRADES)
    made.run("judged", final=dict.fromkeys(GRADES, "abc"))
    made.run("other", final=dict.fromkeys(GRADES, "uva" if holes else "xba"))
    made.run("twin", final=dict.fromkeys(GRADES, "abc"))
    return View(made.write(path).read(), LAB, quality=replace(AT_10, k=3), latency=Latency(), book=BOOK)


@pytest.mark.parametrize("holes", [False, True])
def test_what_nobody_judged_is_what_the_two_figures_differ_by(holes: bool, tmp_path: Path):
    view = lab(tmp_path / "store", holes=holes)
    found = what_next(view)
    assert found is not None
    assert (found.stack, found.pgs) == (view.table["name"][view.decision.chosen], view.sure.pgs)
    assert found.worth.rows.is_empty() == (not holes)
    assert found.filled is not None
    if holes:
        assert found.filled < found.pgs
        assert found.worth.rows["passage_id"].unique().sort().to_list() == ["u", "v"]
    else:
        assert found.filled == pytest.approx(found.pgs, abs=0.05)


def cut(path: Path, *only: str) -> View:
    """Return the same, of chunks of documents, with a stack on other chunks and one on whole documents."""
    ranked = {"judged": "abc", "other": "uva", "twin": "abc"}
    batch = Batch(
        collections=(chunked.WHOLE, chunked.HALVES, chunked.PAGES),
        golden_sets=(chunked.GOLD, chunked.GOLD_HALVES, chunked.GOLD_PAGES),
        runs=(*(run(name, chunking="halves") for name in ranked), run("p", chunking="pages"), run("w")),
        frames={
            "judgements": pl.concat(
                [
                    judgements(GRADES, "gold@halves"),
                    judgements({query: {"p0": 3} for query in GRADES}, "gold@pages"),
                ]
            ),
            "rankings": pl.concat(
                [
                    *(
                        rankings(name, {query: list(found) for query in GRADES})
                        for name, found in ranked.items()
                    ),
                    rankings("p", {query: ["p1"] for query in GRADES}),
                    rankings("w", {query: ["d"] for query in GRADES}),
                ]
            ),
        },
    )
    store = Store(path)
    with store.write("seed") as writer:
        writer.add(batch)
    scope = Scope("corpus", "gold", only)
    return View(store.read(), scope, quality=replace(AT_10, k=3), latency=Latency(), book=BOOK)


def test_chunks_of_documents_wait_like_passages(tmp_path: Path):
    """Before, nothing said of a stack on own documents that most of its results were judged by nobody."""
    plain, chunks = what_next(lab(tmp_path / "plain", holes=True)), what_next(cut(tmp_path / "cut"))
    assert plain is not None
    assert chunks is not None
    assert (chunks.within, plain.within) == ("corpus@halves", LAB.collection_id)
    assert chunks.first == plain.first == 2 * len(GRADES)
    assert chunks.filled == pytest.approx(plain.filled, abs=0.05)
    assert chunks.matters
    assert chunks.worth.rows["passage_id"].unique().sort().to_list() == ["u", "v"]


def test_every_surface_says_what_to_judge_first(tmp_path: Path):
    """Of stacks on chunks of own documents, too."""
    cut(tmp_path / "store")
    limits = {"measure": "RA-nWG@3", "runs": ["judged", "other", "twin"]}
    results = clq.open(tmp_path / "store")
    decided = results.workspace("corpus").decide(**limits)
    do, said = first_step(decided.view).do, advice(decided.view)
    assert do == f"Judge {2 * len(GRADES)} passages first"
    page = decided.page("decision")
    assert page.sentence.endswith(f"; {do[:1].lower()}{do[1:]}")
    assert Way("golden", do.removesuffix(" first"), "judge", first=True) in page.blocks
    assert (decided.data["advice"], decided.data["objection"]) == (said, said)
    files = decided.record(tmp_path / "r.json", tmp_path / "r.md")
    record = json.loads(files[0].read_text())
    assert said in record["summary"][2]
    assert said in files[1].read_text()
    told = Answers(results, tmp_path).decide("corpus", limits)
    assert do[1:] in str(told["answer"])


def test_a_stack_that_alone_is_cut_its_way_is_judged_first_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    view = cut(tmp_path / "store", "other", "p")
    assert what_next(view) is None
    assert first_step(view).do == "Judge its results first"
    assert "nobody judged 66.7 % of its Top-3" in advice(view)
    monkeypatch.setattr("core.views.words.advice.about_grades", lambda _: False)
    assert not first_step(view).do.startswith("Judge"), "where no grade of a passage is in the measure"


SURE = "s is within 0.01 of the best in 95.0 % of resamples."
WERE = "Were the unjudged passages graded like the judged ones at their ranks, it would be in"
WAIT = "Of 2 unjudged passages these 2 could change that first."


@pytest.mark.parametrize(
    ("pgs", "filled", "waiting", "said"),
    [
        (0.95, 0.5, 2, f"{SURE} {WERE} 50.0 %, below the target of 90.0 %. {WAIT}"),
        (0.95, 0.92, 2, f"{SURE} {WERE} 92.0 %, past the target of 90.0 %. No more judging is needed."),
        (0.95, 0.95, 0, f"{SURE} Everything in the Top-10 of the leading stacks is judged."),
        (None, None, 2, f"How sure s is, is unknown. {WAIT}"),
    ],
)
def test_the_words_say_both(pgs: float | None, filled: float | None, waiting: int, said: str):
    worth = type("Worth", (), {"rows": pl.DataFrame({"passage_id": ["u", "v"][:waiting]})})()
    assert next_words(Next(worth, "s", "within 0.01 of the best", pgs, filled), AT_10) == said


@pytest.mark.slow
def test_confidence_says_one_thing_of_one_stack(shipped_store: Path):
    """The stack that ships is the one that is judged for, with the confidence of every other page."""
    decided = Workspace(Store.open(shipped_store), "docs-search").decide(sla_ms=20.0)
    view = decided.view
    unjudged = to_judge(view, view.constraints, view.rule)
    assert unjudged is not None
    chosen = view.table["name"][view.decision.chosen]
    assert (unjudged.stack, unjudged.pgs) == (chosen, view.sure.pgs)
    page = decided.page("confidence", "worth measuring more")
    assert any(next_words(unjudged, view.quality) in str(block) for block in page.blocks)
