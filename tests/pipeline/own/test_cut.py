"""Passages that a pipeline cut itself, as a chunking: what it returned, and the rest of the documents."""

from __future__ import annotations

import polars as pl
import pytest

from core.pipeline.anchors import judged
from core.pipeline.chunk import Chunked
from core.pipeline.evaluate.job import named_corpus
from core.pipeline.own.cut import OwnChunking, own_chunking
from core.pipeline.own.parts import DocumentShelf, shelf_of
from core.records import GoldenSet
from core.tables import frame

WORDS = " ".join(f"word{n}" for n in range(400))
TEXTS = {"a.md": WORDS, "b.md": f"Short.\n\n{WORDS[:900]}", "c.md": "One line."}


def shelf() -> DocumentShelf:
    passages = frame(
        "passages",
        {
            "collection_id": ["c"] * 3,
            "passage_id": list(TEXTS),
            "text": list(TEXTS.values()),
            "source": list(TEXTS),
        },
    )
    made = shelf_of(named_corpus(passages, frame("chunks", [])))
    assert isinstance(made, DocumentShelf)
    return made


def cut(*places: tuple[int, int, int] | int) -> tuple[OwnChunking, list[int]]:
    of = shelf()
    used = [of.position(place if isinstance(place, int) else list(place)) for place in places]
    of.position([0, 1, 2])  # of another query, never ranked
    return own_chunking("c", "r-0123456789ab", "My shop: v2", of, used), used


def test_what_was_returned_keeps_its_place_and_the_rest_is_cut_about_as_long() -> None:
    made, used = cut((0, 300, 700), (0, 650, 1_000), (1, 0, 6))
    assert made.name == "own-My-shop-v2-012345"
    (part,) = made.batch.collections
    assert (part.collection_id, part.part_of) == (f"c@{made.name}", "c")
    assert [made.passage_ids[at] for at in used] == [
        f"a.md#{made.name}:300-700", f"a.md#{made.name}:650-1000", f"b.md#{made.name}:0-6"
    ]  # fmt: skip
    chunks = made.batch.frames["chunks"].lazy().collect()
    assert chunks["passage_id"].is_unique().all()
    for source, text in TEXTS.items():
        places = chunks.filter(source=source).select("start_char", "end_char").rows()
        covered = {at for start, end in places for at in range(start, end)}
        assert {at for at, letter in enumerate(text) if not letter.isspace()} <= covered
    rest = chunks.filter(~pl.col("passage_id").is_in(made.passage_ids.to_list()))
    assert (rest["end_char"] - rest["start_char"]).max() <= 350
    texts = made.batch.frames["passages"].lazy().collect()
    placed = (
        texts.join(chunks, on="passage_id").select("source", "text", "start_char", "end_char").iter_rows()
    )
    assert all(TEXTS[source][start:end] == text for source, text, start, end in placed)


def test_a_document_that_was_returned_whole_is_one_of_its_passages() -> None:
    made, used = cut((0, 300, 700), 2)
    assert made.passage_ids[used[1]] == f"c.md#{made.name}:0-9"
    assert made.passage_ids[1] == ""


@pytest.mark.parametrize("found", [True, False])
def test_a_judged_place_that_it_never_found_counts_as_missed(found: bool) -> None:
    made, _ = cut((0, 300, 700))
    place = (320, 420) if found else (1_500, 1_600)
    spans = frame(
        "spans",
        {
            "golden_set_id": ["g"], "query_id": ["q"], "source": ["a.md"], "start_char": [place[0]],
            "end_char": [place[1]], "grade": [5], "raw": [5], "judge": ["me"],
        },
    )  # fmt: skip
    chunks = made.batch.frames["chunks"].lazy().collect()
    chunked = Chunked(
        name=made.name,
        chunker={},
        collection=made.batch.collections[0],
        passages=chunks.clear(),
        chunks=chunks,
    )
    derived = judged(GoldenSet(golden_set_id="g", collection_id="c", name="G"), spans, chunked)
    assert derived.lost.is_empty()
    returned = f"a.md#{made.name}:300-700"
    assert (returned in derived.judgements["passage_id"].to_list()) == found
    assert derived.judgements["grade"].to_list() == [5]
