"""Two runs of one session that overlap each draw the page."""

import pytest
from streamlit.testing.v1 import AppTest

from core.ui import pages
from tests.pages.served import served


def _overlapping() -> None:
    import streamlit as st

    from core.ui.pages import open_page

    scripts = [open_page(lambda: st.text("drawn"))[1] for _ in range(2)]  # both begin before one draws
    for script in scripts:
        script.run()


@pytest.mark.slow
def test_each_of_two_runs_draws(monkeypatch: pytest.MonkeyPatch):
    served(monkeypatch)
    monkeypatch.setattr(pages, "_OWN", {})
    app = AppTest.from_function(_overlapping).run()
    assert [each.message for each in app.exception] == []
    assert [each.value for each in app.text] == ["drawn"] * 2
