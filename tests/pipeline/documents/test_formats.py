"""The readers of single documents."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.importers.read.member import Member, ReadLimits
from core.pipeline.documents.formats import Content, read_markdown, read_pdf, read_text
from core.pipeline.documents.html import read_html
from tests.pipeline.documents.pdfs import pdf


def member(data: bytes) -> Member:
    return Member("x", "x", len(data), ReadLimits(), lambda: io.BytesIO(data))


def heads(content: Content) -> list[tuple[int, str, bool]]:
    """Level and title of each heading, and whether its place in the text is where the title stands."""
    return [
        (each.level, each.title, each.title.split()[0] in content.text[each.start :].split("\n")[0])
        for each in content.headings
    ]


def test_text_keeps_its_characters():
    assert read_text(member("\ufeffa\r\nb  ö\n".encode())) == Content("a\nb  ö\n")
    assert read_text(member(b"one\ftwo\f")).pages == (0, 4, 8)


MARKDOWN = {
    "atx": ("# A\ntext\n## B ##\n### C\n", [(1, "A"), (2, "B"), (3, "C")]),
    "setext": ("A title\n=====\n\ntext\n\nB\n---\n", [(1, "A title"), (2, "B")]),
    "rule, not heading": ("text\n\n---\n\n- item\n---\n", []),
    "code": ("```\n# no\n```\n~~~~\n# no\n~~~\n# no\n~~~~\n# yes\n    # no\n", [(1, "yes")]),
    "front matter": ("---\ntitle: x\n# no\n---\n# yes\n", [(1, "yes")]),
    "open front matter": ("---\n# yes\n", [(1, "yes")]),
    "markup": ("# *A* `code` [link](u) snake_case {#id}\n", [(1, "A code link snake_case")]),
    "no space": ("#hashtag\n####### seven\n#\n", []),
    "crlf": ("# A\r\ntext\r\n## B\r\n", [(1, "A"), (2, "B")]),
    "empty": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), MARKDOWN.values(), ids=MARKDOWN.keys())
def test_markdown_headings(text, expected):
    found = read_markdown(member(text.encode()))
    assert found.text == text.replace("\r\n", "\n")
    assert heads(found) == [(level, title, True) for level, title in expected]


def test_markdown_titles():
    assert read_markdown(member(b"text\n\n# One\n\n# Two\n")).title == "One"
    assert read_markdown(member(b"## Section\n")).title == ""


HTML = {
    "blocks": ("<h1>A <i>b</i></h1><p>one</p>two<div>three<p>four</p>five</div>",
               "A b\n\none\n\ntwo\n\nthree\n\nfour\n\nfive"),
    "blanks": ("<p>  a \n b<b> c</b>d <b> </b>e</p>", "a b cd e"),
    "lists": ("<ul><li>a<li>b</ul>after", "a\nb\n\nafter"),
    "tables": ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>", "a b\nc"),
    "breaks": ("a<br>b<br/>c", "a\nb\nc"),
    "verbatim": ("<pre>  x\n\n y </pre>", "  x\n\n y "),
    "hidden": ("<head><title>no</title></head><script>no</script><style>no</style><!-- no -->yes", "yes"),
    "entities": ("&lt;b&gt; &amp; &eacute; &#x1F600; a&nbsp;b", "<b> & é 😀 a\u00a0b"),
    "broken": ("<p>open <b>bold<p>next</i>", "open bold\n\nnext"),
    "doctype": ("<!DOCTYPE html><html><body>x</body></html>", "x"),
    "empty": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("markup", "expected"), HTML.values(), ids=HTML.keys())
def test_html_text(markup, expected):
    assert read_html(member(markup.encode())).text == expected


def test_html_headings_and_title():
    found = read_html(
        member(b"<title> The\n title </title><h1>One</h1>text<h2>Two <em>more</em></h2><h3></h3>")
    )
    assert found.title == "The title"
    assert heads(found) == [(1, "One", True), (2, "Two more", True)]
    assert read_html(member(b"<h2>Sub</h2><h1>Main</h1>")).title == "Main"


@pytest.mark.parametrize(
    "data",
    [
        "<p>é</p>".encode(),
        "\ufeff<p>é</p>".encode(),
        "<p>é</p>".encode("utf-16"),
        '<meta charset="latin-1"><p>é</p>'.encode("latin-1"),
        "<?xml version='1.0' encoding='iso-8859-15'?><p>é</p>".encode("latin-1"),
    ],
)
def test_html_encodings(data):
    assert read_html(member(data)).text == "é"


def test_html_in_an_encoding_that_does_not_exist():
    with pytest.raises(InputError, match="not utf-8 or klingon"):
        read_html(member(b'<meta charset="klingon"><p>\xe9</p>'))


@given(st.text(st.sampled_from("<>/abp h1&;#x\n\t\"'=!-"), max_size=60))
@settings(max_examples=150, deadline=None)
def test_html_of_any_kind_is_read(markup):
    found = read_html(member(markup.encode()))
    assert "\0" not in found.text
    assert all(0 <= each.start < len(found.text) for each in found.headings)
    assert found.text == found.text.strip(" \n") or "pre" in markup


@pytest.mark.slow
def test_pdf_pages():
    found = read_pdf(member(pdf("First (page).", "", "Third é.", title="A title")))
    assert found.text == "First (page).\n\nThird é."
    assert found.title == "A title"
    ends = (*found.pages[1:], len(found.text))
    pages = [found.text[start:end].strip() for start, end in zip(found.pages, ends, strict=True)]
    assert pages == ["First (page).", "", "Third é."]
    assert read_pdf(member(pdf(""))).text == ""


def test_pdf_with_a_password():
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    with pytest.raises(InputError, match="encrypted"):
        read_pdf(member(data.getvalue()))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_damaged_pdfs_are_read_or_refused(data):
    whole = bytearray(pdf("One page.", "Another."))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=8)):
        whole[place] = data.draw(st.integers(0, 255))
    with suppress(InputError):  # and nothing else
        read_pdf(member(bytes(whole))).text.encode()
