from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.golden.judging.book import Book
from core.store import Store
from core.ui.sections import judge
from core.views.golden import judging
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything
from tests.stores import HOSTILE, Lab

GOLD = {f"q{query}": {f"p{place}": 1 + (query + place) % 5 for place in range(6)} for query in range(2)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    judge.book.clear()
    lab = Lab().judge(GOLD).ask({query: f"question {query}" for query in GOLD})
    lab.hold({f"p{place}": f"text {place} {HOSTILE[place]}" for place in range(6)})
    lab.run("secret stack", final={query: ["p3", "p0"] for query in GOLD}).write(tmp_path / "store")
    return tmp_path / "store"


def started(app: AppTest, name: str, n: int = 3) -> AppTest:
    app.text_input(key="judge_name").set_value(name)
    app.number_input(key="judge_n").set_value(n)
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    return app


def key(app: AppTest, name: str) -> AppTest:
    (button,) = [each for each in app.button if (each.key or "").startswith(name)]
    return button.click().run()


def test_a_queue_from_its_start_to_its_golden_set(open_page: OpenPage, store: Path):
    app = started(open_page(store, "golden/judge"), "Anne")
    assert "How well does the passage answer" in answer(app)
    (queue,) = Book(judging.book_path(Store.open(store))).queues()
    assert app.query_params["queue"] in (queue.queue_id, [queue.queue_id])
    for told in ("secret stack", "p0", "p3", "grade 1"):
        assert told not in everything(app), "the judge is blind"
    key(app, "grade4")
    key(app, "skip")
    key(app, "undo")
    app.text_input[-1].set_value("not sure").run()
    again = open_page(store, "golden/judge", queue=queue.queue_id)  # as after a closed tab
    assert again.text_input[-1].value == "not sure"
    key(again, "grade2")
    key(again, "grade5")
    assert_sound(again, "Golden sets")
    assert "Golden set lab-Anne is written" in everything(again)
    rows = Store.open(store).read().judgements("lab-Anne")
    assert sorted(rows["grade"]) == [2, 4, 5]
    assert set(rows["judge"]) == {"Anne"}


def test_two_judges_never_mix(open_page: OpenPage, store: Path):
    one, other = (started(open_page(store, "golden/judge"), name, 99) for name in ("Anne", "Ben"))
    for _ in range(12):
        key(one, "grade1")
        key(other, "grade5")
    snapshot = Store.open(store).read()
    for name, grade in (("lab-Anne", 1), ("lab-Ben", 5)):
        assert snapshot.judgements(name)["grade"].to_list() == [grade] * 12
    assert snapshot.judgements("gold").height == 12


def test_mistakes_of_the_form_are_said(open_page: OpenPage, store: Path):
    app = open_page(store, "golden/judge")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert "Who judges" in app.error[0].value
    app = open_page(store, "golden/judge", queue="gone-1")
    assert "queue of passages to judge “gone-1” does not exist here" in everything(app)


def test_whoever_may_only_look_does_not_judge(open_page: OpenPage, store: Path):
    app = open_page(store, "golden/judge", write="none")
    assert_sound(app, "Golden sets")
    assert not [each for each in app.button if "judging" in (each.key or "")]
