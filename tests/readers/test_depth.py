"""k*, RSS, RSC and shapes: RAGGED's published curves to the printed digits, and the cases at the edge."""

import csv
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.paths import PUBLISHED
from core.readers.depth import Depth, depth_of


def _published() -> dict[tuple[str, str], tuple[list[int], list[float], float]]:
    with (PUBLISHED / "ragged_reader_by_k.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "nq"]
    closed = {row["reader"]: 100 * float(row["value"]) for row in rows if row["mode"] == "no_context"}
    curves: dict[tuple[str, str], tuple[list[int], list[float], float]] = {}
    for row in rows:
        if row["mode"] == "top_k":
            reader = row["reader"]
            ks, values, _ = curves.setdefault((reader, row["retriever"]), ([], [], closed[reader]))
            ks.append(int(row["k"]))
            values.append(100 * float(row["value"]))
    return curves


CURVES = _published()


# metrics.md §5, computed from the tool's published tables (NQ, exact match).
@pytest.mark.parametrize(
    ("curve", "k_star", "rss", "rsc", "before_stop"),
    [
        (("flanT5", "colbert"), 20, None, "559.75", None),
        (("flanUl2", "colbert"), 50, None, "425.80", None),
        (("llama_70b", "colbert"), 5, ".9589", "7.93", "1.52"),
        (("llama_7b", "colbert"), 1, ".8359", "7.72", None),
        (("llama_70b", "bm25"), 10, ".9935", "-8.81", "0.00"),
        (("flanT5", "bm25"), 50, None, "971.10", "0.00"),
    ],
)
def test_published_curves_to_the_printed_digits(curve, k_star, rss, rsc, before_stop):
    ks, values, closed = CURVES[curve]
    depth = depth_of(ks, values, closed_book=closed)
    assert depth.k_star == k_star
    assert (None if depth.rss is None else f"{depth.rss:.4f}"[1:]) == rss
    assert f"{depth.rsc:.2f}" == rsc
    if before_stop is not None:
        assert depth.k_last != depth.k_last_before_stop
        assert f"{depth.rsc_before_stop:.2f}" == before_stop


@pytest.mark.parametrize(
    ("reader", "shape"),
    [
        ("flanT5", "improve-then-plateau"),
        ("flanUl2", "improve-then-plateau"),
        ("llama_70b", "peak-then-decline"),
        ("llama_7b", "peak-then-decline"),
    ],
)
def test_shapes_of_the_colbert_readers_are_the_papers(reader, shape):
    ks, values, closed = CURVES[reader, "colbert"]
    assert depth_of(ks, values, closed_book=closed).shape == shape


@pytest.mark.parametrize(
    ("ks", "values", "closed", "wanted"),
    [
        # one depth: no neighbour, no shape
        ([5], [40.0], 30.0, {"k_star": 5, "rss": None, "wanted": (1, 10), "shape": None, "rsc": 50.0}),
        ([1], [40.0], None, {"k_star": 1, "wanted": (6,), "start_k": 1, "k_last": 1, "rsc": 0.0}),
        # ties: the smallest k
        ([1, 5, 10], [40.0, 50.0, 50.0], 30.0, {"k_star": 5, "rss": 0.8, "wanted": ()}),
        # order of the depths does not matter, a missing score is no depth, k = 0 is the closed book
        ([10, 0, 1, 5], [None, 10.0, 20.0, 30.0], None, {"k_star": 5, "start_k": 0, "rsc": 100.0}),
        ([1, 2], [math.nan, 20.0], math.nan, {"k_star": 2, "start_k": 2}),
        # nothing is right
        ([1, 5], [0.0, 0.0], 0.0, {"k_star": 1, "rss": None, "shape": None, "rsc": 0.0, "wanted": ()}),
        # a gain of exactly epsilon counts, rounding aside; one just below does not
        ([1, 2], [39.9, 40.4], 39.9, {"k_last": 2, "k_last_before_stop": 0}),
        ([1, 2], [39.9, 40.39], 39.9, {"k_last": 0, "rsc": 0.0}),
        # either side of k* alone: too few cost a fifth, too many a tenth
        ([1, 5, 8], [40.0, 50.0, 45.0], None, {"rss": 0.8, "rss_fewer": 0.8, "rss_more": 0.9}),
        ([1, 5], [40.0, 50.0], None, {"rss": 0.8, "rss_fewer": 0.8, "rss_more": None}),
        # 95 % exactly is a plateau
        ([1, 2], [100.0, 95.0], None, {"shape": "improve-then-plateau"}),
        ([1, 2], [100.0, 94.9], None, {"shape": "peak-then-decline"}),
        # falls from the closed book, gains once: the telescoped sum is negative
        ([1, 2], [20.0, 25.0], 30.0, {"k_last": 2, "rsc": -10.0, "rsc_before_stop": 0.0}),
    ],
)
def test_edges(ks, values, closed, wanted):
    depth = depth_of(ks, values, closed_book=closed)
    for name, value in wanted.items():
        found = getattr(depth, name)
        assert found == (pytest.approx(value) if isinstance(value, float) else value), name
    assert (depth.rss is None) == (depth.rss_reason is not None)


def test_parameters_move_the_figures():
    ks, values = [1, 5, 20], [40.0, 50.0, 49.0]
    assert depth_of(ks, values, closed_book=49.0, delta=15).rss == pytest.approx(0.8)
    assert depth_of(ks, values, closed_book=39.0, delta=2).rss is None
    assert depth_of(ks, values, closed_book=39.0, epsilon=2).k_last == 5
    assert depth_of(ks, values, plateau=0.99).shape == "peak-then-decline"


@pytest.mark.parametrize(
    ("ks", "values"), [([], []), ([0], [10.0]), ([1], [None]), ([2, 2], [1.0, 2.0]), ([-1], [1])]
)
def test_what_is_no_curve_is_refused(ks, values):
    with pytest.raises(InputError):
        depth_of(ks, values)


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(1, 60), st.floats(0, 100), min_size=1, max_size=9),
    st.none() | st.floats(0, 100),
)
def test_against_the_definition(scores, closed):
    depth: Depth = depth_of(list(scores), list(scores.values()), closed_book=closed)
    assert depth.best == max(scores.values())
    assert depth.k_star == min(k for k in scores if scores[k] == depth.best)
    near = [scores[k] for k in scores if 0 < abs(k - depth.k_star) <= 5]
    sides = [(k, scores[k]) for k in scores if 0 < abs(k - depth.k_star) <= 5 and depth.best > 0]
    fewer, more = ([v for k, v in sides if (k < depth.k_star) is below] for below in (True, False))
    for side, values in ((depth.rss_fewer, fewer), (depth.rss_more, more)):
        assert side == (min(values) / depth.best if values else None)
    if depth.rss is not None:
        assert depth.rss == min(near) / depth.best
    else:
        assert not near or depth.best == 0
    path = sorted(scores.items()) if closed is None else [(0, closed), *sorted(scores.items())]
    # The sum of gains that the formula writes, without telescoping it
    total, sums = 0.0, {path[0][0]: 0.0}
    for (_, before), (k, after) in pairwise(path):
        total += after - before
        sums[k] = total
    assert depth.rsc == pytest.approx(depth.k_last * sums[depth.k_last], abs=1e-6)
    assert depth.rsc_before_stop == pytest.approx(
        depth.k_last_before_stop * sums[depth.k_last_before_stop], abs=1e-6
    )
    assert depth.k_last_before_stop <= depth.k_last
