"""Dose and response of harmful passages: contexts by hand, a planted loss that is found, modes of jobs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.pipeline.sweep.fields import Reader
from core.readers.dose import (
    AFTER,
    BEFORE,
    LOW,
    LOWEST,
    WHOLE,
    bearable,
    composed,
    effects,
    price,
    response,
    sent_passages,
)
from core.work.readers.job import Material, ReaderJob, ReaderReplay


def counts(grades: list[int | None]) -> dict[str, float]:
    rows = {"query_id": ["q"] * len(grades), "context": ["c"] * len(grades)}
    sent = pl.DataFrame({**rows, "place": range(1, len(grades) + 1), "grade": grades})
    made = composed(sent.with_columns(pl.col("grade").cast(pl.Int64))).row(0, named=True)
    return {name: value for name, value in made.items() if value and name not in rows}


@pytest.mark.parametrize(("grades", "held"), [
    ([5], {"has_gold": 1}),
    ([1, 5, 2, 4, 3, None], {"harm": 2, "harm_before": 1, "harm_after": 1, "harm_1": 1, "harm_2": 1,
                             "has_gold": 1, "more_gold": 1, "others": 2}),
    ([1, 2, 2], {"harm": 3, "harm_before": 3, "harm_1": 1, "harm_2": 2}),
])  # fmt: skip
def test_what_a_context_holds(grades: list[int | None], held: dict[str, float]):
    assert counts(grades) == held


RANKED = pl.DataFrame({"query_id": "q", "rank": [1, 2, 3], "passage_id": ["a", "b", "c"]})
GRADES = pl.DataFrame({"query_id": "q", "passage_id": ["a", "b", "c", "d"], "grade": [1, 5, 2, 4]})


@pytest.mark.parametrize(("mode", "k", "grades"), [
    ("top_k", 2, [1, 5]), ("gold_only", 3, [5]), ("no_gold", 3, [1, 2]), ("gold", None, [5, 4]),
    ("harm_after", 2, [5, 4, 1, 2]), ("harm_before", 1, [1, 5, 4]),
])  # fmt: skip
def test_what_was_sent_is_rebuilt_as_the_job_sends_it(mode: str, k: int | None, grades: list[int]):
    schema = {"query_id": pl.String, "mode": pl.String, "k": pl.Int32}
    asked = pl.DataFrame([("q", mode, k)], schema=schema, orient="row")
    rows = sent_passages(asked, RANKED, GRADES, RANKED).sort("place")
    assert rows["grade"].to_list() == grades
    replay = ReaderReplay("r", "c", {"q": ("a", "b", "c")}, {"q": ("b", "d")}, {"q": ("a", "c")})
    material = Material("c", {"q": "?"}, {"c": {}}, (replay,))
    job = ReaderJob(name="j", reader=Reader(models=("fake",), modes=(mode,), k=(k or 1,)), material=material)
    of = dict(GRADES.select("passage_id", "grade").iter_rows())
    assert [of[name] for name in job.sent(replay, "q", mode, k) or ()] == grades  # type: ignore[arg-type]
    if k:
        assert job.sent(replay, "q", "harm_after", 3) is None, "only two harmful ones: no dose of three"


def planted(queries: int, loss: float, seed: int) -> pl.DataFrame:
    """Six contexts a question; hard questions find more harm, which a plain comparison would blame on it."""
    random = np.random.default_rng(seed)
    hard = random.uniform(0, 40, (queries, 1))
    before, after = random.binomial(3, hard / 60, (queries, 6)), random.binomial(3, hard / 60, (queries, 6))
    lowest = random.binomial(before + after, 0.5)
    gold = random.binomial(1, 0.6, (queries, 6))
    harm = before + after
    value = 80 - hard + 15 * gold - loss * harm + random.normal(0, 5, harm.shape)
    columns = {
        "harm": harm, "harm_before": before, "harm_after": after, "harm_1": lowest, "harm_2": harm - lowest,
        "has_gold": gold, "more_gold": 0 * gold, "others": 0 * gold, "value": value,
    }  # fmt: skip
    names = np.repeat(np.arange(queries), 6)
    flat = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in columns.items()}
    return pl.DataFrame({"query_id": names.astype(str), "group": names, **flat})


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 2.0])
def test_a_planted_loss_is_found_and_covered(loss: float):
    """The interval covers it in 19 of 20 draws; chance leaves 16 of 20 or fewer once in 100."""
    covered = 0
    for seed in range(20):
        made = {effect.kind: effect for effect in effects(planted(80, loss, seed), 1)}
        whole = made[WHOLE]
        assert whole.value == pytest.approx(-loss, abs=1.5)
        covered += whole.low <= -loss <= whole.high  # type: ignore[operator]
        assert {BEFORE, AFTER, LOWEST, LOW} <= set(made)
    assert covered >= 16


def test_the_response_falls_with_the_dose():
    rows = response(planted(300, 3.0, 1), 1)
    assert rows.row(0)[:3] == (0, rows["answers"][0], 0.0)
    known = rows.filter(pl.col("harm") <= 4)
    assert known["value"].is_sorted(descending=True)
    assert (known["value"] + 3.0 * known["harm"]).abs().max() < 1.5  # type: ignore[operator]


def test_nothing_is_told_where_nothing_differs():
    rows = planted(30, 2.0, 1).with_columns(harm=pl.lit(1.0))
    whole = next(effect for effect in effects(rows, 1) if effect.kind == WHOLE)
    assert (whole.value, whole.queries) == (None, 0)


@pytest.mark.parametrize(
    ("loss", "cap"), [(1.0, 2), (0.7, 2), (0.5, 4), (0.0, None), (-1.0, None), (None, None)]
)
def test_the_cap(loss: float | None, cap: int | None):
    assert bearable(loss, 2.0) == cap


def test_the_price_of_one():
    assert price(0.01, 0.5, 0.1) == pytest.approx(0.0025)  # 0.005 a question: 0.005 / 0.4 = 0.0125
    assert price(0.01, 0.1, 0.1) is None
