from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Quality, Scope
from core.store import Store
from core.tables import frame
from core.views import text
from core.views.golden import charts, data, sections, soundness
from tests.stores import Lab
from tests.views.made import AT_10, DEMO, LAB, PAPER, table


def judged(rows: dict[str, dict[str, int]], golden_set_id: str = "gold") -> pl.DataFrame:
    return frame(
        "judgements",
        [
            {"golden_set_id": golden_set_id, "query_id": query, "passage_id": passage, "grade": grade}
            for query, passages in rows.items()
            for passage, grade in passages.items()
        ],
    )


def test_the_mix_of_grades():
    queries = soundness.per_query(judged({"q1": {"a": 5, "b": 3, "c": 3}, "q2": {"a": 4}}))
    assert queries.rows() == [("q1", 3, 1, 0, 2, 0, 0, False), ("q2", 1, 0, 1, 0, 0, 0, True)]
    mix = {row["grade"]: row for row in soundness.summary(queries).iter_rows(named=True)}
    assert mix["3"] == {
        "grade": "3", "total": 2, "share": 0.5, "median": 1.0, "mean": 1.0, "most": 2,
        "prevalence": 1 / 3, "present": 0.5,
    }  # fmt: skip
    assert (mix["all"]["total"], mix["all"]["median"], mix["all"]["prevalence"]) == (4, 2.0, 1.0)
    good = mix["4+5"]  # the median of 1 of 3 and 1 of 1
    assert (good["total"], good["mean"], good["present"]) == (2, 1.0, 1.0)
    assert good["prevalence"] == pytest.approx(2 / 3)


def test_copies_are_found_whatever_their_case_and_blanks():
    texts = {"a": "One  text", "b": "one text", "c": "another", "d": " ", "e": "  "}
    rows = [{"collection_id": "c", "passage_id": key, "text": text} for key, text in texts.items()]
    copies = soundness.duplicates(frame("passages", rows))
    assert copies.select("group", "passage_id").rows() == [("a", "a"), ("a", "b")]
    apart = soundness.graded_apart(
        copies, judged({"q1": {"a": 5, "b": 2}, "q2": {"a": 3, "b": 3}, "q3": {"a": 1}})
    )
    assert apart.rows() == [("q1", "a", ["a", "b"], [5, 2], 3)]


def test_other_golden_sets_that_disagree():
    mine = judged({"q1": {"a": 5, "b": 2}, "q2": {"a": 1}})
    others = judged({"q1": {"a": 5, "b": 4}, "q2": {"a": 2}, "q3": {"a": 2}}, "second")
    assert soundness.disagreements(mine, others).rows() == [
        ("q1", "b", 2, "second", 4, 2),
        ("q2", "a", 1, "second", 2, 1),
    ]


def test_leaving_a_run_out_takes_what_only_it_brought(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5, "b": 5, "c": 1}, "q2": {"a": 5}})
    lab.run("first", final={"q1": ["a", "b"], "q2": ["a"]})
    lab.run("second", final={"q1": ["a", "c"]}, candidates={"q1": ["a", "c", "d"]})
    snapshot = lab.write(tmp_path / "store").read()
    rows = {row["run_id"]: row for row in data.pool_bias(snapshot, LAB, Quality("RA-nWG", 2)).to_dicts()}
    # first alone has b of q1 and a of q2: left are a of q1 (1 of 1) and no judgement at all for q2.
    assert rows["first"] == {
        "name": "first", "run_id": "first", "unique": 2, "score": 1.0, "without": 1.0, "bias": 0.0
    }  # fmt: skip
    # second alone has c, of grade 1, which weighs nothing: a of an ideal of two, and nothing for q2.
    assert (rows["second"]["unique"], rows["second"]["bias"]) == (1, 0.0)
    assert rows["second"]["score"] == pytest.approx(0.25)


def test_a_run_that_lives_on_its_own_judgements_shows_it(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5, "b": 5}})
    lab.run("own", final={"q1": ["b", "a"]}).run("other", final={"q1": ["a", "x"]})
    snapshot = lab.write(tmp_path / "store").read()
    first = data.pool_bias(snapshot, LAB, Quality("Precision4+", 2)).row(0, named=True)
    assert (first["name"], first["unique"], first["bias"]) == ("own", 1, 0.5)


