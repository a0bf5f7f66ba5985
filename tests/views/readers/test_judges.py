"""Section Judges of Readers: what people's grades make of judges, on answers made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.answers import BY_PEOPLE
from core.tables import frame
from core.views.readers import corrected, judges
from core.views.readers.corrected import PANEL, GradedAnswers, Judge, favours, of_scores, panel_table

NAMES = pl.DataFrame({"run_id": ["one", "two"], "name": ["BM25", "dense"]})
QUESTIONS, GRADED = 120, 60


def scores(
    *, liked: str = "", good: float = 0.5, graded: int = GRADED, judge_names: Sequence[str] = ("gpt",)
) -> pl.DataFrame:
    """Return scores of two stacks' answers; a judge errs on one in five, and likes one stack."""
    random = np.random.default_rng(11)
    rows: list[dict[str, Any]] = []
    for run, share in (("one", 0.7), ("two", good)):
        for question in range(QUESTIONS):
            key = {"run_id": run, "query_id": f"q{question:03}", "reader": "reader", "mode": "top_k", "k": 3}
            about = key | {"pass": 1, "scorer": "correctness"}
            right = random.random() < share
            for name in judge_names:
                said = right if random.random() < 0.8 else not right
                said = said or (run == liked and random.random() < 0.7)
                rows.append(about | {"judge": name, "value": 5.0 * said, "scale": "0-5"})
            if question < graded:
                own = {"judge": "Ann", "value": 1.0 + 4 * right, "scale": "1-5", "source": BY_PEOPLE}
                rows.append(about | own)
    return frame("answer_scores", rows)


def laid_out(**options: Any) -> GradedAnswers:
    answers = frame(
        "answers", {"run_id": ["one"], "reader": ["reader"], "mode": ["top_k"], "k": [3], "text": ["x" * 600]}
    )
    return of_scores(scores(**options), NAMES, answers)


def test_people_and_judges_are_told_apart():
    of = laid_out()
    assert of.people == (Judge("correctness", "Ann"),)
    assert of.judges == (Judge("correctness", "gpt"),)
    assert of.by_people().shape == (2, QUESTIONS)
    assert of.seconds[0] > of.seconds[1]


def test_every_stack_is_corrected_and_the_best_stands_first():
    of = laid_out(liked="two")
    table = corrected.corrected_table(of, of.judges[0], 0.5)
    assert table["name"].to_list() == ["BM25", "dense"]
    assert table["judged_score"][1] > table["judged_score"][0]  # the judge alone has it the other way round
    assert table["moved"][1] < -10
    assert (table["low"] < table["corrected"]).all()
    assert (table["effective"] >= GRADED - 1e-6).all()
    gaps = corrected.differences(of, of.judges[0], 0.5, table, 0)
    assert gaps["difference"][0] < 0 < gaps["judged_difference"][0]
    assert gaps["both"].to_list() == [GRADED]
    assert "says the opposite" in judges.of_gap(gaps, "BM25")


def test_a_judge_that_likes_a_stack_is_seen():
    for liked, expect in (("two", True), ("", False)):
        of = laid_out(liked=liked, good=0.7)
        found = favours(corrected.corrected_table(of, of.judges[0], 0.5))
        assert found is not None
        assert (found[3] > 0) == expect
        assert not expect or found[0] == "reader on dense"


@pytest.mark.parametrize("graded", [0, 5])
def test_below_ten_grades_nothing_is_corrected(graded: int):
    of = laid_out(graded=max(graded, 1))
    table = corrected.corrected_table(of, of.judges[0], 0.5)
    assert table["corrected"].null_count() == 2
    assert "10 are needed" in judges.answer(table, of.judges[0])
    first = next(iter(judges.next_grades(table)))
    assert "below 10 grades" in first.words  # type: ignore[union-attr]


def test_a_stack_that_nobody_graded_is_told_by_the_errors_elsewhere():
    rows = scores().filter(
        ~((pl.col("run_id") == "two") & (pl.col("source") == BY_PEOPLE)).fill_null(value=False)
    )
    of = of_scores(rows, NAMES, frame("answers", {}))
    table = corrected.corrected_table(of, of.judges[0], 0.5)
    other = table.filter(name="dense").row(0, named=True)
    assert other["corrected"] is None
    assert other["by_errors_low"] < 50 < other["by_errors_high"]


def test_several_judges_are_a_panel_beside_the_majority():
    of = laid_out(judge_names=("a", "b", "c"))
    assert of.judges[-1] == Judge("correctness", PANEL)
    rows = panel_table(of, "correctness", 0.5)
    assert rows["judge"].to_list() == ["a", "b", "c", "panel (Dawid–Skene)", "majority"]
    assert rows["told"].sum() == pytest.approx(1)
    assert (rows["agree"][3:] >= rows["agree"][:3].mean()).all()
    assert "majority" in judges.of_panel(rows)
    table = corrected.corrected_table(of, of.judges[-1], 0.5)
    assert table["corrected"].null_count() == 0
