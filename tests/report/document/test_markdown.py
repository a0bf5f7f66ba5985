import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from core.bidi import isolated
from core.report.document.blocks import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Fold,
    Link,
    Note,
    Notes,
    Say,
    Section,
    Table,
    Tile,
    Tiles,
)
from core.report.document.markdown import escaped, markdown
from tests.stores import HOSTILE

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(written: str) -> str:
    """The text of a paragraph as a reader sees it."""
    (block,) = [token for token in READER.parse(written) if token.type == "inline"]
    assert {each.type for each in block.children} <= {"text", "text_special"}
    return "".join(each.content for each in block.children).replace("\u2060", "")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"]), min_size=1))
def test_any_text_is_read_as_it_was_written(text: str):
    line = " ".join(text.split())
    if line:
        assert read(escaped(text)) == isolated(line)


@pytest.mark.parametrize(
    "text", [*HOSTILE, "1. a", "- a", "+ a", "# a", "> a", "=", "---", "a | b", "<!-- x"]
)
def test_hostile_names_are_text(text: str):
    assert read(escaped(text)) == text


def test_what_renderers_link_late_is_broken_up():
    assert "://" not in escaped("https://evil.example")
    assert "www." not in escaped("www.evil.example")
    assert ":smile:" not in escaped(":smile:")
    assert escaped("me@evil.example") != "me@evil.example"
    assert escaped("0.805, n = 50; K = 50") == "0.805, n = 50; K = 50"


def test_a_document():
    name = "a|b <b>"
    table = Table(
        (Column("stack"), Column("n", number=True)), ((Cell(name), Cell("5", 5, "measured")),), left_out=3
    )
    blocks = (
        Say("words"),
        Notes((Note("good", good=True), Note("bad"))),
        Tiles((Tile("quality", "0.8", "n = 5", "measured"),)),
        Facts((("rule", "quality"),)),
        table,
        Link("open", "http://host/?a=<b>&c=)"),
        Link("open", "javascript:alert(1)"),
        Fold("more", (Code("``` x"),)),
    )
    made = markdown(Document("Kind", "t", f"Ship {name}", (Say("lead"),), (Section("Part", blocks),), "foot"))
    assert made.startswith(
        "# Kind\n\n**Ship a\\|b \\<b\\>**\n\nlead\n\n## Part\n\nwords\n\n- ✓ good\n- ⚠ bad\n"
    )
    assert "| a\\|b \\<b\\> | 5 (measured) |" in made
    assert "And 3 more." in made
    assert "[open](<http://host/?a=%3Cb%3E&c=)>)" in made
    assert "open: ` javascript:alert(1) `" in made
    assert "### more\n\n````\n``` x\n````" in made
    tables = READER.render(made).count("<table>")
    assert tables == 3
    assert not re.search(r"<b>|<a href=.javascript", READER.render(made))
