"""From a folder of documents to a decision, as a newcomer goes: run, judge by hand, decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Locator, expect

from core.paths import DEMO
from core.store import Store
from tests.e2e.watch import Visit
from tests.server import Server, serve

pytestmark = pytest.mark.e2e
DOCUMENTS, QUESTIONS, MOST_CLICKS = 30, 10, 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty Markdown files and ten questions, of real text."""
    passages = pl.read_parquet(DEMO / "passages.parquet").sort(
        pl.col("text").str.len_chars(), descending=True
    )
    (tmp_path / "handbook").mkdir()
    for number, (title, text) in enumerate(passages.head(DOCUMENTS).select("title", "text").iter_rows()):
        (tmp_path / "handbook" / f"chapter-{number:02}.md").write_text(f"# {title}\n\n{text}\n")
    lines = (DEMO / "queries.jsonl").read_text().splitlines()[:QUESTIONS]
    asked = [f"q{number},{json.dumps(json.loads(line)['text'])}" for number, line in enumerate(lines)]
    (tmp_path / "questions.csv").write_text("\n".join(["query_id,text", *asked]))
    return tmp_path


@pytest.fixture
def empty_server(folder: Path) -> Iterator[Server]:
    """A fresh server without a store."""
    with serve(folder / "server.log", CLQ_STORE=str(folder / "store")) as running:
        yield running
    assert "Traceback" not in (folder / "server.log").read_text()


def test_from_a_folder_to_a_decision(folder: Path, empty_server: Server, visit: Callable[..., Visit]):
    clicks = 0

    def click(target: Locator) -> None:
        nonlocal clicks
        clicks += 1
        target.click()
        seen.settle()

    seen = visit(empty_server.url)
    page = seen.page
    click(page.locator("[data-testid=stMain]").get_by_role("link", name="Run"))
    for label, value in (("Documents", "handbook"), ("Questions", "questions.csv")):
        field = page.get_by_role("textbox", name=label, exact=True)
        click(field)
        field.fill(str(folder / value))
        field.press("Enter")
        seen.settle()
    click(page.get_by_role("button", name="Run 27 stacks"))
    expect(page.get_by_role("button", name="See the decision")).to_be_visible(timeout=120_000)
    click(page.get_by_role("button", name="See the decision"))
    expect(page.locator("[data-testid=stMain] h1").first).to_contain_text("No decision yet", timeout=30_000)
    seen.settle()
    click(page.get_by_role("button", name="Judge by hand"))
    page.get_by_role("textbox", name="Your name").fill("Ada")
    click(page.get_by_role("button", name="Start judging"))
    for number in range(1, 51):
        expect(page.get_by_text(f"Ada · {number} of 50")).to_be_visible()
        page.locator(f"script[data-card='{number - 1}']").wait_for(state="attached")
        seen.page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")
        page.keyboard.press("54321"[number % 5])
    expect(page.get_by_text("is written")).to_be_visible(timeout=60_000)
    seen.settle()
    click(page.get_by_role("link", name="See the decision"))
    assert seen.answer.startswith("Ship ")
    assert clicks <= MOST_CLICKS
    snapshot = Store.open(folder / "store").read()
    golden = snapshot.golden_sets().filter(judge="Ada")["golden_set_id"].item()
    assert snapshot.spans(golden).height == 50, "grades are places of the documents"
