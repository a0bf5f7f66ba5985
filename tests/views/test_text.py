import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bidi import isolated
from core.views import text

NOTHING = (None, math.nan)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.8041, "0.804"),
        (0, "0.000"),
        (1, "1.000"),
        (0.0004, "0.000"),
        (0.0005001, "0.001"),
        (-0.5, "−0.500"),
    ],
)
def test_score(value: float, shown: str):
    assert text.score(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00 ms"), (1e-9, "0.00 ms"), (0.00014, "0.00014 ms"), (0.0023, "0.0023 ms"),
     (0.042, "0.04 ms"), (4.2, "4.20 ms"), (42.26, "42.3 ms"), (333.4, "333 ms"),
     (1000, "1.00 s"), (2934, "2.93 s"), (61_000, "61.00 s")],
)  # fmt: skip
def test_ms(value: float, shown: str):
    assert text.ms(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.852, "85.2 %"), (0, "0.0 %"), (1, "100.0 %")])
def test_percent(value: float, shown: str):
    assert text.percent(value) == shown


@pytest.mark.parametrize("nothing", NOTHING)
def test_what_is_not_there_is_never_zero(nothing: float | None):
    assert not text.known(nothing)
    assert text.score(nothing) == "–"
    assert text.percent(nothing) == "–"
    assert text.ms(nothing) == "unknown"
    assert text.usd(nothing) == "unknown"
    assert text.interval(nothing, 0.5) == text.interval(0.5, nothing) == ""


def test_units_intervals_and_samples():
    assert text.interval(0.75, 0.85) == " [0.750, 0.850]"
    assert text.sample(50) == "n = 50"
    assert text.sample(None) == "n unknown"


@pytest.mark.parametrize(
    ("number", "words", "shown"),
    [(0, ("query", "queries"), "0 queries"), (1, ("query", "queries"), "1 query"),
     (3512, ("passage",), "3,512 passages"), (1, ("row",), "1 row")],
)  # fmt: skip
def test_count(number: int, words: tuple[str, ...], shown: str):
    assert text.count(number, *words) == shown


@pytest.mark.parametrize(
    ("long", "length", "short"),
    [("", 5, ""), ("abcde", 5, "abcde"), ("abcdef", 5, "abcd…"), ("abc  def", 6, "abc…")],
)
def test_shorten(long: str, length: int, short: str):
    assert text.shorten(long, length) == short


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["one", "two"], ["one", "two"]),
        (["a long name", "two"], ["a lon…", "two"]),
        (["a long K = 50", "a long K = 20"], ["…50", "…20"]),
        (["long name 50", "long name 20"], ["…50", "…20"]),
        (["the same name", "the same name"], ["the s…", "the s…"]),
    ],
)
def test_unlike_names_stay_unlike(names: list[str], shown: list[str]):
    """As far as the length lets them."""
    assert text.unlike(names, 6) == shown


@given(st.text())
def test_escaped_text_has_no_tag_and_reads_the_same(raw: str):
    escaped = text.escape(raw)
    assert "<" not in escaped
    assert ">" not in escaped
    assert escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == isolated(raw)


def read(markdown: str) -> str:
    """What Markdown makes of backslashes before punctuation (CommonMark 2.4), without word joiners."""
    return re.sub(r"""\\([!-/:-@\[-`{-~])""", r"\1", markdown).replace("\u2060", "")


CONSTRUCTS = (
    "# head", "1. one", "1) one", "- one", "+ one", "* one", "> quote", "---", "===", "***bold*** _it_ __b__",
    "`code` ```fence``` ~~~fence~~~", "~~gone~~", "[x](javascript:alert(1))", "![x](http://evil/x.png)",
    "[x]: http://evil", "[^1]", "<b>x</b>", "<script>alert(1)</script>", "<https://evil.example>", "&lt; &c;",
    "| a | b |", "$x$ and $$y$$", ":red[x] :blue-background[y]", ":::note", "a\\", "\\*", "{.class}", "q 'q'",
)  # fmt: skip


@pytest.mark.parametrize("raw", CONSTRUCTS)
def test_no_markdown_construct_survives(raw: str):
    made = text.plain(raw)
    assert read(made) == raw
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_{}\[\]()<>#+.!|~$:&^=\"'-]", made)


@pytest.mark.parametrize(
    "raw",
    ["https://evil.example", "HTTP://evil.example", "www.evil.example", "WWW.evil.example",
     "me@evil.example", "mailto:me@evil.example", ":material/delete:", ":streamlit:", ":smile:", ":+1: :a_b:",
     "a -> b", "a <- b",     "a <-> b", "a -- b --- c", "a >= b", "a <= b", "a ~= b"],
)  # fmt: skip
def test_what_streamlit_replaces_after_the_escapes_is_broken_by_a_joiner(raw: str):
    made = text.plain(raw)
    assert read(made) == raw
    words = re.sub(r"\\(.)", r"\1", made)  # what the browser's last step sees
    late = r"https?://|www\.|\w@[-\w]+\.[-\w]|:material/\w+:|:\w+:|<?->|<-|--|[<>~]="
    assert not re.search(late, words, re.IGNORECASE)


@pytest.mark.parametrize("raw", ["RA-nWG@10", "dense@50 and rrf100@100.", "a:b", "K = 50", "Äö ⊕ 日本"])
def test_ordinary_words_keep_their_letters(raw: str):
    assert "\u2060" not in text.plain(raw)
    assert read(text.plain(raw)) == raw


@pytest.mark.parametrize(
    "raw", ["RA-nWG@10", "Quality floor (RA-nWG@10)", "BM25 ⊕ voyage-3.5 + rerank-2.5, K = 50", "85.2 %"]
)
def test_what_means_nothing_in_markdown_is_read_aloud_as_it_is_written(raw: str):
    assert text.plain(raw) == raw


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n", "\u2028", "\x0b", "\n\n\n"])
def test_one_line_in_is_one_line_out(newline: str):
    made = text.plain(f"one{newline}# two")
    assert len(made.splitlines()) == 1
    assert read(made).split() == ["one", "#", "two"]


@given(st.text())
def test_plain_reads_as_it_was_written(raw: str):
    assert read(text.plain(raw)) == isolated(" ".join(raw.splitlines())).replace("\u2060", "")


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (4_600, "4.6 kB"), (3_756_106, "3.8 MB")],
)
def test_sizes_in_words(size: int, words: str):
    assert text.format_bytes(size) == words


@pytest.mark.parametrize(
    "name", ["rerank-2.5, USD per 1,000,000 input tokens", "voyage-3.5 512 d + rerank-2.5", "é 3"]
)
def test_a_calm_label_is_read_out_as_it_is(name: str):
    assert text.label(name) == name


@pytest.mark.parametrize(
    "name",
    ["**x**", "a_b_", "1. one", "- one", "a -> b", "a -- b", "<b>", "[a](b)", ":red[x]", "www.x.org", "`x`",
     "$x$", "a@b.org", "https://x", "~~x~~", "", "# x", "a\nb"],
)  # fmt: skip
def test_any_other_label_is_escaped(name: str):
    assert text.label(name) == text.plain(name)


def test_a_list_of_names_never_hides_a_single_one():
    assert text.first_of(["a", "b"], 3) == "a, b"
    assert text.first_of(["a", "b", "c", "d"], 3) == "a, b, c, d"
    assert text.first_of(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 more"
