"""The Measures page explains any measure, with a worked example for the parameters that were typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.metrics import REGISTRY, Measure
from core.views.measures.words import choices, result
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, unescaped


def unbolded(app: AppTest) -> list[str]:
    """The texts of a page as they are read."""
    return [unescaped(each.value).replace("**", "") for each in app.main.markdown]


def test_it_opens_with_the_measure_of_the_workspace(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "measures", m="AP")
    assert_sound(app, "Measures")
    assert answer(app).startswith("AP: precision at the rank of every relevant passage")


@pytest.mark.parametrize("name", ["RA-nWG", "Acc|Hit", "%PROC[nDCG]", "T", "Novelty-RA-nWG"])
def test_a_measure_can_be_chosen(open_page: OpenPage, empty_store: Path, name: str):
    app = open_page(empty_store, "measures")
    app.main.selectbox(key="ref").set_value(name).run()
    assert_sound(app, "Measures")
    says = answer(app).removeprefix(f"{name}: ").removesuffix(".")
    text = REGISTRY[name].text
    assert says[1:] in (text.partition(";")[0].rstrip(".")[1:], text.partition(": ")[2].rstrip(".")[1:])
    assert says
    assert f"Together: {result(Measure(name))}" in unbolded(app)


def test_a_typed_measure_is_worked_out_with_its_parameters(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "measures", ref="RBP(p=0.5)@3")
    assert_sound(app, "Measures")
    assert not app.warning
    assert answer(app).startswith("RBP@3(p=0.5): ")
    assert "Together: (1 − 0.5)·(0.5^0 + 0.5^2) = 0.625" in unbolded(app)


def test_what_is_no_measure_is_told_with_the_nearest(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "measures", ref="RA-nWGG")
    assert not app.exception
    assert "RA-nWG" in everything(app)
    assert app.error


def test_ceilings_come_after_all_others():
    names = choices()
    assert set(names) == set(REGISTRY)
    assert names.index("nDCG-found") < names.index("PROC[RA-nWG]") < names.index("%PROC[RA-nWG]")
