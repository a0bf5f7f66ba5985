"""Sections that show results say which question they answer."""

from core.views.pages import PAGES


def test_every_section_that_shows_results_says_which_question_it_answers() -> None:
    shown = [page for page in PAGES.values() if page.settings]
    questions = {f"{page.name}/{name}": page.question(name) for page in shown for name in page.sections}
    assert len(questions) >= 30
    assert {place for place, question in questions.items() if not question.endswith("?")} == set()
