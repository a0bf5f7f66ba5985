import base64
import hashlib
import json
import re

import plotly.graph_objects as go
import pytest
from bs4 import BeautifulSoup
from jinja2 import ChoiceLoader, DictLoader

from core.report.render import Chart, environment, html, safe_address
from core.report.tables import Cell, Column, table
from core.views.decision.tiles import Tile
from tests.stores import HOSTILE

PART = """{%% import parts as p with context %%}
{%%- for name in names -%%}{{- p.say(name) -}}{%%- endfor -%%}
{{- p.notes(notes) -}}{{- p.tiles(tiles) -}}{{- p.facts(facts) -}}{{- p.table(table) -}}
{{- p.chart("one", charts.one) -}}{{- p.link(names[0], 'http://host/"><script>') -}}
{{- p.link("open", "javascript:alert(1)") -}}
{%%- call p.fold(names[0]) -%%}{{- p.code("</pre><script>alert(1)</script>") -}}{%%- endcall -%%}
{{- p.foot(names[0]) -}}""".replace("%%", "%")


@pytest.fixture(scope="module", autouse=True)
def part():
    """A template that uses every part."""
    made = environment("html")
    own, made.loader = (
        made.loader,
        ChoiceLoader([made.loader, DictLoader({"part.j2": PART, "none.j2": "words"})]),
    )
    yield
    made.loader = own


def hostile_document() -> str:
    figure = go.Figure(go.Scatter(x=[1], y=[2], name="&lt;/script&gt;"), layout={"title": "</script><b>"})
    rows = [{"name": HOSTILE[0], "of": HOSTILE[1]}]
    return html(
        "part.j2",
        {"one": Chart(figure, '"><script>alert(1)</script>', HOSTILE[0])},
        heading=HOSTILE[0],
        kind=HOSTILE[0],
        title=HOSTILE[0],
        names=HOSTILE,
        notes=[{"finding": HOSTILE[0], "good": True}],
        tiles=[Tile(HOSTILE[0], ((HOSTILE[0], HOSTILE[0]),), HOSTILE[0], HOSTILE[0])],
        facts=[(HOSTILE[0], HOSTILE[0])],
        table=table(rows, (Column(HOSTILE[0], lambda row: Cell(row["name"], None, row["of"])),)),
    )


@pytest.fixture(scope="module")
def page() -> str:
    return hostile_document()


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
    made = html("none.j2", {}, heading="Ship it.", kind="Kind", title="Title")
    assert len(made) < 20_000


def test_the_same_document_is_the_same_file(page: str):
    assert hostile_document() == page


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
