import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from core.bidi import isolated
from core.report.render import environment, escaped
from core.report.tables import Cell, Column, table
from core.views.decision.tiles import Tile
from tests.stores import HOSTILE

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(written: str) -> str:
    """The text of a paragraph as a reader sees it."""
    (block,) = [token for token in READER.parse(written) if token.type == "inline"]
    assert {each.type for each in block.children} <= {"text", "text_special", "code_inline"}
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
    assert escaped("at (https://evil.example/a_b?c=*d*); ok") == "at (`https://evil.example/a_b?c=*d`\\*); ok"
    assert read(escaped("https://a.example|b; http://c.example/<d>`e`")) == (
        "https://a.example|b; http://c.example/<d>`e`"
    )
    assert "://" not in escaped("ftp://evil.example https:// x")
    assert "www." not in escaped("www.evil.example")
    assert ":smile:" not in escaped(":smile:")
    assert escaped("me@evil.example") != "me@evil.example"
    assert escaped("0.805, n = 50; K = 50") == "0.805, n = 50; K = 50"


PART = """{% import parts as p with context %}
{{- p.head("Kind", "Ship " ~ name) -}}{{- p.say("lead") -}}
{%- call p.section("Part") -%}
{{- p.say("words") -}}{{- p.notes(notes) -}}{{- p.tiles(tiles) -}}
{{- p.facts([("rule", "quality")]) -}}{{- p.table(table) -}}
{{- p.link("open", "http://host/?a=<b>&c=)") -}}{{- p.link("open", "javascript:alert(1)") -}}
{%- call p.fold("more") -%}{{- p.code("``` x") -}}{%- endcall -%}
{%- endcall -%}
{{- p.foot("foot") -}}"""


def test_a_document():
    name = "a|b <b>"
    columns = (
        Column("stack", lambda row: Cell(row["name"])),
        Column("n", lambda _: Cell("5", 5, "measured"), number=True),
    )
    made = (
        environment("md")
        .from_string(PART)
        .render(
            name=name,
            notes=[{"finding": "good", "good": True}, {"finding": "bad", "good": False}],
            tiles=[Tile("quality", (("0.8", ""),), "n = 5", "measured")],
            table=table([{"name": name}] * 4, columns, 1),
            charts={},
        )
    )
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
