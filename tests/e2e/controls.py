"""The controls of a page, each set as a person would, and all that the page then shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from types import MappingProxyType

from playwright.sync_api import Locator

from core.ui.address.state import SETTINGS
from tests.e2e.watch import QUIET_MS, Visit

TYPED: Mapping[str, str] = MappingProxyType(
    {"find": "index", "slas": "100, 300", "q": "q31", "scen": "Launch: quality, sla 0.3"}
)
"""What to type into fields of text, by their setting; others stay as they are."""
_ROOM = "[data-testid=stMain], [data-testid=stPopoverBody]"
_KEYS = """([room, kinds]) => [...document.querySelectorAll(room)].flatMap(main =>
  [...main.querySelectorAll('[class*=st-key-]')].filter(each =>
    each.offsetParent && each.querySelector(kinds) && !each.querySelector('[class*=st-key-]')
    && !each.querySelector('input:disabled, button[aria-disabled=true]'))
  .map(each => each.className.match(/st-key-(\\S+)/)[1]))"""
_SHOWN = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  const icons = new Set([...main.querySelectorAll('[data-testid=stIconMaterial]')].map(one => one.innerText));
  const plain = (_, value) => ArrayBuffer.isView(value) ? [...value] : value;
  const charts = [...main.querySelectorAll('.js-plotly-plot')].flatMap(plot => plot.data.flatMap(trace =>
    [trace.name, ...['x', 'y', 'z', 'text'].map(axis => JSON.stringify(trace[axis] ?? null, plain))]));
  return [...main.innerText.split('\\n').filter(line => !icons.has(line)), ...charts];
}"""
_CELLS = "table => [...table.querySelectorAll('[role=gridcell]')].map(cell => [cell.id, cell.textContent])"
_PINNED = re.compile(r"Settings( · \d+)?")
"""Counts the revision, which a link pins, as a setting that differs."""


def _click(other: Locator) -> bool:
    """Click the first of what there is to click; False where there is nothing."""
    if not other.count():
        return False
    other.first.click()
    return True


def _of_few(control: Locator) -> bool:
    return _click(control.locator("button[data-variant]:not([data-selected=true])"))


def _of_radio(control: Locator) -> bool:
    return _click(control.locator("label:has(input:not(:checked))"))


def _of_list(control: Locator) -> bool:
    now = control.get_by_role("combobox").input_value()
    control.get_by_role("button", name="Open").click()
    options = control.page.get_by_role("option")
    changed = _click(options.filter(has_not_text=re.compile(f"^{re.escape(now)}$")))
    control.page.keyboard.press("Escape")
    return changed


def _number(control: Locator) -> bool:
    field = control.get_by_role("spinbutton")
    ways = control.locator("[data-testid^=stNumberInputStep]:enabled")
    if not _click(ways):  # it is empty
        field.fill("1")
    field.press("Enter")
    return True


def _slide(control: Locator) -> bool:
    thumb = control.get_by_role("slider").first
    top = thumb.get_attribute("max") == thumb.input_value()
    thumb.press("ArrowLeft" if top else "ArrowRight")
    return True


_SET: Mapping[str, Callable[[Locator], bool]] = {
    "stButtonGroup": _of_few,
    "stRadio": _of_radio,
    "stSelectbox": _of_list,
    "stMultiSelect": _of_list,
    "stNumberInput": _number,
    "stCheckbox": lambda control: _click(control.locator("label")),
    "stSlider": _slide,
}


def unfold(seen: Visit) -> None:
    """Open everything that is folded."""
    folded = seen.page.locator("[data-testid=stMain] details:not([open]) > summary")
    while folded.count():
        folded.first.click()
        seen.settle()


def set_all(seen: Visit, *, but: frozenset[str] = frozenset()) -> set[str]:
    """Set each control of an open page that an address may carry, those behind buttons and new ones too.

    What stands behind the button "Settings" is the same on every page, and stays as it is.

    Args:
        seen: The page.
        but: Settings to leave as they are.

    Returns:
        The settings that have another value now.
    """
    done = dict.fromkeys(but, False)
    folded = seen.page.locator("[data-testid=stMain] [data-testid=stPopoverButton]:not(.st-key-settings *)")
    for place in range(folded.count()):
        while _set_one(seen, done, folded.nth(place)):
            pass
        seen.page.keyboard.press("Escape")
        seen.settle()
    while _set_one(seen, done):
        pass
    return {key for key, changed in done.items() if changed}


def _set_one(seen: Visit, done: dict[str, bool], opener: Locator | None = None) -> bool:
    """Set the first on screen that is not done yet, behind a button that may have closed; False = none."""
    if opener is not None and not seen.page.get_by_test_id("stPopoverBody").filter(visible=True).count():
        opener.click()
        seen.settle()
    kinds = ", ".join(f"[data-testid={kind}]" for kind in [*_SET, "stTextInput"])
    found = seen.page.evaluate(_KEYS, [_ROOM, kinds])
    key = next((key for key in found if key in SETTINGS and key not in done), None)
    if key is None:
        return False
    done[key] = _apply(seen.page.locator(f".st-key-{key}").first, key)
    seen.settle()
    return True


def _apply(control: Locator, key: str) -> bool:
    for kind, change in _SET.items():
        if control.get_by_test_id(kind).count():
            return change(control)
    if key not in TYPED:
        return False
    field = control.get_by_role("textbox")
    field.fill(TYPED[key])
    field.press("Enter")
    return True


def shown(seen: Visit) -> tuple[list[str], list[dict[str, str]]]:
    """All that a page shows.

    Returns:
        Its text line by line and the numbers of its charts; for each table the cells that are in sight,
        by column and row.
    """
    lines = [str(line).strip() for line in seen.page.evaluate(_SHOWN)]
    tables = seen.page.locator("[data-testid=stMain] [data-testid=stDataFrame]").filter(visible=True)
    cells = []
    for place in range(tables.count()):  # which write their cells when they are looked at
        tables.nth(place).scroll_into_view_if_needed()
        tables.nth(place).locator("[role=gridcell]").first.wait_for(state="attached")
        seen.page.wait_for_timeout(QUIET_MS)
        cells.append(dict(tables.nth(place).evaluate(_CELLS)))
    return [line for line in lines if not _PINNED.fullmatch(line)], cells


def differences(seen: Visit, other: Visit) -> list[object]:
    """List what two visits show differently: lines, and cells that are in sight in both."""
    (lines, tables), (others, their_tables) = shown(seen), shown(other)
    apart: list[object] = [pair for pair in zip_longest(lines, others) if pair[0] != pair[1]]
    for mine, theirs in zip_longest(tables, their_tables, fillvalue={}):
        common = mine.keys() & theirs.keys()
        apart += [(cell, mine[cell], theirs[cell]) for cell in common if mine[cell] != theirs[cell]]
        apart += [] if common else [("no cell in common", mine, theirs)]
    return apart
