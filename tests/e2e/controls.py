"""The controls of a page, each set as a person would, and all that the page then shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from playwright.sync_api import Locator

from core.ui.state import SETTINGS
from tests.e2e.watch import Visit

TYPED: Mapping[str, str] = MappingProxyType({"find": "index", "slas": "100, 300", "q": "q31"})
"""What to type into fields of text, by their setting; others stay as they are."""
_ROOM = "[data-testid=stMain], [data-testid=stPopoverBody]"
_KEYS = """([room, kinds]) => [...document.querySelectorAll(room)].flatMap(main =>
  [...main.querySelectorAll('[class*=st-key-]')].filter(each =>
    each.offsetParent && each.querySelector(kinds) && !each.querySelector('[class*=st-key-]')
    && !each.querySelector('input:disabled, button[aria-disabled=true]'))
  .map(each => each.className.match(/st-key-(\\S+)/)[1]))"""
_SHOWN = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  const plain = (_, value) => ArrayBuffer.isView(value) ? [...value] : value;
  const grids = [...main.querySelectorAll('[data-testid=stDataFrame] [role=gridcell]')];
  const charts = [...main.querySelectorAll('.js-plotly-plot')].flatMap(plot => plot.data.flatMap(trace =>
    [trace.name, ...['x', 'y', 'z', 'text'].map(axis => JSON.stringify(trace[axis] ?? null, plain))]));
  return [...main.innerText.split('\\n'), ...grids.map(cell => cell.textContent), ...charts];
}"""


def _of_few(control: Locator) -> None:
    other = control.locator("button[data-variant]:not([data-selected=true])")
    if other.count():
        other.first.click()


def _of_radio(control: Locator) -> None:
    other = control.locator("label:has(input:not(:checked))")
    if other.count():
        other.first.click()


def _of_list(control: Locator) -> None:
    control.get_by_role("button", name="Open").click()
    other = control.page.get_by_role("option", selected=False)
    if control.page.get_by_role("option").count() and other.count():
        other.first.click()
    control.page.keyboard.press("Escape")


def _number(control: Locator) -> None:
    up, down = (control.get_by_role("button", name=way) for way in ("Increment", "Decrement"))
    (up if up.is_enabled() else down).click()
    control.get_by_role("spinbutton").press("Enter")


def _slide(control: Locator) -> None:
    thumb = control.get_by_role("slider").first
    top = thumb.get_attribute("max") == thumb.input_value()
    thumb.press("ArrowLeft" if top else "ArrowRight")


_SET: Mapping[str, Callable[[Locator], None]] = {
    "stButtonGroup": _of_few,
    "stRadio": _of_radio,
    "stSelectbox": _of_list,
    "stMultiSelect": _of_list,
    "stNumberInput": _number,
    "stCheckbox": lambda control: control.locator("label").click(),
    "stSlider": _slide,
}


def unfold(seen: Visit) -> None:
    """Open everything that is folded."""
    folded = seen.page.locator("[data-testid=stMain] details:not([open]) > summary")
    while folded.count():
        folded.first.click()
        seen.settle()


def set_all(seen: Visit, *, but: frozenset[str] = frozenset()) -> list[str]:
    """Set each control of an open page that an address may carry, those that appear meanwhile too.

    Args:
        seen: The page.
        but: Settings to leave as they are.

    Returns:
        The settings in the order in which they were set.
    """
    done: list[str] = []
    kinds = ", ".join(f"[data-testid={kind}]" for kind in [*_SET, "stTextInput"])
    while waiting := [
        key
        for key in seen.page.evaluate(_KEYS, [_ROOM, kinds])
        if key in SETTINGS and key not in but and key not in done
    ]:
        key = waiting[0]
        done.append(key)
        _apply(seen.page.locator(f".st-key-{key}").first, key)
        seen.settle()
    return done


def _apply(control: Locator, key: str) -> None:
    for kind, change in _SET.items():
        if control.get_by_test_id(kind).count():
            change(control)
            return
    if key in TYPED:
        field = control.get_by_role("textbox")
        field.fill(TYPED[key])
        field.press("Enter")


def shown(seen: Visit) -> list[str]:
    """All that a page shows: its text line by line, the cells of its tables in sight, its charts' numbers."""
    found: list[Any] = seen.page.evaluate(_SHOWN)
    return [re.sub(r"\s+", " ", str(each)).strip() for each in found]
