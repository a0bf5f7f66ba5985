"""What each ablation makes of a bundle, by hand (tests/cases/names.json) and by rule."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from core.diagnostics.names.bundles import (
    ABLATIONS,
    CONDITIONS,
    LANGUAGES,
    Bundle,
    KnownWork,
    bundles,
    phrases,
    read_works,
    shipped,
    works_of,
)
from core.errors import InputError
from core.pipeline.query.entities import gibberish

CASES = json.loads((Path(__file__).parents[2] / "cases" / "names.json").read_text(encoding="utf-8"))[
    "bundles"
]


def bundle_of(case: dict) -> Bundle:
    return Bundle(
        number=case["number"],
        seed="case",
        query=case["query"],
        work=case["work"],
        topic=case["topic"],
        entities=tuple(case["entities"]),
        titles=tuple(case["titles"]),
    )


@pytest.mark.parametrize(
    ("at", "condition"), [(at, condition) for at, case in enumerate(CASES) for condition in case["expected"]]
)
def test_texts_by_hand(at: int, condition: str):
    case = CASES[at]
    found = CONDITIONS[condition](bundle_of(case), phrases(case["language"]))
    assert [found.query, *found.candidates] == case["expected"][condition]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["topic"])
def test_gibberish_is_one_token_per_name(case: dict):
    bundle = bundle_of(case)
    found = ABLATIONS["gibberish_name"](bundle, phrases(case["language"]))
    right, *others = (gibberish(name) for name in bundle.entities)
    assert re.fullmatch("ID-[0-9A-F]{6}", right)
    assert right in found.query
    assert [right in text for text in found.candidates] == [True, False, False, True, False]
    assert all(name not in text for name, text in zip(bundle.entities, found.candidates, strict=True))
    assert len({right, *others}) == len(set(bundle.entities))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["topic"])
def test_near_misses_differ_by_one_two_and_three_letters(case: dict):
    bundle, forms = bundle_of(case), phrases(case["language"])
    base, found = CONDITIONS["base"](bundle, forms), ABLATIONS["edit_distance_near_miss"](bundle, forms)
    true = bundle.entities[0]
    names = [re.fullmatch(f".*{re.escape(forms.label)} (.*)[.]", text)[1] for text in found.candidates]
    differ = [sum(a != b for a, b in zip(true, name, strict=True)) for name in names]
    letters = sum(char.isalpha() for char in true)
    assert differ == [0, 1, 2, 0, min(3, letters)]
    assert found.query == base.query
    assert (found.candidates[0], found.candidates[3]) == (base.candidates[0], base.candidates[3])


@pytest.mark.parametrize("language", LANGUAGES)
def test_shipped_works(language: str):
    works = shipped(language)
    topics = {name: {work.topic for work in works if work.entity == name} for name, _, _ in works}
    assert len(topics) >= 60
    assert {len(some) for some in topics.values()} == {2}
    names = " ".join(topics)
    assert "-" in names
    assert "." in names
    assert not names.isascii()
    assert re.search(" (de|De|Du|van) ", names)


def test_bundles_are_drawn_anew_each_run_and_again_by_the_same_seed():
    works = shipped("en")
    one, again = (bundles(works, "en", run=1, queries=100) for _ in range(2))
    assert one == again
    assert one != bundles(works, "en", run=2, queries=100)
    assert one != bundles(works, "en", run=1, queries=100, seed="other")
    for bundle in one:
        right, other_a, other_b, same, wrong = bundle.entities
        assert right == same
        assert len({right, other_a, other_b, wrong}) == 4
        assert len(set(bundle.titles[:3])) == 1
        assert bundle.titles[3] != bundle.titles[0]
    assert len({(each.entities[0], each.topic) for each in one}) == 100
    assert len(bundles(works, "en", run=1, queries=300)) == 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("entity,topic\nA,b\n", "No column 'title'"),
        ("entity,topic,title\nA,b,c\n", "1 entities are too few"),
        ("entity,topic,title\nA,b,c\nB,b,c\nC,b,c\nD,b,c\n", "No entity has two topics"),
        ("", "It is not a table"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, words: str):
    path = tmp_path / "own.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_works(path)


def test_works_of_a_collection():
    rows = [(source, title) for source in "abcd" for title in ("x", "y")]
    rows += [("a", "x"), (None, "x"), ("a", None)]
    passages = pl.DataFrame(rows, schema=["source", "title"], orient="row")
    assert works_of(passages) == tuple(KnownWork(source, title, title) for source, title in rows[:8])
    with pytest.raises(InputError, match="0 entities are too few"):
        works_of(passages.clear())
