"""Margins and their changes: by hand, identities, degenerate cases."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.diagnostics.names.margins import checks, margins, of_run, summary
from core.paths import PRICES
from core.prices import load_books
from core.providers.embed import make_embedder
from core.work.names.job import NamesSpec, figures, read_job


def test_margins_by_hand():
    query = np.array([[1, 0]], dtype=np.float32)
    five = np.array([[[2, 0], [3, 4], [0, 1], [4, 3], [-1, 0]]], dtype=np.float32)
    # cosines 1, .6, 0, .8, -1
    assert margins(query, five)[0] == pytest.approx([0.4, 0.2, 2.0])


def test_a_text_without_a_vector_has_no_cosine():
    zeros = np.zeros((1, 2), dtype=np.float32)
    assert margins(zeros, np.ones((1, 5, 2), dtype=np.float32)).tolist() == [[0, 0, 0]]


def test_percent_changes_leave_out_small_margins():
    base = np.array([[0.02, 1, 1], [0.5, 1, 1], [0.019, 1, 1], [-0.3, 1, 1]])
    ablated = np.array([[0.01, 1, 1], [0.75, 1, 1], [1.0, 1, 1], [1.0, 1, 1]])
    rows = pl.DataFrame(of_run({"base": base, "initials_form": ablated}, np.zeros(4, dtype=bool)))
    change = rows.filter(measure="dd_name_pct").row(0, named=True)
    assert change["value"] == pytest.approx((-50 + 50) / 2)
    assert change["n"] == 2
    moved = rows.filter(measure="delta_name").row(0, named=True)
    assert moved["value"] == pytest.approx((-0.01 + 0.25 + 0.981 + 1.3) / 4)
    assert rows.filter(measure="ascii_delta_max").is_empty()


def test_no_change_where_no_margin_is_large_enough():
    flat = np.zeros((3, 3))
    rows = pl.DataFrame(of_run({"base": flat, "hard_name_mask": flat}, np.ones(3, dtype=bool)))
    assert "dd_name_pct" not in rows["measure"]


def table(rows: list[tuple[int, str, str, float]]) -> pl.DataFrame:
    of = {"embedder": "e", "dim": 2, "language": "en"}
    return pl.DataFrame(
        [{**of, "run": r, "condition": c, "measure": m, "value": v, "n": 10} for r, c, m, v in rows]
    )


def test_averages_over_runs():
    rows = table([(1, "base", "d_name", 0.1), (2, "base", "d_name", 0.3), (1, "base", "d_topic", 0.2),
                  (2, "base", "d_topic", 0.4)])  # fmt: skip
    found = {each["measure"]: each for each in summary(rows).to_dicts()}
    assert found["d_name"]["value"] == pytest.approx(0.2)
    assert found["d_name"]["sd"] == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert (found["d_name"]["runs"], found["d_name"]["n"]) == (2, 20)
    assert found["name_topic_ratio"]["value"] == pytest.approx((0.5 + 0.75) / 2)
    assert summary(rows.filter(run=1))["sd"].null_count() == 3


@pytest.mark.parametrize(
    ("value", "passed"), [(-100.0, True), (-99.999, False), (None, None)], ids=["exact", "near", "unknown"]
)
def test_the_mask_must_leave_nothing(value: float | None, passed: bool | None):
    rows = [(1, "base", "d_name", 0.1), (2, "hard_name_mask", "dd_name_pct", -100.0)]
    rows = rows[:1] if value is None else [*rows, (1, "hard_name_mask", "dd_name_pct", value)]
    mask, _ = checks(table(rows))
    assert mask.passed is passed
    assert mask.value == value


@pytest.mark.slow
def test_identities_hold_for_a_real_embedder():
    spec = NamesSpec.model_validate(
        {"embedder": [{"name": "wordllama", "dim": [64, 256]}], "language": ["en", "fr"], "runs": 2,
         "queries": 20}
    )  # fmt: skip
    rows = figures(read_job(spec, load_books(PRICES)), make_embedder)
    found = checks(rows)
    assert [each.passed for each in found if each.name == "hard_name_mask"] == [True] * 4
    ascii_checks = {each.language: each for each in found if each.name == "strip_diacritics"}
    assert ascii_checks["en"].passed is True
    assert ascii_checks["en"].n > 0
    assert (ascii_checks["fr"].passed, ascii_checks["fr"].n) == (True, 20), "ten of a run, put into ASCII"
    assert rows.filter(condition="hard_name_mask", measure="d_name")["value"].to_list() == [0.0] * 8
