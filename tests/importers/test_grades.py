from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError
from core.importers.judgements import GRADE_MAPPINGS, decide, mapping_text
from core.store import Store
from tests.importers.helpers import read, rows, up

CHOSEN = {
    (0, 1): "binary",
    (1,): "binary",
    (0,): "binary",
    (-1, 0, 1): "binary",
    (0, 1, 2): "0-2",
    (0, 2): "0-2",
    (0, 3): "0-3",
    (-2, 0, 1, 4): "0-4",
    (1, 2, 3, 4, 5): "1-5",
    (5,): "1-5",
    (1, 2, 3): "1-5",
    (2,): "1-5",
}


@pytest.mark.parametrize(("values", "name"), CHOSEN.items(), ids=str)
def test_chosen_by_the_values_that_occur(values, name):
    mapping = decide(None, set(values), "f")
    assert mapping.pairs == GRADE_MAPPINGS[name]
    assert name in mapping.note
    assert ("ambiguous" in mapping.note) == (name == "1-5" and max(values) < 5)


FROM_ZERO = {(1, 2): "0-2", (1, 2, 3): "0-3", (2,): "0-2", (1, 4): "0-4", (1,): "binary", (5,): "1-5",
             (2, 3, 4, 5): "1-5", (-1, 2): "0-2"}  # fmt: skip


@pytest.mark.parametrize(("values", "name"), FROM_ZERO.items(), ids=str)
def test_formats_that_count_from_zero_need_no_zero(values, name):
    mapping = decide(None, set(values), "f", from_zero=True)
    assert mapping.pairs == GRADE_MAPPINGS[name]
    assert ("no 0 occurs" in mapping.note) == name.startswith("0-")


JUDGED = {
    "trec": ("x.qrels", "q1 0 a 1\nq1 0 b 2\n"),
    "beir": ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t2\n"),
    "ranx": ("x.json", '{"q1": {"a": 1, "b": 2}}'),
}


@pytest.mark.parametrize("name", JUDGED)
def test_grades_1_and_2_alone_are_relevant_and_very_relevant(name):
    judged = rows(read(up(*JUDGED[name]), format="ranx-qrels" if name == "ranx" else None), "judgements")
    assert dict(judged.select("raw", "grade").iter_rows()) == {1: 3, 2: 5}


@pytest.mark.parametrize("values", [{0, 5}, {0, 1, 9}, {1, 6}], ids=str)
def test_no_mapping_fits(values):
    with pytest.raises(InputError, match="No grade mapping fits"):
        decide(None, values, "f")


def test_given_by_name_or_as_pairs():
    assert decide("1-5 reversed", {1, 5}, "f").text == "1-5 reversed: 1→5, 2→4, 3→3, 4→2, 5→1"
    for text in ("0→1, 1→3, 2→5", "0=1,1=3,2=5", "0->1, 1 -> 3 ,2->5"):
        assert decide(text, {0, 1, 2}, "f").text == "0→1, 1→3, 2→5"


@pytest.mark.parametrize("text", ["0-9", "a=1", "0=6", "0=0", "", "1=1,,2=2"])
def test_not_a_mapping(text):
    if text:
        with pytest.raises(InputError, match="is not a grade mapping"):
            decide(text, {0, 1}, "f")
    else:
        assert decide(text, {0, 1}, "f").pairs == GRADE_MAPPINGS["binary"]


def test_a_grade_is_given_once():
    with pytest.raises(InputError, match="Grade 0 becomes both 1 and 2 in the mapping '0=1,0=2'"):
        decide("0=1,0=2", {0}, "f")
    assert decide("0=1,0=1", {0}, "f").text == "0→1"


def test_grade_without_a_place_is_refused():
    with pytest.raises(InputError, match="Grades 3 have no place in the mapping '0-2'"):
        decide("0-2", {0, 3}, "f")


def test_negative_grades_are_the_lowest_unless_they_have_a_pair():
    raw = pl.DataFrame({"raw": [-1, 0, 1]})
    assert raw.select(decide("binary", {-1, 0, 1}, "f").apply(pl.col("raw"))).to_series().to_list() == [
        1,
        1,
        5,
    ]
    assert raw.select(decide("-1=2,0=1,1=5", {-1, 0, 1}, "f").apply(pl.col("raw"))).to_series().to_list() == [
        2,
        1,
        5,
    ]


@pytest.mark.parametrize("name", GRADE_MAPPINGS)
def test_every_declared_mapping_stays_within_the_rubric(name):
    pairs = GRADE_MAPPINGS[name]
    assert set(pairs.values()) <= {1, 2, 3, 4, 5}
    assert {1, 5} <= set(pairs.values())


@pytest.mark.parametrize("name", GRADE_MAPPINGS)
def test_a_mapping_is_recorded_and_the_given_grades_are_kept(tmp_path: Path, name: str):
    pairs = GRADE_MAPPINGS[name]
    qrels = "".join(f"q1 0 d{raw} {raw}\n" for raw in pairs)
    run = "".join(f"q1 Q0 d{raw} {rank} {-rank} tag\n" for rank, raw in enumerate(pairs, 1))
    made = read(up("judged.qrels", qrels), up("run.trec", run), grades=name)
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    snapshot = store.read()
    assert snapshot.golden_sets()["mapping"].to_list() == [mapping_text(name)]
    golden = snapshot.golden_sets()["golden_set_id"][0]
    judged = snapshot.judgements(golden)
    assert dict(judged.select("raw", "grade").iter_rows()) == dict(pairs)
    graded = snapshot.graded(snapshot.runs()["run_id"].to_list(), golden)
    assert graded.grades.tolist() == [[list(pairs.values())]]
    rises = "reversed" not in name
    assert graded.gains[4] == (max(pairs) if rises else 5)
    assert graded.gains[0] == (min(pairs) if rises else 1)
