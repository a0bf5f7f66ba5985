import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UnknownNameError
from core.providers.tokens import ESTIMATE, VOCABULARIES, counter


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("cl100k_base", "hello world", 2),  # tiktoken's own documentation counts so
        ("o200k_base", "hello world", 2),
        ("voyage3_base", "hello world", 2),
        ("cl100k_base", "tiktoken is great!", 6),  # OpenAI cookbook, "How to count tokens with tiktoken"
        ("o200k_base", "", 0),
        (None, "", 0),
        (None, "four", 1),
        (None, "fives", 2),
        (ESTIMATE, "é" * 4, 2),
        (ESTIMATE, "東京", 2),
    ],
)
def test_counts(name: str | None, text: str, tokens: int):
    assert counter(name).count(text) == tokens


def test_counts_say_what_they_are():
    assert [counter(name).exact for name in (*VOCABULARIES, None)] == [True, True, True, False]
    assert counter("o200k_base").note == ""
    assert "not checked" in counter("voyage3_base").note
    assert "estimated" in counter(None).note
    assert counter(None).name == ESTIMATE


@pytest.mark.parametrize("name", [*VOCABULARIES, None])
@given(text=st.text(st.characters(codec="utf-8"), max_size=300))
def test_the_ceiling_bounds_every_vocabulary(name: str | None, text: str):
    counts = {each: counter(each).count(text) for each in VOCABULARIES}
    assert counter(None).ceiling(text) >= max(counts.values())
    assert counter(name).ceiling(text) >= counter(name).count(text)


@pytest.mark.parametrize("text", ["<|endoftext|>", "a\ud800b", "\x00"])
def test_odd_texts_are_counted(text: str):
    for name in (*VOCABULARIES, None):
        assert counter(name).count(text) >= 1


def test_a_vocabulary_that_is_not_at_hand():
    with pytest.raises(UnknownNameError, match="voyage3_base"):
        counter("gpt2-medium")
