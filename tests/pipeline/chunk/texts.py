"""Documents for the chunkers' tests: drawn, and one that people can check by eye."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from core.pipeline.documents import documents_frame
from core.pipeline.documents.formats import Content, Heading
from core.records import Collection

WHOLE = Collection(collection_id="c", name="C")

_WORDS = st.sampled_from(
    [
        "a",
        "lift",
        "boundary-layer",
        "Dr.",
        "e.g.",
        "3.14",
        "naïve",
        "œuvre",
        "日本語です。",
        "😀👩‍👩‍👧",
        "e\u0301",
        "Yes!",
    ]
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=6)
_GAPS = st.sampled_from([" ", " ", " ", " ", ". ", "? ", "\n", "\n\n", "\n \n", "\f", "  ", "\u00a0", "\t"])


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """A document of up to eighty words, with headings and pages anywhere."""
    parts = draw(st.lists(st.tuples(_WORDS, _GAPS), max_size=80))
    text = "".join(word + gap for word, gap in parts)
    places = st.integers(0, max(len(text) - 1, 0))
    starts = sorted(draw(st.sets(places, max_size=3)))
    headings = [
        Heading(at, draw(st.integers(1, 3)), draw(st.sampled_from(["Head", "Other head"]))) for at in starts
    ]
    pages = sorted(draw(st.lists(places, max_size=3)))
    title = draw(st.sampled_from(["", "Doc", "A title of several words that takes up room"]))
    return Content(text, title, tuple(headings), (0, *pages) if pages else ())


def frame_of(*given: Content) -> pl.DataFrame:
    return documents_frame([f"d{number}" for number in range(len(given))], given)
