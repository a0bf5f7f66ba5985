"""Cut-offs and what is sent, against counting by hand."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.prompt_tokens import tokens_sent, vocabulary
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.stacks import runs_in
from core.pipeline.ranking.cut import CUTS, keep
from core.providers.tokens import counter
from core.store import Snapshot, Store
from core.views import theme
from core.views.curves import page as curves
from core.views.curves.cuts import (
    TUNED,
    Cuts,
    ListedCuts,
    cuts,
    cuts_answer,
    details,
    figure,
    printed,
    relatives,
    tuned,
)
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, DEMO, LAB

O200K = "o200k_base"


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> Snapshot:
    return Store.open(demo_store).read()


def one_run(demo: Snapshot) -> str:
    return str(runs_in(demo, DEMO).filter(pl.col("mode") == "hybrid")["run_id"][0])


def by_hand(demo: Snapshot, run_id: str):
    """Query → (passage ids, scores, grades) of the final ranking, for the judged queries."""
    judged = {}
    for query, passage, grade in (
        demo.judgements(DEMO.golden_set_id).select("query_id", "passage_id", "grade").iter_rows()
    ):
        judged.setdefault(query, {})[passage] = grade
    ranked = demo.rankings([run_id], stage="final").sort("query_id", "rank")
    made = {}
    for (query,), rows in ranked.group_by("query_id"):
        if query in judged and any(grade >= 4 for grade in judged[query].values()):
            made[query] = (rows["passage_id"].to_list(), rows["score"].to_numpy(), judged[query])
    return made


def test_the_tuned_cut_is_chosen_without_the_queries_that_it_cuts():
    """Most queries are best cut at 1, where the last two alone would be at 3."""
    grades = np.array([[5, 1, 1, 1]] * 10 + [[5, 5, 5, 1]] * 2, dtype=np.int8)
    scores = np.tile([4.0, 3.0, 2.0, 1.0], (12, 1))
    relevant = (grades >= 4).sum(axis=1)
    lists = ListedCuts(tuple(map(str, range(12))), scores, np.full(12, 4), grades, relevant, 0)
    kept = tuned(lists)
    assert kept.tolist() == [1] * 12
    alone = np.minimum(np.arange(1, 5)[:, None], np.full(12, 4))
    assert lists.report(alone).f1[2, -1] == 1.0, "what the last query would take for itself"
    few = ListedCuts(("a",), scores[:1], np.array([4]), grades[:1], relevant[:1], 0)
    assert tuned(few).tolist() == [1]


def test_the_table_of_rerankers_stands_beside_the_thesis(demo: Snapshot):
    rows = printed()
    one = rows.row(by_predicate=(pl.col("way") == "Max Gap") & (pl.col("chunking") == "page-split")
                   & (pl.col("reranker") == "GTE ML Reranker Base"), named=True)  # fmt: skip
    assert (one["f1"], one["recall"], one["items_passed"]) == (0.646, 0.797, 11.87)
    assert rows.height == 7 * 4 * 2
    table = runs_in(demo, DEMO)
    run_id = one_run(demo)
    alike = relatives(table, run_id)
    assert run_id in alike["run_id"].to_list()
    assert alike.select("reranker", "chunking").rows()[0] == ("none", "as the collection has them")
    specs = [{"mode": "dense", "dim": 2, "reranker": name, "chunker": {"method": "fixed", "size": size}}
             for name, size in (("none", 200), ("bm25", 200), ("bm25", 400))]  # fmt: skip
    made = pl.DataFrame({"run_id": ["a", "b", "c"], "spec": [json.dumps(spec) for spec in specs]})
    assert relatives(made, "a").rows() == [
        ("b", "bm25", "fixed 200"), ("a", "none", "fixed 200"), ("c", "bm25", "fixed 400"),
    ]  # fmt: skip


@pytest.mark.slow
def test_cuts_equal_counting_by_hand(demo: Snapshot):
    run_id = one_run(demo)
    found = cuts(demo, DEMO, run_id, counts=O200K, fixed=10)
    rows = {row["way"]: row for row in found.rows.iter_rows(named=True)}
    assert set(CUTS) < set(rows)
    hand = by_hand(demo, run_id)
    texts = dict(demo.passages(DEMO.collection_id).select("passage_id", "text").iter_rows())
    count = counter(O200K).count
    for way in (*CUTS, "K = 5", "everything"):
        figures = []
        for ids, scores, judged in hand.values():
            size = keep({"method": way}, scores) if way in CUTS else min(5, len(ids))
            size = len(ids) if way == "everything" else size
            good = sum(judged.get(passage, 0) >= 4 for passage in ids[:size])
            total = sum(grade >= 4 for grade in judged.values())
            precision, recall = good / size, good / total
            f1 = 0.0 if not good else 2 * precision * recall / (precision + recall)
            figures.append(
                (precision, recall, f1, size, sum(count(texts[passage]) for passage in ids[:size]))
            )
        row = rows[way]
        assert tuple(row[name] for name in ("precision", "recall", "f1", "kept", "tokens")) == pytest.approx(
            np.mean(figures, axis=0)
        )
        assert row["n"] == len(hand)
        assert row["f1_low"] <= row["f1"] <= row["f1_high"]
        assert row["gain"] == pytest.approx(
            row["f1"] - rows["everything"]["f1"]
        )  # no ranking is over 10 long
        assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    best = found.rows.filter("dynamic", pl.col("way") != TUNED).sort("f1", descending=True).row(0, named=True)
    assert f"Best way: {best['way']}," in details(found, AT_10)
    assert len(figure(found.rows).data) == 1 + len(CUTS) + 1  # and the tuned one


def told(**columns):
    """Ways with what their F1 is, over the first 10 and over the best fixed depth."""
    rows = pl.DataFrame({"n": [64] * len(columns["way"]), "kept": [3.0] * len(columns["way"]), **columns})
    return Cuts(rows.with_columns(dynamic=pl.col("way").is_in(list(CUTS))), "")


ALONE = {"gain": [0.0, 0.05], "gain_low": [0.0, -0.01], "gain_high": [0.0, 0.1]}


@pytest.mark.parametrize(
    ("low", "high", "most", "verdict"),
    [
        (0.01, 0.1, 0.09, "beats"),
        (-0.1, -0.01, -0.02, "loses to"),
        (-0.1, 0.1, 0.05, "does not measurably beat"),
        (-0.02, 0.011, 0.01, "only matches"),
        (-0.02, 0.012, 0.0101, "does not measurably beat"),
        (None, None, None, "does not measurably beat"),  # too few queries
    ],
)
def test_what_does_as_well_follows_from_the_interval_of_the_pair(low, high, most, verdict: str):
    """Between a way of each query's own and the best depth for all, whatever either is over a third."""
    lead = {"lead": [0.0, 0.03], "lead_low": [0.0, low], "lead_high": [0.0, high], "lead_most": [0.0, most]}
    made = told(way=["K = 10", "otsu"], f1=[0.25, 0.28], **ALONE, **lead)
    assert (
        cuts_answer(made, 10) == f"Cutting query by query {verdict} K = 10: F1 0.280 against 0.250 (n = 64)."
    )
    assert "for all" not in details(made, AT_10)


