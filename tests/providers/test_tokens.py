import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UnknownNameError
from core.paths import DEMO
from core.providers import tokens
from core.providers.tokens import ESTIMATE, VOCABULARIES, counter

DEMO_README = DEMO / "README.md"


@pytest.mark.parametrize(
    ("name", "text", "count"),
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
def test_counts(name: str | None, text: str, count: int):
    assert counter(name).count(text) == count


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_tiktoken_counts_from_its_cache_and_agrees(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The file that tiktoken would download, written from the same vocabulary in a wheel: byte for byte."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    ours = tokens.encoding_of(name)
    assert not type(ours).__module__.startswith("tiktoken.")
    ranks = sorted((rank, token) for token, rank in ours._mergeable_ranks.items())
    lines = (base64.b64encode(token) + b" " + str(rank).encode() + b"\n" for rank, token in ranks)
    key = hashlib.sha1(tokens._ADDRESS.format(name).encode()).hexdigest()  # noqa: S324 - tiktoken's own key
    (tmp_path / key).write_bytes(b"".join(lines))
    monkeypatch.setattr("tiktoken.load.read_file", lambda _: pytest.fail("asked the network"))
    theirs = tokens.encoding_of(name)
    assert type(theirs).__module__ == "tiktoken.core"
    text = DEMO_README.read_text(encoding="utf-8") + "naïve 東京 📈 \u200b <|endoftext|>"
    assert theirs.encode_ordinary(text) == list(ours.encode_ordinary(text))
    (tmp_path / key).write_bytes(b"cut")
    assert not type(tokens.encoding_of(name)).__module__.startswith("tiktoken."), "no file to be trusted"
