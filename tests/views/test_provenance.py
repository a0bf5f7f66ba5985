"""What the grades behind an answer are, in one line."""

import pytest

from core.pipeline.demo_docs import golden_sets
from core.views.words.judging import graded, searched


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (
            golden_sets()[0].judge,
            "150 queries; graded by language models, which wrote the queries too, checked by nobody.",
        ),
        ("Ann.", "150 queries; graded by Ann."),
        ("", "150 queries; who graded is not on record."),
        ("w " * 40, "150 queries; graded by w w w w w w w w w w…."),
        ("w" * 400, f"150 queries; graded by {'w' * 89}…."),
    ],
)
def test_the_line_says_what_the_store_knows_and_stays_short(judge: str, said: str) -> None:
    words = graded({"queries": 150, "judge": judge})
    assert words == said
    assert len(words.split()) <= 14


@pytest.mark.parametrize(
    ("name", "passages", "said"),
    [("Docs", 3423, "Docs; 3,423 passages; "), ("Docs", 0, "Docs; "), ("", 1, "1 passage; "), (None, 0, "")],
)
def test_the_line_begins_with_what_is_searched(name: str | None, passages: int, said: str) -> None:
    assert searched({"name": name, "passages": passages}) == said
