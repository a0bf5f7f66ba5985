import itertools

import numpy as np
import polars as pl
import pytest

from core.decide.neighbours import neighbours

AXES = ("embedder", "reranker", "candidates")
EFFECTS = {"a": 0.0, "b": 0.1, "c": 0.15, None: 0.0, "r": 0.2, "s": 0.1, 20: 0.0, 50: 0.05, 100: 0.06}


def table(keep, noise=0.01):
    random = np.random.default_rng(4)
    rows = [
        {"embedder": e, "reranker": r, "candidates": k}
        for e, r, k in itertools.product("abc", (None, "r", "s"), (20, 50, 100))
        if keep(e, r, k)
    ]
    quality = [0.3 + sum(EFFECTS[value] for value in row.values()) + random.normal(0, noise) for row in rows]
    return pl.DataFrame(rows, schema_overrides={"reranker": pl.String}).with_columns(
        pl.Series("quality", quality)
    )


def place(made, **stack):
    same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in stack.items()]
    return made.with_row_index().filter(same)["index"].item()


def test_the_stack_that_was_left_out_is_found_with_about_its_quality():
    made = table(lambda e, r, k: (e, r, k) != ("c", "r", 100))
    best = place(made, embedder="c", reranker="r", candidates=50)
    target = made["quality"][best]
    (found,) = neighbours(made, AXES, [best], target)
    assert (found.axis, found.before, found.after) == ("candidates", "50", "100")
    assert found.quality == pytest.approx(0.71, abs=0.02)
    assert 0.005 < found.spread < 0.03
    assert 0.3 < found.chance < 0.8


def test_each_stack_once_and_the_likeliest_first():
    made = table(lambda e, r, k: e != "c" or (r, k) == ("r", 20))
    starts = [
        place(made, embedder="c", reranker="r", candidates=20),
        place(made, embedder="b", reranker="r", candidates=100),
    ]
    found = neighbours(made, AXES, starts, 0.7)
    assert [each.chance for each in found] == sorted((each.chance for each in found), reverse=True)
    stacks = {(each.of, each.axis, each.after) for each in found}
    assert len(stacks) == len(found) == 3  # of c: with s, with 50 and, from either start but once, with 100
    assert (found[0].axis, found[0].after) in {("candidates", "100"), ("candidates", "50"), ("embedder", "c")}


def test_no_step_gives_a_stack_an_axis_that_it_lacks():
    made = table(lambda e, r, k: not (e == "c" and r is None and k > 20))
    start = place(made, embedder="c", reranker=None, candidates=20)
    assert {(each.axis, each.after) for each in neighbours(made, AXES, [start], 0.5)} == {
        ("candidates", "50"),
        ("candidates", "100"),
    }


def test_too_few_stacks_for_a_guess():
    made = table(lambda e, r, k: (e, r) == ("a", "r") and k < 100)
    assert neighbours(made, AXES, [0], 0.5) == []
    assert neighbours(made.with_columns(pl.lit(None, pl.Float64).alias("quality")), AXES, [0], 0.5) == []


def test_a_full_grid_has_no_neighbours():
    made = table(lambda *_: True)
    assert neighbours(made, AXES, list(range(made.height)), 0.5) == []


def test_stacks_that_state_no_axis_have_no_neighbours():
    made = table(lambda *_: True)
    assert neighbours(made, (), [0, 1], 0.5) == []
    assert neighbours(made.with_columns(reranker=pl.lit(None, pl.String)), ("reranker",), [0, 1], 0.5) == []


def read(stack):
    """Without a reranker nothing reads K."""
    return stack if stack[1] else (*stack[:2], None)


def test_what_nothing_reads_is_no_step():
    made = table(lambda e, r, k: (e, r, k) != ("c", "r", 100) and (e, r, k) not in {("c", None, 20)})
    starts = [place(made, embedder="c", reranker=reranker, candidates=50) for reranker in (None, "r")]
    asked = [(each.of, each.after) for each in neighbours(made, AXES, starts, 0.5)]
    assert asked == [(starts[1], "100"), (starts[0], "20")]
    assert [each.stack for each in neighbours(made, AXES, starts, 0.5, read=read)] == [("c", "r", "100")]


def test_values_that_go_together_change_together():
    """No model has the dimensions of another: b is tried with its own, and nobody tries a with 512."""
    seen = [("a", 256), ("a", 128), ("b", 512)]
    rows = [
        {"embedder": e, "dim": d, "reranker": r, "quality": 0.4 + 0.1 * (r == "s") + d / 1e4}
        for (e, d), r in itertools.product(seen, ("r", "s"))
    ]
    made = pl.DataFrame(rows).filter(~((pl.col("embedder") != "a") & (pl.col("reranker") == "s")))
    made = made.filter(~((pl.col("dim") == 128) & (pl.col("reranker") == "s")))
    made = pl.concat([made] * 3)  # enough for a spread
    start = place(made.head(4), embedder="a", dim=256, reranker="s")
    found = neighbours(made, ("embedder", "dim", "reranker"), [start], 0.5)
    assert {(each.axis, each.stack) for each in found} == {
        ("embedder", ("b", "512", "s")),
        ("dim", ("a", "128", "s")),
    }
