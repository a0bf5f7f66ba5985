"""Import by a visitor: look, decide, take it or leave it."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import Store
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, rows

RUN = b"q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\nq2 Q0 p2 1 2.0 mine\n"
QRELS = b"q1 0 p1 5\nq1 0 p2 1\nq2 0 p2 4\n"


def upload(app: AppTest, **files: bytes) -> AppTest:
    named = [(name.replace("_", "."), content, "text/plain") for name, content in files.items()]
    app.file_uploader[0].set_value(named)
    return app.run()


def test_a_run_with_judgements_is_previewed_taken_and_shown(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = open_page(store, "import")
    assert_sound(app, "Import")
    upload(app, mine_trec=RUN, gold_qrels=QRELS)
    assert_sound(app)
    assert Store.open(store).revision() == 0
    taken = next(frame.value for frame in app.dataframe if list(frame.value.columns) == ["what", "rows"])
    assert dict(zip(taken["what"], taken["rows"], strict=True))["ranked passages"] == 3
    next(button for button in app.button if button.label == "Import").click().run()
    assert_sound(app)
    assert app.success[0].value.startswith("Imported as revision 1")
    snapshot = Store.open(store).read()
    assert snapshot.runs().height == 1
    assert snapshot.golden_sets()["judgements"].to_list() == [3]

    app = open_page(store, "overview")
    assert_sound(app)
    assert "RA-nWG@10 1.000" in answer(app)
    assert "n = 2" in answer(app)
    assert rows(open_page(store, "pareto"))["quality"].to_list() == [1.0]
    assert_sound(open_page(store, "queries"))


def test_the_same_files_again_change_nothing(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    for expected in ("Imported as revision 1", "in the store already"):
        app = upload(open_page(store, "import"), mine_trec=RUN, gold_qrels=QRELS)
        next(button for button in app.button if button.label == "Import").click().run()
        assert_sound(app)
        assert expected in everything(app)
    assert Store.open(store).revision() == 1


@pytest.mark.parametrize(
    "content",
    [b"q1 Q0 p1 1 two mine\n", b"\x00\xff\x00\xff", b"<script>alert(1)</script> [x](javascript:y)", b""],
)
def test_a_broken_file_is_an_error_that_names_it_and_writes_nothing(
    open_page: OpenPage, tmp_path: Path, content: bytes
):
    store = tmp_path / "store"
    app = upload(open_page(store, "import"), bad_run=content)
    assert not app.exception
    assert len(app.error) == 1
    assert "bad" in app.error[0].value
    assert "<script" not in app.error[0].value.replace("\\<", "")
    assert "Nothing was written." in everything(app)
    assert not [button for button in app.button if button.label == "Import"]
    assert Store.open(store).revision() == 0


def test_the_way_on_leads_to_the_new_workspace(open_page: OpenPage, tmp_path: Path):
    app = upload(open_page(tmp_path / "store", "import"), mine_trec=RUN, gold_qrels=QRELS)
    next(button for button in app.button if button.label == "Import").click().run()
    assert not app.exception
    assert Store.open(tmp_path / "store").read().collections()["collection_id"].to_list() == [
        app.session_state["ws"]
    ]
