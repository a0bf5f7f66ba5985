"""Scores of rankings that people set right: the section on a workspace with a judge and an auditor."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.golden.by_hand import draw
from core.stats.corrected import ScoredLabels, correct
from core.views.ask import Given
from core.views.blocks import Answer, Cards, Fold, Table
from core.views.golden.people import do_people_agree, set_right
from tests.stores import Lab
from tests.views.decision.test_facts import asked
from tests.views.made import LAB

DENSE, SPARSE = {"mode": "dense", "embedder": "e", "dim": 8}, {"mode": "sparse", "sparse": "bm25"}
QUERIES, GRADED, K = 60, 30, 4


def workspace(
    tmp_path: Path, graded: int = GRADED, *, favours: bool = False, lacks: int = 0
) -> tuple[View, np.ndarray]:
    """Two stacks of four passages each; people grade the first questions whole, by the truth."""
    drawn = np.random.default_rng(3)
    good = drawn.random((QUERIES, 2 * K)) < np.repeat((0.7, 0.4), K)
    wrong = drawn.random(good.shape) < (np.repeat((0.0, 0.6), K) if favours else 0.15)
    said = np.where(favours, good | wrong, good ^ wrong)
    names = [f"q{n:02}" for n in range(QUERIES)]
    grades = [
        {
            name: {f"p{at}": 5 if row[at] else 1 for at in range(2 * K)}
            for name, row in zip(names, table, strict=True)
        }
        for table in (said, good)
    ]
    people = dict(list(grades[1].items())[:graded])
    for name in names[:lacks]:
        del people[name]["p0"]
    made = Lab().judge(grades[0], by="model").judge(people, "people", by="Ann")
    for name, spec, first in (("de", DENSE, 0), ("bm", SPARSE, K)):
        ranked = {key: [f"p{at}" for at in range(first, first + K)] for key in names}
        made.run(name, final=ranked, spec={"name": name, **spec})
    snapshot = made.write(tmp_path / "s").read()
    return asked(quality=Quality("P", K), snapshot=snapshot, scope=LAB), good


def blocks_of(view: View, **asking: list[str]) -> list:
    return list(do_people_agree.draw(view, Given(asking)))


def table(blocks: list, name: str) -> pl.DataFrame:
    return next(block.rows for block in blocks if isinstance(block, Table) and block.name == name)


def test_every_stack_is_set_right_by_the_questions_graded_whole(tmp_path: Path):
    view, good = workspace(tmp_path)
    found = set_right(view, "people")
    assert found is not None
    assert found.passages == GRADED * 2 * K
    assert found.whole == 1
    rows = table(blocks_of(view), "set_right")
    assert rows["name"].to_list() == ["de", "bm"]
    truth = good[:, :K].mean(axis=1)
    own = np.where(np.arange(QUERIES) < GRADED, truth, np.nan)
    by_judge = found.scored[found.run_ids.index("de")].judged
    told = correct(ScoredLabels(own, by_judge))
    first = rows.row(0, named=True)
    assert first["corrected"] == pytest.approx(told.value)
    assert (first["low"], first["high"]) == pytest.approx((told.low, told.high))
    assert first["alone"] == pytest.approx(truth[:GRADED].mean())
    assert first["judged"] == pytest.approx(by_judge.mean())
    assert (first["graded"], first["queries"]) == (GRADED, QUERIES)
    assert 0 < first["narrower"] < 1


def test_a_question_of_which_one_passage_is_not_graded_does_not_count(tmp_path: Path):
    view, _ = workspace(tmp_path, lacks=2)
    found = set_right(view, "people")
    assert found is not None
    counts = (int((~np.isnan(each.graded)).sum()) for each in found.scored)
    assert dict(zip(found.run_ids, counts, strict=True)) == {"de": GRADED - 2, "bm": GRADED}
    few, _ = workspace(tmp_path / "few", graded=9)
    said = next(block for block in blocks_of(few) if isinstance(block, Answer)).sentence
    assert said == "People graded the whole Top-K of 9 queries; at least 10 are needed."
    assert not [each for each in blocks_of(few) if isinstance(each, Table)], "it would say nothing yet"


def test_a_judge_that_likes_one_family_is_found_out(tmp_path: Path):
    view, _ = workspace(tmp_path, favours=True)
    blocks = blocks_of(view)
    fold = [block for block in blocks if isinstance(block, Fold)][-1]
    words, rows = fold.blocks[0].words, fold.blocks[1].rows
    assert "errs otherwise" in words
    assert "grade 40 by hand of each family" in words
    by = {row["family"]: row for row in rows.iter_rows(named=True)}
    assert by["sparse"]["p"] < 0.01
    assert by["sparse"]["apart_low"] > 0 > by["dense"]["apart_high"]
    assert (
        "known" in next(block for block in blocks if isinstance(block, Answer)).caveats["how they were drawn"]
    )
    cards = next(block for block in blocks if isinstance(block, Cards)).cards
    assert [label for label, *_ in cards] == ["Corrected", "Judge", "People alone"]


def test_a_judge_that_errs_alike_is_not_accused(tmp_path: Path):
    view, _ = workspace(tmp_path)
    fold = [block for block in blocks_of(view) if isinstance(block, Fold)][-1]
    assert fold.blocks[0].words.startswith("No sign")


def test_whole_questions_are_drawn_with_all_that_stacks_rank():
    pool = pl.DataFrame(
        {
            "query_id": [f"q{n // 5}" for n in range(50)],
            "passage_id": [f"p{n}" for n in range(50)],
            "grade": [1] * 50,
            "stacks": [0 if n % 5 == 4 else 1 for n in range(50)],
            "disputed": [False] * 50,
        }
    )
    drawn = draw(pool, "whole questions", 14, "seed")
    of = pl.DataFrame(drawn, schema=["query_id", "passage_id"], orient="row").group_by("query_id").len()
    assert of["len"].to_list() == [4, 4, 4]
    assert len(draw(pool, "whole questions", 1, "seed")) == 4
    several = pl.concat([pool.with_columns(pl.col("query_id") + f"-{more}") for more in range(4)])
    for sampling, questions in (("whole questions", 40), ("two leading", 30)):
        rows = draw(several, sampling, 600, "seed")
        assert (len({query for query, _ in rows}), len(rows)) == (questions, 4 * questions)