@pytest.mark.parametrize(
    ("low", "real", "beside"),
    [(0.02, "beats", True), (-0.01, "does not measurably beat", False)],
)
def test_a_better_depth_for_all_is_told_with_its_own_interval_and_what_decision_does(low, real, beside: bool):
    lead = {"lead": [0.0, -0.06, -0.01], "lead_low": [0.0, -0.09, -0.05], "lead_high": [0.0, -0.02, 0.04]}
    made = told(
        way=["K = 5", "K = 10", "otsu"], f1=[0.31, 0.25, 0.30], lead_most=[0.0, -0.02, 0.03],
        gain=[0.06, 0.0, 0.05], gain_low=[low, 0.0, -0.01], gain_high=[0.09, 0.0, 0.1], **lead,
    )  # fmt: skip
    said = cuts_answer(made, 10)
    assert said.startswith("Cutting query by query does not measurably beat K = 5: F1")
    more = details(made, AT_10)
    assert f"K = 5 for all {real} the first 10: +0.060, 95 % CI" in more
    assert ("set the cutoff to 5" in more) == beside
    assert "for all" not in details(made, Quality("RA-nWG", 5))


def test_a_way_that_is_another_differs_from_it_by_nothing(demo: Snapshot):
    """An interval of a difference of 0 everywhere is no interval of a share."""
    rows = cuts(demo, DEMO, one_run(demo), counts=O200K, fixed=10).rows
    same = rows.filter(pl.col("gain") == 0, ~pl.col("dynamic"))
    assert same.select("gain_low", "gain_high").rows() == [(0.0, 0.0)] * same.height
    assert same.height


