"""Answers whose grade is built from what was retrieved, so that the right correlations are known."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from core.analysis.workspace.scope import Scope
from core.answers import parted
from core.importers import Options, Upload, load
from core.records import Batch
from core.store import Snapshot, Store
from core.views.measures import charts, words
from core.views.measures import outcome as page
from core.views.measures.outcome import MEASURES, samples
from tests.stores import Lab
from tests.views.made import LAB

RR = Scope("rr", "rr-relevance")
Grade = Callable[[int, int, int], float]


def built(path: Path, grade: Grade, *, queries: int = 60, seed: int = 5) -> Snapshot:
    """A store where the answer's grade follows from (positives in Top-K, K, Np)."""
    rng = np.random.default_rng(seed)
    graded = []
    for number in range(queries):
        relevant, pool = int(rng.integers(2, 7)), 20
        for embedder in ("AM", "QM"):
            rank = rng.permutation(pool).tolist()
            for k in (2, 4, 8):
                found = sum(index < relevant for index in rank[:k])
                graded.append(
                    {"id": f"A-{number}", "E": embedder, "Nc": pool, "Np": relevant, "K": k, "rank": rank[:k],
                     "answer_topK": "…", "grade": grade(found, k, relevant)}
                )  # fmt: skip
    content = "".join(json.dumps(sample) + "\n" for sample in graded).encode()
    made = load([Upload("graded.jsonl", content)], Options(collection_id="rr"))
    store = Store.open(path)
    with store.write("import") as writer:
        writer.add(made.batch)
    return store.read()


