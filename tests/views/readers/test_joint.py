"""Dollars per correct answer by passages sent, on stacks made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.workspace.scope import Ids, Quality
from core.records import Batch
from core.store import Snapshot
from core.tables import frame
from core.views.readers.dose import (
    best_rows,
    dollars_answer,
    dollars_cards,
    joint_chart,
    joint_table,
    retrieval_of,
)
from tests.analysis.workspace.test_answers import BOOK, asked, snapshot
from tests.stores import Lab
from tests.views.made import LAB

__all__ = ["snapshot"]
QUALITY = Quality("Precision4+", 10)


def test_costs_and_shares_by_k(snapshot: Snapshot):
    rows = joint_table(snapshot, LAB, QUALITY, BOOK)
    got = {row["name"]: row for row in rows.iter_rows(named=True)}
    assert rows["k"].to_list() == [2, 2]
    assert got["good"]["usd_per_1k_correct"] == pytest.approx(5 / 0.75)
    assert got["bad"]["usd_per_1k_correct"] == pytest.approx(4 / 0.25)
    assert got["good"]["retrieval"] == 0.5
    low, high = got["good"]["usd_low"], got["good"]["usd_high"]
    assert low < got["good"]["usd_per_1k_correct"] <= (high or 99)


@pytest.mark.parametrize(("target", "expect"), [(0.1, [2, 2]), (0.6, [2, None]), (0.9, [None, None])])
def test_the_k_that_a_target_asks_for(snapshot: Snapshot, target: float, expect: list[int | None]):
    rows = best_rows(joint_table(snapshot, LAB, QUALITY, BOOK), target)
    assert rows["name"].to_list() == ["good", "bad"]
    assert rows["k_target"].to_list() == expect
    said, by = dollars_answer(rows)
    assert said.startswith("Send 2 passages: ")
    assert by == f"By {rows['reader'][0]} on good."
    assert len(dollars_cards(rows.row(0, named=True), target)) == 4
    assert joint_chart(rows, {"good": "#0072B2"}, QUALITY).data


def test_nothing_correct_and_nothing_scored(snapshot: Snapshot):
    rows = best_rows(joint_table(snapshot, asked(least=1.0, reader="nobody"), QUALITY, BOOK))
    assert rows.is_empty()
    hard = best_rows(joint_table(snapshot, asked(least=0.7), QUALITY, BOOK))
    assert hard.filter(name="bad")["usd_per_1k_correct"].to_list() == [None]
    assert retrieval_of(Quality("Answer", 3)).bare == "RA-nWG"


@pytest.mark.slow
def test_score_and_share_are_of_the_queries_that_count(tmp_path: Path):
    lab = Lab().judge({query: {"a": 5} for query in ("q1", "q2")})
    lab.run("both", final={"q1": ["a"], "q2": ["a"]}).run("one", final={"q1": ["a"]})
    store = lab.write(tmp_path / "store")
    key = {"run_id": "both", "reader": "gpt", "mode": "top_k", "k": 2, "pass": 1}
    scored = [
        {**key, "query_id": query, "scorer": "f1", "value": value, "scale": "0-1"}
        for query, value in (("q1", 1.0), ("q2", 0.0))
    ]
    answers = [{**key, "query_id": query, "text": "…"} for query in ("q1", "q2")]
    with store.write("answers") as writer:
        rows = {"answers": answers, "answer_scores": scored}
        writer.add(Batch(frames={name: frame(name, some) for name, some in rows.items()}))
    for scope, expect in ((LAB, (0.5, 0.5)), (replace(LAB, shared=Ids.of(["q1"])), (1.0, 1.0))):
        rows = joint_table(store.read(), scope, QUALITY, BOOK)
        assert rows.select("score", "correct").rows() == [expect]
