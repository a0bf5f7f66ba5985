"""From a key on the SLA slider to the repainted Pareto chart, beside a bare page with as many points.

Both pages are open in one Chromium, each on a server of its own, and are moved in turns, so that whatever
else the machine does hits both. The clock starts in the page, when the key arrives, and stops after the frame
in which Plotly has drawn a figure whose limit line is elsewhere than before. Before that the product's chart
already follows: marks are dimmed, limit and frontier drawn from what the page has; that frame is timed too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from tests import many_stacks
from tests.server import CHROMIUM_ARGS, find_chromium, serve_cold

COUNTS = (1_000, 10_000)
MOVES = 30
WARM_UP = 4
BARE = Path(__file__).with_name("bare_app.py")
PATH = f"?ws={many_stacks.COLLECTION}&sla_ms=500"
_PLOT = ".js-plotly-plot"
_WATCH = """() => {
  const drawn = () => {
    const plot = document.querySelector('.js-plotly-plot');
    // the strip of the jitter comes before the limits
    const lines = plot?.querySelector('.shapelayer path') ? plot.layout.shapes : [];
    const line = lines.find(({ type }) => type !== 'rect');
    return line ? line.x0 : null;
  };
  window.addEventListener('keydown', () => {
    const start = performance.now(), before = drawn();
    const look = () => {
      const now = drawn();
      if (!window.followed && document.querySelector('.clq-dragging')) {
        window.followed = performance.now() - start; // and painted in this frame
      }
      if (now === null || now === before) requestAnimationFrame(look);
      else requestAnimationFrame(() => { window.moved = performance.now() - start; });
    };
    window.moved = window.followed = undefined;
    look();
  }, true);
}"""
"""Streamlit makes a new plot on every change. Plotly draws lines after the marks, so a line that stands
elsewhere tells that all of it is drawn; the next frame tells that it was painted."""


@contextmanager
def side_by_side(count: int) -> Iterator[tuple[Page, Page]]:
    """The product with so many stacks and a bare page with as many points, open in one Chromium."""
    chromium = find_chromium()
    if chromium is None:
        raise RuntimeError("No Chromium: install one, or name it in CHROMIUM.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        many_stacks.seed(folder / "store", count)
        ours = stack.enter_context(serve_cold(folder / "ours.log", CLQ_STORE=str(folder / "store")))
        bare = stack.enter_context(serve_cold(folder / "bare.log", app=BARE, BARE_POINTS=str(count)))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGS))
        yield open_page(browser.new_page(), f"{ours.url}/{PATH}"), open_page(browser.new_page(), bare.url)
        browser.close()


def measure(count: int, moves: int = MOVES) -> np.ndarray:
    """Milliseconds from key to the first frame that follows, to repaint, and to that of the bare page."""
    with side_by_side(count) as pages:
        taken = [[*move(pages[0]), move(pages[1])[1]] for _ in range(WARM_UP + moves)][WARM_UP:]
    return np.array(taken, dtype=np.float64)


def open_page(page: Page, url: str) -> Page:
    """A page that notes how long it takes to follow a key."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_selector(f"{_PLOT} .main-svg", timeout=60_000)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
    page.wait_for_timeout(1_000)
    page.evaluate(_WATCH)
    return page


def move(page: Page) -> tuple[float | None, float]:
    """Milliseconds from a key on the SLA slider to the first frame that follows, and to the repaint."""
    page.bring_to_front()
    page.get_by_role("slider", name="SLA").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("window.moved !== undefined", timeout=30_000)
    taken = page.evaluate("[window.followed, window.moved]")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=30_000)
    page.wait_for_timeout(300)
    return taken[0], taken[1]


def run(counts: Sequence[int] = COUNTS, moves: int = MOVES) -> list[dict[str, Any]]:
    """Measure and compare.

    Args:
        counts: How many stacks.
        moves: How many moves of each page.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ms, ratio = peer / here.
    """
    rows = []
    for count in counts:
        taken = measure(count, moves)
        for percentile in (50, 95):
            *here, peer = np.percentile(taken, percentile, axis=0).tolist()
            for what, value in zip(("the first frame that follows", "repaint"), here, strict=True):
                rows.append(
                    {
                        "name": f"slider to {what}, {count:,} stacks, p{percentile} of {len(taken)}",
                        "value": value,
                        "unit": "ms",
                        "peer": f"bare Streamlit and Plotly page to repaint, {count:,} points",
                        "peer_value": peer,
                        "ratio": peer / value,
                    }
                )
    return rows
