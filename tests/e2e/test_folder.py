"""From a folder of documents to a decision, as a newcomer goes: with questions, and with documents alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from core.paths import DEMO
from core.store import Store
from tests.e2e.watch import Visit
from tests.server import Server, serve
from tests.work.questions import texts

pytestmark = pytest.mark.e2e
DOCUMENTS, QUESTIONS, MOST_CLICKS = 30, 10, 10


@dataclass
class Newcomer:
    """Somebody whose clicks are counted."""

    seen: Visit
    clicks: int = 0

    def click(self, target: Locator) -> None:
        """Click, and wait for what follows."""
        self.clicks += 1
        target.click()
        self.seen.settle()

    def enter(self, label: str, value: object) -> None:
        """Type into the field with a label."""
        field = self.seen.page.get_by_role("textbox", name=label, exact=True)
        self.click(field)
        field.fill(str(value))
        field.press("Enter")
        self.seen.settle()

    def press(self, name: str, *, within_ms: float = 30_000) -> None:
        """Press a button, or follow a link, once it is there."""
        page = self.seen.page
        button = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name))
        expect(button).to_be_visible(timeout=within_ms)
        self.click(button)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty Markdown files and ten questions, of real text."""
    texts.handbook(tmp_path, DOCUMENTS)
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
    newcomer = Newcomer(visit(empty_server.url))
    seen, page = newcomer.seen, newcomer.seen.page
    newcomer.click(page.locator("[data-testid=stMain]").get_by_role("link", name="Run"))
    newcomer.enter("Documents", folder / "handbook")
    newcomer.enter("Questions", folder / "questions.csv")
    newcomer.press("Run 27 stacks")
    newcomer.press("See the decision", within_ms=120_000)
    expect(page.locator("[data-testid=stMain] h1").first).to_contain_text("No decision yet", timeout=30_000)
    seen.settle()
    newcomer.press("Judge by hand")
    page.get_by_role("textbox", name="Your name").fill("Ada")
    newcomer.press("Start judging")
    for number in range(1, 51):
        expect(page.get_by_text(f"Ada · {number} of 50")).to_be_visible()
        page.locator(f"script[data-card='{number - 1}']").wait_for(state="attached")
        seen.page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")
        page.keyboard.press("54321"[number % 5])
    expect(page.get_by_text("is written")).to_be_visible(timeout=60_000)
    seen.settle()
    newcomer.click(page.get_by_role("button", name="See the decision"))
    assert seen.answer.startswith(("Ship ", "Best so far: ", "No clear winner: "))
    assert newcomer.clicks <= MOST_CLICKS
    snapshot = Store.open(folder / "store").read()
    golden = snapshot.golden_sets().filter(judge="Ada")["golden_set_id"].item()
    assert snapshot.spans(golden).height == 50, "grades are places of the documents"


def test_from_documents_alone_to_a_decision(folder: Path, empty_server: Server, visit: Callable[..., Visit]):
    newcomer = Newcomer(visit(f"{empty_server.url}/golden?sec=questions"))
    page = newcomer.seen.page
    newcomer.enter("Documents", folder / "handbook")
    newcomer.press("Make 64 questions")
    newcomer.press("Run stacks on these", within_ms=60_000)
    newcomer.press("Run 27 stacks")
    decision = page.get_by_role("button", name="See the decision")
    expect(decision).to_be_visible(timeout=120_000)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0, timeout=120_000)  # all are stored
    newcomer.click(decision)
    heading = page.locator("[data-testid=stMain] h1").first
    expect(heading).to_contain_text(re.compile("Ship |Best so far: |No clear winner: "), timeout=60_000)
    assert newcomer.clicks <= MOST_CLICKS
    snapshot = Store.open(folder / "store").read()
    golden = snapshot.golden_sets()["golden_set_id"].item()
    assert snapshot.spans(golden).height >= DOCUMENTS, "each question has the place that answers it"
