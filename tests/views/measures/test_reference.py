"""The reference is generated from the registry: every measure is in it, with all that a reader needs."""

from __future__ import annotations

import pytest

from core.metrics import REGISTRY, Measure
from core.views.measures.words import explained, measure_table, parameter_table


def test_every_measure_has_a_row_with_everything() -> None:
    rows = measure_table().rows(named=True)
    assert [row["measure"] for row in rows] == [name for name in REGISTRY if "[" not in name]
    for row in rows:
        needed = ("says", "formula", "range", "better", "not_applicable", "defined_in")
        assert all(row[name] for name in needed), row
        assert row["ceiling"] in ("", f"PROC[{row['measure']}]")


@pytest.mark.parametrize("name", REGISTRY)
def test_every_measure_is_explained_with_an_example(name: str) -> None:
    rows = dict(explained(Measure(name)).iter_rows())
    assert rows["measure"] == name
    assert rows["at K"] == REGISTRY[name].formula
    assert all(rows.values())
    assert {f"parameter {param.name}" for param in REGISTRY[name].params} <= rows.keys()
    (example,) = (text for item, text in rows.items() if item.startswith("example, ") and "@" in item)
    assert " = " in example


def test_parameters_show_their_value_and_their_default() -> None:
    rows = parameter_table(Measure.parse("RA-nWG(alpha=0.5)@10")).rows(named=True)
    assert rows[0] == {
        "parameter": "alpha",
        "value": "0.5",
        "default": "1",
        "range": "0 to 4",
        "type": "number",
        "text": "Exponent of rarity; 0 ignores it",
    }
    assert parameter_table(Measure("nDCG")).row(0)[3:5] == ("linear | exp", "word")
    assert parameter_table(Measure("P")).row(0)[3:5] == ("1 to 5", "whole number")
    assert parameter_table(Measure("Harm")).is_empty()