def test_variants_of_one_system_are_left_out_together(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5, "b": 5}})
    for name, index in (("flat", "flat"), ("graph", "hnsw-f32")):
        lab.run(name, spec={"sparse": "bm25", "index": index}, final={"q1": ["b", "a"]})
    lab.run("other", spec={"embedder": "e"}, final={"q1": ["a", "x"]})
    snapshot = lab.write(tmp_path / "store").read()
    rows = data.pool_bias(snapshot, LAB, Quality("Precision4+", 2)).select("run_id", "unique", "bias").rows()
    assert rows == [("flat", 1, 0.5), ("graph", 1, 0.5), ("other", 0, 0.0)]
    alone = Scope("lab", "gold", ("flat", "graph"))
    assert data.pool_bias(snapshot, alone, Quality("Precision4+", 2))["unique"].to_list() == [0, 0]


def test_the_queries_behind_each_weakness(tmp_path: Path):
    lab = Lab().hold({"a": "same", "b": "same", "c": "c"})
    lab.judge({"q1": {"a": 5, "b": 3}, "q2": {"c": 4}, "q3": {"a": 2}}).judge({"q2": {"c": 2}}, "second")
    lab.run("one", final={"q1": ["a", "x"], "q2": ["x", "y"], "q3": ["a"]})
    rows = data.every_query(lab.write(tmp_path / "store").read(), LAB, Quality("RA-nWG", 2))
    found = {word: rows.filter(kept)["query_id"].to_list() for word, kept in data.FILTERS.items()}
    assert found == {
        "all": ["q1", "q2", "q3"],
        "nothing good": ["q3"],
        "no grade 5": ["q2", "q3"],
        "one grade 5": ["q1"],
        "half unjudged": ["q1", "q2"],
        "copies apart": ["q1"],
        "judges differ": ["q2"],
    }


@pytest.mark.slow
def test_too_few_or_too_many_runs_give_no_bias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lab = Lab().judge({"q1": {"a": 5}}).run("one", final={"q1": ["a"]})
    snapshot = lab.write(tmp_path / "store").read()
    assert data.pool_bias(snapshot, LAB, AT_10).is_empty()
    lab.run("two", final={"q1": ["a"]})
    snapshot = lab.write(tmp_path / "more").read()
    assert data.pool_bias(snapshot, LAB, AT_10).height == 2
    monkeypatch.setattr(soundness, "MAX_RUNS", 1)
    assert data.pool_bias(snapshot, LAB, AT_10).is_empty()


@pytest.mark.slow
def test_the_demo_page(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    found = data.judged(snapshot, DEMO)
    assert found is not None
    assert found.queries["judged"].sum() == snapshot.judgements("python-docs-graded").height
    rows = table(snapshot, DEMO)
    sentence, _ = sections.summary(found, rows, AT_10)
    assert sentence.startswith(f"{found.queries['judged'].sum():,} judgements of 64 queries")
    bounds = data.with_bounds(rows)
    assert bounds.height == rows.height
    assert bounds.select((pl.col("hole_low") <= pl.col("quality")).all()).item()
    assert bounds.select((pl.col("quality") <= pl.col("hole_high") + 1e-12).all()).item()
    assert len(charts.bounds_figure(bounds, AT_10).data[0].x) == rows.height
    assert list(charts.bounds_figure(bounds, AT_10, bounds["name"][3]).layout.yaxis.ticktext)[3][0] == "▸"
    could, cannot = (sections.answer(found, doubt, rows, AT_10) for doubt in ("2 stacks", None))
    gaps = f"{text.percent(rows['hole'].median())} of Top-10 is unjudged"
    assert could == f"{gaps} and could change the choice (RA-nWG@10, n = 64)."
    assert cannot == f"{gaps}, yet the choice would stand (RA-nWG@10, n = 64)."
    assert sections.answer(found, None, rows.clear(), AT_10).startswith("1")
    cards = sections.cards(found)
    assert cards[0][1] == f"{found.mix['mean'][-1]:.1f}"
    assert cards[1][1] == text.percent(
        found.mix.row(by_predicate=pl.col("grade") == "4+5", named=True)["share"]
    )
    assert sentence.startswith(f"{cards[0][2]}, {cards[0][1]} per query")
    assert [box.name for box in charts.mix_figure(found).data] == [f"grade {grade}" for grade in range(1, 6)]


def test_without_judgements_it_says_so(published_store: Path):
    snapshot = Store.open(published_store).read()
    assert data.judged(snapshot, PAPER) is None
    assert sections.summary(None, table(snapshot, PAPER), AT_10) == sections.NOTHING
    assert data.pool_bias(snapshot, Scope("clq-paper"), AT_10).is_empty()
