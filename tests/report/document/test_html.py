import base64
import hashlib
import json
import re

import plotly.graph_objects as go
import pytest
from bs4 import BeautifulSoup

from core.report.document.blocks import Cell, Chart, Code, Column, Document, Fold, Link, Say, Section, Table
from core.report.document.html import html
from core.report.document.link import safe_address
from tests.stores import HOSTILE


def document(*blocks, answer="Ship it."):
    return Document("Kind", "Title", answer, (), (Section("Part", blocks),), "foot")


def hostile_document() -> Document:
    figure = go.Figure(go.Scatter(x=[1], y=[2], name="&lt;/script&gt;"), layout={"title": "</script><b>"})
    return document(
        *(Say(name) for name in HOSTILE),
        Table((Column(HOSTILE[0]),), ((Cell(HOSTILE[0], None, HOSTILE[1]),),), caption=HOSTILE[0]),
        Chart("one", figure, alt='"><script>alert(1)</script>', caption=HOSTILE[0]),
        Link(HOSTILE[0], 'http://host/"><script>'),
        Link("open", "javascript:alert(1)"),
        Fold(HOSTILE[0], (Code("</pre><script>alert(1)</script>"),)),
        answer=HOSTILE[0],
    )


@pytest.fixture(scope="module")
def page() -> str:
    return html(hostile_document())


def test_names_stay_text(page: str):
    read = BeautifulSoup(page, "html.parser")
    assert not read.find_all(["img", "b", "iframe", "object", "embed", "form"])
    for name in HOSTILE:
        assert name in read.get_text()
    assert read.find(class_="chart")["aria-label"] == '"><script>alert(1)</script>'
    assert read.find("pre").get_text() == "</pre><script>alert(1)</script>"
    assert [each["href"] for each in read.find_all("a")] == ["http://host/%22%3E%3Cscript%3E"]


def test_nothing_is_fetched(page: str):
    read = BeautifulSoup(page, "html.parser")
    for tag in read.find_all(True):
        assert not {"src", "srcset", "action", "data", "poster"} & set(tag.attrs), tag.name
        assert tag.name == "a" or "href" not in tag.attrs
    assert not re.search(r"@import|url\(", read.find("style").get_text())


def test_only_its_own_scripts_may_run(page: str):
    read = BeautifulSoup(page, "html.parser")
    policy = read.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    running = [each.string for each in read.find_all("script") if not each.get("type")]
    assert len(running) == 2
    for script in running:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "\r" not in page


def test_a_figure_is_data_that_reads_back(page: str):
    block = BeautifulSoup(page, "html.parser").find("script", id="data-one")
    figure = json.loads(block.string)
    assert figure["layout"]["title"]["text"] == "</script><b>"
    assert "template" not in figure["layout"]
    assert figure["data"][0]["y"] == [2]


def test_a_document_without_charts_does_not_carry_the_library():
    assert len(html(document(Say("words")))) < 20_000


def test_the_same_document_is_the_same_file(page: str):
    assert html(hostile_document()) == page


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("http://localhost:8501/pareto?ws=a+b&rev=2", "http://localhost:8501/pareto?ws=a+b&rev=2"),
        ("https://host/a b", "https://host/a%20b"),
        ("https://host/\"'<>", "https://host/%22'%3C%3E"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("//host/x", None),
        ("?rev=2", None),
        ("", None),
        ("http://host:port/", None),
        ("http://[", None),
    ],
)
def test_addresses(address: str, safe: str | None):
    assert safe_address(address) == safe
