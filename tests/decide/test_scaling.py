import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decide.marginal import linear_fit, reranker_scaling
from core.errors import InputError
from core.importers.formats.published import read_figures

PUBLISHED = (
    read_figures()
    .filter(pl.col("metric") == "rerank_ms_p50")
    .filter(pl.col("table").is_in([15, 16]))
    .rename({"candidates_k": "candidates", "value": "latency_ms"})
    .with_columns(pl.format("{}-{}", "dim", "candidates").alias("run_id"))
)


def found(reranker: str, embedder: str) -> pl.DataFrame:
    fitted = reranker_scaling(PUBLISHED)
    return fitted.filter((pl.col("reranker") == reranker) & (pl.col("embedder") == embedder))


def test_the_discontinuity_of_the_paper_is_found():
    rows = found("rerank-2.5", "voyage-3.5")
    assert rows["breaks_at"].unique().to_list() == [150]
    assert rows["departs"].to_list() == (rows["candidates"] >= 150).to_list()
    assert rows.filter("departs")["over_ms"].min() > 75
    lite = found("rerank-2.5", "voyage-3.5-lite")
    assert lite["breaks_at"].unique().to_list() == [200]
    assert lite.filter("departs")["candidates"].to_list() == [200]


@pytest.mark.parametrize(
    ("reranker", "embedder"),
    [
        ("rerank-2.5", "voyage-3-large"),
        ("rerank-2.5-lite", "voyage-3-large"),
        ("rerank-2.5-lite", "voyage-3.5"),
        ("rerank-2.5-lite", "voyage-3.5-lite"),
    ],
)
def test_what_the_paper_calls_smooth_is_smooth(reranker, embedder):
    rows = found(reranker, embedder)
    assert rows.height
    assert not rows["departs"].any()
    assert rows["breaks_at"].null_count() == rows.height
    assert rows["slope"].is_between(1.5, 3.0).all()  # ms per candidate


def test_every_figure_that_the_paper_marks_is_flagged():
    marked = PUBLISHED.filter(pl.col("note").str.contains("discontinuity"))
    fitted = reranker_scaling(PUBLISHED).filter("departs")
    on = ["reranker", "embedder", "candidates", "run_id"]
    assert marked.height == 5
    assert marked.join(fitted, on=on, how="anti").is_empty()


@given(
    slope=st.floats(0, 10),
    intercept=st.floats(0, 500),
    depths=st.lists(st.sampled_from([10, 20, 50, 100, 150, 200]), min_size=3, max_size=30),
)
def test_a_line_is_found_again(slope, intercept, depths):
    at = np.array(depths)
    fit = linear_fit(at, intercept + slope * at)
    if len(set(depths)) < 3:
        assert fit.slope is None
        assert "too few" in fit.reason
        return
    assert fit.slope == pytest.approx(slope, abs=1e-6)
    assert fit.intercept == pytest.approx(intercept, abs=1e-4)
    assert not fit.departs.any()
    assert fit.breaks_at is None


def test_a_single_slow_figure_is_no_break():
    fit = linear_fit([50, 100, 150, 200], [200.0, 900.0, 400.0, 500.0])
    assert fit.departs.tolist() == [False, True, False, False]
    assert (fit.slope, fit.intercept, fit.breaks_at) == (pytest.approx(2.0), pytest.approx(100.0), None)


def test_latency_that_falls_with_depth_has_a_flat_line():
    fit = linear_fit([50, 100, 150], [140.0, 120.0, 100.0])
    assert (fit.slope, fit.intercept) == (0.0, pytest.approx(120.0))


def test_nothing_to_fit_and_uneven_lengths():
    assert reranker_scaling(PUBLISHED.clear()).is_empty()
    with pytest.raises(InputError, match="belong together"):
        linear_fit([1, 2], [1.0])
