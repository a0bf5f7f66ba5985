"""The harm cap, the quality cap and the promising stacks as a visitor meets them."""

import re
from pathlib import Path

import pytest

from core.report.files import command
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, rows, stacks, strip, unescaped
from tests.stores import Lab

QUERIES = [f"q{n}" for n in range(8)]


def harmful(tmp_path: Path) -> Path:
    made = Lab().judge({key: {"good": 5, "fine": 4, "bad": 1} for key in QUERIES})
    for place, (name, passages) in enumerate({"mixed": ["good", "bad"], "sound": ["fine"]}.items()):
        made.run(name, final=dict.fromkeys(QUERIES, passages), ms={"embed": [10.0 + 100 * place] * 8})
    made.run("untimed", final={key: ["good", "fine"] for key in QUERIES})
    return made.write(tmp_path / "s").path


@pytest.mark.slow
def test_a_cap_on_harm_moves_the_choice_table_and_link(open_page: OpenPage, tmp_path: Path):
    app = open_page(harmful(tmp_path), "decision", k="2", sla_ms="500")
    assert_sound(app)
    assert "mixed" in answer(app)
    app.number_input(key="max_harm").set_value(0.2).run()
    assert_sound(app)
    assert answer(app).startswith("Best so far: sound;")
    assert strip(app)["values"]["max_harm"] == 0.2
    shown = dict(stacks(app).select("stack", "outcome").iter_rows())
    assert shown == {"sound": "chosen", "mixed": "0.300 over the harm cap", "untimed": "unknown latency"}
    view = app.session_state["_view"]
    assert "--max-harm 0.2" in str(command(view))
    again = open_page(tmp_path / "s", "confidence", k="2", max_harm="0.2", sla_ms="500")
    assert_sound(again)
    feasible = dict(rows(again).select("stack", "p_feasible").iter_rows())
    assert (feasible["sound"], feasible["mixed"], feasible["untimed"]) == (100.0, 0.0, None)  # percent


@pytest.mark.slow
def test_the_quality_can_be_better_the_lower(open_page: OpenPage, tmp_path: Path):
    store = harmful(tmp_path)
    app = open_page(store, "decision", m="Harm", k="2", sla_ms="500")
    assert_sound(app)
    assert "Best so far: sound" in answer(app)
    assert [each["key"] for each in strip(app)["limits"]] == ["sla_ms", "min_quality", "max_harm"]
    app.number_input(key="min_quality").set_value(0.1).run()
    outcomes = dict(stacks(app).select("stack", "outcome").iter_rows())
    assert outcomes["mixed"] == "0.400 over the quality cap"
    assert outcomes["untimed"] == "unknown latency"
    app.selectbox(key="m").set_value("RA-nWG").run()
    assert_sound(app)
    assert app.query_params.get("min_quality") is None, "a cap on Harm is no floor of another measure"
    app.number_input(key="min_quality").set_value(0.5).run()
    assert app.query_params["min_quality"] == "0.5"
    other = open_page(store, "decision", m="RA-nWG", k="2", min_quality="0.5")
    assert_sound(other)


def test_what_lacks_a_number_is_listed_with_what_to_measure(open_page: OpenPage, tmp_path: Path):
    assert answer(open_page(harmful(tmp_path), "decision", k="2")).startswith("Best so far: untimed;")
    app = open_page(tmp_path / "s", "decision", k="2", sla_ms="500")  # only now the latency is asked for
    assert_sound(app)
    (listed,) = [unescaped(each.value) for each in app.markdown if each.value.startswith("**")]
    assert re.match(r"\*\*untimed\*\* \d\.\d{3} \(\+0\.\d{3}\), not timed: time its queries", listed)
    assert "untimed" not in answer(app)
