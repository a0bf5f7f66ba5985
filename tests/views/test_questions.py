"""Sections say which question they answer."""

from core.views.pages import PAGES


def test_every_section_says_which_question_it_answers() -> None:
    questions = {
        (page.name, name): page.question(name)
        for page in PAGES.values()
        for name in (*(part.name for part in page.drawn()), *page.own)
    }
    assert len(questions) >= 30
    assert {place for place, question in questions.items() if not question.endswith("?")} == set()
