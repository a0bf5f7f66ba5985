"""D_name on a collection's own questions, by hand and against a naive computation."""

from __future__ import annotations

import numpy as np
import pytest

from core.diagnostics.names.margins import CHANGE, DELTA, NamedQuestion, asked_margins, questions, texts_of
from core.pipeline.query.entities import near_miss

NAMES = {
    "What did Ada build?": ("Ada",),
    "Where was Bob born?": ("Bob",),
    "Who met Cid and Dan?": ("Cid", "Dan"),
    "Why Eve?": ("Eve",),
}
ASKED = [
    ("What did Ada build?", "Ada built engines; Adam did not."),
    ("Where was Bob born?", "He was born here."),
    ("Who met Cid and Dan?", "Dan and \\g<0> of Bob's met Cid."),
    ("how long?", "Ada and Bob"),
]


def test_a_question_gets_its_passage_with_two_other_names():
    made = {each.text: each for each in questions(ASKED, NAMES)}
    assert set(made) == {"What did Ada build?", "Who met Cid and Dan?"}, "the others' passages hold no name"
    right, *others = made["What did Ada build?"].passages
    assert right == ASKED[0][1]
    assert {other.removesuffix(" built engines; Adam did not.") for other in others} <= {
        "Bob",
        "Cid",
        "Dan",
        "Eve",
    }
    assert len(set(others)) == 2
    for other in made["Who met Cid and Dan?"].passages[1:]:
        name = other.split()[0]
        assert other == f"{name} and \\g<0> of Bob's met {name}."
        assert name in {"Ada", "Eve"}, "not one that the passage holds"


def test_the_same_is_drawn_again_and_no_more_than_asked_for():
    assert questions(ASKED, NAMES) == questions(list(reversed(ASKED)), NAMES)
    assert len(questions(ASKED, NAMES, most=1)) == 1
    assert questions(ASKED[:1], {ASKED[0][0]: ("Ada",)}) == [], "there is no other name to draw"


def bag(texts: list[str]) -> np.ndarray:
    """Letters of a text, as numbers."""
    return np.array([[each.lower().count(chr(97 + at)) for at in range(26)] for each in texts], np.float32)


WAYS = {"names 1": {"names": "1"}, "names mask": {"names": "mask"}, "names accents": {"names": "accents"}}


def test_margins_are_those_of_a_naive_computation():
    asked = [
        NamedQuestion("Ada xq", ("Ada",), ("Ada xq", "Bob xq", "Cid xq")),
        NamedQuestion("zzz Cid", ("Cid",), ("Cid y", "Ada y", "Eve y")),
    ]
    rows = {
        (row["condition"], row["measure"]): row for row in asked_margins(asked, WAYS, bag, bag).to_dicts()
    }

    def cosine(one: str, other: str) -> float:
        a, b = bag([one, other]).astype(float)
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def margin(text: str, question: NamedQuestion) -> float:
        right, *others = (cosine(text, passage) for passage in question.passages)
        return right - max(others)

    base = [margin(each.text, each) for each in asked]
    near = [
        margin(each.text.replace(each.names[0], near_miss(each.names[0], 1, each.text)), each)
        for each in asked
    ]
    assert rows["", "d_name"]["value"] == pytest.approx(np.mean(base))
    assert rows["names 1", DELTA]["value"] == pytest.approx(np.mean(np.subtract(near, base)))
    counted = [100 * (now - was) / was for now, was in zip(near, base, strict=True) if was >= 0.02]
    assert rows["names 1", CHANGE]["value"] == pytest.approx(np.mean(counted))
    assert rows["names 1", CHANGE]["n"] == len(counted)
    assert rows["names accents", DELTA]["value"] == 0, "ASCII has no accents to lose"
    assert rows["names mask", DELTA]["low"] <= rows["names mask", DELTA]["value"]
    assert texts_of(asked, WAYS)[0] >= {"Ada xq", "zzz Cid", "AUTHOR_001 xq", "zzz AUTHOR_001"}


def test_a_question_without_a_margin_has_no_percent_change():
    alike = [NamedQuestion("x", ("x",), ("y", "y", "y"))]
    rows = asked_margins(alike, WAYS, bag, bag)
    assert rows.filter(measure=CHANGE).is_empty()
    assert rows.filter(measure=DELTA)["value"].to_list() == [0, 0, 0]
