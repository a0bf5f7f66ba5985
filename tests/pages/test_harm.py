"""The harm cap, the quality cap and the promising stacks as a visitor meets them."""

from pathlib import Path

from core.ui import record
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, rows
from tests.stores import Lab

QUERIES = [f"q{n}" for n in range(6)]


def harmful(tmp_path: Path) -> Path:
    made = Lab().judge({key: {"good": 5, "fine": 4, "bad": 1} for key in QUERIES})
    for place, (name, passages) in enumerate({"mixed": ["good", "bad"], "sound": ["fine"]}.items()):
        made.run(name, final=dict.fromkeys(QUERIES, passages), ms={"embed": [10.0 + 100 * place] * 6})
    made.run("untimed", final={key: ["good", "fine"] for key in QUERIES})
    return made.write(tmp_path / "s").path


def test_a_cap_on_harm_moves_the_choice_table_and_link(open_page: OpenPage, tmp_path: Path):
    app = open_page(harmful(tmp_path), "decision", k="2")
    assert_sound(app)
    assert "mixed" in answer(app)
    app.slider(key="harm").set_value(0.2).run()
    assert_sound(app)
    assert "Ship sound with harm of at most 0.20" in answer(app)
    shown = rows(app)
    assert shown.filter(name="mixed")["reason"].to_list() == ["0.300 over the harm cap"]
    assert shown.filter("feasible")["name"].to_list() == ["sound"]
    view = app.session_state["_view"]
    assert "--max-harm 0.2" in str(record.case_of(view).command)
    again = open_page(tmp_path / "s", "confidence", k="2", harm="0.2")
    assert_sound(again)
    feasible = dict(rows(again).select("name", "p_feasible").iter_rows())
    assert (feasible["sound"], feasible["mixed"], feasible["untimed"]) == (100.0, 0.0, None)  # percent


def test_the_quality_can_be_better_the_lower(open_page: OpenPage, tmp_path: Path):
    store = harmful(tmp_path)
    app = open_page(store, "decision", m="Harm", k="2")
    assert_sound(app)
    assert "Ship sound" in answer(app)
    assert [each.key for each in app.slider] == ["sla", "cap", "harm"]
    app.slider(key="cap").set_value(0.1).run()
    reasons = dict(rows(app).drop_nulls("reason").select("name", "reason").iter_rows())
    assert reasons == {"mixed": "0.400 over the quality cap", "untimed": "unknown latency"}
    other = open_page(store, "decision", m="RA-nWG", k="2", floor="0.5")
    assert_sound(other)


def test_what_lacks_a_number_is_listed_with_what_to_measure(open_page: OpenPage, tmp_path: Path):
    app = open_page(harmful(tmp_path), "decision", k="2")
    assert_sound(app)
    listed = rows(app, len(app.dataframe) - 1)
    assert listed["stack"].to_list() == ["untimed"]
    assert listed["missing"].to_list() == ["not timed"]
    assert listed["gain"][0] > 0
    assert "untimed" not in answer(app)
