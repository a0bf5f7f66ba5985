"""The main path: look, move a limit, see the choice change, send the view to a colleague."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from core.records import Batch, Collection, GoldenSet
from core.store import Store
from tests.e2e.watch import Visit
from tests.server import Server

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]


def feasible(visit: Visit) -> str:
    """“19 of 54 stacks within the limits”, as the page says it."""
    return visit.page.get_by_text("within the limits").first.inner_text().split(".")[0]


def test_a_slower_limit_changes_the_choice_and_a_link_restores_the_view(server: Server, visit: Open) -> None:
    first = visit(f"{server.url}/?ws=python-docs")
    assert first.answer.startswith("Best so far: ")
    second = visit(f"{server.url}/?ws=clq-paper&sla_ms=3000")
    before, all_feasible = second.answer, feasible(second)
    frontier = second.page.locator(".js-plotly-plot [class*=traceover-frontier]").first
    line = frontier.locator("path.js-line").get_attribute("d")

    slider = second.slider("SLA")
    second.press(slider, "PageDown", 8)
    second.press(slider, "ArrowLeft", 3)

    assert second.answer != before
    assert feasible(second) != all_feasible
    assert frontier.locator("path.js-line").get_attribute("d") != line
    link = second.copy_link()
    assert "rev=" in link
    assert "sla_ms=" in link

    colleague = visit(link)
    assert colleague.answer == second.answer
    assert feasible(colleague) == feasible(second)
    assert colleague.slider("SLA").input_value() == slider.input_value()


def test_a_click_on_a_mark_selects_its_stack_and_leads_to_its_queries(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=python-docs")
    marks = page.page.locator(".js-plotly-plot .points path.point")
    page.click_mark(marks.nth(10))
    page.settle()
    (name,) = parse_qs(urlsplit(page.address).query)["stack"]
    note = page.page.locator(".clq-note", has_text=name)
    expect(note).to_be_in_viewport()
    page.page.get_by_role("link", name="Its queries").click()
    page.page.wait_for_url("**/queries*")
    page.settle()
    assert name in page.answer


def test_a_pinned_link_says_that_newer_data_exist(own_server: Server, own_store: Path, visit: Open) -> None:
    link = visit(f"{own_server.url}/?ws=python-docs").copy_link()
    with Store.open(own_store).write("test") as writer:
        writer.add(Batch(collections=(Collection(collection_id="newer", name="Newer"),)))
    page = visit(link)
    expect(page.page.get_by_text("Pinned to revision")).to_have_count(0)
    spare = GoldenSet(golden_set_id="spare", collection_id="python-docs", name="Spare")
    with Store.open(own_store).write("test") as writer:
        writer.add(Batch(golden_sets=(spare,)))
    page = visit(link)
    pinned = "Pinned to revision 1; 1 newer revision of this workspace since."
    expect(page.page.get_by_text(pinned)).to_be_visible()
    page.page.get_by_role("button", name="Show the newest data").click()
    page.settle()
    expect(page.page.get_by_text("Pinned to revision")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_mangled_link_opens_the_defaults_with_a_notice(server: Server, visit: Open, width: int) -> None:
    page = visit(f"{server.url}/?sla_ms=zzz&ws=nope&k=ten&junk=1&stack=%3Cb%3E", width=width)
    expect(page.page.get_by_text("Not followed: ")).to_be_visible()
    assert page.answer.startswith(("Ship ", "Best so far: ", "No clear winner: "))
    assert page.answer == visit(f"{server.url}/?ws=docs-search&k=10").answer


def test_a_deep_link_may_be_the_first_thing_a_fresh_server_is_asked_for(
    own_server: Server, visit: Open
) -> None:
    page = visit(f"{own_server.url}/headroom?ws=clq-paper")
    assert page.answer.startswith("Perfect ordering would add 0.148 RA-nWG@10")
    assert page.page.title() == "Headroom · CLQ Explorer"
    expect(page.page.get_by_role("button", name="Share", exact=True)).to_be_visible()


def test_the_other_alternatives_are_sent_when_they_are_opened(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=docs-search&sla_ms=10")
    dialog = page.page.get_by_test_id("stPopoverBody")
    others = page.page.locator(".st-key-more_alternatives button")
    before = page.answer
    others.click()
    expect(dialog.get_by_test_id("stDataFrame").first).to_be_visible()
    dialog.get_by_role("button", name="Take it").first.click()
    expect(page.page.get_by_text("in place of").first).to_be_visible()
    assert page.answer != before
