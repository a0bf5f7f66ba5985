"""Passages that a pipeline names otherwise: by path, place, quote or heading, of documents or passages."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from core.pipeline.evaluate.job import named_corpus
from core.pipeline.own.parts import DocumentPart, DocumentShelf, shelf_of
from core.pipeline.own.passages import PassageShelf
from core.pipeline.own.paths import Paths
from core.pipeline.own.words import Worded, in_line
from core.tables import frame

RETURNS = (
    "# Returns\n\nParcels can be **returned** within 30 days of delivery.\n\n"
    "## Opened software\n\nOpened software cannot be returned, whatever the reason may be.\n\n"
    "## Example\n\nA parcel.\n\n## Example\n\nAnother parcel."
)
SHIPPING = "Orders before noon leave the warehouse on the same day. Islands take four days by boat."
SOFTWARE = "Opened software cannot be returned, whatever the reason may be."
DOCUMENTS = frame(
    "passages",
    {
        "collection_id": ["c"] * 2,
        "passage_id": ["guide/returns.md", "shipping.txt"],
        "title": ["Returns", None],
        "text": [RETURNS, SHIPPING],
        "source": ["guide/returns.md", "shipping.txt"],
    },
)
CHUNKS = frame(
    "chunks",
    {
        "collection_id": ["c@x"],
        "passage_id": ["guide/returns.md#x:0"],
        "source": ["guide/returns.md"],
        "start_char": [0],
        "end_char": [9],
    },
)


def at(text: str, document: int = 0) -> DocumentPart:
    start = (RETURNS, SHIPPING)[document].index(text)
    return DocumentPart(document, start, start + len(text))


ISLANDS = at("Islands take four days", 1)


def documents() -> DocumentShelf:
    shelf = shelf_of(named_corpus(DOCUMENTS, CHUNKS))
    assert isinstance(shelf, DocumentShelf)
    return shelf


def headed(heading: str, source: str = "returns.md") -> list[Any]:
    return [[], None, None, {"source": source, "heading": heading}]


MUCH = "Orders before noon leave our house on the same day, and islands take four days!"
# hit, what it is (the position of a document, a part of one, or None), how it is known
SECTION = at(f"## Opened software\n\n{SOFTWARE}")
OF_DOCUMENTS: dict[str, tuple[list[Any], int | DocumentPart | None, str]] = {
    "an id": ([["shipping.txt"], 1.0, "shipping.txt"], 1, "id"),
    "a path of another machine": ([["/home/me/guide/returns.md"], None, None], 0, "source"),
    "a name without its folder": ([["returns.md"], None, None], 0, "source"),
    "a name without its ending": ([["shipping"], None, None], 1, "source"),
    "the whole text": ([[], None, SHIPPING], 1, "text"),
    "an id with the whole text": ([["shipping.txt"], None, SHIPPING], 1, "id"),
    "characters": (
        [[], None, None, {"source": "shipping.txt", "start": 0, "end": 6}],
        at("Orders", 1),
        "span",
    ),
    "characters and text": (
        [[], None, SOFTWARE, {"source": "returns.md", "start": at(SOFTWARE).start}],
        at(SOFTWARE),
        "span",
    ),
    "characters of another version": (
        [[], None, SOFTWARE, {"source": "returns.md", "start": 3}],
        at(SOFTWARE[:-1]),
        "quote",
    ),
    "characters behind the end": (
        [[], None, None, {"source": "shipping.txt", "start": 5_000, "end": 5_010}],
        1,
        "source",
    ),
    "a quote": ([["c17"], 1.0, "Islands take four days", {"source": "shipping.txt"}], ISLANDS, "quote"),
    "a quote without a source": ([["c17"], 1.0, "islands  TAKE four\ndays"], ISLANDS, "quote"),
    "a quote without its marks": (
        [[], None, "Parcels can be returned within 30 days"],
        at("Parcels can be **returned** within 30 days"),
        "quote",
    ),
    "a part under the id of its document": (
        [["shipping.txt"], None, "Islands take four days"],
        ISLANDS,
        "quote",
    ),
    "other words under the id of its document": ([["shipping.txt"], None, "On boats."], None, ""),
    "much of it under the id of its document": (
        [["shipping.txt"], None, MUCH],
        1,
        "id",
    ),
    "a passage that was cut before": ([["guide/returns.md#x:0"], None, None], DocumentPart(0, 0, 9), "id"),
    "nearly all of it": ([[], None, SHIPPING[:-1]], 1, "quote"),
    "a heading": (headed("Opened software"), SECTION, "heading"),
    "a heading with marks": (headed("## Opened *software*"), SECTION, "heading"),
    "a heading that stands twice": (headed("Example"), None, ""),
    "a heading without a source": ([[], None, None, {"heading": "Opened software"}], None, ""),
    "a heading of no document": (headed("Opened software", "x.md"), None, ""),
    "an id of nothing": ([["elsewhere"], 1.0, "elsewhere"], None, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_DOCUMENTS)
def test_parts_of_documents_are_known_by_where_they_stand(case: str) -> None:
    hit, expected, way = OF_DOCUMENTS[case]
    shelf = documents()
    placed = shelf.place([hit], "headings")
    found = [at if at < len(shelf) else shelf.parts[at - len(shelf)] for at in placed.passages]
    assert found == ([] if expected is None else [expected])
    assert dict(placed.known_by) == ({} if expected is None else {way: 1})
    assert placed.unmatched == (expected is None)


def test_headings_are_offered_where_they_are_not_used() -> None:
    hits = [OF_DOCUMENTS[name][0] for name in ("a heading", "a heading that stands twice", "an id")]
    placed = documents().place(hits)
    assert (placed.unmatched, placed.headed) == (2, 1)
    assert placed.named == ["returns.md, opened software", "returns.md, example"]


def test_ids_alone_are_ids_alone() -> None:
    shelf = documents()
    placed = shelf.place([hit for hit, *_ in OF_DOCUMENTS.values()], "ids")
    assert placed.known_by.keys() == {"id", "text"}
    assert not shelf.parts


def test_what_is_kept_is_found_again_on_another_shelf() -> None:
    one, other = documents(), documents()
    placed = one.place([hit for hit, *_ in OF_DOCUMENTS.values()], "headings")
    kept = [one.kept(at) for at in placed.passages]
    other.position([1, 0, 6])  # what others return comes first there
    assert [other.kept(other.position(each)) for each in kept] == kept
    name, text = one.shown(one.position(list(at(SOFTWARE))))
    assert name.startswith("guide/returns.md, characters ")
    assert text == SOFTWARE


def test_a_part_that_stands_twice_in_an_answer_counts_once() -> None:
    quote = [["a"], 1.0, "Islands take four days"]
    placed = documents().place([quote, [["b"], 0.5, "Islands take four days"], [["shipping.txt"], 0.1, None]])
    assert (len(placed.passages), placed.repeated, placed.scores) == (2, 1, [1.0, 0.1])


PASSAGES = frame(
    "passages",
    {
        "collection_id": ["c"] * 4,
        "passage_id": ["a", "b", "c", "d"],
        "title": ["Cats", "Dogs", "Dogs", None],
        "text": [
            "Cats purr when they are content and warm.",
            "Dogs bark at strangers who pass by.",
            "Dogs bark at strangers who pass by the house, and at the moon.",
            "Cows moo in the field before they are milked.",
        ],
        "source": ["pets.md", "pets.md", "farm/dogs.md", "farm/cows.md"],
    },
)
OF_PASSAGES: dict[str, tuple[list[Any], str | None, str]] = {
    "an id": ([["b"], None, "anything"], "b", "id"),
    "the text": ([[], None, "Dogs  bark at strangers who pass by."], "b", "text"),
    "a text within": ([[], None, "purr when they are CONTENT"], "a", "quote"),
    "a text around": (
        [[], None, "Intro. Dogs bark at strangers who pass by the house, and at the moon. End."],
        "c",
        "quote",
    ),
    "a text within one of its source": (
        [[], None, "bark at strangers", {"source": "/x/farm/dogs.md"}],
        "c",
        "quote",
    ),
    "a text of another source": ([[], None, "bark at strangers", {"source": "cows.md"}], None, ""),
    "a heading": ([[], None, None, {"source": "pets.md", "heading": "dogs"}], "b", "heading"),
    "a heading of none": ([[], None, None, {"source": "cows.md", "heading": "Cows"}], None, ""),
    "nothing": ([["x"], None, "x"], None, ""),
}


@pytest.mark.parametrize("case", OF_PASSAGES)
def test_what_is_cut_otherwise_is_the_passage_that_it_stands_in(case: str) -> None:
    hit, expected, way = OF_PASSAGES[case]
    shelf = shelf_of(named_corpus(PASSAGES, None))
    assert type(shelf) is PassageShelf
    placed = shelf.place([hit], "headings")
    assert [PASSAGES["passage_id"][at] for at in placed.passages] == ([] if expected is None else [expected])
    assert dict(placed.known_by) == ({} if expected is None else {way: 1})


def test_names_of_documents_are_told_from_passages_of_nothing() -> None:
    shelf = shelf_of(named_corpus(PASSAGES, None))
    placed = shelf.place([[["a/pets.md"], None, None], [["farm/cows.md"], None, None], [["x"], None, "x"]])
    assert (placed.unmatched, placed.documents) == (3, 2)
    assert placed.unknown("places").endswith("2 name documents, of which it holds passages")


NAMES = ["guide/returns.md", "shop/returns.md", "shipping.txt", "About us.html"]
FOUND = {
    "guide/returns.md": 0,
    "/srv/docs/shop/returns.md": 1,
    "returns.md": None,  # of two
    "C:\\docs\\shipping.txt": 2,
    "file:///docs/About%20us.html#team": 3,
    "https://example.org/shop/returns.md?v=2": 1,
    "SHIPPING": 2,
    "other/returns.md": None,
    "": None,
}


@pytest.mark.parametrize("name", FOUND)
def test_a_path_means_the_only_document_that_it_can(name: str) -> None:
    assert Paths((each, at) for at, each in enumerate(NAMES)).find(name) == FOUND[name]


LONG = " ".join(f"word{n}" for n in range(60))
QUOTES = {
    "word by word": ("word3 word4", "word3 word4"),
    "other marks": ("Word3, *word4*", "word3 word4"),
    "changed in the middle": (LONG.replace("word30", "other thing"), LONG),
    "another end": (LONG.replace("word58", "x"), None),
    "too long between": (f"{' '.join(LONG.split()[:9])} {' '.join(LONG.split()[-9:])}", None),
    "not there": ("word3 word5", None),
    "half a word": ("ord3 word4", None),
}


@pytest.mark.parametrize("case", QUOTES)
def test_a_quote_is_found_by_its_words(case: str) -> None:
    quote, expected = QUOTES[case]
    text = f"Before. {LONG}. After."
    found = Worded(text).find(in_line(quote))
    assert (None if found is None else text[slice(*found)]) == expected


def test_a_text_without_words_is_nowhere() -> None:
    assert in_line("…!") == ""
    assert Worded("").find(" a ") is None
    assert pl.Series([Worded("ß STRASSE").find(in_line("strasse"))]).is_not_null().all()
