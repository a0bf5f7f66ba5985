"""People who judge at the same time, in browsers of their own."""

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from core.golden.book import FILE, Book
from core.store import Store
from tests.e2e.watch import Visit
from tests.server import Server, free_port, serve
from tests.shared import EVERY_PAGE

pytestmark = pytest.mark.e2e
JUDGES = ("Anne", "Ben", "Chloé", "Dmitri", "Esi")
EACH = 100 if EVERY_PAGE else 30


def started(visit: Callable[..., Visit], server: Server, name: str, each: int = EACH) -> Visit:
    seen = visit(f"{server.url}/golden?sec=judge&ws=python-docs")
    seen.page.get_by_role("textbox", name="Your name").fill(name)
    seen.page.get_by_role("textbox", name="Your name").press("Enter")  # starts nothing: how many is not said
    seen.page.get_by_role("spinbutton", name="Passages").fill(str(each))
    seen.page.get_by_role("button", name="Start judging").click()
    expect(seen.page.get_by_text(f"1 of {each}")).to_be_visible(timeout=60_000)
    seen.settle()
    return seen


_CARD = """([number, each]) =>
  document.querySelector('[data-testid=stProgress]')?.textContent.includes(`· ${number} of ${each}`)
  && document.querySelector(`script[data-card='${number - 1}']`)  // drawn last
  && document.querySelector('[data-test-script-state=notRunning]')"""


def at_card(seen: Visit, number: int, each: int = EACH) -> None:
    """Wait until a card is shown."""
    seen.page.wait_for_function(_CARD, arg=[number, each], polling=20)


def opened(seen: Visit, url: str) -> Visit:
    seen.open(url)
    return seen


def card_of(seen: Visit) -> int:
    """Return the number of the card that a server which was begun again shows."""
    seen.page.reload()
    seen.settle()
    return int(seen.page.locator("script[data-card]").last.get_attribute("data-card") or 0) + 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_people_at_once(own_server: Server, own_store: Path, visit: Callable[..., Visit]):
    sessions = [started(visit, own_server, name) for name in JUDGES]
    links = [seen.address for seen in sessions]
    for number in range(1, EACH + 1):
        if number == 12:
            sessions[0].page.reload()
            sessions[0].settle()
        if number == 18:  # the link is opened elsewhere, and the first tab is left
            sessions[1] = visit(links[1])
        for person, seen in enumerate(sessions):
            at_card(seen, number)
            seen.page.keyboard.press(str((number + person) % 5 + 1))
    for seen in sessions:
        expect(seen.page.get_by_text("is written")).to_be_visible(timeout=60_000)
    book = Book(own_store.parent / FILE)
    snapshot = Store.open(own_store).read()
    for person, name in enumerate(JUDGES):
        (queue,) = [each for each in book.queues() if each.judge == name]
        items = book.items(queue.queue_id)
        expected = [(number + person) % 5 + 1 for number in range(1, EACH + 1)]
        assert [each.grade for each in items] == expected, name
        acts = Counter(act.split()[0] for _, act, _ in book.strokes(queue.queue_id))
        assert acts == {"grade": EACH}, "each key once"
        golden = snapshot.golden_sets("python-docs").filter(judge=name)["golden_set_id"].item()
        stored = {
            row[:2]: row[2]
            for row in snapshot.judgements(golden).select("query_id", "passage_id", "grade").rows()
        }
        assert stored == {(each.query_id, each.passage_id): each.grade for each in items}
        assert set(snapshot.gradings(golden)["judge"]) == {name}