@pytest.fixture(scope="module")
def by_recall(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The grade is the recall: F at alpha = 0, so its best alpha is 0 and its correlation there is 1."""
    return built(tmp_path_factory.mktemp("recall") / "store", lambda found, _, relevant: found / relevant)


def test_every_measure_stands_beside_the_grade(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    assert found.rows.height == 60 * 2 * 3
    assert (found.scale, found.left_out) == ("1-5", {})
    rows = found.rows
    assert rows["R"].to_list() == pytest.approx(rows["grade"].to_list())
    assert (rows["k"] < rows["relevant"]).to_list() == (rows["width"] == "narrow").to_list()
    assert rows["ratio"].to_list() == [round(k / np_, 1) for k, np_ in rows.select("k", "relevant").rows()]
    precision = rows["grade"] * rows["relevant"] / rows["k"]
    assert rows["P"].to_list() == pytest.approx(precision.to_list())


def test_the_known_correlation_is_found(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    table = page.correlations(found, "spearman", pl.lit(True))
    values = {row["measure"]: row for row in table.iter_rows(named=True)}
    assert set(values) == set(MEASURES)
    assert values["R"]["value"] == pytest.approx(1.0)
    assert table["value"].to_list() == sorted(table["value"], reverse=True)
    expected = stats.spearmanr(found.rows["T"], found.rows["grade"]).statistic
    assert values["T"]["value"] == pytest.approx(expected)
    assert values["T"]["low"] < expected < values["T"]["high"]
    assert (values["T"]["n"], values["T"]["queries"]) == (360, 60)
    sentence, more = words.answer(found, table, "spearman", page.ALL)
    assert sentence == "R predicts answer grades best: spearman 1.00 [1.00, 1.00], n = 360."
    assert {label: told for label, told in more.items() if told} == {
        "questions": "Answers to 60 queries.",
        "scale of grades": "Grades are on the scale 1-5.",
    }


def test_alpha_curves_peak_where_the_grade_was_built(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    curves = {curve.name: curve.best for curve in page.curves(found, "spearman", pl.lit(True))}
    assert (curves["F"].best, curves["F"].in_sample) == (0.0, pytest.approx(1.0))
    assert curves["F"].cross_validated == pytest.approx(1.0)
    table = page.curve_table([page.Curve("F", curves["F"])])
    assert table.row(0) == (0.0, pytest.approx(1.0))
    said = words.in_words(page.Curve("F", curves["F"]))
    assert said == "F: best at alpha = 0 with 1.000 on the same answers (optimistic), 1.000 across folds."


@pytest.mark.slow
def test_the_headline_is_the_tables_best_row_and_knows_the_chosen_alpha(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    keep = found.rows["k"] > 0
    curves = page.curves(found, "spearman", pl.lit(True))
    table = page.correlations(found, "spearman", pl.lit(True), curves)
    rows = {row["measure"]: row for row in table.iter_rows(named=True)}
    assert len(rows) == len(MEASURES) + 2
    assert rows["F, alpha chosen"]["value"] == pytest.approx(1.0)
    assert rows["F"]["value"] < 0.99
    assert rows["F, alpha chosen"]["n"] == keep.sum()
    assert rows["T, alpha chosen"]["value"] == curves[1].best.cross_validated
    sentence, _ = words.answer(found, table, "spearman", page.ALL)
    assert sentence.startswith(table["measure"][0])


def test_the_reference_is_a_choice(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    keys = ("name", "ratio")
    made = {
        pair: page.differences(found, "spearman", pl.lit(True), pair, 10).sort(keys)["difference"].to_numpy()
        for pair in (("T", "nDCG"), ("nDCG", "T"), ("T_u", "T_u"))
    }
    np.testing.assert_allclose(made["T", "nDCG"], -made["nDCG", "T"])
    assert np.nanmax(np.abs(made["T_u", "T_u"])) == 0


def test_the_spread_of_grades_is_counted_by_run_and_ratio(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    least = 12
    table = page.distribution(found, pl.lit(True), least)
    counts = found.rows.group_by("name", "ratio").len().filter(pl.col("len") >= least)
    assert table.group_by("name", "ratio").agg(pl.col("n").sum()).sort("name", "ratio").rows() == (
        counts.sort("name", "ratio").rows()
    )
    np.testing.assert_allclose(table.group_by("name", "ratio").agg(pl.col("share").sum())["share"], 1.0)
    best = table.filter(pl.col("place") == table["place"].max()).row(0, named=True)
    of_cell = found.rows.filter((pl.col("name") == best["name"]) & (pl.col("ratio") == best["ratio"]))
    assert (of_cell["grade"] >= 0.8).sum() == best["n"]  # recall in five ranges, the last from 0.8 to 1
    assert charts.distribution_figure(table).data
    assert page.distribution(found, pl.lit(True), 10_000).is_empty()


def test_segments_and_cells(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    offered = page.segments(found.rows)
    assert list(offered)[:3] == [page.ALL, "narrow (K < Np)", "wide (K ≥ Np)"]
    sizes = [found.rows.filter(offered[name]).height for name in list(offered)[:3]]
    assert sizes[1] + sizes[2] == sizes[0]
    cells = page.differences(found, "spearman", offered[page.ALL], ("P", "F"), 10)
    assert cells.height
    assert cells["n"].min() >= 10
    for row in cells.iter_rows(named=True):
        inside = found.rows.filter((pl.col("name") == row["name"]) & (pl.col("ratio") == row["ratio"]))
        if row["difference"] is not None:
            by_hand = [stats.spearmanr(inside[name], inside["grade"]).statistic for name in ("P", "F")]
            assert row["difference"] == pytest.approx(by_hand[0] - by_hand[1])
    assert page.differences(found, "spearman", offered[page.ALL], ("P", "F"), 10_000).is_empty()
    assert charts.heatmap(cells, "P", "F").data[0].z.size
    assert charts.bars(page.correlations(found, "pearson", pl.lit(True)), "pearson").data[0].x.size == 10


def test_grades_without_spread_say_so(tmp_path: Path):
    found = samples(built(tmp_path / "store", lambda *_: 3.0, queries=3), RR)
    assert found is not None
    table = page.correlations(found, "kendall-b", pl.lit(True))
    assert table["value"].null_count() == len(MEASURES)
    assert set(table["note"]) == {"the outcome has one value only"}
    assert words.answer(found, table, "kendall-b", page.ALL)[0].startswith(
        "No measure has a defined correlation"
    )
    assert words.in_words(page.curves(found, "kendall-b", pl.lit(True))[0]) == "F: not defined."


def test_without_answers_there_is_nothing(tmp_path: Path):
    snapshot = Lab().judge({"q1": {"a": 5}}).run("r", final={"q1": ["a"]}).write(tmp_path / "store").read()
    assert samples(snapshot, LAB) is None
    assert samples(snapshot, Scope("lab")) is None


@pytest.mark.slow
def test_an_answer_whose_ranking_is_not_there_is_left_out(tmp_path: Path):
    """q2 is not ranked: no measure is known; q3 was timed and nothing was found: every measure is 0."""
    lab = Lab().judge({f"q{number}": {"p": 5} for number in range(1, 4)})
    store = lab.run("r", final={"q1": ["p"]}, ms={"sparse": [1.0]}).run(
        "s", final={"q1": ["p"]}, ms={"sparse": [1.0] * 3}
    )
    rows = [
        {"run_id": run_id, "query_id": query, "k": 1, "text": "", "grade": 3.0, "scale": "1-5"}
        for run_id, query in (("r", "q1"), ("r", "q2"), ("s", "q3"))
    ]
    made = store.write(tmp_path / "store")
    with made.write("answers") as writer:
        writer.add(Batch(frames=parted(pl.DataFrame(rows))))
    found = samples(made.read(), LAB)
    assert found is not None
    assert found.rows.select("run_id", "query_id", "R").rows() == [("r", "q1", 1.0), ("s", "q3", 0.0)]
    assert found.left_out == {"query that the run does not rank": 1}


def test_samples_are_counted_as_the_tables_of_the_paper_do(by_recall: Snapshot):
    found = samples(by_recall, RR)
    assert found is not None
    graded, ranked = (of(found, pl.lit(True)) for of in (page.graded_samples, page.ranked_samples))
    assert graded.select("ranked", "n").rows() == [(60, 180), (60, 180)]
    assert graded.select(pl.col("narrow") + pl.col("wide")).to_series().to_list() == [180, 180]
    narrow = found.rows.filter(pl.col("k") < pl.col("relevant"))
    assert graded["narrow"].sum() == narrow.height > 0
    assert ranked["relevant"].unique().sort().to_list() == [2, 3, 4, 5, 6]
    assert set(ranked.select("k_from", "k_to").rows()) == {(2, 8)}
    assert (ranked["ranked"].sum(), ranked["n"].sum()) == (120, 360)
    assert set(ranked["candidates"]) == {8}  # what the file says of a ranking: its first passages
    only = page.graded_samples(found, pl.col("width") == "narrow")
    assert only["wide"].to_list() == [0, 0]
