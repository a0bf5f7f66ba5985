"""Page Readers: what its curves, figures and parts say of answers that were made by hand."""

from pathlib import Path

import polars as pl
import pytest

from core.analysis.readers import (
    EVERY,
    MEASURED,
    WITH,
    WITHOUT,
    Rules,
    answered,
    curve_table,
    depth_table,
    slice_table,
    with_sent,
)
from core.analysis.workspace.scope import Scope
from core.readers.depth import depth_of
from core.store import Snapshot, Store
from core.views.readers import charts, sections
from tests.stores import Lab
from tests.views.made import BOOK, LAB

QUERIES = [f"q{n}" for n in range(1, 41)]


@pytest.fixture(scope="module")
def snapshot(answered_store: Path) -> Snapshot:
    return Store.open(answered_store).read()


def lab(tmp_path: Path, made: Lab) -> Snapshot:
    return made.write(tmp_path / "store").read()


def test_every_curve_is_read_as_the_rules_say(snapshot: Snapshot):
    found = answered(snapshot, LAB, BOOK)
    table = curve_table(found, "f1")
    depths = depth_table(table, Rules())
    assert depths.select("name", "label", "k_star", "best", "gain", "send").rows() == [
        ("dense", "fickle", 2, pytest.approx(39.0), pytest.approx(19.0), 2),
        ("dense", "steady", 2, pytest.approx(35.0), pytest.approx(15.0), 2),
        ("sparse", "steady", 5, pytest.approx(35.0), pytest.approx(15.0), 5),
        ("sparse", "fickle", 5, pytest.approx(32.5), pytest.approx(12.5), 5),
    ]
    for row in depths.iter_rows(named=True):
        own = table.filter(
            pl.col("name") == row["name"], pl.col("label") == row["label"], pl.col("mode") == "top_k"
        )
        depth = depth_of(own["k"].to_list(), own["value"].to_list(), closed_book=row["closed_book"])
        assert [row[figure] for figure in ("rss", "rsc", "rsc_before_stop", "shape")] == [
            depth.rss, depth.rsc, depth.rsc_before_stop, depth.shape
        ]  # fmt: skip
        assert row["low"] < row["best"] < row["high"]
        assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert set(depth_table(table, Rules(delta=1))["wanted"]) == {None, "4, 6"}


def test_questions_that_differ_by_k_and_a_missing_closed_book_are_said(snapshot: Snapshot):
    table = curve_table(answered(snapshot, LAB, BOOK), "f1")
    fewer = table.with_columns(queries=pl.col("queries") - pl.col("k"))
    closed = table.with_columns(k=pl.max_horizontal("k", 1))
    assert [bool(sections.selection(rows)) for rows in (table, fewer, closed)] == [False, True, True]
    for rows, expect in ((table, False), (table.filter(pl.col("mode") != "none"), True)):
        said = sections.caveats(depth_table(rows, Rules()), *Rules())
        assert bool(said["no closed book"]) == expect


def test_what_answers_took(snapshot: Snapshot):
    table = curve_table(answered(snapshot, LAB, BOOK), "f1")
    (at,) = table.filter(name="dense", label="steady", k=20, mode="top_k").rows(named=True)
    assert (at["tokens"], at["counted"], at["truncated"], at["answers"]) == (2000, MEASURED, 40, 40)
    assert at["usd_per_1k"] == pytest.approx(0.2)


@pytest.mark.parametrize("need", ["any", "all"])
def test_parts_by_what_was_found(snapshot: Snapshot, need: str):
    found = answered(snapshot, LAB, BOOK)
    rows = slice_table(snapshot, LAB, found, scorer="f1", run_id="sparse", need=need).filter(label="steady")
    value = {
        (row["part"], row["mode"], row["k"]): (row["value"], row["queries"])
        for row in rows.iter_rows(named=True)
    }
    assert value[WITH, "top_k", 5] == (pytest.approx(60.0), 20)
    assert value[WITH, "gold_only", 5] == (pytest.approx(90.0), 20)
    assert value[WITH, "none", 5] == (pytest.approx(20.0), 20)
    assert (WITH, "top_k", 2) not in value  # the gold passage comes at rank 4
    assert value[WITHOUT, "top_k", 2] == (pytest.approx(10.0), 40)
    assert value[EVERY, "top_k", 5] == (pytest.approx(35.0), 40)
    assert [panel["text"] for panel in charts.by_part(rows, [WITH, WITHOUT])["layout"]["annotations"]][
        :2
    ] == [WITH, WITHOUT]


