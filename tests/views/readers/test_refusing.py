"""Section Refusing: questions without an answer are told apart, and so are right and wrong refusals."""

from __future__ import annotations

import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.unanswerable import TAGGED, classes
from core.analysis.workspace.view import View
from core.readers.refusals import refuses as refusing_words
from core.records import Batch
from core.store import Snapshot
from core.tables import frame
from core.views.readers import refusing
from core.views.readers.refusing import readers, stacks
from tests.stores import Lab
from tests.views.made import BOOK

GOOD, BAD = [f"g{n}" for n in range(8)], [f"b{n}" for n in range(4)]
MODES = (("top_k", 1, "Paris"), ("none", 0, "I do not know the answer."), ("no_gold", 1, "Paris again"))


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    names = [*GOOD, *BAD]
    lab = Lab().ask({name: name for name in names}).ask({"tagged": "never"}, tags=["type=unanswerable"])
    lab = lab.hold({"good": "good", "bad": "bad"})
    lab = lab.judge({name: {"good": 5 if name in GOOD else 1, "bad": 1} for name in names})
    final = {name: ["good", "bad"] for name in names} | {"tagged": ["bad", "good"]}
    store = lab.run("stack", final=final).write(tmp_path_factory.mktemp("refusing") / "store")
    answers = [
        {"run_id": "stack", "query_id": name, "reader": "r", "mode": mode, "k": k, "pass": 1, "text": words}
        for name in names
        for mode, k, words in MODES
    ]
    with store.write("answers") as writer:
        writer.add(Batch(frames={"answers": frame("answers", answers)}))
    snapshot: Snapshot = store.read()
    return View(
        snapshot=snapshot,
        scope=Scope("lab", "gold"),
        quality=Quality("Harm", 2),
        latency=Latency(),
        book=BOOK,
    )


def test_classes_say_why(view: View):
    rows = classes(view.snapshot, view.scope)
    why = dict(rows.select("query_id", "why").iter_rows())
    assert [why[name] for name in ("g0", "b0", "tagged")] == [None, "nothing of use judged", "tagged"]
    assert rows.height == 13


def test_scores_that_separate_and_harm(view: View):
    row = stacks(view, 0.05).row(0, named=True)
    assert (row["without"], row["answerable"]) == (5, 8)
    assert row["harmful"] == pytest.approx(
        8 / 10
    )  # of 5 questions × 2 slots; those of the tagged are unjudged


def test_right_and_wrong_refusals_by_what_was_given(view: View):
    rows = {row["case"]: row for row in readers(view).iter_rows(named=True)}
    assert rows["context empty"]["refused"] == 1
    assert rows["gold in context"]["refused"] == 0
    assert rows["gold left out"]["n"] == len(GOOD)
    assert rows["no answer exists"]["refused"] == pytest.approx(1 / 3)
    said = refusing.of_readers(pl.DataFrame(list(rows.values())))
    assert "of 8 that should be answered" in said


@pytest.mark.parametrize(
    ("words", "refuses"),
    [
        ("I do not know the answer.", True),
        ("The passages do not contain enough to answer this.", True),
        ("The context doesn’t mention it.", True),
        ("No answer in the text.", True),
        ("Je ne sais pas.", True),
        ("Le texte ne mentionne pas cela.", True),
        ("Das weiß ich nicht.", True),
        ("He did not answer the phone until 1984.", False),
        ("polars does not hold an index.", False),
        ("Paris [1].", False),
        ("Il n'est pas mort en 1984.", False),
    ],
)
def test_words_of_refusal(words: str, refuses: bool):
    assert refusing_words(words) == refuses


@pytest.mark.parametrize(
    ("tag", "is_one"),
    [
        ("unanswerable", True),
        ("type=unanswerable", True),
        ("no-answer", True),
        ("type=narrow", False),
        ("answerable", False),
    ],
)
def test_tags_of_the_class(tag: str, is_one: bool):
    assert (TAGGED.search(tag) is not None) == is_one
