"""The decision record as its reader gets it: from the page, then from disk with the network off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.watch import Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]


def save(visit: Visit, label: str, folder: Path) -> Path:
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=label, exact=True).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


class Reader:
    """A page opened from disk without a network."""

    def __init__(self, browser: Browser, file: Path, **look: object) -> None:
        self.context = browser.new_context(**look)
        self.context.set_offline(True)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        expect(self.page.locator(".chart:not(.drawn)")).to_have_count(0)

    def close(self) -> None:
        self.context.close()
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def ink(page: Page) -> str:
    """Colour of the words of a chart."""
    colour = "element => getComputedStyle(element).fill"
    return str(page.locator("figure svg text >> visible=true").first.evaluate(colour))


def letters(page: Page) -> float:
    """Height of the smallest words of a chart on the screen; pixels."""
    drawn = page.locator("figure svg >> visible=true")
    expect(drawn).to_have_count(1)
    return float(drawn.evaluate(
        "svg => svg.getAttribute('font-size') * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    ))  # fmt: skip


def latencies(table: Locator) -> list[float]:
    """What the column of latencies is sorted by, from top to bottom."""
    cells = table.locator("tbody td:nth-child(6)").all()
    return [float(cell.get_attribute("data-order") or "nan") for cell in cells]


def test_record_and_snapshot_open_from_disk_without_a_network(
    server: Server, visit: Open, browser: Browser, tmp_path: Path
) -> None:
    page = visit(f"{server.url}/?ws=python-docs&jitter=0")
    page.page.get_by_role("button", name="Record").click()
    data = json.loads(save(page, "JSON", tmp_path).read_text(encoding="utf-8"))
    said = data["answer"]["sentence"]
    ship = page.answer.splitlines()[0].partition(" RA-nWG@10")[0]
    assert said.startswith(ship)
    assert said.removeprefix(ship)[2:].startswith(f"RA-nWG@10 {data['chosen']['quality']:.3f}")
    assert f"{data['chosen']['quality']:.3f}" in page.answer
    assert data["link"] is None, "nobody else can open it"
    file = save(page, "HTML", tmp_path)

    reader = Reader(browser, file, color_scheme="light", viewport={"width": 1280, "height": 800})
    assert reader.page.locator("h1").inner_text() == data["summary"][0]
    assert reader.page.locator("a").count() == 0
    assert reader.page.locator(".broad title").count() == len(data["stacks"])
    assert letters(reader.page) >= 12
    light = ink(reader.page)
    table = reader.page.locator("figure ~ details table")
    expect(table).to_be_hidden()
    reader.page.set_viewport_size({"width": 680, "height": 960})  # the text of a printed page
    reader.page.emulate_media(media="print")
    assert reader.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    expect(table).to_be_visible()
    reader.page.pdf(path=tmp_path / "r.pdf", prefer_css_page_size=True)
    reader.page.emulate_media(media="screen")
    assert ink(reader.page) == light
    reader.close()

    dark = Reader(browser, file, color_scheme="dark", viewport={"width": 390, "height": 844})
    assert ink(dark.page) != light
    assert letters(dark.page) >= 11
    assert dark.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    dark.close()

    whole = Reader(browser, save(page, "Snapshot", tmp_path), color_scheme="dark")
    assert whole.page.locator("h1").inner_text() == data["summary"][0]
    assert whole.page.locator(".chart.drawn").count() == 5
    table = whole.page.locator("table.sortable").last
    table.get_by_role("button", name="latency").click()
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("latency")
    assert (fast := latencies(table)) == sorted(fast, reverse=True)
    table.get_by_role("button", name="latency").click()
    assert latencies(table) == sorted(fast)
    whole.close()

    colleague = visit(f"{server.url}/?ws=python-docs&jitter=0&rev={data['revision']}")
    assert colleague.answer == page.answer
