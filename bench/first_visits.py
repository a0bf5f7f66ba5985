"""First visits of every page in a browser that knows nothing, beside a bare page with a chart and a table.

A visit has a profile of its own, so that nothing is cached, and lasts until the script has run and every
table is drawn, and every chart in sight. Product and bare page take turns, so that whatever else the machine
does hits both. Beside the seconds stands the processor time of the page's thread, which other work on the
machine hardly changes.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from bench.cpu import faster
from bench.demo import ADDRESS, demo
from bench.repaint import BARE
from core.views.pages import PAGES
from tests.server import CHROMIUM_ARGS, find_chromium, serve_cold

ROUNDS = 2
_WHOLE = """() => {
  const seen = (drawn) => {
    const { top, height } = drawn.getBoundingClientRect();
    return drawn.checkVisibility() && top + 0.1 * height < innerHeight;
  };
  const all = (query) => [...document.querySelectorAll(query)];
  return document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && document.querySelector('h1, [data-testid=stSlider]')
    && !document.querySelector('[data-testid=stSkeleton]')
    && all('.clq-figure, .clq-live').filter(seen).every((drawn) => drawn.matches('.clq-ready'))
    && all('[data-testid=stPlotlyChart], [data-testid=stDataFrame]')
      .every((drawn) => !drawn.checkVisibility() || drawn.querySelector('.main-svg, canvas'));
}"""
_PATIENCE_MS = 60_000.0


def run() -> list[dict[str, Any]]:
    """Measure and compare: the quicker of two visits.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ratio = peer / here.
    """
    chromium = find_chromium()
    if chromium is None:
        raise RuntimeError("No Chromium: install one, or name it in CHROMIUM.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(serve_cold(folder / "ours.log", CLQ_STORE=demo(folder)))
        about = {"BARE_POINTS": "30", "BARE_TABLE": "1"}
        bare = stack.enter_context(serve_cold(folder / "bare.log", app=BARE, **about))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGS))
        _visit(browser, f"{ours.url}/{ADDRESS}")
        _visit(browser, bare.url)
        rows = []
        for place, page in enumerate(PAGES.values()):
            url = f"{ours.url}/{page.name if place else ''}{ADDRESS}"
            visits = [(_visit(browser, url), _visit(browser, bare.url)) for _ in range(ROUNDS)]
            for number, what in enumerate(("until it is whole", "processor of the page's thread")):
                here, peer = (min(each[number] for each in side) for side in zip(*visits, strict=True))
                name = f"first visit of {page.title}, {what}"
                rows.append(faster(name, here, "bare page with a chart and a table", peer))
        browser.close()
        return rows


def _visit(browser: Browser, url: str) -> tuple[float, float]:
    """Seconds that a visit lasts, and those of the processor that the page's thread takes."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    tools = context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_function(_WHOLE, timeout=_PATIENCE_MS)
    taken = time.perf_counter() - start
    metrics = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
    context.close()
    return taken, metrics["TaskDuration"]
