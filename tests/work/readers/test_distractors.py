"""Distractors made of gold passages: what each kind says, where there is none, and what a reader is sent."""

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.sweep.fields import Reader
from core.work.readers.distractors import ADVERSARIAL, CONTRADICTED, DATED, MADE, distractor
from core.work.readers.job import Material, ReaderJob, ReaderReplay

TEXT = "The bridge opened in 1932. It is 503 m long, of v2 steel."


def test_what_each_kind_says():
    other = distractor(CONTRADICTED, TEXT, None)
    assert other is not None
    assert re.sub(r"\b\d+\b", "#", other) == re.sub(r"\b\d+\b", "#", TEXT), "numbers alone differ"
    assert not {"1932", "503"} & set(re.findall(r"\d+", other))
    assert "v2 steel" in other, "names with a figure stay"
    old = distractor(DATED, TEXT, None)
    assert old is not None
    first, rest = old.split("\n", 1)
    assert re.fullmatch(r"Archived version of (19\d\d|200\d)\.", first)
    assert rest == other
    said = distractor(ADVERSARIAL, TEXT, "Paris")
    assert said is not None
    assert said.startswith("The bridge opened in 1932. ")
    assert said.endswith("The answer is: Paris")


@given(st.integers(0, 10**9))
def test_another_number_has_as_many_digits_and_is_another(number: int):
    other = distractor(CONTRADICTED, f"It is {number}.", None)
    (found,) = re.findall(r"\d+", other or "")
    assert len(found) == len(str(number))
    assert found != str(number)


@pytest.mark.parametrize("kind", [CONTRADICTED, DATED])
def test_a_passage_without_a_number_makes_none(kind: str):
    assert distractor(kind, "No figure here.", "x") is None
    assert distractor(ADVERSARIAL, TEXT, None) is None


def job(mode: str, ks: tuple[int, ...]) -> ReaderJob:
    replays = (ReaderReplay("r", "c", {"q": ("a", "b"), "p": ("b",)}, {"q": ("a", "d", "n"), "p": ("n",)}),)
    texts = {"c": {"a": "Made in 1901.", "b": "Other.", "d": "Weighs 12 kg.", "n": "Nothing to count."}}
    golds = pl.DataFrame({"collection_id": "c", "query_id": ["q", "p"], "answer": ["1901", "Rome"]})
    material = Material("c", {"q": "When?", "p": "Where?"}, texts, replays, golds)
    return ReaderJob(name="j", reader=Reader(models=("fake",), modes=(mode,), k=ks), material=material)


@pytest.mark.parametrize("mode", sorted(MADE))
def test_a_reader_is_sent_all_gold_passages_then_as_many_as_asked(mode: str):
    made = job(mode, (1, 2, 3))
    asked = {(each.query_id, each.block.k): [made.texts[place] for place in each.call.passages]
             for each in made.wanted}  # fmt: skip
    gold = ["Made in 1901.", "Weighs 12 kg.", "Nothing to count."]
    wrong = {"q": "Rome", "p": "1901"}
    for (query, k), sent in asked.items():
        own = gold if query == "q" else gold[-1:]
        assert sent == own + [distractor(mode, text, wrong[query]) for text in own[:k]]
    several = {("q", 1), ("q", 2)} | ({("q", 3), ("p", 1)} if mode == ADVERSARIAL else set())
    assert set(asked) == several, "a question that gives fewer is not asked"
