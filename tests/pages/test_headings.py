"""Headings: one sentence of at most 14 words, with its number, without a hedge; on every sample workspace."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from core.analysis.workspace.view import View
from core.report.page import Said, flat
from core.views.blocks import Answer, Cards, Chart, Comparison, Fold, Table, Text
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES_OF, answer, unescaped
from tests.pages.test_places import DRAWN, collections, said, workspace

MOST = 14
HEDGES = {
    "about", "almost", "apparently", "basically", "fairly", "hardly", "maybe", "might", "mostly", "perhaps",
    "possibly", "probably", "quite", "rather", "roughly", "seems", "somewhat",
}  # fmt: skip
NAMING = ("measures", "decision")
"""Places whose heading defines a measure or names the stack to ship; its numbers are the cards."""
OTHERWISE = {
    r"best reachable": "PROC",
    r"ceilings?": "PROC",
    r"holes?": "unjudged",
    r"questions?": "query, as a heading counts them; documents may say question",
    r"qrels": "judgements",
    r"chunks?": "passage",
    r"configs?|configurations?|pipelines?": "stack",
}
"""Words that a heading does not use, with the term that stands for the thing on every page."""
NOWHERE = {
    r"recommended stack|today's choice": "chosen stack",
    r"next best|nearest rivals?": "runner-up",
    r"K candidates": "candidate depth",
    r"unlimited queries": "endless queries",
    r"configs?|configurations?": "stack",
    r"oracle": "perfect router, or PROC",
    r"won back|win back": "recovered",
    r"doubt left": "could still change",
    r"kinds? of questions?": "kind of query",
    r"held-out questions?": "held-out query: questions are what people write into golden sets",
    r"cut-offs?": "cutoff",
    r"drawn towards": "corrected for",
}
"""Words that no page shows, be it below its heading, on a card, above a field, in a fold, chart or table."""
SHOWN_ON: Mapping[str, Mapping[str, str]] = {
    r"generators?": {"readers": "reader", "latency/generator": "the stage is called so"},
    r"collections?": {
        "library": "it lists the store's collections, of which some are no workspace",
        "readers/gains": "its columns are those of several collections",
    },
}
"""Words that some pages show, with the reason; the term elsewhere is reader, and workspace or corpus."""
UNKNOWN = r"unknown|Unknown|^No(thing|ne)?\b|^There is no\b"
"""What a heading says where there is no number."""
_ONE = re.compile(
    r"\b[nK] = [\d,.]+( (queries )?from [\d,]+ \w+)?"
    r"|(?<![\w@-])[+−<>≤≥≈±]? ?\$?\d[\d,.]*( ?(%|ms|s|d)(?!\w)| / 1[kM])?( \[[^\]]*\])?"
)


def counted(heading: str) -> list[str]:
    """The words of a heading: a number with its unit and interval is one, and so is n."""
    return [word for word in _ONE.sub(" 1 ", heading).split() if re.search(r"\w", word)]


def named(heading: str, names: Collection[str]) -> str:
    """A heading in which the name of a stack, long as it may be, is one word."""
    for name in sorted(names, key=len, reverse=True):
        heading = heading.replace(name, "X")
    return heading


def faults(found: Said, names: Collection[str], place: str) -> list[str]:
    """What is wrong with the heading of a section."""
    heading = named(found.answer, names)
    words = counted(heading)
    numbers = any(isinstance(block, Cards | Comparison | Chart) for block in found.blocks)
    wrong = {
        f"{len(words)} words": len(words) > MOST,
        "no number": numbers and place not in NAMING and not re.search(rf"\d|{UNKNOWN}", heading),
        "hedged": bool({word.lower().strip(",.;:") for word in words} & HEDGES),
        "another name": next((term for word, term in OTHERWISE.items() if _said(word, heading)), ""),
        "two sentences": bool(re.search(r"[.!?] [A-Z]", heading)),
    }
    return [
        f"{fault}: {there}" if isinstance(there, str) else fault for fault, there in wrong.items() if there
    ]


def shown(found: Said) -> Iterator[str]:
    """What a section shows beside its heading: sentences, cards, names in charts, columns, labels, folds."""
    for block in flat(found.blocks):
        match block:
            case Answer():
                yield from (block.details, *block.caveats, *block.caveats.values())
            case Cards():
                yield from (words for card in block.cards for words in card)
            case Text():
                yield from (block.label, block.words)
            case Chart():
                layout, legend = block.figure.layout, (trace.name for trace in block.figure.data)
                yield from (
                    str(words) for words in (layout.xaxis.title.text, layout.yaxis.title.text, *legend)
                )
            case Table():
                yield from (column.label for column in block.of.every)
    yield from (block.title for block in found.blocks if isinstance(block, Fold))
    yield from (str(choice["label"]) for choice in found.choices.values())


def misnamed(found: Said, place: str) -> list[str]:
    """What a section shows by another name than every page has for it."""
    page = place.partition("/")[0]
    words = [*NOWHERE, *(word for word, pages in SHOWN_ON.items() if not {page, place} & pages.keys())]
    return [f"{word}: {line}" for line in shown(found) for word in words if _said(word, line)]


def _said(word: str, heading: str) -> bool:
    return bool(re.search(rf"\b({word})\b", heading, re.IGNORECASE))


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("X finds nothing useful on 8 of 64 queries.", 9),
        ("BM25 ⊕ e 8 d + r, K = 10 is within 0.01 of the best in 58 % of resamples (n = 64).", 12),
        ("RA-nWG of a rises from 0.852 [0.8, 0.9] with 10 passages to 0.918 with 30 (n = 2,837).", 14),
        ("It costs $0.5036 / 1k, −3.2 ms and 1.00 s.", 6),
    ],
)
def test_words_are_counted_as_they_are_read(heading: str, words: int):
    assert len(counted(named(heading, {"BM25 ⊕ e 8 d + r, K = 10"}))) == words


@pytest.mark.slow
@pytest.mark.parametrize("place", DRAWN)
@pytest.mark.parametrize("kind", ["shipped_store", "demo_store", "answered_store"])
def test_a_heading_is_one_short_sentence_with_its_number(
    request: pytest.FixtureRequest, kind: str, place: str
):
    store: Path = request.getfixturevalue(kind)
    whole = PAGES_OF[place.partition("/")[0]].settings
    wrong = {}
    for collection in collections(store):
        view = workspace(store, collection, whole=whole)
        found = said(store, place, collection)
        listed = [table.rows["stack"] for table in found.tables.values() if "stack" in table.rows.columns]
        listed += [view.table["name"]] if isinstance(view, View) else []
        names = {name for stacks in listed for name in stacks.drop_nulls()}
        if why := [*faults(found, names, place), *misnamed(found, place)]:
            wrong[collection] = (*why, found.answer)
    assert not wrong


def test_words_with_a_hyphen_stay_whole_in_a_heading_and_the_menu_says_what_a_workspace_holds(
    open_page: OpenPage, published_store: Path
):
    app = open_page(published_store, "decision", ws="clq-paper")
    words = [word for word in app.title[0].value.split() if "-" in word]
    assert words
    assert {(word[0], word[-1]) for word in words} == {("*", "*")}
    assert "*" not in answer(app)
    there = open_page(published_store, "compare", ws="clq-paper")
    assert unescaped(there.title[0].help) == "RA-nWG@10: share of the best possible evidence in ten passages"
    assert "clq-paper: CLQ paper corpus" in unescaped(app.selectbox(key="ws").help)
