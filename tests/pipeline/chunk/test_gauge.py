"""Gauges: exact counts, and reaches that are near."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.pipeline.chunk import work as module
from core.pipeline.chunk.work import VOCABULARIES, gauge

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ["plain words and more of them", "日本語のテキスト", "a👩‍👩‍👧b😀", "x" * 50]
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_counts_are_those_of_the_vocabulary(name):
    import bpe_openai  # it warns while it is loaded

    encode = bpe_openai.get_encoding(name).encode_ordinary
    text = "L'été, naïve words and 日本語 — 12345 tokens.\n\n  Next 😀."
    measured = gauge(name, text)
    for start, end in ((0, len(text)), (3, 17), (5, 5), (20, 40)):
        assert measured.count(start, end) == len(encode(text[start:end]))
        assert measured.count(start, end, "Title\n") == len(encode("Title\n" + text[start:end]))


@given(text=_TEXT, data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", ["o200k_base", "estimate"])
def test_reaches_stay_within_the_text_and_near(name, text, data):
    if not text:
        return
    measured = gauge(name, text)
    start = data.draw(st.integers(0, len(text) - 1))
    tokens = data.draw(st.integers(1, 20))
    far = measured.reach(start, tokens)
    assert start < far <= max(len(text), start + 1)
    assert measured.count(start, far) <= tokens + 8
    begin = measured.back(far, tokens)
    assert 0 <= begin <= far
    assert abs(measured.about(start, far) - measured.count(start, far)) <= 8


def test_an_estimate_is_a_token_per_four_bytes():
    measured = gauge("estimate", "abcd日本é")
    assert [measured.count(0, end) for end in range(8)] == [0, 1, 1, 1, 1, 2, 3, 3]
    assert measured.count(0, 0, "abcde") == 2
    assert (measured.reach(0, 1), measured.reach(4, 1), measured.back(7, 1)) == (4, 5, 6)


def test_long_texts_are_encoded_in_parts(monkeypatch):
    text = "Some words, a line end\nand more words. " * 50
    whole = gauge("o200k_base", text)
    expected = whole.count(0, len(text))
    monkeypatch.setattr(module, "_BLOCK", 100)
    parts = gauge("o200k_base", text)
    assert parts.count(0, len(text)) == expected
    assert [parts.reach(0, n) for n in range(1, 300, 7)] == [whole.reach(0, n) for n in range(1, 300, 7)]
    unbroken = gauge("o200k_base", "x" * 1000)
    assert unbroken.count(0, 1000) > 0
