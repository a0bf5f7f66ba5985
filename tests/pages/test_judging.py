import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.deciding import Contest, draw
from core.golden.book import Book
from core.golden.by_hand import BETWEEN
from core.store import Store
from core.views.golden import judging
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything
from tests.stores import HOSTILE, Lab

GOLD = {f"q{query}": {f"p{place}": 1 + (query + place) % 5 for place in range(6)} for query in range(2)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    lab = Lab().judge(GOLD).ask({query: f"question {query}" for query in GOLD})
    lab.hold({f"p{place}": f"text {place} {HOSTILE[place]}" for place in range(6)})
    lab.run("secret stack", final={query: ["p3", "p0"] for query in GOLD}).write(tmp_path / "store")
    return tmp_path / "store"


def started(app: AppTest, name: str, n: int = 3) -> AppTest:
    app.text_input(key="judge_name").set_value(name)
    app.number_input(key="judge_n_grade").set_value(n)
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    return app


def key(app: AppTest, name: str) -> AppTest:
    (button,) = [each for each in app.button if (each.key or "").startswith(name)]
    return button.click().run()


@pytest.mark.slow
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
    key(again, "agree")
    assert_sound(again, "Golden sets")
    assert re.search(r"Two judges grade [\d.]+ % of 3 passages alike\.", everything(again))
    rows = Store.open(store).read().judgements("lab-Anne")
    assert sorted(rows["grade"]) == [2, 4, 5]
    assert set(rows["judge"]) == {"Anne"}
    there = open_page(store, "golden/judge", queue=queue.queue_id)
    next(each for each in there.button if each.label == "See the decision").click().run()
    assert_sound(there, "Decision")
    assert "Golden set lab-Anne, one of 2" in everything(there)


@pytest.mark.slow
def test_a_queue_that_was_left_is_offered_to_go_on_with(open_page: OpenPage, store: Path):
    app = started(open_page(store, "golden/judge"), "Anne")
    fresh = [each.label for each in open_page(store, "golden/judge").button]
    assert not [label for label in fresh if label.startswith(("Go on", "Review"))], "nothing is begun or made"
    key(app, "grade4")
    again = open_page(store, "golden/judge")  # without the queue in the address
    (go_on,) = [each for each in again.button if each.label.startswith("Go on")]
    assert go_on.label.startswith("Go on as Anne: 2 of 3")
    go_on.click().run()
    assert_sound(again, "Golden sets")
    assert "How well does the passage answer" in answer(again)


@pytest.mark.slow
def test_facts_of_a_passage_are_written_and_ticked(open_page: OpenPage, store: Path):
    app = started(open_page(store, "golden/judge"), "Anne", 2)
    facts = app.multiselect[0]
    assert (facts.options, facts.value) == ([], [])
    (queue,) = Book(judging.book_path(Store.open(store))).queues()
    Book(judging.book_path(Store.open(store))).write_facts(queue.queue_id, 0, [HOSTILE[0]])
    app = open_page(store, "golden/judge", queue=queue.queue_id)
    assert app.multiselect[0].value == [HOSTILE[0]]
    key(app, "grade4")
    if app.multiselect[0].options:  # the second passage is of the same question
        app.multiselect[0].select(HOSTILE[0]).run()
    key(app, "grade4")
    assert_sound(app, "Golden sets")
    rows = Store.open(store).read().nuggets("lab-Anne")
    assert set(rows["text"]) == {HOSTILE[0]}
    assert rows["vital"].all()


@pytest.mark.slow
def test_grades_are_added_to_what_is_known_or_stand_alone(open_page: OpenPage, store: Path):
    app = started(open_page(store, "golden/judge"), "Anne", 2)
    (choice,) = [each for each in app.segmented_control if (each.key or "").startswith("_adds_")]
    assert list(choice.options) == ["Add my grades to gold", "On their own"]
    assert choice.value is False, "of an audit they stand alone"
    choice.set_value(True).run()
    assert Store.open(store).read().golden_sets().height == 1, "nothing is written yet"
    key(app, "grade4")
    key(app, "grade4")
    assert_sound(app, "Golden sets")
    assert "Golden set gold-and-Anne is written. 12 known grades of gold, and 2 by Anne." in everything(app)
    written = set(Store.open(store).read().golden_sets()["golden_set_id"])
    assert written == {"gold", "gold-and-Anne", "lab-Anne"}
    next(each for each in app.segmented_control if each.key == choice.key).set_value(False).run()
    assert "Golden set lab-Anne is written" in everything(app)
    next(each for each in app.segmented_control if each.key == choice.key).set_value(True).run()
    next(each for each in app.button if each.label == "See the decision").click().run()
    assert_sound(app, "Decision")
    assert "Golden set gold-and-Anne, one of 3" in everything(app)


@pytest.mark.slow
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
    assert "queue of passages to judge “gone-1” (does not exist here)" in everything(app)


def test_a_book_that_cannot_be_read_is_said(open_page: OpenPage, store: Path):
    judging.book_path(Store.open(store)).write_bytes(b"no database, but somebody's file" * 99)
    app = open_page(store, "golden/judge")
    assert not app.exception
    assert "The file of judgements cannot be used" in app.error[0].value


def test_whoever_may_only_look_does_not_judge(open_page: OpenPage, store: Path):
    app = open_page(store, "golden/judge", write="none")
    assert_sound(app, "Golden sets")
    assert not [each for each in app.button if "judging" in (each.key or "")]


@pytest.mark.slow
def test_five_are_put_in_order_and_compared(open_page: OpenPage, store: Path):
    app = open_page(store, "golden/judge")
    app.segmented_control(key="judge_mode").set_value("put five in order").run()
    app.text_input(key="judge_name").set_value("Anne")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    book = Book(judging.book_path(Store.open(store)))
    (queue,) = book.queues()
    key(app, "pick2")
    key(app, "Up_")
    assert [each.position for each in book.items(queue.queue_id)[:5]] == [1, 3, 2, 4, 5]
    key(app, "move4-1")
    assert [each.position for each in book.items(queue.queue_id)[:5]] == [1, 3, 2, 5, 4]
    key(app, "order_")
    key(app, "skip_")
    assert_sound(app, "Golden sets")
    assert "tau-b with the grades of gold" in everything(app)
    key(app, "judge_skipped")
    key(app, "order_")
    assert "n = 2 batches of five" in everything(app)


@pytest.mark.slow
def test_two_judges_are_settled(open_page: OpenPage, store: Path):
    Lab().judge({"q0": {"p0": 5, "p1": 2}}, "ben").write(store)
    app = open_page(store, "golden/judge")
    app.segmented_control(key="judge_mode").set_value("settle two judges").run()
    app.text_input(key="judge_name").set_value("Chris")
    app.selectbox(key="judge_base").set_value("gold")
    app.selectbox(key="judge_other").set_value("ben")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    assert "gold: grade 1" in everything(app).replace("*", "")
    assert "ben: grade 5" in everything(app).replace("*", "")
    key(app, "grade3")
    app.text_input(key="settled_name").set_value("both settled").run()
    key(app, "store_settled")
    assert_sound(app, "Golden sets")
    golden = Store.open(store).read().golden_sets().filter(golden_set_id="both settled")
    assert golden["judgements"].item() == 12
    assert (
        Store.open(store)
        .read()
        .judgements("both settled")
        .filter(query_id="q0", passage_id="p0")["grade"]
        .item()
        == 3
    )


@pytest.mark.slow
def test_a_list_of_others_is_taken_by_one_person(open_page: OpenPage, store: Path):
    book = Book(judging.book_path(Store.open(store)))
    rows = Store.open(store).read().judgements("gold").head(2)
    queue = judging.propose(book, "lab", rows, "gold")
    app = open_page(store, "golden/judge", queue=queue.queue_id)
    assert_sound(app, "Golden sets")
    other = open_page(store, "golden/judge", queue=queue.queue_id)
    for each, name in ((app, "Anne"), (other, "Ben")):
        each.text_input(key="judge_name").set_value(name)
        each.button(key="FormSubmitter:take_queue-Judge these").click().run()
    key(app, "grade4")
    assert "Anne has taken this queue" in other.error[0].value
    assert book.queue(queue.queue_id).judge == "Anne"
    assert "Judge passages yourself" in answer(other), "nobody goes on in another's queue"


@pytest.mark.slow
def test_grades_between_two_stacks_say_what_they_decide(open_page: OpenPage, store: Path):
    asked = {f"q{number}": f"question {number}" for number in range(12)}
    made = Lab("logged").ask(asked).hold({name: name for name in ("common", "useless", "found")})
    made.run("old", final={query: ["common", "useless"] for query in asked})
    made.run("new", final={query: ["found", "common"] for query in asked}).write(store)
    opened = Store.open(store)
    contest = Contest(now="old", to="new", k=2)
    book = Book(judging.book_path(opened))
    pairs = draw(opened.read(), contest)
    queue = judging.propose(book, "logged", pairs, sampling=BETWEEN, seed=contest.seed)
    app = open_page(store, "golden/judge", ws="logged", queue=queue.queue_id)
    app.text_input(key="judge_name").set_value("Anne")
    app.button(key="FormSubmitter:take_queue-Judge these").click().run()
    assert "Nothing is decided yet: 0 of 12 queries judged." in everything(app)
    for item in book.items(queue.queue_id):
        key(app, f"grade{5 if item.passage_id == 'found' else 1}")
    assert_sound(app, "Golden sets")
    assert ": switch. The candidate's lead is +0.500" in everything(app)


@pytest.mark.slow
def test_another_judges_queue_asks_first(open_page: OpenPage, store: Path):
    started(open_page(store, "golden/judge"), "Anne")
    app = started(open_page(store, "golden/judge"), "Ben")
    (_, anne) = Book(judging.book_path(Store.open(store))).queues()
    app.selectbox(key="queue").set_value(anne.queue_id).run()
    assert "grades of two people never mix" in everything(app)
    assert not [each for each in app.button if (each.key or "").startswith("grade")]
    next(each for each in app.button if "Go on as Anne" in each.label).click().run()
    key(app, "grade1")
    assert_sound(app, "Golden sets")


@pytest.mark.slow
def test_a_press_that_was_meant_for_another_card_does_nothing(open_page: OpenPage, store: Path):
    app = started(open_page(store, "golden/judge"), "Anne")
    book = Book(judging.book_path(Store.open(store)))
    (queue,) = book.queues()
    key(app, "grade4")
    key(app, "undo")
    # A browser that is drawing still has the button of the second card when the first is back.
    late = next(each for each in app.button if (each.key or "").startswith("grade3"))
    late.click()
    app.session_state["_card_since"] = (queue.queue_id, 1, 0.0)
    app.run()
    assert [each.grade for each in book.items(queue.queue_id)] == [None, None, None]
    key(app, "grade5")
    assert [each.grade for each in book.items(queue.queue_id)] == [5, None, None]
    assert_sound(app, "Golden sets")


@pytest.mark.slow
def test_passages_are_drawn_by_what_they_are_worth(open_page: OpenPage, store: Path):
    app = open_page(store, "golden/judge")
    app.text_input(key="judge_name").set_value("Anne")
    app.selectbox(key="judge_sampling").set_value("by value")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert "No unjudged passage could change" in app.error[0].value
    lab = Lab("wide").judge({f"q{n}": {"a": 5, "b": 1} for n in range(6)}, "wide-gold")
    lab.ask({f"q{n}": "question" for n in range(6)}).hold({name: f"text {name}" for name in "abcd"})
    lab.run("one", final={f"q{n}": ["a", "c"] for n in range(6)})
    lab.run("two", final={f"q{n}": ["b", "d", "a"] if n % 2 else ["d", "b", "a"] for n in range(6)}).write(
        store
    )
    app = open_page(store, "golden/judge", ws="wide")
    app.text_input(key="judge_name").set_value("Anne")
    app.selectbox(key="judge_sampling").set_value("by value")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    book = Book(judging.book_path(Store.open(store)))
    (queue,) = book.queues("wide")
    assert queue.sampling == "by value"
    assert {each.passage_id for each in book.items(queue.queue_id)} <= {"c", "d"}


@pytest.mark.slow
def test_answers_are_graded_blind_and_written(open_page: OpenPage, store: Path):
    lab = (
        Lab("asked")
        .judge({"q1": {"p": 5}}, "asked-gold")
        .ask({"q1": f"which {HOSTILE[2]}?"})
        .run("hidden stack")
    )
    lab.answer("hidden stack", {"q1": 0.3}, k=5, reader="hidden reader").write(store)
    assert (
        "grade answers"
        not in open_page(store, "golden/judge", ws="lab").segmented_control(key="judge_mode").options
    )
    app = open_page(store, "golden/judge", ws="asked")
    app.segmented_control(key="judge_mode").set_value("grade answers").run()
    app.text_input(key="judge_name").set_value("Anne")
    app.button(key="FormSubmitter:start_judging-Start judging").click().run()
    assert_sound(app, "Golden sets")
    assert "How correct is the answer" in answer(app)
    assert "an answer" in [each.value for each in app.text]
    for told in ("hidden", "f1", "0.3", "top_k"):
        assert told not in everything(app), "the judge is blind"
    key(app, "grade4")
    key(app, "store_answers")
    assert_sound(app, "Golden sets")
    assert "1 score of Anne (correctness, scale 1-5)" in everything(app)
    rows = Store.open(store).read().answer_scores(["hidden stack"]).filter(judge="Anne")
    assert rows.select("value", "scale", "k", "reader").rows() == [(4.0, "1-5", 5, "hidden reader")]
