"""`readers --run` and `readers --published`: points, the figures of their curves, slices by gold."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.views.readers.scores import published

ASKED = (
    "run_id", "reader", "k", "score", "n", "low", "high", "k_star", "rss", "rsc", "rsc_reading", "shape",
    "closed_book_gain", "with_gold_score", "without_gold_score",
)  # fmt: skip


def call(store: Path, *words: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["--store", str(store), "readers", *words])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def table(store: Path, *words: str) -> pl.DataFrame:
    return pl.DataFrame(json.loads(call(store, *words, "--format", "json")[0]), infer_schema_length=None)


@pytest.mark.slow
def test_points_with_the_figures_of_their_curve(answered_store: Path):
    rows = table(answered_store, "--scorer", "f1")
    assert set(ASKED) <= set(rows.columns)
    sent = rows.filter(mode="top_k")
    for (_, reader), own in sent.group_by("run_id", "reader"):
        best = own.filter(pl.col("k") == own["k_star"][0])
        assert best["score"].item() == pytest.approx(own["score"].max()), reader
        assert own["k_star"].n_unique() == own["rsc"].n_unique() == 1
    assert (sent["low"] <= sent["score"]).all()
    assert (sent["score"] <= sent["high"]).all()
    # A slice holds a part of the questions, and both parts together all of them
    assert sent["with_gold_n"].null_count() < sent.height
    assert (sent.select(pl.sum_horizontal("with_gold_n", "without_gold_n")).to_series() == sent["n"]).all()


@pytest.mark.slow
def test_one_run_is_that_run_only(answered_store: Path):
    every = table(answered_store, "--scorer", "f1")
    run = every["run_id"][0]
    own = table(answered_store, "--scorer", "f1", "--run", run)
    assert own.height == every.filter(run_id=run).height < every.height
    assert own["score"].to_list() == every.filter(run_id=run)["score"].to_list()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "nope"), "No run 'nope'"),
        (("--scorer", "nope"), "nope"),
        (("--collection", "nope"), "nope"),
    ],
)
def test_what_is_not_there_is_named(answered_store: Path, words: tuple[str, ...], said: str):
    assert said in call(answered_store, *words, code=1)[1]


def test_a_workspace_without_answers_says_so(published_store: Path):
    said = call(published_store, "--collection", "clq-paper")[0].strip()
    assert said == "No graded answers yet."


def test_published_readers(tmp_path: Path):
    rows = table(tmp_path / "store", "--published")
    assert rows.height == 8 + 48
    flan = rows.filter(dataset="nq", retriever="bm25", reader="FlanT5")
    assert flan.select("scorer", "k_star", "closed_book_gain").rows() == [
        ("exact_match", 50, pytest.approx(36.0592 - 16.6373, abs=1e-3)),
        ("f1", 50, 22.6),
    ]
    assert round(flan["rsc"][0], 2) == 971.10
    assert not (tmp_path / "store").exists()


# Best k by exact match against the paper's Table 7, by F1: where the two agree and where they do not
@pytest.mark.parametrize(
    ("retriever", "reader", "exact_match", "f1"),
    [("colbert", "FlanT5", 20, 20), ("bm25", "FlanT5", 50, 50), ("colbert", "FlanUL2", 50, 10)],
)
def test_best_k_of_both_scorers(retriever: str, reader: str, exact_match: int, f1: int):
    rows = published().filter(dataset="nq", retriever=retriever, reader=reader)
    assert dict(rows.select("scorer", "k_star").rows()) == {"exact_match": exact_match, "f1": f1}
