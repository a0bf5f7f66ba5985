"""From an empty store to a decision on the stack that runs: a service, candidates, few grades, a record."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from core.cli.app import app
from core.golden.book import FILE, Book
from tests.e2e.watch import Visit
from tests.server import Server, serve

pytestmark = pytest.mark.e2e
ASKED, OTHERS = 16, 30
RIGHT, WRONG = "a gadget of kind {}", "nothing about {} but words"
MOST = 90  # keys pressed at most
DECIDED = re.compile(r"^Decided after")


class Search(BaseHTTPRequestHandler):
    """A search service that shows the useless passage of a question first, and few of the right ones."""

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
        number = int(re.findall(r"\d+", query)[0])
        shown = [f"wrong{number}", *(f"other{(number + step) % OTHERS}" for step in range(2))]
        told = [{"id": name, "score": 1.0 / place} for place, name in enumerate(shown, start=1)]
        body = json.dumps({"results": told}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def service() -> Iterator[str]:
    """The address of the service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Search)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()
    server.server_close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Server]:
    """A server on an empty store."""
    with serve(tmp_path / "server.log", CLQ_STORE=str(tmp_path / "store")) as running:
        yield running
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def texts(folder: Path) -> Path:
    """Documents and questions as a search log leaves them: without any judgement."""
    folder.mkdir()
    passages = {f"right{number}": RIGHT.format(f"k{number}") for number in range(ASKED)}
    passages |= {f"wrong{number}": WRONG.format(f"w{number}") for number in range(ASKED)}
    passages |= {f"other{number}": f"another text {number}" for number in range(OTHERS)}
    rows = [{"_id": name, "title": "", "text": text} for name, text in passages.items()]
    asked = [{"_id": f"q{number}", "text": f"gadget of kind k{number}"} for number in range(ASKED)]
    for name, lines in (("corpus", rows), ("queries", asked)):
        written = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(written, encoding="utf-8")
    return folder


def judged(seen: Visit, book: Book) -> int:
    """Judge by keys until it is decided; return how many keys that took."""
    (queue,) = book.queues()
    for pressed in range(MOST):
        if seen.page.get_by_text(DECIDED).is_visible():
            return pressed
        place = next(item for item in book.items(queue.queue_id) if item.at is None)
        seen.page.wait_for_selector(f"script[data-card='{place.place}']", state="attached")
        seen.settle()
        seen.page.keyboard.press("5" if place.passage_id.startswith("right") else "1")
        seen.page.wait_for_timeout(300)
        seen.settle()
    raise AssertionError("nothing was decided")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_service_is_replaced_by_few_grades(
    service: str, empty: Server, tmp_path: Path, visit: Callable[..., Visit]
):
    store = tmp_path / "store"

    def call(*words: str) -> str:
        done = CliRunner().invoke(app, ["--store", str(store), *words])
        assert done.exit_code == 0, done.output
        return done.output

    call("import", str(texts(tmp_path / "shop")))
    told = call(
        *("measure", service, "--collection", "shop", "-k", "3", "--name", "our search"),
        *("--incumbent", "--yes"),
    )
    assert "our search is marked as the stack that runs today" in told
    spec = tmp_path / "candidates.toml"
    spec.write_text('name = "candidates"\ncollection.stored = "shop"\naxes = { mode = ["sparse"] }\n')
    call("run", str(spec), "--yes")

    seen = visit(f"{empty.url}/?ws=shop&k=3")
    seen.page.get_by_text("nothing is judged yet").wait_for()
    seen.page.get_by_text("Few grades decide").click()
    seen.page.get_by_role("button", name="Judge what decides").click()
    seen.page.get_by_role("textbox", name="Your name").fill("Ann")
    seen.page.get_by_role("textbox", name="Your name").press("Tab")
    seen.page.get_by_role("button", name="Judge these").click()
    assert judged(seen, Book(store.parent / FILE)) < MOST
    expect(seen.page.get_by_text("switch. The candidate's lead")).to_be_visible()
    seen.page.get_by_role("button", name="Use these grades").click()
    seen.page.get_by_text("See the decision").click()
    expect(seen.page.get_by_text("By few grades, BM25: Decided after")).to_be_visible()
    seen.settle()
    other = visit(seen.page.url)  # the link, in another browser
    expect(other.page.get_by_text("By few grades, BM25: Decided after")).to_be_visible()
    asked = parse_qs(urlsplit(other.page.url).query)
    assert asked["ws"] == ["shop"]
    call("record", str(tmp_path / "record.json"), str(tmp_path / "record.html"), "--collection", "shop")
    record = json.loads((tmp_path / "record.json").read_text())["stay_or_switch"]
    assert record["few_grades"]["answer"] == "switch"
    assert record["incumbent"].startswith("our search")
