"""The limits beside the Pareto chart: what follows while one is dragged, and what waits for its release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Locator, expect

from core.decide.pareto import frontier_2d
from core.decide.rules import Constraints, decide
from core.paths import ROOT
from core.views.decision.chart import pareto
from core.views.decision.live import drawing, points
from core.views.workspace.scope import Latency
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
    return [Array.from(ok), module.frontier(points, ok, axes), best];
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
            sla_ms=limit.get("sla"),
            budget=limit.get("budget"),
            floor=limit.get("floor" if higher else "cap"),
            max_harm=limit.get("harm"),
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


def test_a_drag_is_followed_at_once_and_decided_on_release(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper")
    counted = page.page.locator(".clq-count")
    answer, address, count, dim = page.answer, page.address, counted.inner_text(), dimmed(page)
    press_on(page, page.slider("SLA (ms)"), 0.1)
    expect(page.page.locator(".clq-live.clq-dragging")).to_be_visible()
    expect(counted).not_to_have_text(count)
    while_down = counted.inner_text()
    assert dimmed(page) > dim
    assert (page.answer, page.address) == (answer, address)

    page.page.mouse.up()
    expect(page.page.locator(".clq-live.clq-dragging")).to_have_count(0)
    page.settle()
    assert counted.inner_text() == while_down
    assert page.answer != answer
    assert "sla=" in page.address
    number = while_down.split(" of ")[0]
    expect(page.page.get_by_text(f"{number} of 54 stacks within the limits")).to_be_visible()
    expect(page.page.locator(".clq-said")).to_have_text(while_down)


def test_a_slider_says_its_name_and_its_value_with_the_unit(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper&sla=600")
    assert page.page.get_by_role("slider").count() == 3  # those of the sidebar have given way
    expect(page.slider("SLA (ms)")).to_have_attribute("aria-valuetext", "600 ms")
    expect(page.slider("Budget")).to_have_attribute("aria-valuetext", "no limit")
    page.press(page.slider("Budget"), "Home")
    expect(page.slider("Budget")).to_have_attribute("aria-valuetext", "$0 / 1k")
    page.press(page.slider("Quality floor"), "PageUp", 2)
    expect(page.slider("Quality floor")).to_have_attribute("aria-valuetext", "0.20")
    settings = parse_qs(urlsplit(page.address).query)
    assert (settings["budget"], settings["floor"]) == (["0"], ["0.2"])
    page.page.get_by_text("See the queries of the selected stack").click()
    page.page.wait_for_url("**/queries*")
    page.settle()
    assert page.slider("Quality floor").input_value() == "0.2"


def test_limits_reach_the_address_where_the_sidebar_is_closed(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper", width=390, height=844)
    page.press(page.slider("SLA (ms)"), "PageDown", 8)
    assert "sla=" in page.address
    again = visit(page.address, width=390, height=844)
    assert again.slider("SLA (ms)").input_value() == page.slider("SLA (ms)").input_value()
    assert again.answer == page.answer


def test_without_the_library_the_page_falls_back_to_the_sidebar(server: Server, visit: Open) -> None:
    page = visit(f"{server.url}/?ws=clq-paper")
    page.page.route("**/plotly.min.js", lambda route: route.abort())
    page.page.goto(f"{server.url}/?ws=clq-paper")
    expect(page.page.locator("[data-testid=stPlotlyChart] .main-svg").first).to_be_visible(timeout=30_000)
    page.settle()
    before = page.answer
    page.press(page.slider("SLA (ms)"), "PageDown", 8)
    assert page.answer != before
    assert page.errors
    page.errors.clear()


@pytest.fixture(scope="module")
def many_server(many_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("log") / "server.log", CLQ_STORE=str(many_store)) as running:
        yield running


def test_a_density_follows_a_drag_and_a_click_on_it_selects_a_stack(many_server: Server, visit: Open) -> None:
    page = visit(f"{many_server.url}/")
    expect(page.page.locator(".clq-count")).to_contain_text("10,000 of 10,000 stacks")
    press_on(page, page.slider("SLA (ms)"), 0.2)
    expect(page.page.locator(".clq-count")).not_to_contain_text("10,000 of 10,000 stacks")
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
