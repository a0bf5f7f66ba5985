from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError, UnknownNameError
from core.stats.judges import Agreement
from core.store import Store
from core.views.golden import charts, judges
from core.views.golden.judges import POLICIES, judged, merge, write_merged
from tests.stores import Lab

ANNE = {"q1": {"a": 5, "b": 1, "c": 3}, "q2": {"a": 4}}
BEN = {"q1": {"a": 4, "b": 1, "d": 2}, "q2": {"a": 1}}
CLEO = {"q1": {"a": 4, "b": 2, "c": 4}, "q2": {"a": 4, "e": 5}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    lab = Lab()
    for name, grades in (("anne", ANNE), ("ben", BEN), ("cleo", CLEO)):
        lab.judge(grades, name)
    return lab.write(tmp_path_factory.mktemp("judges") / "store")


def grades(rows: pl.DataFrame) -> dict[tuple[str, str], int]:
    return {
        (query, passage): grade
        for query, passage, grade in rows.select("query_id", "passage_id", "grade").iter_rows()
    }


def test_agreement_of_every_two(store: Store):
    found = judged(store.read(), ["cleo", "anne", "ben"])
    assert found.names == ["anne", "ben", "cleo"]
    rows = judges.agreement(found)
    assert rows.select("first", "second", "n", "queries").rows() == [
        ("anne", "ben", 3, 2),
        ("anne", "cleo", 4, 2),
        ("ben", "cleo", 3, 2),
    ]
    assert rows["same"].to_list() == pytest.approx([1 / 3, 1 / 4, 1 / 3])
    overall = judges.alpha(found)
    assert overall.n == 4
    said = judges.agreed(overall)
    assert said.startswith("The judges do not agree enough to rely on: Krippendorff's alpha (ordinal) 0.")
    assert said.endswith(", n = 4.")
    assert judges.alike(rows, overall).endswith("passages of 2 queries.")
    two = judged(store.read(), ["anne", "ben"])
    pair, of_two = judges.agreement(two), judges.alpha(two)
    met = judges.met(two, 0, 1)
    assert judges.heading(pair, of_two, met) == "Two judges grade 33.3 % of 3 passages alike."
    assert judges.alike(pair, of_two).startswith(judges.agreed(of_two))
    figure = charts.pair_figure(two, 0, 1)
    assert figure.data[0].z.sum() == 3


def test_how_grades_met(store: Store):
    two = judged(store.read(), ["anne", "ben"])
    rows = judges.met(two, 0, 1)
    assert rows.height == 25
    assert rows.filter(pl.col("passages") > 0).select(
        "grade", "other_grade", "passages", "n", "share"
    ).rows() == [
        (1, 1, 1, 1, 1.0),
        (4, 1, 1, 1, 1.0),
        (5, 4, 1, 1, 1.0),
    ]
    assert rows.filter(grade=2)["share"].null_count() == 5
    shown = judges.met_shown(rows)
    assert shown.columns == ["grade", "n", "to_1", "to_2", "to_3", "to_4", "to_5"]
    assert shown.row(0)[:3] == (1, 1, "100 %")
    assert shown.row(1)[2:] == ("–",) * 5
    assert judges.rows_first(two, 1, 0) == (1, 0), "as many: as they were named"
    apart = Lab().judge({"q": {"a": 1}}, "x").judge({"q": {"b": 2}}, "y").write(store.path.parent / "apart")
    nothing = judged(apart.read(), ["x", "y"])
    assert judges.met(nothing, 0, 1)["passages"].sum() == 0


MERGED = {
    "latest": [4, 2, 4, 2, 4, 5],
    "majority": [4, 1, 3, 2, 4, 5],
    "mean": [4, 1, 3, 2, 3, 5],
}
PLACES = [("q1", "a"), ("q1", "b"), ("q1", "c"), ("q1", "d"), ("q2", "a"), ("q2", "e")]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_merged_golden_set(store: Store, policy: str):
    found = judged(store.read(), ["anne", "ben", "cleo"])
    batch = merge(found, policy, "Agreed on", 7)  # type: ignore[arg-type]
    (golden,) = batch.golden_sets
    rows = pl.DataFrame(batch.frames["judgements"])
    assert grades(rows) == dict(zip(PLACES, MERGED[policy], strict=True))
    assert (golden.golden_set_id, golden.name, golden.collection_id) == ("Agreed on", "Agreed on", "lab")
    assert golden.judge == "anne, ben, cleo"
    assert golden.mapping == "merged, grades 1-5 of: anne (1-5); ben (1-5); cleo (1-5)"
    for note in (
        f"Merged by {policy} (",
        "at revision 7",
        "4 passages judged by two or more, 4 of them",
        "2 by one",
    ):
        assert note in golden.notes
    by = {
        (query, passage): who
        for query, passage, who in rows.select("query_id", "passage_id", "judge").iter_rows()
    }
    assert by["q1", "c"] == "anne, cleo"
    assert rows["raw"].to_list() == rows["grade"].to_list()


@pytest.mark.parametrize(
    ("given", "mean"),
    [((3, 4), 3), ((4, 5), 4), ((1, 1), 1), ((1, 5), 3), ((2, 2, 3), 2), ((2, 3, 3), 3), ((1, 2, 3, 4), 2)],
)
def test_the_mean_rounds_halves_down(tmp_path: Path, given: tuple[int, ...], mean: int):
    lab = Lab()
    for place, grade in enumerate(given):
        lab.judge({"q": {"p": grade}}, f"j{place}")
    found = judged(lab.write(tmp_path / "store").read(), [f"j{place}" for place in range(len(given))])
    rows = merge(found, "mean", "x", 1).frames["judgements"].lazy().collect()
    assert rows["grade"].to_list() == [mean]


@pytest.mark.slow
def test_merging_writes_one_golden_set_in_one_revision(tmp_path: Path):
    store = (
        Lab().judge(ANNE, "anne").judge(BEN, "ben").run("r", final={"q1": ["a"]}).write(tmp_path / "store")
    )
    before = store.revision()
    golden = write_merged(store, ["anne", "ben"], "majority", "both")
    assert store.revision() == before + 1
    snapshot = store.read()
    assert snapshot.golden_sets()["golden_set_id"].to_list() == ["anne", "ben", "both"]
    assert grades(snapshot.judgements("both"))["q2", "a"] == 1
    assert grades(snapshot.judgements("anne")) == {
        (q, p): g for q, judged_ in ANNE.items() for p, g in judged_.items()
    }
    assert golden.golden_set_id == "both"
    last = snapshot.revisions().row(-1, named=True)
    assert last["action"] == "merge judgements"
    assert last["note"].startswith("both: Merged by majority")
    with pytest.raises(InputError, match="golden set 'both' already"):
        write_merged(store, ["anne", "ben"], "mean", "both")
    assert store.revision() == before + 1


@pytest.mark.slow
def test_what_cannot_be_compared_is_said(store: Store, tmp_path: Path):
    snapshot = store.read()
    with pytest.raises(InputError, match="1 golden set named"):
        judged(snapshot, ["anne"])
    with pytest.raises(UnknownNameError, match="ann"):
        judged(snapshot, ["anne", "ann"])
    with pytest.raises(InputError, match="needs a name"):
        merge(judged(snapshot, ["anne", "ben"]), "mean", " ", 1)
    with pytest.raises(UnknownNameError, match="policy"):
        merge(judged(snapshot, ["anne", "ben"]), "loudest", "x", 1)  # type: ignore[arg-type]
    other = Lab().judge(ANNE, "anne").judge({}, "empty").write(tmp_path / "store")
    with pytest.raises(InputError, match="no grades of passages"):
        judged(other.read(), ["anne", "empty"])
    with other.write("more") as writer:
        for each in ("c1", "c2"):
            lab = Lab(each).judge(BEN, f"ben-{each}")
            lab.write(tmp_path / each)
            from core.analysis.export import batch_of

            writer.add(batch_of(Store.open(tmp_path / each).read()))
    with pytest.raises(InputError, match="different collections: c1, c2"):
        judged(other.read(), ["ben-c1", "ben-c2"])


def test_judges_without_a_passage_in_common(tmp_path: Path):
    store = Lab().judge({"q": {"a": 1}}, "one").judge({"q": {"b": 1}}, "two").write(tmp_path / "store")
    found = judged(store.read(), ["one", "two"])
    assert judges.agreed(judges.alpha(found)).startswith("These golden sets have no")
    assert judges.agreement(found)["kappa"].to_list() == [None]
    assert merge(found, "majority", "x", 1).frames["judgements"].lazy().collect().height == 2


@pytest.mark.parametrize(
    ("value", "low", "verdict"),
    [
        (0.93, 0.9, "agree well"),
        (0.9, 0.5, "tentative"),  # too few passages to be sure
        (0.7, None, "tentative"),
        (0.5, 0.4, "do not agree enough"),
        (float("nan"), None, "unknown"),
    ],
)
def test_what_an_agreement_is_good_for(value: float, low: float | None, verdict: str):
    assert verdict in judges.verdict(value, low)


def test_which_way_a_second_judge_leans_is_said():
    """A high agreement hides that one judge is stricter throughout, so both counts stand beside it."""
    met = pl.DataFrame({"grade": [2, 2, 3], "other_grade": [1, 2, 5], "passages": [4, 9, 1]})
    assert judges.leaning(met, "b") == "The second, b, grades 4 lower and 1 higher."
    assert judges.leaning(met.filter(pl.col("grade") == pl.col("other_grade")), "second") == ""
    pairs, overall = pl.DataFrame({"same": [9 / 14]}), Agreement(0.9, 0.8, 0.95, 14, 3)
    said = "Two judges grade 64.3 % of 14 passages alike"
    assert judges.heading(pairs, overall, met) == f"{said}."  # 4 to 1 may be chance
    strict = met.with_columns(passages=pl.Series([10, 9, 1]))
    assert judges.heading(pairs, overall, strict) == f"{said}; the second is stricter."
    assert judges.heading(pl.concat([pairs, pairs]), overall, met) == judges.agreed(overall)
