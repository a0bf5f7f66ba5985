"""The stack that runs today: marked by one click, said on Decision, in the address, forgotten by another."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import Store
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything, stacks
from tests.stores import Lab

pytestmark = pytest.mark.slow
QUERIES = [f"q{number:02}" for number in range(40)]
DENSE = {"mode": "dense", "embedder": "voyage-3.5", "dim": 1024, "index": "flat", "reranker": "none"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = Lab().judge({query: {"good": 5, "bad": 1} for query in QUERIES})
    hits = {query: ["good"] if number % 2 else ["bad"] for number, query in enumerate(QUERIES)}
    made.run("old", final=hits, spec={"mode": "sparse", "sparse": "bm25", "reranker": "none"})
    made.run("new", final={query: ["good"] for query in QUERIES}, spec=DENSE)
    made.write(tmp_path / "s")
    return tmp_path / "s"


def tick(app: AppTest, name: str) -> AppTest:
    place = stacks(app)["stack"].to_list().index(name)
    app.session_state["table_stacks"] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    return app.run()


def test_one_click_marks_the_stack_that_runs_and_another_takes_the_mark_away(
    open_page: OpenPage, store: Path
):
    app = open_page(store, "decision")
    name = stacks(app).filter(outcome="chosen")["stack"][0]
    old = next(other for other in stacks(app)["stack"] if other != name)
    assert "runs today" not in everything(app)
    tick(app, old).button(key="runs_today").click().run()
    assert_sound(app)
    assert f"{old} runs today." in everything(app).replace("*", "")
    assert "Switch to" in everything(app)
    assert Store.open(store).read().incumbent("lab")
    tick(app, old).button(key="runs_today").click().run()
    assert "runs today." not in everything(app)
    assert Store.open(store).read().incumbent("lab") is None


def test_who_may_only_look_marks_in_the_address(open_page: OpenPage, store: Path):
    app = open_page(store, "decision", write="none")
    name = stacks(app)["stack"][0]
    tick(app, name).button(key="runs_today").click().run()
    assert_sound(app)
    assert app.query_params["now"] in (name, [name])
    assert Store.open(store).read().incumbent("lab") is None
    for section in ("stay or switch", "steps"):
        again = open_page(store, f"what_if/{section}", now=name, qpm="1000")
        assert_sound(again)
        assert "No stack is marked as running today" not in everything(again)


@pytest.mark.parametrize("section", ["stay or switch", "steps"])
def test_without_a_mark_the_section_says_how_to_mark_one(open_page: OpenPage, store: Path, section: str):
    app = open_page(store, f"what_if/{section}")
    assert_sound(app)
    assert "tick it on Decision" in everything(app)