def test_what_cannot_be_cut_says_why(tmp_path: Path, demo: Snapshot):
    lab = Lab().judge({"q1": {"a": 5}}).run("r", final={"q1": ["a", "b"]})
    snapshot = lab.write(tmp_path / "s").read()
    made = cuts(snapshot, LAB, "r", counts=O200K, fixed=10)
    assert made.rows.is_empty() == bool(made.left_out)
    none = cuts(demo, Scope(DEMO.collection_id), one_run(demo), counts=O200K, fixed=10)
    assert (none.rows.height, cuts_answer(none, 10)) == (0, none.left_out)
    assert none.left_out


@pytest.mark.parametrize(
    ("generator", "counts"), [(None, O200K), ("gpt-5", O200K), ("nobody", O200K), ("claude", "estimate")]
)
def test_the_vocabulary_of_a_generator(generator: str | None, counts: str):
    assert (vocabulary(generator, BOOK) == counts) or generator == "claude"


@pytest.mark.slow
def test_tokens_sent_equal_counting_by_hand(demo: Snapshot):
    runs = runs_in(demo, DEMO).head(2)
    table = tokens_sent(demo, runs, "gpt-5", BOOK, depth=20)
    price = BOOK.find("gpt-5", "input_tokens").each
    texts = dict(demo.passages(DEMO.collection_id).select("passage_id", "text").iter_rows())
    count = counter(O200K).count
    for run_id, name in runs.select("run_id", "name").iter_rows():
        ranked = demo.rankings([run_id], stage="final").sort("query_id", "rank")
        lists = [rows["passage_id"].to_list() for _, rows in ranked.group_by("query_id", maintain_order=True)]
        for k in (1, 7, 10):
            sums = [sum(count(texts[passage]) for passage in ids[:k]) for ids in lists]
            row = table.row(by_predicate=(pl.col("name") == name) & (pl.col("k") == k), named=True)
            assert row["tokens"] == pytest.approx(np.mean(sums))
            assert row["tokens_low"] <= row["tokens"] <= row["tokens_high"]
            assert row["usd_per_1k"] == pytest.approx(1000 * np.mean(sums) * price)
            assert row["counted"] == O200K


def test_a_passage_without_text_makes_its_prompt_unknown(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}}).hold({"a": "two words"}).run("r", final={"q1": ["a", "missing"]})
    snapshot = lab.write(tmp_path / "s").read()
    table = tokens_sent(snapshot, runs_in(snapshot, LAB), None, BOOK, depth=5).sort("k")
    assert table["tokens"].to_list() == [2.0, None]
    assert table["usd_per_1k"].to_list() == [None, None]


def test_curves_against_tokens_leave_out_what_is_not_known(demo: Snapshot):
    runs = runs_in(demo, DEMO).head(2)
    quality = Quality("RA-nWG", 10)
    rows = curves.curve_table(demo, runs, DEMO.golden_set_id, quality.measure.at(None))
    joined = curves.against(rows, tokens_sent(demo, runs.head(1), None, BOOK, depth=curves.MAX_DEPTH))
    assert joined.height == rows.height
    names = runs["name"].to_list()
    view = curves.curves(joined, quality, theme.colours_for(names), "tokens")
    drawn = {trace.legendgroup for trace in view.main.data if trace.legendgroup}
    assert len(drawn) == 1
    line = next(trace for trace in view.main.data if trace.mode and trace.mode.startswith("lines"))
    tokens = joined.filter((pl.col("name") == names[0]) & (pl.col("measure") == "RA-nWG"))["tokens"]
    assert list(line.x) == pytest.approx(tokens.to_list())
    assert view.answer == curves.curves(rows, quality, theme.colours_for(names)).answer
