"""A stack's gain per point of recall, and beside a prompt's: against loops over the questions."""

from statistics import fmean
from zlib import crc32

import numpy as np
import polars as pl
import pytest

from core.readers.crossed import EFFECTS, crossed, per_recall
from core.stats.fieller import fieller
from core.stats.intervals import Sample
from core.tables import frame

RUNS, PROMPTS, KS, QUERIES = ("of", "base"), ("plain", "strict"), (1, 5), [f"q{n}" for n in range(30)]


def luck_of(*names: object) -> float:
    return crc32(repr(names).encode()) / 2**32


def value(run: str, prompt: str, k: int, query: str) -> float:
    """One answer's score: both help, and together less than their sum."""
    luck = luck_of(query, k) * 0.2
    better, strict = run == "of", prompt == "strict"
    return 0.3 + luck + 0.2 * better + 0.1 * strict - 0.08 * (better and strict)


def recalled(run: str, k: int, query: str) -> float:
    return (0.6 if run == "of" else 0.2) + 0.01 * k + 0.1 * luck_of(run, query)


@pytest.fixture(scope="module")
def scores() -> pl.DataFrame:
    rows = [
        {"run_id": run, "query_id": query, "reader": "m", "prompt": prompt, "temperature": 0.0,
         "mode": "top_k", "k": k, "pass": 1, "scorer": "f1", "scale": "0-1",
         "value": value(run, prompt, k, query)}
        for run in RUNS for prompt in PROMPTS for k in KS for query in QUERIES
        if (run, prompt, k, query) != ("base", "strict", 5, "q0")  # one answer is missing
    ]  # fmt: skip
    return frame("answer_scores", rows)


def test_effects_and_interaction_equal_their_definition(scores: pl.DataFrame):
    (row,) = crossed(scores, "f1", "of", "base").iter_rows(named=True)
    cell = {
        (run, prompt): [fmean(100 * value(run, prompt, k, query) for k in KS) for query in QUERIES[1:]]
        for run in RUNS for prompt in PROMPTS
    }  # fmt: skip
    mean = {key: fmean(values) for key, values in cell.items()}
    expected = {
        "stack_first": mean["of", "plain"] - mean["base", "plain"],
        "stack_second": mean["of", "strict"] - mean["base", "strict"],
        "prompt_base": mean["base", "strict"] - mean["base", "plain"],
        "prompt_of": mean["of", "strict"] - mean["of", "plain"],
        "interaction": -8.0,
    }
    assert (row["first"], row["second"], row["paired"]) == ("plain", "strict", 29)
    assert {name: row[name] for name in EFFECTS} == pytest.approx(expected)


def test_gain_per_recall_equals_its_definition(scores: pl.DataFrame):
    recall = pl.DataFrame(
        [(run, query, k, recalled(run, k, query)) for run in RUNS for query in QUERIES for k in KS],
        schema={"run_id": pl.String, "query_id": pl.String, "k": pl.Int32, "value": pl.Float64}, orient="row",
    )  # fmt: skip
    row = per_recall(scores, "f1", "of", "base", recall).filter(prompt="plain").row(0, named=True)
    gained = 100 * fmean(recalled("of", k, q) - recalled("base", k, q) for k in KS for q in QUERIES)
    assert row["reader_gain"] == pytest.approx(20.0)
    assert row["recall_gain"] == pytest.approx(gained)
    assert row["per_recall"] == pytest.approx(20.0 / gained)
    assert row["per_recall_low"] < row["per_recall"] < row["per_recall_high"]
    level = per_recall(scores, "f1", "of", "base", recall.with_columns(value=pl.lit(0.5)))
    assert level["per_recall_low"].null_count() == level.height, "no recall was gained"
    assert per_recall(scores, "f1", "of", "base", recall.clear()).is_empty()


@pytest.mark.parametrize(("n", "seed", "divisor"), [(12, 1, 1.0), (40, 2, -0.6), (40, 3, 0.0), (9, 4, 5.0)])
def test_fieller_holds_the_ratios_that_a_t_test_does_not_refuse(n: int, seed: int, divisor: float):
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(seed)
    bottom = rng.normal(divisor, 0.5, n)
    top = 0.4 * bottom + rng.normal(0, 0.3, n)
    low, high = (end[0] for end in fieller(Sample.ratios(top, bottom)))
    if n < 10 or ttest_1samp(bottom, 0).pvalue > 0.05:
        assert np.isnan([low, high]).all()
        return
    grid = np.linspace(low - 1, high + 1, 4001)
    held = [ratio for ratio in grid if ttest_1samp(top - ratio * bottom, 0).pvalue >= 0.05]
    assert (min(held), max(held)) == pytest.approx((low, high), abs=0.002)
