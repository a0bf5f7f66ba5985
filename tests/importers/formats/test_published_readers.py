"""Published scores of readers: what the papers print about themselves holds for what is shipped."""

import polars as pl
import pytest

from core.importers.formats.published.readers import GENERATORS, published_readers
from core.readers.curves import depths, gains, points
from core.records import Origin
from core.store import Store

BATCH = published_readers()
SCORES = BATCH.frames["answer_scores"]


def test_scores_are_means_of_published_runs():
    assert {run.origin for run in BATCH.runs} == {Origin.PUBLISHED}
    assert set(SCORES["run_id"]) == {run.run_id for run in BATCH.runs} - {"ragged-contriever"}
    assert SCORES["query_id"].null_count() == SCORES.height == 72 + 8 + 96 + 630
    assert SCORES["source"].null_count() == 0


def test_means_over_a_known_number_of_questions_have_an_interval():
    assert (SCORES["low"].is_null() == SCORES["n"].is_null()).all()
    assert SCORES.filter(pl.col("n").is_null())["run_id"].unique().to_list() == ["ragged-gold-found-colbert"]
    known = SCORES.drop_nulls("low")
    assert ((known["low"] <= known["value"]) & (known["value"] <= known["high"])).all()
    row = (
        points(SCORES, "exact_match")
        .filter(run_id="ragged-colbert", reader="flanT5", k=20)
        .row(0, named=True)
    )
    assert (row["low"], row["high"]) == pytest.approx((42.80, 46.46), abs=0.01)


# metrics.md §5
@pytest.mark.parametrize(
    ("curve", "figures"),
    [
        (("colbert", "flanT5"), (20, None, 559.75, "improve-then-plateau")),
        (("colbert", "flanUl2"), (50, None, 425.80, "improve-then-plateau")),
        (("colbert", "llama_70b"), (5, 0.9589, 7.93, "peak-then-decline")),
        (("colbert", "llama_7b"), (1, 0.8359, 7.72, "peak-then-decline")),
        (("bm25", "llama_70b"), (10, 0.9935, -8.81, "peak-then-decline")),
        (("bm25", "flanT5"), (50, None, 971.10, "improve-then-plateau")),
    ],
)
def test_raggeds_readers_from_the_stored_scores(tmp_path, curve, figures):
    store = Store.open(tmp_path / "store")
    with store.write("published", "as the demo loads it") as writer:
        writer.add(BATCH)
    stored = store.read().answer_scores([run.run_id for run in BATCH.runs])
    rows = depths(points(stored, "exact_match")).filter(run_id=f"ragged-{curve[0]}", reader=curve[1])
    told = rows.select("k_star", pl.col("rss").round(4), pl.col("rsc").round(2), "shape")
    assert told.row(0) == pytest.approx(figures)


def test_the_closed_book_of_a_slice_is_that_of_its_k():
    found = gains(SCORES, "substring").filter(reader="flanT5", mode="top_k").sort("k")
    assert found["value"].to_list()[:2] == pytest.approx([84.375 - 20.5966, 76.0314 - 22.2004], abs=1e-3)
    assert found["k"].to_list() == [1, 2, 3, 5, 10, 20, 30, 50]


GENERATED = pl.read_csv(GENERATORS, infer_schema_length=None)
NAMED = ["model", "prompt", "temperature", "row"]


def test_every_value_is_a_count_of_39_cases():
    counts = GENERATED.filter(pl.col("judge").is_not_null())["value"] * 39 / 100
    assert counts.len() == 630
    assert ((counts - counts.round()).abs() < 0.01).all()


def test_totals_are_sums_of_the_judges_means():
    given = GENERATED.filter(pl.col("criterion") == "total")
    rows = GENERATED.filter(pl.col("judge").is_not_null()).group_by(NAMED).agg(pl.col("value").sum() / 2)
    both = given.join(rows, on=NAMED, suffix="_summed")
    assert both.height == 63
    assert ((both["value"] - both["value_summed"]).abs() < 0.03).all()


# Thesis, Table 7.9
@pytest.mark.parametrize(
    ("model", "prompt", "temperature", "difference"),
    [
        ("O4 Mini", "P2", 0.2, 33.34),
        ("O1", "P1", 0.0, 33.33),
        ("O3", "P2", 0.2, 30.75),
        ("Claude 3.5 Sonnet v2", "P2", 0.2, 29.47),
        ("GPT-4.1", "P1", 0.2, 29.46),
        ("Claude 3.7 Sonnet", "P2", 0.2, 19.23),
        ("Gemini 1.5 Flash", "P2", 0.2, 19.23),
        ("Claude 4.0 Sonnet", "P2", 0.2, 17.96),
        ("O3 Mini", "P2", 0.2, 11.54),
        ("Claude 3.5 Sonnet", "P1", 0.0, 3.83),
        ("GPT-4 Omni Mini", "P2", 0.2, 1.27),
        ("GPT-4 Omni", "P2", 0.2, 1.27),
        ("GPT-4.1 Nano", "P1", 0.2, -2.57),
        ("Gemini 2.0 Flash", "P2", 0.0, -6.43),
        ("Claude 3 Haiku", "P2", 0.0, -9.00),
        ("Gemini 1.5 Pro", "P2", 0.2, -9.00),
    ],
)
def test_differences_to_the_baseline(model, prompt, temperature, difference):
    totals = GENERATED.filter(pl.col("criterion") == "total")
    base = totals.filter(model="GPT-4 Omni", prompt="P1", temperature=0.2)["value"].item()
    total = totals.filter(model=model, prompt=prompt, temperature=temperature)["value"].item()
    assert total - base == pytest.approx(difference, abs=0.011)
