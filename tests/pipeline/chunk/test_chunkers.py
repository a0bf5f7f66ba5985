"""What holds for every chunker and every text, and what each makes of one that people can check."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.pipeline.chunk import Chunked, chunk
from core.pipeline.chunk.methods import CHUNKERS
from core.pipeline.chunk.work import gauge
from core.pipeline.documents.formats import Content, Heading
from core.tables import TABLES
from tests.pipeline.chunk.texts import WHOLE, contents, frame_of

METADATA = st.sampled_from(["none", "title", "breadcrumb"])
TOKENIZERS = st.sampled_from(["o200k_base", "estimate"])
SIZES = st.integers(16, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size // 2 - 1)))
CUTTING = [method for method in CHUNKERS if method != "none"]


def made(chunker: dict[str, object], *documents: Content) -> Chunked:
    return chunk(frame_of(*documents), chunker, collection=WHOLE)


def texts(chunker: dict[str, object], *documents: Content) -> list[str]:
    return made(chunker, *documents).passages["text"].to_list()


_ODD = "\x80" * 3 + "\U00010000" * 2 + " 0\x80" + "\U00010000" * 4
ROUNDED = f"a? lift lift boundary-layer na\xefve e\u0301. {_ODD} a "
"""Its last two sentences fit by their sum, and not by their parts, of which each is rounded up."""


@pytest.mark.slow
@pytest.mark.parametrize("method", CUTTING)
@given(document=contents(), given_size=SIZES, metadata=METADATA, tokenizer=TOKENIZERS)
@example(Content(ROUNDED, "Doc", (), (0, 0)), (22, 9), "breadcrumb", "estimate")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_chunker_keeps_its_word(method, document, given_size, metadata, tokenizer):
    if not document.text.strip():
        return
    size, overlap = given_size
    chunker = {"method": method, "size": size, "metadata": metadata, "tokenizer": tokenizer}
    if "overlap" in {param.name for param in CHUNKERS[method].options}:
        chunker["overlap"] = overlap
    result = made(chunker, document)
    spans = result.chunks.select("start_char", "end_char").rows()
    text, measured = document.text, gauge(tokenizer, document.text)

    # Exact, in order, nothing empty, no blanks at the ends.
    for (start, end), passage in zip(spans, result.passages["text"], strict=True):
        assert passage == text[start:end] == passage.strip() != ""
    assert spans == sorted(spans)
    assert len(set(spans)) == len(spans)
    assert all(one[1] < other[1] for one, other in pairwise(spans))

    # All text is covered but blanks.
    covered = set().union(*(range(*span) for span in spans))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)

    # No longer than the size, metadata included; what is stored is what is counted.
    for title, passage, tokens in result.passages.select("title", "text", "tokens").iter_rows():
        whole = f"{title}\n{passage}" if title else passage
        assert tokens == measured.count(0, 0, whole) <= size

    # No more repeated than asked for.
    allowed = overlap if "overlap" in chunker else 0
    for (_, end), (start, _) in pairwise(spans):
        assert start >= end or measured.count(start, end) <= allowed


@given(document=contents())
@settings(max_examples=30, deadline=None)
def test_overlap_only_adds(document):
    """With overlap, sentence chunks end where whole sentences end: never within a word that fits."""
    if not document.text.strip():
        return
    plain = made({"method": "sentence", "size": 40, "overlap": 0}, document)
    spans = plain.chunks.select("start_char", "end_char").rows()
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


FIRST = "# Wings\n\nA wing makes lift. Dr. Smith measured it in 1958. The lift was small.\n\n"
SECOND = "## Drag\n\nDrag is the other force. It slows the wing down. Nobody likes drag."
PROSE = Content(FIRST + SECOND, "Wings", (Heading(0, 1, "Wings"), Heading(len(FIRST), 2, "Drag")))


def test_sentences_stay_whole_within_their_section():
    """The sentences have 5, 10, 5 and 6, 6, 4 tokens, the headings 2, the metadata 3 and 5."""
    found = made({"method": "sentence", "size": 22, "overlap": 8}, PROSE)
    assert found.passages.select("title", "text").rows() == [
        ("Wings", "# Wings\n\nA wing makes lift. Dr. Smith measured it in 1958."),
        ("Wings", "The lift was small."),
        ("Wings > Drag", "## Drag\n\nDrag is the other force. It slows the wing down."),
        ("Wings > Drag", "It slows the wing down. Nobody likes drag."),
    ]


def test_fixed_takes_as_many_tokens_as_fit():
    found = made({"method": "fixed", "size": 16, "overlap": 0, "metadata": "none"}, PROSE)
    assert found.passages["tokens"].to_list()[:-1] == [16] * (found.passages.height - 1)
    assert found.passages["text"][0] == "# Wings\n\nA wing makes lift. Dr. Smith measured it in 195"
    repeated = texts({"method": "fixed", "size": 16, "overlap": 5, "metadata": "none"}, PROSE)
    assert repeated[1].startswith("it in 1958.")


def test_recursive_prefers_the_largest_units():
    assert texts({"method": "recursive", "size": 30, "metadata": "none"}, PROSE) == [
        "# Wings\n\nA wing makes lift. Dr. Smith measured it in 1958. The lift was small.",
        "## Drag\n\nDrag is the other force. It slows the wing down. Nobody likes drag.",
    ]
    assert texts({"method": "recursive", "size": 16, "metadata": "none"}, PROSE) == [
        "# Wings",
        "A wing makes lift. Dr. Smith measured it in 1958.",
        "The lift was small.",
        "## Drag",
        "Drag is the other force. It slows the wing down. Nobody likes drag.",
    ]


def test_paragraphs_take_their_heading_along():
    assert texts({"method": "paragraph", "metadata": "none"}, PROSE) == [
        "# Wings\n\nA wing makes lift. Dr. Smith measured it in 1958. The lift was small.",
        "## Drag\n\nDrag is the other force. It slows the wing down. Nobody likes drag.",
    ]
    bare = Content("One.\n\nTwo is longer than one.\n\nThree.\n\n")
    assert texts({"method": "paragraph"}, bare) == ["One.", "Two is longer than one.", "Three."]
    assert texts({"method": "paragraph", "least": 4}, bare) == ["One.\n\nTwo is longer than one.", "Three."]
    under = Content("Head\n====\n\nText below.", "", (Heading(0, 1, "Head"),))
    assert texts({"method": "paragraph"}, under) == ["Head\n====\n\nText below."]


def test_pages():
    pages = Content("First page.\n\nSecond page. Of two sentences.", "Doc", pages=(0, 13, 13))
    found = made({"method": "page", "metadata": "breadcrumb"}, pages)
    assert found.passages.select("title", "text").rows() == [
        ("Doc > page 1", "First page."),
        ("Doc > page 3", "Second page. Of two sentences."),
    ]
    assert texts({"method": "page"}, PROSE) == [PROSE.text]


def test_documents_as_they_are():
    found = made({"method": "none"}, PROSE, Content(" padded "), Content("", "Only a title"))
    assert (found.name, found.collection) == (None, WHOLE)
    assert found.passages.select("passage_id", "title", "text").rows() == [
        ("d0", "Wings", PROSE.text),
        ("d1", None, " padded "),
        ("d2", "Only a title", ""),
    ]
    assert found.chunks.select("passage_id", "start_char", "end_char").rows() == [
        ("d0", 0, len(PROSE.text)),
        ("d1", 0, 8),
    ]


def test_the_records_of_a_chunking():
    found = made({"method": "paragraph", "metadata": "none"}, PROSE, Content("Alone."))
    assert found.name is not None
    assert found.collection.collection_id == f"c@{found.name}"
    assert found.collection.part_of == "c"
    assert found.passages.schema == TABLES["passages"]
    assert found.chunks.schema == TABLES["chunks"]
    assert found.passages["passage_id"].to_list() == [
        f"d0#{found.name}:0",
        f"d0#{found.name}:1",
        f"d1#{found.name}:0",
    ]
    assert found.passages["source"].to_list() == ["d0", "d0", "d1"]
    assert found.passages["tokenizer"].unique().to_list() == ["o200k_base"]
    assert found.chunks["passage_id"].equals(found.passages["passage_id"])
    assert set(found.chunks["collection_id"]) == {found.collection.collection_id}


def test_estimates_are_marked():
    found = made({"method": "fixed", "tokenizer": "estimate"}, PROSE)
    assert set(found.passages["tokenizer"]) == {"estimate"}
    assert made({"method": "fixed"}, PROSE).name != found.name


def test_metadata_never_takes_more_than_half():
    long = Content(
        "Text of the section.",
        "word " * 100,
        (Heading(0, 1, " ".join(["other"] * 9)), Heading(0, 2, "Short")),
    )
    (title,) = made({"method": "sentence", "size": 26, "overlap": 0}, long).passages["title"]
    assert title == " ".join(["other"] * 9) + " > Short"
    (title,) = made({"method": "sentence", "size": 20, "overlap": 0}, long).passages["title"]
    assert title == "Short"
    (title,) = made({"method": "fixed", "size": 20, "overlap": 0}, long).passages["title"]
    assert title is None


def test_languages_know_their_abbreviations():
    text = Content("M. Dupont est venu. Il est reparti.")
    assert texts({"method": "sentence", "size": 16, "overlap": 0, "language": "french"}, text) == [
        "M. Dupont est venu. Il est reparti."
    ]
    lines = list(
        made({"method": "sentence", "size": 16, "overlap": 0}, Content("Wort. " * 20)).passages["text"]
    )
    assert all(line.endswith(".") for line in lines)


def test_a_text_of_a_million_characters_without_blanks():
    found = made({"method": "fixed", "size": 8192, "overlap": 0}, Content("ab" * 600_000))
    assert found.passages["text"].str.len_chars().sum() == 1_200_000
    assert found.passages["tokens"].max() <= 8192


@pytest.mark.slow
@pytest.mark.parametrize("least", [0, 10**9])
def test_as_many_processes_as_one_likes(least, monkeypatch):
    monkeypatch.setattr("core.pipeline.chunk.PARALLEL_FROM", least)
    monkeypatch.setattr("core.pipeline.chunk.cores", lambda: 2)
    monkeypatch.setattr("core.pipeline.chunk._BLOCK", 200)
    documents = [Content(f"Document {number}. It has sentences. Three of them.") for number in range(12)]
    found = chunk(frame_of(*documents), {"method": "sentence"}, collection=WHOLE)
    assert found.passages.equals(made({"method": "sentence"}, *documents).passages)


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        (frame_of(), InputError, "No document has text"),
        (frame_of(Content(" \n")), InputError, "No document has text"),
        (pl.concat([frame_of(PROSE), frame_of(PROSE)]), InputError, "'d0' stands twice"),
    ],
)
def test_documents_that_cannot_be_cut(documents, error, message):
    for method in CHUNKERS:
        with pytest.raises(error, match=message):
            chunk(documents, {"method": method}, collection=WHOLE)


def test_only_source_and_text_are_needed():
    bare = pl.DataFrame({"source": ["a"], "text": ["Some text."]})
    assert chunk(bare, {"method": "sentence"}, collection=WHOLE).passages["text"].to_list() == ["Some text."]
    with pytest.raises(UnknownNameError, match="chunker 'semantic'"):
        chunk(bare, {"method": "semantic"}, collection=WHOLE)
