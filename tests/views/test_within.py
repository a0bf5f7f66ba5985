"""Limits hold on every page of Decide and Explain: what they leave out is named where it is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.api.workspace import Workspace
from core.store import Store
from core.views.blocks import Answer
from core.views.pages import GROUPS
from core.views.within import CHIP, NAMED, beyond, quoted, told

DEAR = ("router", "worth measuring more")  # Sections that simulate for long
NAMES = [
    "BM25, K = 10",
    "BM25, K = 100",
    "e 8 d, K = 10",
    "BM25 ⊕ e 8 d, K = 10",
    "BM25 ⊕ e 8 d + r, K = 10",
    "a.b",
]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("BM25, K = 10 leads.", ["BM25, K = 10"]),
        ("BM25, K = 100 leads.", ["BM25, K = 100"]),
        ("BM25 ⊕ e 8 d, K = 10 leads.", ["BM25 ⊕ e 8 d, K = 10"]),
        ("BM25 ⊕ f 8 d, K = 10 and f ⊕ e 8 d, K = 10 are others.", []),
        ("e 8 d, K = 10 beats BM25 ⊕ e 8 d + r, K = 10.", ["e 8 d, K = 10", "BM25 ⊕ e 8 d + r, K = 10"]),
        ("Twice: BM25, K = 10, and BM25, K = 10.", ["BM25, K = 10"]),
        ("a.b, not axb", ["a.b"]),
        ("axb", []),
        ("", []),
    ],
)
def test_a_name_is_found_as_a_whole(words: str, found: list[str]):
    assert quoted(NAMES, words) == found


def test_few_are_named_and_the_rest_counted():
    reasons = {f"s{place}": f"{place} ms over the SLA" for place in range(NAMED + 2)}
    assert told(reasons) == "s0: 0 ms over the SLA. s1: 1 ms over the SLA. s2: 2 ms over the SLA. 2 more."
    assert told({}) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collection", "limits"),
    [("docs-search", {"sla_ms": 20.0}), ("docs-search", {"sla_ms": 5.0, "budget": 0.0001}),
     ("clq-paper", {"sla_ms": 500.0, "budget": 1.0})],
)  # fmt: skip
def test_every_answer_names_what_the_limits_leave_out(
    shipped_store: Path, collection: str, limits: dict[str, float]
):
    """Of averages alone no answer quotes what others would choose."""
    decided = Workspace(Store.open(shipped_store), collection).decide(**limits)
    reasons = beyond(decided.view)
    assert reasons
    seen = 0
    for page in (*GROUPS["Decide"][1:], *GROUPS["Explain"]):
        for section in page.drawn():
            if section.name in DEAR:
                continue
            for block in decided.page(page.name, section.name or None).blocks:
                if isinstance(block, Answer):
                    words = f"{block.sentence} {block.details}"
                    left_out = [name for name in quoted(decided.view.table["name"], words) if name in reasons]
                    seen += bool(left_out)
                    assert all(name in block.caveats.get(CHIP, "") for name in left_out[:NAMED])
    assert seen or collection == "clq-paper", "some pages quote what others would choose"
