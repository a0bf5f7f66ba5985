"""Review of questions by people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InputError
from core.views.golden import reviewing
from core.work.questions.folder import QUERIES, REJECTED, QuestionSet, numbered, read, write
from core.work.questions.known import known_items
from tests.work.questions import texts


@pytest.fixture
def made(tmp_path: Path) -> Path:
    material = texts.material(tmp_path)
    kept = list(known_items(material, "s"))[:3]
    about = {"name": "n", "method": "known-item", "language": "english"}
    folder = tmp_path / "asked"
    write(folder, QuestionSet(about=about, entries=numbered(kept, [])), material, {"path": "x"})
    return folder


def asked(folder: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (folder / QUERIES).read_text().splitlines()]


def test_keys_accept_edit_reject_put_off_and_take_back(made: Path):
    first = asked(made)
    decide = reviewing.decide
    decide(made, "Ada", "q001", "accept", seconds=4)
    decide(made, "Ada", "q002", "edit", text="  in  other words ")
    decide(made, "Ada", "q003", "skip")
    following = reviewing.following(read(made), "Ada")
    assert following is not None
    assert following.query_id == "q003"
    decide(made, "Ada", "q003", "reject", seconds=8)
    assert asked(made) == [first[0], "in other words"]
    assert read(made).counts() == {REJECTED: 1}
    assert reviewing.following(read(made), "Ada") is None
    assert "1 accepted, 1 edited, 1 rejected" in reviewing.over(read(made), "Ada")
    decide(made, "Ada", "", "undo")
    decide(made, "Ada", "", "undo")
    decide(made, "Ada", "", "undo")
    assert asked(made) == first
    following = reviewing.following(read(made), "Ada")
    assert following is not None
    assert following.query_id == "q002"


def test_two_people_agree_or_do_not(made: Path):
    for name, acts in (("Ada", ("accept", "reject", "accept")), ("Bob", ("accept", "accept", "edit"))):
        for at, act in enumerate(acts, 1):
            reviewing.decide(made, name, f"q00{at}", act, text="some other words")
    assert "agree on 2 of 3 questions" in reviewing.progress(read(made), "Ada")


@pytest.mark.parametrize(
    ("query_id", "act", "text"), [("q9", "accept", ""), ("q001", "edit", " "), ("q001", "eat", "")]
)
def test_what_cannot_be_is_refused(made: Path, query_id: str, act: str, text: str):
    with pytest.raises(InputError):
        reviewing.decide(made, "Ada", query_id, act, text=text)
