"""What the search finds, by which words, and that all of it is there to be opened."""

import json
import re

import polars as pl
import pytest

from core.metrics import REGISTRY
from core.paths import DOCS
from core.ui.address.state import SETTINGS
from core.views.finding import MOST_STACKS, WORDS, Found, document, everywhere, found_in, sent
from core.views.pages import PAGES, SECTION
from tests.stores import HOSTILE

NO_TABLE = pl.DataFrame()


def of(kind: str) -> list[Found]:
    return [each for each in everywhere() if each.kind == kind]


def test_every_place_is_found_once_and_opens_itself() -> None:
    pages = [each.page for each in of("page")]
    assert pages == list(PAGES)
    opened = [(each.page, each.asked.get(SECTION)) for each in of("section")]
    assert opened == [
        (page.name, section if at else None)
        for page in PAGES.values()
        for at, section in enumerate(page.sections)
    ]
    assert {*WORDS} <= {place for page in PAGES.values() for place in page.places}


def test_measures_settings_and_documents_lead_to_what_is_there() -> None:
    assert {each.asked["ref"] for each in of("measure")} <= set(REGISTRY)
    assert {each.page for each in of("measure")} == {"measures"}
    assert (
        {"sla_ms", "budget", "min_quality", "jitter", "book"}
        <= {each.name for each in of("setting")}
        <= set(SETTINGS)
    )
    assert {each.name for each in of("document")} == {file.stem for file in DOCS.glob("*.md")}


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("recall", "R"),
        ("recall", "Headroom"),
        ("p95", "Latency percentile"),
        ("percentile", "Latency"),
        ("reranker", "Headroom"),
        ("reranker", "K curves → by candidate depth"),
        ("MRR", "RR"),
        ("judge", "Golden sets → judges"),
        ("qrels", "Golden sets"),
        ("HNSW", "Latency → index loss"),
        ("jitter", "Jitter (ms)"),
        ("upload", "Add results"),
        ("monthly", "Cost"),
        ("sure", "Confidence"),
    ],
)
def test_the_words_of_the_field_find_a_place(word: str, title: str) -> None:
    found = {
        each.title
        for each in everywhere()
        if word.lower() in f"{each.title} {each.about} {each.words}".lower()
    }
    assert title in found or any(name.startswith(title) for name in found), sorted(found)


@pytest.mark.parametrize("names", [[], ["one"], list(HOSTILE), [f"s{at}" for at in range(MOST_STACKS + 1)]])
def test_stacks_come_last_as_text_and_no_more_than_a_browser_looks_through(names: list[str]) -> None:
    table = pl.DataFrame({"name": names}, schema={"name": pl.String})
    stacks = found_in(table)[len(everywhere()) :]
    assert [each.asked["stack"] for each in stacks] == names[:MOST_STACKS]
    assert {each.page for each in stacks} <= {"decision"}
    rows = json.loads(sent(table))
    assert [row[1] for row in rows] == [each.title for each in found_in(table)]
    assert sent(table) is sent(table)
    assert found_in(NO_TABLE) == everywhere()
    (room,) = found_in(table, (("<b>mine</b>", "My docs"),))[len(everywhere()) + len(stacks) :]
    assert (room.kind, room.title, room.about) == ("workspace", "<b>mine</b>", "My docs")
    assert room.asked == {"ws": "<b>mine</b>"}


@pytest.mark.parametrize("name", [file.stem for file in sorted(DOCS.glob("*.md"))])
def test_a_document_is_read_without_remarks_and_ways_to_files(name: str) -> None:
    text = document(name)
    assert "<!--" not in text
    assert not re.findall(r"\]\((?!https?:)[\w./#-]+\)", text)


def test_a_reranker_finds_its_stacks_and_what_has_nothing_to_say_is_marked() -> None:
    table = pl.DataFrame({"name": ["one", "two"], "reranker": ["cross", "none"]})
    assert [each.words for each in found_in(table)[-2:]] == ["reranker cross", ""]
    rows = json.loads(sent(table, frozenset({"readers", "latency/generator"})))
    marked = {(kind, title) for kind, title, *_, below in rows if below}
    assert {("page", "Readers"), ("section", "Latency → generator")} <= marked
    assert all(title.startswith(("Readers", "Latency → generator")) for _, title in marked)
    assert not any(row[-1] for row in json.loads(sent(table)))
