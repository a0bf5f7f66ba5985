"""Ids of what an import brings: other names, other ids; names that lose nothing are their own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.importers.runs import chosen_id, slug
from tests.importers.helpers import read, rows, up

LOSSY = st.text(alphabet="ac +#/.-_~é\u0301\u202e\udcff·", max_size=6)
LONG = st.builds(lambda begin, end: begin * 59 + end, st.sampled_from("a-."), LOSSY)
NAMES = LOSSY | LONG
PART = st.sampled_from(["t", "dev", "test", "default", "a-b", "dev-a", "c", "c++", "c#", "·", "a · b", "x."])
TREC = "q1 Q0 p1 1 2.0 t\n"
QRELS = "q1 0 p1 1\nq2 0 p1 0\n"


@pytest.mark.slow
@given(NAMES, NAMES)
@settings(max_examples=500)
def test_other_names_other_ids(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)
    assert 0 < len(slug(one)) <= 60
    assert slug(one) == one or "~" in slug(one)


@given(NAMES)
def test_an_id_names_itself_where_a_user_gives_it(name: str) -> None:
    assert chosen_id(slug(name)) == slug(name)
    assert chosen_id(name, {name}) == name


KEPT = ("cranfield", "my-run.v2", "MIRACL_dev", "a b", "été", "x" * 60, "_a")
LOST = ("c++", "c#", "-a", "a.", "a  b", " a", "x" * 61, "", "a/b", "a@b", "a~b")


@pytest.mark.parametrize("name", KEPT)
def test_names_that_lose_nothing_are_their_ids(name: str) -> None:
    assert slug(name) == name


def test_names_that_lose_something_keep_a_readable_beginning() -> None:
    ids = {name: slug(name) for name in LOST}
    assert len(set(ids.values()) | set(KEPT)) == len(LOST) + len(KEPT)
    assert ids["c++"].startswith("c~")
    assert ids["x" * 61].startswith("x" * 51 + "~")
    assert ids[""].startswith("imported~")


def subsets(task: str, *of: tuple[str, str]) -> str:
    scores: dict[str, list[dict[str, object]]] = {}
    for split, subset in of:
        scores.setdefault(split, []).append({"hf_subset": subset, "main_score": 0.5, "ndcg_at_10": 0.5})
    return json.dumps({"task_name": task, "mteb_version": "2", "scores": scores})


def test_subsets_that_differ_in_signs_are_other_collections() -> None:
    names = ("c", "c++", "c#", "go", "a" * 70 + "1", "a" * 70 + "2")
    made = read(up("Code.json", subsets("Code", *(("test", name) for name in names))))
    assert len({run.collection_id for run in made.runs}) == len(names)
    assert {"Code-c", "Code-go"} <= {run.collection_id for run in made.runs}
    assert {each.name for each in made.collections} >= {"Code-c", "Code-c++", "Code-c#"}


@pytest.mark.slow
@given(st.lists(st.tuples(PART, PART, PART), min_size=2, max_size=4, unique=True))
@settings(max_examples=60, deadline=None)
def test_task_split_and_subset_are_told_apart(wholes: list[tuple[str, str, str]]) -> None:
    files = [
        up(f"{place}.json", subsets(task, (split, subset)))
        for place, (task, split, subset) in enumerate(wholes)
    ]
    made = read(*files)
    assert len({run.collection_id for run in made.runs}) == len(wholes)


@pytest.mark.slow
@given(NAMES.filter(lambda name: "/" not in name), NAMES.filter(lambda name: "/" not in name))
@settings(max_examples=60, deadline=None)
def test_files_of_other_names_make_other_golden_sets(one: str, other: str) -> None:
    made = [read(up(f"x{name}", QRELS), collection_id="c").golden_sets[0] for name in (one, other)]
    assert len({each.golden_set_id for each in made}) == len({one, other})


def test_judges_of_other_names_make_other_golden_sets() -> None:
    judges = ("a", "a+", "a#", "b" * 70 + "1", "b" * 70 + "2")
    lines = [{"query_id": "q", "passage_id": "p", "grade": 1 + place % 2, "judge": judge}
             for place, judge in enumerate(judges)]  # fmt: skip
    made = read(up("g.jsonl", "".join(json.dumps(line) + "\n" for line in lines)), collection_id="c")
    assert len({each.golden_set_id for each in made.golden_sets}) == len(judges)
    assert set(rows(made, "judgements")["golden_set_id"]) == {each.golden_set_id for each in made.golden_sets}


def test_runs_of_other_collections_and_labels_are_other_runs() -> None:
    made = [
        read(up("a.trec", TREC), collection_id=collection, label=label).runs[0]
        for label in ("c", "c++")
        for collection in ("a", "a+")
    ]
    assert len({run.run_id for run in made}) == 4
