"""The suites that plug-ins have to pass find what broken ones break, and nothing in the product's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from core.conformance import format_faults, measure_faults
from core.importers.formats import FORMATS
from core.metrics import measure as registry
from core.metrics.info import MeasureInfo
from core.metrics.measure import MEASURES
from core.metrics.plain import measure_of

GENERAL = {"table", "excel", "trec-run", "trec-qrels", "msmarco-run", "query-rows", "own", "topics"}
"""Formats of no single tool, which may take a plain table or run."""
OF_ONE_TOOL = [form for form in FORMATS if form.name not in GENERAL]


def too_large(grades):
    return 2.0 * grades[:, 0]


def of_the_others(grades):
    return grades[:, 0] / 5 * grades[:, 0].mean() / 5


def deeper(grades):
    return np.full(len(grades), 1 / grades.shape[1]) * (grades.shape[1] > 3)


def wrong_shape(grades):
    return grades / 5


def sometimes(grades):
    return np.where(grades[:, 0] > 2, 1.0, np.nan)


def fine(grades):
    return grades[:, 0] / 5


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[[MeasureInfo], MeasureInfo]:
    def add(info: MeasureInfo) -> MeasureInfo:
        monkeypatch.setattr(registry, "REGISTRY", {**registry.REGISTRY, info.name: info})
        return info

    return add


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (too_large, ["it declares 0 to 1"]),
        (of_the_others, ["depends on the other queries"]),
        (wrong_shape, ["returned shape"]),
        (sometimes, ["does not say why"]),
        (fine, []),
        (deeper, []),
    ],
)
def test_a_measure(function: Callable, said: list[str], known: Callable[[MeasureInfo], MeasureInfo]):
    found = list(measure_faults(known(measure_of("Tried", function))))
    assert len(found) == len(said)
    assert all(words in fault for fault, words in zip(found, said, strict=True))


@pytest.mark.parametrize("info", MEASURES, ids=lambda info: info.name)
def test_the_products_own_measures_keep_it(info: MeasureInfo):
    assert not list(measure_faults(info))


def test_a_format_that_takes_all_is_found():
    broken = type(FORMATS[0])()
    broken.sniff = lambda _: 1.0  # type: ignore[method-assign]
    assert len(list(format_faults(broken))) == 6
    broken.sniff = lambda _: 7.0  # type: ignore[method-assign]
    assert all("not a share" in fault for fault in format_faults(broken))


@pytest.mark.parametrize(
    "form", [form for form in FORMATS if form.name not in GENERAL], ids=lambda form: form.name
)
def test_formats_of_one_tool_leave_other_files_alone(form):
    assert not list(format_faults(form))
