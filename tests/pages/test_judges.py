from pathlib import Path

import pytest

from core.store import Store
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything
from tests.stores import Lab

ANNE = {f"q{number}": {"a": 5, "b": 1 + number % 3} for number in range(1, 7)}
BEN = {f"q{number}": {"a": 4 + number % 2, "b": 1} for number in range(1, 7)}


def made(tmp_path: Path) -> Path:
    lab = Lab().judge(ANNE, "anne").judge(BEN, "ben")
    lab.run("r", final={query: ["a", "b"] for query in ANNE}).write(tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.slow
def test_two_judges_are_compared_and_merged(open_page: OpenPage, tmp_path: Path):
    store = made(tmp_path)
    app = open_page(store, "golden/judges")
    assert_sound(app, "Golden sets")
    assert "Krippendorff's alpha (ordinal) 0.765" in everything(app)
    assert "passages of 6 queries" in everything(app)
    app.text_input[-1].set_value("both of them")
    app.button(key="FormSubmitter:merge_judges-Write it").click().run()
    assert_sound(app, "Golden sets")
    assert "Written in one transaction: golden set both of them" in everything(app)
    assert Store.open(store).read().golden_sets()["golden_set_id"].to_list() == [
        "anne",
        "ben",
        "both of them",
    ]
    app.text_input[-1].set_value("anne")
    app.button(key="FormSubmitter:merge_judges-Write it").click().run()
    assert "There is a golden set 'anne' already" in app.error[0].value.replace("\\", "")


@pytest.mark.slow
def test_one_judge_says_what_is_missing(open_page: OpenPage, tmp_path: Path):
    Lab().judge(ANNE, "anne").run("r", final={query: ["a", "b"] for query in ANNE}).write(tmp_path / "store")
    app = open_page(tmp_path / "store", "golden/judges")
    assert "It takes two golden sets" in everything(app)


def test_the_demo_has_two_judges(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "golden/judges")
    assert_sound(app, "Golden sets")
    assert "n = 240." in everything(app)
