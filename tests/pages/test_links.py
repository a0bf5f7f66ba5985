"""What a visitor sets on a page is in its address: whoever opens that sees the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.ui.address.state import SETTINGS
from core.views.link import written
from tests.pages.conftest import OpenPage
from tests.pages.reading import PAGES_OF, TITLES, assert_sound, everything, rows

KINDS = ("selectbox", "multiselect", "button_group", "slider", "select_slider", "number_input", "checkbox",
         "toggle", "text_input", "radio")  # fmt: skip
ELSEWHERE = {"ws", "rev", "runs"}
"""Settings that lead to other data, which other tests change."""


def controls(app: AppTest) -> list[Any]:
    """The widgets that hold a value, in the order of the page."""
    return [each for kind in KINDS for each in app.get(kind) if not each.disabled]


def change(control: Any) -> bool:
    """Give a control another value than it has; False where there is none."""
    if options := list(getattr(control, "options", [])):
        several = isinstance(control.value, list)
        others = [each for each in options if each not in (control.value if several else [control.value])]
        if not others:
            return False
        control.set_value([others[0]] if several else others[0])
    elif isinstance(control.value, bool):
        control.set_value(not control.value)
    elif isinstance(control.value, int | float):
        low, high, step = control.min, control.max, control.step or 1
        up = control.value + step
        control.set_value(up if high is None or up <= high else max(control.value - step, low))
    else:
        return False
    return True


def address(app: AppTest) -> dict[str, list[str]]:
    """The address of a page: the settings of its widgets."""
    held = {each.key for each in controls(app)} & set(SETTINGS)
    return {key: list(written(app.session_state[key])) for key in held if written(app.session_state[key])}


def seen(app: AppTest) -> tuple[str, list[str], list[object]]:
    """All words of a page, its numbers, and the rows of its tables."""
    numbers = [f"{each.label} {each.value}" for each in app.metric]
    return (
        everything(app),
        numbers,
        [rows(app, at).to_dict(as_series=False) for at in range(len(app.dataframe))],
    )


FURTHER = [place for page in PAGES_OF.values() for place in page.places[1:]]
"""Further sections of pages; the first are opened in a browser, see `tests/e2e/test_links.py`."""


@pytest.mark.slow
@pytest.mark.parametrize("place", FURTHER)
def test_the_address_holds_what_is_set(open_page: OpenPage, store_of: Callable[[str], Path], place: str):
    """Every control of a page is changed; the address alone then brings the same words, numbers and rows."""
    store = store_of(place)
    app = open_page(store, place)
    set_ = [each.key for each in controls(app) if each.key in set(SETTINGS) - ELSEWHERE and change(each)]
    app.run()
    assert_sound(app, TITLES[place])
    other = open_page(store, place, **address(app))
    for mine, theirs in zip(seen(app), seen(other), strict=True):
        assert mine == theirs, set_
