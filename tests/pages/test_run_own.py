"""Section “your own” of page Run: the form, one query tried, the plan, and who may run code."""

from pathlib import Path

import pytest

from core.errors import InputError
from core.records import Batch, Collection, GoldenSet
from core.tables import frame
from core.work.sweep.kind import EVALUATION
from tests.pages.conftest import OpenPage
from tests.pages.reading import assert_sound, everything
from tests.stores import add

CODE = """
def find(query, k=5, b=1):
    if query == "fail": raise ValueError("it broke")
    return {"hits": [("nowhere", 1.0)] if query == "lost" else ["polars/frame/sort"]}
"""


@pytest.mark.slow
def test_a_function_is_tried_and_planned(open_page: OpenPage, demo_store: Path, tmp_path: Path):
    (tmp_path / "shop.py").write_text(CODE)
    app = open_page(demo_store, "run/your own", ws="python-docs")
    assert_sound(app)
    assert "Name the function or the address." in everything(app)
    app.text_input(key="own_call").set_value("shop:find").run()
    app.text_input(key="own_path").set_value(str(tmp_path)).run()
    app.text_area(key="own_params").set_value("b = 1, 2").run()
    assert_sound(app)
    assert "2 stacks, 64 questions asked 3 times" in everything(app)
    assert "unknown" in app.button(key="own_now").label.replace("\\", "") or "unknown" in everything(app)
    query = next(each for each in app.text_input if each.label == "One query")
    query.set_value("fail").run()
    app.button(key="own_try").click().run()
    assert any("ValueError: it broke" in each.value.replace("\\", "") for each in app.error)
    query.set_value("lost").run()
    app.button(key="own_try").click().run()
    said = everything(app)
    assert "1 of 1 passages match nothing in the collection" in said
    assert "Headroom and %PROC need the candidates" in said


def test_mistakes_of_the_form_stand_below_it(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run/your own", ws="python-docs")
    app.text_input(key="own_call").set_value("shop").run()
    assert "call is MODULE:NAME" in everything(app)
    app.text_area(key="own_params").set_value("alpha").run()
    assert "Not readable: alpha" in everything(app)


GUIDE = {
    "returns.md": "# Returns\n\nParcels can be returned.\n\n## Software\n\nOpened software cannot.",
    "shipping.md": "# Shipping\n\nIslands take four days.",
}
HEADINGS = """
def find(query, k=5):
    if query == "files": return ["returns.md"]
    if query == "quotes": return [{"id": "c7", "text": "Islands take four days."}]
    of = [("/srv/guide/returns.md", "Software"), ("shipping.md", "x")]
    return [{"source": source, "heading": heading} for source, heading in of]
"""


def guide(path: Path) -> None:
    """Documents with a judged quote."""
    about = {"collection_id": ["guide"] * 2, "passage_id": list(GUIDE), "source": list(GUIDE)}
    span = {
        "golden_set_id": "quotes",
        "query_id": "q1",
        "source": "returns.md",
        "start_char": 11,
        "end_char": 35,
    }
    batch = Batch(
        collections=(Collection(collection_id="guide", name="guide"),),
        golden_sets=(GoldenSet(golden_set_id="quotes", collection_id="guide", name="Quotes"),),
        frames={
            "passages": frame("passages", {**about, "text": list(GUIDE.values())}),
            "queries": frame("queries", [{"collection_id": "guide", "query_id": "q1", "text": "parts"}]),
            "spans": frame("spans", [{**span, "grade": 5, "raw": 5, "judge": "me"}]),
        },
    )
    add(path, batch, "seed")


@pytest.mark.slow
def test_parts_of_documents_are_told_by_quote_and_by_heading(open_page: OpenPage, tmp_path: Path):
    guide(tmp_path / "store")
    (tmp_path / "cut.py").write_text(HEADINGS)
    app = open_page(tmp_path / "store", "run/your own", ws="guide")
    app.text_input(key="own_call").set_value("cut:find").run()
    app.text_input(key="own_path").set_value(str(tmp_path)).run()

    def tried(query: str) -> list[str]:
        box = next(each for each in app.text_input if each.label == "One query")
        box.set_value(query).run()
        app.button(key="own_try").click().run()
        assert_sound(app)
        table = next(each.value for each in app.dataframe if "known_by" in each.value.columns)
        return list(table["known_by"])

    assert tried("quotes") == ["quote"]
    assert "whole documents" not in everything(app)
    assert tried("files") == ["id"]
    assert "These are whole documents" in everything(app)
    assert tried("parts") == ["nothing", "nothing"]
    assert "source and heading would tell 1 (match = headings)" in everything(app)
    app.button(key="own_headings").click().run()
    assert app.selectbox(key="own_match").value == "headings"
    assert tried("parts") == ["heading", "nothing"]


CODED = 'collection = "x"\n[[stack]]\nname = "shop"\ncall = "os:getcwd"\n'


def test_a_specification_that_was_handed_in_never_runs_code(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run", ws="python-docs")
    app.text_area[0].set_value(CODED).run()
    assert "never runs code: the stack 'shop' would run os:getcwd" in everything(app).replace("\u2060", "")
    assert not any(each.key == "run_now" for each in app.button)
    assert "os:getcwd" in app.text_area[0].value


def test_nor_does_one_that_reaches_the_launcher(tmp_path: Path):
    with pytest.raises(InputError, match="never runs code"):
        EVALUATION.begin(CODED, tmp_path / "store")
    assert not (tmp_path / "evaluations").exists()


def test_visitors_who_may_not_run_get_no_form(open_page: OpenPage, demo_store: Path):
    app = open_page(demo_store, "run/your own", ws="python-docs", write="none")
    assert_sound(app)
    assert not app.text_input
    assert not app.button
