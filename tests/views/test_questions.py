from core.views.pages import PAGES
from core.views.questions import QUESTIONS


def test_every_section_that_shows_results_says_which_question_it_answers() -> None:
    shown = [page for page in PAGES.values() if page.settings]
    assert set(QUESTIONS) == {f"{page.name}/{section}" for page in shown for section in page.sections}
    assert all(question.endswith("?") for question in QUESTIONS.values())
