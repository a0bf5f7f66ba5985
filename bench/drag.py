"""A limit that is dragged: the frames while it moves, beside a page of Streamlit's own slider and chart.

Both pages show as many points in one Chromium and take turns. The product's slider gets an input event a
frame, as a pointer gives it. What counts is the time from the event until the frame that shows the chart's
answer has been painted, and the length of the frames. Streamlit's slider moves its chart through the server,
so for it a step is a key, and what counts is the time until the chart was painted anew, as in the bench
"repaint".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from playwright.sync_api import Page

from bench.repaint import move, side_by_side

COUNTS = (1_000, 10_000)
FRAMES = 30
TURNS = 6
BOUND_MS = 50.0
_DRAG = """async ([label, frames]) => {
  const input = [...document.querySelectorAll('.clq-strip input[type=range]')]
    .find(each => each.labels[0].textContent.startsWith(label));
  const frame = () => new Promise(requestAnimationFrame);
  const [top, step, start] = [Number(input.max), Number(input.step), input.value];
  const shown = [], gaps = [];
  input.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}));
  await frame();
  let last = performance.now();
  for (let count = 0; count < frames; count++) {
    const at = top * (0.5 + 0.4 * Math.sin(count / 8));
    input.value = Math.round(at / step) * step;
    const sent = performance.now();
    input.dispatchEvent(new Event('input', {bubbles: true}));
    await frame();              // the chart is drawn in this frame
    await frame();              // and was painted before this one
    const now = performance.now();
    shown.push(now - sent);
    gaps.push((now - last) / 2);
    last = now;
  }
  if (!document.querySelector('.clq-dragging')) throw new Error('nothing followed');
  input.value = start;
  input.dispatchEvent(new Event('input', {bubbles: true}));
  window.dispatchEvent(new PointerEvent('pointerup'));
  return [shown, gaps];
}"""


def measure(count: int) -> dict[str, np.ndarray]:
    """Milliseconds, by what was measured."""
    with side_by_side(count) as (here, there):
        found: dict[str, list[float]] = {name: [] for name in ("SLA", "Budget", "gaps", "bare")}
        for turn in range(TURNS + 1):
            for label in ("SLA", "Budget"):
                shown, gaps = _drag(here, label)
                if turn:
                    found[label] += shown
                    found["gaps"] += gaps
            taken = [move(there)[1] for _ in range(3)]
            found["bare"] += taken if turn else []
    return {name: np.array(values) for name, values in found.items()}


def _drag(page: Page, label: str) -> tuple[list[float], list[float]]:
    page.bring_to_front()
    page.wait_for_function("!document.querySelector('.clq-dragging, .clq-live[aria-busy=true]')")
    shown, gaps = page.evaluate(_DRAG, [label, FRAMES])
    return shown, gaps


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ms, ratio = peer / here.
    """
    rows = []
    for count in COUNTS:
        found = measure(count)
        for name, what in (("SLA", "input to paint, SLA"), ("Budget", "input to paint, budget")):
            for percentile in (50, 95):
                value = float(np.percentile(found[name], percentile))
                peer = float(np.percentile(found["bare"], percentile))
                rows.append(
                    _row(f"drag, {what}, {count:,} stacks, p{percentile} of {len(found[name])}", value,
                         f"st.slider + st.plotly_chart, {count:,} points", peer)
                )  # fmt: skip
        for percentile in (50, 95):
            value = float(np.percentile(found["gaps"], percentile))
            rows.append(
                _row(
                    f"drag, a frame, {count:,} stacks, p{percentile}",
                    value,
                    "our bound for a frame",
                    BOUND_MS,
                )
            )
    return rows


def _row(name: str, value: float, peer: str, peer_value: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": "ms",
        "peer": peer,
        "peer_value": peer_value,
        "ratio": peer_value / value,
    }
