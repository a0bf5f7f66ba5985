"""The record as one small file that runs nothing and fetches nothing; its chart shows what its table says."""

import base64
import hashlib
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from core.analysis.workspace.scope import Scope
from core.decide.axes import LATENCY
from core.decide.rules import Constraints
from core.report.data import record_data, verdict
from core.report.files import record_file
from core.report.picture import NARROW, picture, placed
from core.report.tables import STACKS
from core.views import text
from tests import many_stacks
from tests.report.test_record import NOW, case_of
from tests.stores import HOSTILE
from tests.views.made import DEMO, LAB, PAPER

LARGEST = 300_000  # bytes
MANY = Scope(many_stacks.COLLECTION)


@pytest.fixture(scope="module")
def thousand_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "store"
    many_stacks.seed(path, 1000)
    return path


CASES = {
    "demo": ("demo_store", DEMO, Constraints(sla_ms=20)),
    "paper": ("published_store", PAPER, Constraints(sla_ms=520, budget=2.5, min_quality=0.5)),
    "hostile": ("hostile_store", LAB, Constraints(sla_ms=3.5)),
    "many": ("thousand_store", MANY, Constraints(sla_ms=500)),
}


@pytest.fixture(scope="module", params=CASES)
def record(request: pytest.FixtureRequest) -> tuple[dict, str]:
    """A record as data and as HTML."""
    store, scope, limits = CASES[request.param]
    case = case_of(request.getfixturevalue(store), scope, limits)
    found = verdict(case)
    made = record_data(case, found, link="", made_at=NOW)
    return made, record_file(".html", case, found, address="http://host/?rev=1", made_at=NOW)


def said(drawing: Tag) -> list[str]:
    """What the marks of a drawing say when pointed at."""
    return [each.get_text() for each in drawing.find_all("title")]


@pytest.mark.slow
def test_the_file_is_small(record):
    assert len(record[1].encode()) <= LARGEST


@pytest.mark.slow
def test_nothing_runs_and_nothing_is_fetched(record):
    page = BeautifulSoup(record[1], "html.parser")
    assert not page.find_all(["script", "link", "iframe", "object", "embed", "img", "use", "image", "form"])
    for tag in page.find_all(True):
        assert not {"src", "srcset", "action", "data", "poster", "style", "xlink:href"} & set(tag.attrs)
        assert not [name for name in tag.attrs if name.startswith("on")]
        assert tag.name == "a" or "href" not in tag.attrs
    style = page.find("style").string
    assert not re.search(r"@import|url\(", style)
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")


@pytest.mark.slow
def test_the_chart_shows_what_its_table_says(record):
    data, written = record
    page = BeautifulSoup(written, "html.parser")
    figure = page.find("figure")
    rows = [
        [cell.get_text() for cell in row.find_all("td")]
        for row in figure.find_next("details").find("tbody").find_all("tr")
    ]
    assert len(rows) == min(len(data["stacks"]), STACKS)
    broad, slim = (figure.find(class_=name).find("svg") for name in ("broad", "slim"))
    listed = [
        f"{text.shorten(name, 80)}: {quality}, {latency}"
        for _, name, quality, latency, *_ in rows
        if text.UNKNOWN not in latency and quality != text.NOT_APPLICABLE
    ]
    assert sorted(said(broad)) == sorted(listed)
    assert len(listed) == len(placed(data, LATENCY)) > 1
    marks = [len(drawing.find_all(["circle", "path"])) for drawing in (broad, slim)]
    assert marks[0] == marks[1] > len(listed)


@pytest.mark.slow
def test_words_are_large_enough_on_a_phone(record):
    slim = BeautifulSoup(record[1], "html.parser").find(class_="slim").find("svg")
    assert float(slim["font-size"]) * 358 / NARROW.width >= 11
    assert slim["viewbox"].split()[2] == slim["width"] == str(NARROW.width)
    beyond = [
        words.get_text()
        for words in slim.find_all("text")
        if words["text-anchor"] == "start" and float(words["x"]) > NARROW.width - 12
    ]
    assert not beyond


@pytest.mark.slow
def test_names_stay_text_in_the_chart(hostile_store: Path):
    case = case_of(hostile_store, LAB, Constraints())
    drawn = picture(record_data(case, verdict(case), link="", made_at=NOW))
    page = BeautifulSoup(str(drawn.image), "html.parser")
    assert {each.name for each in page.find_all(True)} <= {"div", "svg", "path", "circle", "text", "title"}
    assert {each.rsplit(": ", 1)[0] for each in said(page)} == set(HOSTILE)


@pytest.mark.slow
def test_a_chart_needs_two_numbers_of_two_stacks(record):
    data = record[0]
    assert picture({**data, "stacks": data["stacks"][:1]}) is None
    timeless = [{**row, "latency_ms": None} for row in data["stacks"]]
    drawn = picture({**data, "stacks": timeless})
    priced = sum(row["cost"] is not None and row["quality"] is not None for row in data["stacks"])
    assert (drawn is not None) == (priced > 1)
    assert drawn is None or " and cost of " in drawn.alt