KEYS, KILLS = (60, 10) if EVERY_PAGE else (12, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_acknowledged_grade_is_lost_where_the_server_is_killed(
    own_store: Path, tmp_path: Path, browser: Browser
):
    """A key is acknowledged by the next card; one that was pressed as the server died counts at most once."""
    luck, port = random.Random(11), free_port()  # noqa: S311
    context, pressed, number = browser.new_context(), dict[int, int](), 1
    seen = Visit(context.new_page())  # no `visit`, which asks that the server is there at the end
    for kill in range(KILLS + 1):
        until = KEYS * (kill + 1) // (KILLS + 1)
        with serve(tmp_path / f"{kill}.log", port=port, CLQ_STORE=str(own_store)) as server:
            if not kill:
                started(partial(opened, seen), server, "Gil", KEYS)
            number = card_of(seen)
            assert number in {len(pressed), len(pressed) + 1}, "what was acknowledged is there"
            while number <= until:
                pressed[number] = luck.randrange(5) + 1
                at_card(seen, number, KEYS)
                seen.page.keyboard.press(str(pressed[number]))
                number += 1
            if kill < KILLS:
                time.sleep(luck.random() / 3)
                os.kill(server.pid, signal.SIGKILL)
            else:
                expect(seen.page.get_by_text("is written")).to_be_visible(timeout=60_000)
    context.close()
    book = Book(own_store.parent / FILE)
    (queue,) = book.queues()
    assert [each.grade for each in book.items(queue.queue_id)] == [pressed[at] for at in range(1, KEYS + 1)]
    assert Counter(act.split()[0] for _, act, _ in book.strokes(queue.queue_id)) == {"grade": KEYS}
    assert "Traceback" not in "".join(log.read_text() for log in tmp_path.glob("*.log"))


@pytest.mark.slow
def test_a_card_is_judged_with_the_thumb_and_a_note_is_no_key(
    own_server: Server, own_store: Path, visit: Callable[..., Visit]
):
    seen = started(visit, own_server, "Fay")
    seen.page.keyboard.press("n")
    seen.page.keyboard.type("5 stars, use s")
    seen.page.keyboard.press("Enter")
    at_card(seen, 1)
    seen.look(dark=False, narrow=True)
    assert seen.overflow() <= 0
    buttons = seen.page.locator(".st-key-grades button")
    for button in buttons.all():
        box = button.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 44
        assert box["y"] + box["height"] <= 844, "in reach without scrolling"
    buttons.nth(3).click()
    at_card(seen, 2)
    seen.page.keyboard.press("u")
    at_card(seen, 1)
    seen.page.keyboard.press("2")
    at_card(seen, 2)
    book = Book(own_store.parent / FILE)
    (queue,) = book.queues()
    first = book.items(queue.queue_id)[0]
    assert (first.grade, first.note) == (2, "5 stars, use s")
    acts = [act for _, act, _ in book.strokes(queue.queue_id)]
    assert acts == ["note", "grade 4", "undo", "grade 2"]
    assert re.search(r"queue=Fay-[0-9a-f]{6}", seen.address)


@pytest.mark.slow
def test_five_are_dragged_into_order(own_server: Server, own_store: Path, visit: Callable[..., Visit]):
    seen = visit(f"{own_server.url}/golden?sec=judge&ws=python-docs")
    seen.page.get_by_text("put five in order").click()
    seen.settle()
    seen.page.get_by_role("textbox", name="Your name").fill("Gus")
    seen.page.get_by_role("button", name="Start judging").click()
    rows = seen.page.locator(".clq-order li")
    expect(rows).to_have_count(5)
    seen.settle()
    titles = rows.all_inner_texts()
    last, first = rows.nth(4).bounding_box(), rows.nth(0).bounding_box()
    assert last
    assert first
    seen.page.mouse.move(last["x"] + 40, last["y"] + 10)
    seen.page.mouse.down()
    seen.page.mouse.move(first["x"] + 40, first["y"] + 2, steps=8)
    seen.page.mouse.up()
    seen.settle()
    moved = [titles[4], *titles[:4]]
    assert rows.all_inner_texts() == moved
    book = Book(own_store.parent / FILE)
    (queue,) = book.queues()
    assert [each.position for each in book.items(queue.queue_id)[:5]] == [2, 3, 4, 5, 1]
    seen.page.keyboard.press("Enter")
    expect(seen.page.locator("[data-testid=stProgress]")).to_contain_text("· 2 of 20")
    assert book.items(queue.queue_id)[4].at is not None


@pytest.mark.slow
def test_what_confidence_asks_for_is_judged_and_its_agreement_seen(
    own_server: Server, own_store: Path, visit: Callable[..., Visit]
):  # the page is closed before its server
    seen = visit(f"{own_server.url}/confidence?sec=worth+measuring+more&ws=python-docs")
    seen.page.get_by_role("button", name="Judge these 20 next").click()
    seen.page.get_by_role("textbox", name="Your name").fill("Gil")
    seen.page.get_by_role("button", name="Judge these").click()
    expect(seen.page.get_by_text("Gil · 1 of 20")).to_be_visible()
    seen.settle()
    book = Book(own_store.parent / FILE)
    (queue,) = book.queues()
    for each in book.items(queue.queue_id):
        book.grade(queue.queue_id, each.place, 2, 1.0)
    seen.page.reload()
    seen.settle()
    seen.page.get_by_role("button", name="How you agree with others").click()
    expect(seen.page.get_by_role("combobox", name="Judges (golden sets)")).to_be_visible()
