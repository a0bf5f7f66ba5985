"""The limits beside the Pareto chart: what follows while one is dragged, and what waits for its release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Locator, expect

from core.analysis.workspace.scope import Latency
from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, decide
from core.paths import ROOT
from core.views.decision.charts import drawing, pareto, points
from tests.e2e.watch import Visit
from tests.server import Server, serve
from tests.views.made import AT_10, stacks

pytestmark = pytest.mark.e2e
Open = Callable[..., Visit]
SCRIPT = ROOT / "core" / "ui" / "live" / "chart.js"
_MASK = """async ([source, points, limits, axes, names]) => {
  const module = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
  for (const name of Object.keys(points)) points[name] = points[name].map(each => each ?? NaN);
  return limits.map(each => {
    const ok = module.meets(points, each, axes);
    const best = module.leader(points, ok, axes, names) ?? null;
    return [Array.from(ok), module.frontier(points, ok, axes, 'latency'), best];
  });
}"""


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_browser_removes_what_python_removes(browser: Browser, seed: int, higher: bool) -> None:
    rng = np.random.default_rng(seed)
    columns = {
        name: [None if rng.random() < 0.1 else float(value) for value in rng.integers(0, 12, 300) / 12]
        for name in ("quality", "latency_ms", "cost", "harm")
        if not (name == "cost" and seed == 4)  # nobody has one, so it is not asked for
    }
    harm = pl.Series("harm", columns.pop("harm"), dtype=pl.Float64)
    rows, free = stacks(**columns).with_columns(harm), Constraints(higher_is_better=higher)
    view = pareto(rows, decide(rows, free), free, quality=AT_10, latency=Latency())
    numbers = points(rows, view).drop("cell").fill_nan(None).to_dict(as_series=False)
    drawn = drawing(rows, view)
    axes, names = drawn["axes"], [int(row) for row in drawn["names"]]
    limits = [
        {each["limit"]: int(rng.integers(0, 12)) / 12 for each in axes if rng.random() < 0.5}
        for _ in range(20)
    ]
    page = browser.new_page()
    answers = page.evaluate(_MASK, [SCRIPT.read_text(encoding="utf-8"), numbers, limits, axes, names])
    page.close()
    latency, quality = (rows[name].fill_null(np.nan).to_numpy() for name in ("latency_ms", "quality"))
    merit = quality if higher else -quality
    for limit, (ok, line, best) in zip(limits, answers, strict=True):
        asked = Constraints(
            sla_ms=limit.get("sla_ms"),
            budget=limit.get("budget"),
            min_quality=limit.get("min_quality"),
            max_harm=limit.get("max_harm"),
            higher_is_better=higher,
        )
        feasible = decide(rows, asked).feasible
        assert (np.array(ok) == feasible).all()
        on = np.where(feasible, 1.0, np.nan)
        assert sorted(line) == sorted(frontier_2d(latency * on, merit * on).tolist())
        assert (best is None) == (not feasible.any())
        assert best is None or merit[best] == merit[feasible].max()
        assert (np.diff(latency[line]) >= 0).all()


def press_on(page: Visit, slider: Locator, share: float) -> None:
    """Put the pointer down on a slider and leave it there."""
    box = slider.bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    page.page.mouse.down()


def dimmed(page: Visit) -> int:
    """How many marks are shown as excluded."""
    found = "nodes => nodes.filter(node => Number(getComputedStyle(node).opacity) < 0.5).length"
    return int(page.page.locator(".clq-plot [class*=tracemarks-] path.point").evaluate_all(found))


def test_a_drag_is_followed_at_once_and_is_one_step_of_the_history(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5per1k")
    counted = page.page.locator(".clq-count")
    answer, address, count, dim = page.answer, page.address, counted.inner_text(), dimmed(page)
    steps, sla = page.page.evaluate("history.length"), page.field("SLA").input_value()
    press_on(page, page.slider("SLA"), 0.1)
    expect(page.page.locator(".clq-live.clq-dragging")).to_be_visible()
    expect(counted).not_to_have_text(count)
    while_down = counted.inner_text()
    assert dimmed(page) > dim
    assert (page.answer, page.address) == (answer, address)

    page.page.mouse.up()
    expect(page.page.locator(".clq-live.clq-dragging")).to_have_count(0)
    page.settle()
    at_rest = counted.inner_text()
    assert while_down.startswith(f"{at_rest} Best quality: ")  # at rest the heading names the choice
    assert page.answer != answer
    assert "sla_ms=" in page.address
    asked = parse_qs(urlsplit(page.address).query)
    for link in page.page.locator("[data-testid=stSidebar] [data-testid=stPageLink] a").all():
        held = parse_qs(urlsplit(str(link.get_attribute("href"))).query)
        assert (held["sla_ms"], held["budget"]) == (asked["sla_ms"], asked["budget"]), "as a new tab opens it"
    expect(page.page.locator(".clq-said")).to_have_text(at_rest)
    assert page.page.evaluate("history.length") == steps + 1
    page.page.go_back()
    page.settle()
    expect(page.field("SLA")).to_have_value(sla)
    assert (page.answer, page.address) == (answer, address)


def test_a_typed_limit_is_exact_and_empty_is_no_limit(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5per1k")
    for label, text, key, said in (
        ("SLA", "0,4 s", "sla_ms", "400"),
        ("SLA", "1,500", "sla_ms", "1500"),
        ("SLA", "510.5", "sla_ms", "510.5"),
        ("Budget", "2.50", "budget", "2.5per1k"),
    ):
        page.field(label).fill(text)
        page.press(page.field(label), "Enter")
        assert parse_qs(urlsplit(page.address).query)[key] == [said]
    expect(page.slider("SLA")).to_have_attribute("aria-valuetext", "510.5 ms")
    expect(page.field("Budget")).to_have_value("2.50")
    page.field("SLA").fill("soon")
    page.press(page.field("SLA"), "Enter")
    expect(page.field("SLA")).to_have_attribute("aria-invalid", "true")
    told = "Write milliseconds such as 20, or 1.5 s."
    expect(page.field("SLA")).to_have_js_property("validationMessage", told)
    page.field("SLA").fill("")
    page.press(page.field("SLA"), "Enter")
    assert "sla_ms=" not in page.address
    expect(page.slider("SLA")).to_have_attribute("aria-valuetext", "no limit")


_STOP = """() => {
  let at = document.activeElement;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return [...document.querySelectorAll("[class*=st-key-]")].filter(each => each.contains(at))
    .map(each => each.className.match(/st-key-(\\w+)/)[1]);
}"""


def test_limits_move_by_keys_and_follow_to_other_pages(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla_ms=600")
    reached: set[str] = set()
    # over the rooms, and twelve stops more: what is offered has three of its own
    for key in ("Tab", "Enter", *["Tab"] * 12):
        page.page.keyboard.press(key)
        reached.update(page.page.evaluate(_STOP))
    assert reached >= {"firm", "limits_strip", "view"}  # the choice above the chart
    page.press(page.field("SLA"), "ArrowDown", 2)
    lower = float(page.field("SLA").input_value())
    assert lower < 600
    assert f"sla_ms={lower:g}" in page.address
    page.press(page.field("SLA"), "PageUp")
    assert float(page.field("SLA").input_value()) > 600
    page.field("SLA").fill("600")
    page.press(page.field("SLA"), "Enter")
    assert page.page.get_by_role("slider").count() == 3
    expect(page.slider("Quality")).to_have_attribute("aria-valuetext", "no limit")
    page.press(page.slider("Quality"), "PageUp", 2)
    expect(page.slider("Quality")).not_to_have_attribute("aria-valuetext", "no limit")
    floor = page.field("Quality").input_value()
    page.press(page.slider("SLA"), "ArrowLeft")
    assert float(page.field("SLA").input_value()) < 600
    page.page.get_by_role("link", name="Headroom").click()
    page.page.wait_for_url("**/headroom*")
    page.settle()
    assert page.field("Quality").input_value() == floor


def test_limits_fold_into_a_line_on_a_phone(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5", width=390, height=844)
    line = page.page.get_by_role("button", name="≤ 600 ms · ≤ $2.50 / 1k")
    assert page.slider("SLA").count() == 0
    line.click()
    expect(line).to_have_attribute("aria-expanded", "true")
    page.press(page.slider("SLA"), "PageDown", 2)
    again = visit(page.address, width=390, height=844)
    assert again.answer == page.answer


def test_the_first_screen_holds_answer_limits_and_the_whole_chart(server: Server, visit: Open) -> None:
    for name in ("clq-paper&sla_ms=600&budget=2.5", "python-docs"):
        page = visit(f"{server.url}/?ws={name}")
        chart = page.page.locator(".clq-plot").bounding_box()
        assert chart is not None
        assert chart["y"] + chart["height"] <= 800
        assert page.overflow() <= 0
    phone = visit(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5", width=390, height=844)
    chart = phone.page.locator(".clq-plot").bounding_box()
    assert chart is not None
    assert chart["y"] <= 2 * 844
    assert phone.overflow() <= 0


_TOUCHING = """() => {
  const boxes = (query) => [...document.querySelectorAll(query)]
    .filter(node => node.style.display !== 'none').map(node => node.getBoundingClientRect());
  const labels = boxes('.clq-plot .annotation');
  const on = (a, b) =>
    a !== b && a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
  const marks = boxes('.clq-plot [class*=tracemarks-] path.point');
  const touching = labels.filter(one => [...labels, ...marks].some(two => on(one, two)));
  return [labels.length, touching.length];
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_names_on_the_chart_lie_on_nothing(server: Server, visit: Open, width: int) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5", width=width)
    there, touching = page.page.evaluate(_TOUCHING)
    assert there >= (4 if width == 1280 else 1)
    assert touching == 0


def test_without_the_library_the_chart_is_streamlits(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/measures?ws=clq-paper")
    with page.page.route("**/plotly-*.min.js", lambda route: route.abort()):
        page.page.goto(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5per1k")
        chart = page.page.locator("[data-testid=stPlotlyChart] .main-svg").first
        expect(chart).to_be_visible(timeout=30_000)
        page.settle()
    before = page.answer
    page.press(page.slider("SLA"), "PageDown", 8)
    assert page.answer != before
    assert page.errors
    page.errors.clear()


def test_fields_of_their_own_appear_where_the_strip_cannot(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/measures?ws=clq-paper")
    with page.page.add_init_script("URL.createObjectURL = () => { throw new Error('no modules') }"):
        page.page.goto(f"{server.url}/?ws=clq-paper&sla_ms=600&budget=2.5per1k")
    own = page.page.get_by_test_id("stNumberInput").filter(has_text="SLA").get_by_role("spinbutton")
    expect(own).to_be_visible(timeout=30_000)
    budget = page.page.get_by_test_id("stTextInput").filter(has_text="Budget").get_by_role("textbox")
    budget.fill("cheap")
    budget.press("Enter")
    expect(page.page.get_by_text("Write 2.5per1k or 0.2per1M")).to_be_visible()
    assert "cheap" not in page.address
    budget.fill("2000per1M")
    budget.press("Enter")
    page.settle()
    assert parse_qs(urlsplit(page.address).query)["budget"] == ["2000per1M"]
    page.errors.clear()


@pytest.mark.parametrize(
    ("workspace", "shown", "said"), [("clq-paper", "2.50", "2.5per1k"), ("docs-search", "0.16", "0.16per1M")]
)
def test_the_address_of_a_budget_says_its_unit_and_brings_it_back(
    server: Server, visit: Open, workspace: str, shown: str, said: str
) -> None:
    page = visit(f"{server.url}/?ws={workspace}")
    page.field("Budget").fill(shown)
    page.press(page.field("Budget"), "Enter")
    assert parse_qs(urlsplit(page.address).query)["budget"] == [said]
    answer = page.answer
    other = visit(page.copy_link())
    expect(other.field("Budget")).to_have_value(shown)
    assert other.answer == answer
    page.page.reload()
    page.settle()
    expect(page.field("Budget")).to_have_value(shown)
    assert (page.answer, parse_qs(urlsplit(page.address).query)["budget"]) == (answer, [said])


def test_a_budget_of_an_earlier_release_is_dollars_per_1000_and_back_leads_on(
    server: Server, visit: Open
) -> None:
    page = visit(f"{server.url}/measures?ws=clq-paper")
    before = page.address
    page.page.goto(f"{server.url}/?ws=clq-paper&budget=2")
    page.settle()
    expect(page.field("Budget")).to_have_value("2.00")
    assert parse_qs(urlsplit(page.address).query)["budget"] == ["2per1k"]
    for _ in range(3):
        if page.address == before:
            break
        page.page.go_back()
        page.settle()
    assert page.address == before


@pytest.fixture(scope="module")
def many_server(many_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("log") / "server.log", CLQ_STORE=str(many_store)) as running:
        yield running


def test_a_density_follows_a_drag_and_a_click_on_it_selects_a_stack(many_server: Server, visit: Open) -> None:
    page = visit(f"{many_server.url}/")
    expect(page.page.locator(".clq-count")).to_contain_text("All 10,000 stacks")
    press_on(page, page.slider("SLA"), 0.2)
    expect(page.page.locator(".clq-count")).not_to_contain_text("All 10,000 stacks")
    painted = "pen => new Set(pen.getContext('2d').getImageData(0, 0, pen.width, pen.height).data).size > 50"
    assert page.page.locator(".clq-chart canvas").evaluate(painted)
    page.page.mouse.up()
    expect(page.page.locator(".clq-live.clq-dragging")).to_have_count(0)
    page.settle()

    area = page.page.locator(".clq-plot .nsewdrag").first.bounding_box()
    assert area is not None
    for place in range(20, 80, 5):  # somewhere down this line there are stacks
        page.page.mouse.click(area["x"] + area["width"] / 3, area["y"] + place / 100 * area["height"])
        page.page.wait_for_timeout(50)
    page.page.wait_for_url("**stack=*")
    page.settle()
    (name,) = parse_qs(urlsplit(page.address).query)["stack"]
    expect(page.page.locator("[data-testid=stMain] strong", has_text=name)).to_be_visible()


def test_charts_out_of_sight_are_drawn_too(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/latency?ws=docs-search")
    charts = page.page.locator(".clq-figure")
    expect(charts).to_have_count(2)
    expect(page.page.locator(".clq-figure.clq-ready")).to_have_count(2, timeout=30_000)


def test_a_chart_that_the_small_library_lacks_is_drawn_by_the_whole(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=docs-search&view=parallel+axes")
    expect(page.page.locator(".clq-figure.clq-ready .parcoords").first).to_be_visible(timeout=30_000)