def test_means_without_answers_make_curves_without_intervals(tmp_path: Path):
    made = Lab().run("published")
    for k, value in ((0, 30.0), (1, 40.0), (20, 50.0)):
        key = {"run_id": "published", "reader": "flan", "mode": "top_k" if k else "none", "k": k, "pass": 1}
        made._rows["answer_scores"].append(
            {**key, "scorer": "exact_match", "value": value, "scale": "0-100", "n": 9}
        )
    data = lab(tmp_path, made)
    found = answered(data, Scope("lab"), BOOK)
    assert found.scorers == ("exact_match",)
    (row,) = depth_table(curve_table(found, "exact_match"), Rules()).rows(named=True)
    assert (row["k_star"], row["best"], row["low"], row["gain"], row["queries"]) == (20, 50.0, None, 20.0, 9)
    assert (row["rss"], row["wanted"]) == (None, "15, 25")
    rows = slice_table(data, Scope("lab"), found, scorer="exact_match", run_id="published")
    assert rows["part"].unique().to_list() == [EVERY]
    assert "50.0 at k = 20" in sections.of_parts(rows)[0]


def test_prompts_and_temperatures_that_differ_are_named_and_unknown_modes_read(tmp_path: Path):
    made = Lab().ask({"q1": "?"}).hold({"p": "four words are here"}).run("r", final={"q1": ["p"]})
    made.answer("r", {"q1": 0.5}, k=1, mode=None, reader=None).answer(
        "r", {"q1": 0.2}, k=0, mode=None, reader=None
    )
    for heat in (0.0, 0.7):
        made.answer("r", {"q1": 0.5}, k=1, reader="m", prompt="short", temperature=heat)
    data = lab(tmp_path, made)
    found = answered(data, Scope("lab"), BOOK)
    table = with_sent(curve_table(found, "f1"), data, found, BOOK)
    assert sorted(set(table["label"])) == [
        "m · short · T = 0.0", "m · short · T = 0.7", "reader unknown · prompt unknown · T = ?"
    ]  # fmt: skip
    unknown = table.filter(pl.col("reader").is_null()).select("mode", "k", "value", "gain")
    assert unknown.rows() == [("none", 0, 20.0, None), ("top_k", 1, 50.0, 30.0)]
    assert table.filter(mode="top_k")["tokens"].null_count() == 0
    assert MEASURED not in table["counted"].to_list()


def test_a_chart_has_a_curve_per_reader_and_one_legend(snapshot: Snapshot):
    table = curve_table(answered(snapshot, LAB, BOOK), "f1")
    depths = depth_table(table, Rules())
    colours = {"steady": "#0072B2", "fickle": "#009E73"}
    figure = charts.by_depth(table, depths, colours, panel="name", line="label", x="tokens")
    listed = [trace.name for trace in figure.data if trace.showlegend]
    assert sorted(listed) == ["closed book", "fickle", "k*", "steady"]
    curves = [trace for trace in figure.data if trace.name == "steady"]
    assert [list(trace.x) for trace in curves] == [[100, 200, 500, 1000, 2000]] * 2


@pytest.mark.parametrize(
    ("counts", "said"), [((20, 20), "scores at best 80.0"), ((12, 20), "scores 60.0 with gold")]
)
def test_a_best_k_is_said_of_the_same_questions_alone(counts: tuple[int, int], said: str):
    figures = {"label": "r", "low": None, "high": None, "n": 1}
    rows = pl.DataFrame(
        {**figures, "part": part, "mode": "top_k", "k": k, "queries": n, "value": value}
        for part, values in ((WITH, (80.0, 60.0)), (WITHOUT, (5.0, 9.0)))
        for k, n, value in zip((1, 5), counts, values, strict=True)
    )
    sentence, _ = sections.of_parts(rows)
    assert said in sentence
    assert ("at k = 1 " in sentence) == (counts[0] == counts[1])
