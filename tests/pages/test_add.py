"""Import by a visitor: look, decide, take it or leave it."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.importers import TEMPLATES, Options, Upload, load
from core.store import Store
from core.work.imports.imports import store_import
from tests.importers.formats import test_mteb
from tests.importers.helpers import zipped
from tests.pages.conftest import OpenPage
from tests.pages.reading import answer, assert_sound, everything, rows, stacks, unescaped
from tests.work.imports.test_placing import documents

RUN = b"q1 Q0 p1 1 2.0 mine\nq1 Q0 p2 2 1.0 mine\nq2 Q0 p2 1 2.0 mine\n"
QRELS = b"q1 0 p1 5\nq1 0 p2 1\nq2 0 p2 4\n"


def upload(app: AppTest, **files: bytes) -> AppTest:
    named = [(name.replace("_", "."), content, "text/plain") for name, content in files.items()]
    app.file_uploader[0].set_value(named)
    return app.run()


@pytest.mark.slow
def test_a_run_with_judgements_is_previewed_taken_and_shown(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = open_page(store, "add")
    assert_sound(app, "Add results")
    upload(app, mine_trec=RUN, gold_qrels=QRELS)
    assert_sound(app)
    assert Store.open(store).revision() == 0
    taken = next(frame.value for frame in app.dataframe if list(frame.value.columns) == ["what", "rows"])
    assert dict(zip(taken["what"], taken["rows"], strict=True))["ranked passages"] == 3
    app.button(key="add_now").click().run()
    assert_sound(app)
    assert app.success[0].value.startswith("Added as revision 1")
    snapshot = Store.open(store).read()
    assert snapshot.runs().height == 1
    assert snapshot.golden_sets()["judgements"].to_list() == [3]

    app = open_page(store, "decision")
    assert_sound(app)
    assert "RA-nWG@10 1.000" in answer(app)
    assert "n = 2" in answer(app)
    assert rows(open_page(store, "decision"))["quality"].to_list() == [1.0]
    assert_sound(open_page(store, "queries"))


@pytest.mark.slow
def test_the_same_files_again_change_nothing(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    for expected in ("Added as revision 1", "in the store already"):
        app = upload(open_page(store, "add"), mine_trec=RUN, gold_qrels=QRELS)
        app.button(key="add_now").click().run()
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
    app = upload(open_page(store, "add"), bad_run=content)
    assert not app.exception
    assert len(app.error) == 1
    assert "bad" in app.error[0].value
    assert "<script" not in app.error[0].value.replace("\\<", "")
    assert "Nothing was written." in everything(app)
    assert not [button for button in app.button if button.key == "add_now"]
    assert Store.open(store).revision() == 0


@pytest.mark.slow
def test_the_way_on_leads_to_the_new_workspace(open_page: OpenPage, tmp_path: Path):
    app = upload(open_page(tmp_path / "store", "add"), mine_trec=RUN, gold_qrels=QRELS)
    app.button(key="add_now").click().run()
    assert not app.exception
    assert Store.open(tmp_path / "store").read().collections()["collection_id"].to_list() == [
        app.session_state["ws"]
    ]


NATURAL = b"stack,quality,latency,price\nhybrid,0.47,0.34,1.90\nbm25,0.41,0.012,0\n"


def figures(store: Path) -> dict[tuple[str, int | None], list[float]]:
    found: dict[tuple[str, int | None], list[float]] = {}
    snapshot = Store.open(store).read()
    rows = snapshot.aggregates(snapshot.runs()["run_id"].to_list()).sort("value")
    for row in rows.iter_rows(named=True):
        found.setdefault((row["measure"], row["k"]), []).append(row["value"])
    return found


def import_now(app: AppTest) -> AppTest:
    return app.button(key="add_now").click().run()


LONG = "stack,query_id,metric,value,latency_ms,remark\n" + "".join(
    f"{stack},q{n},{measure},{value + n % 3 / 100},{ms + n},x\n"
    for stack, value, ms in (("dense", 0.7, 300), ("bm25", 0.4, 12))
    for n in range(12)
    for measure in ("nDCG@10", "R@10")
)


@pytest.mark.slow
def test_a_long_table_keeps_its_latency_and_names_what_it_leaves_out(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), results_csv=LONG.encode())
    assert_sound(app)
    assert "Left out: column “remark”: unknown meaning." in everything(app)
    import_now(app)
    timings = Store.open(store).read().timings(Store.open(store).read().runs()["run_id"].to_list())
    assert sorted(set(timings.group_by("run_id", "query_id").len()["len"])) == [1]
    shown = stacks(open_page(store, "decision"))
    assert dict(zip(shown["stack"], shown["latency_ms"], strict=True)) == {"dense": 305.5, "bm25": 17.5}


@pytest.mark.slow
def test_a_latency_that_differs_within_a_query_is_refused_with_its_lines(open_page: OpenPage, tmp_path: Path):
    app = upload(open_page(tmp_path / "store", "add"), results_csv=LONG.replace("301,x", "999,x", 1).encode())
    assert "has '999' on line 4 and '301' on line 5" in unescaped(app.error[0].value)
    assert not [button for button in app.button if button.key == "add_now"]


@pytest.mark.slow
def test_the_plainest_table_goes_to_its_answer(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), stacks_csv=NATURAL)
    assert_sound(app)
    meanings = {box.label: box.value for box in app.selectbox if str(box.key).startswith("map")}
    assert meanings == {
        "stack": "run", "quality": "quality@10", "latency": "latency_p50_ms", "price": "usd_per_1k"
    }  # fmt: skip
    import_now(app)
    assert_sound(app)
    assert figures(store) == {
        ("quality", 10): [0.41, 0.47], ("latency_p50", None): [0.012, 0.34], ("usd_per_1k", None): [0.0, 1.9]
    }  # fmt: skip
    table = stacks(open_page(store, "decision"))
    assert table.sort("quality").select("quality", "latency_ms", "cost").rows() == [
        (0.41, 0.012, 0.0), (0.47, 0.34, 1.9)
    ]  # fmt: skip
    assert "hybrid" in answer(open_page(store, "decision"))


@pytest.mark.slow
def test_what_columns_mean_is_said_under_them(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), stacks_csv=NATURAL)
    boxes = {box.label: box for box in app.selectbox if str(box.key).startswith("map")}
    boxes["quality"].set_value("nDCG@10")
    boxes["latency"].set_value("latency_p95_s")
    boxes["price"].set_value("")
    app.run()
    import_now(app)
    assert_sound(app)
    assert figures(store) == {("nDCG", 10): [0.41, 0.47], ("latency_p95", None): [12.0, 340.0]}


@pytest.mark.slow
def test_a_table_that_nothing_is_known_of_is_mapped(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), t_csv=b"foo,bar,baz\nA,0.5,120\nB,0.4,30\n")
    assert [button for button in app.button if button.key == "add_now"] == []
    app.button_group(key="row0").set_value("stack").run()
    boxes = {box.label: box for box in app.selectbox if str(box.key).startswith("map")}
    for column, meaning in {"foo": "run", "bar": "nDCG@10", "baz": "latency_p50_ms"}.items():
        boxes[column].set_value(meaning)
    app.run()
    import_now(app)
    assert_sound(app)
    assert figures(store) == {("nDCG", 10): [0.4, 0.5], ("latency_p50", None): [30.0, 120.0]}


@pytest.mark.slow
@pytest.mark.parametrize("row", TEMPLATES)
def test_a_template_is_imported_as_it_is(open_page: OpenPage, tmp_path: Path, row: str):
    store = tmp_path / "store"
    template = TEMPLATES[row]
    app = upload(open_page(store, "add"), **{template.file.replace(".", "_"): template.text.encode()})
    assert_sound(app)
    asked = {group.key: group.value for group in app.button_group}
    assert asked.get("row0") == (None if row == "nugget" else row)
    assert "What will be left out" not in everything(app)
    import_now(app)
    assert_sound(app)
    assert Store.open(store).revision() == 1


CORPUS = b"".join(b'{"_id": "%d", "text": "text"}\n' % number for number in (1, 2, 3))
QUESTIONS = b'{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n'
FOREIGN = RUN.replace(b" p", b" doc-")


def held(store: Path) -> None:
    """A store with one collection, whose ids are 1, 2, 3 and q1, q2."""
    uploads = [Upload("corpus.jsonl", CORPUS), Upload("queries.jsonl", QUESTIONS)]
    store_import(Store.open(store), load(uploads, Options(collection_id="c")), "")


@pytest.mark.slow
def test_a_run_goes_into_the_open_workspace_where_its_ids_match(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    held(store)
    app = upload(open_page(store, "add"), mine_trec=RUN.replace(b" p", b" "))
    assert_sound(app)
    assert "2 of 2 queries · 2 of 2 passages exist in c" in everything(app)
    import_now(app)
    assert Store.open(store).read().runs()["collection_id"].to_list() == ["c"]


def goes_into(app: AppTest) -> Any:
    return next(box for box in app.selectbox if box.label == "Import into")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "collection", "passages"),
    [
        ("strip0", "c", {"1", "2"}),
        ("take0", "c", {"doc-1", "doc-2"}),
        ("own0", "c mine", {"doc-1", "doc-2"}),
    ],
)
def test_a_run_of_foreign_ids_is_refused_until_somebody_says_what_to_do(
    open_page: OpenPage, tmp_path: Path, choice: str, collection: str, passages: set[str]
):
    store = tmp_path / "store"
    held(store)
    app = upload(open_page(store, "add"), mine_trec=FOREIGN)
    goes_into(app).set_value("c").run()
    assert_sound(app)
    assert "yours: doc-1, doc-2 · there: 1, 2, 3" in everything(app)
    assert app.button(key="add_now").disabled
    app.button(key=choice).click().run()
    assert_sound(app)
    import_now(app)
    assert_sound(app)
    snapshot = Store.open(store).read()
    assert snapshot.runs()["collection_id"].to_list() == [collection]
    assert set(snapshot.rankings(snapshot.runs()["run_id"].to_list())["passage_id"]) == passages


@pytest.mark.slow
def test_a_new_workspace_is_named_by_the_file_and_a_button_strips_the_ids_into_the_open_one(
    open_page: OpenPage, tmp_path: Path
):
    store = tmp_path / "store"
    held(store)
    app = upload(open_page(store, "add"), mine_trec=FOREIGN)
    assert_sound(app)
    assert goes_into(app).value == "mine"
    assert "0 of 2 passages exist in c" in everything(app), "of the open workspace"
    button = app.button(key="stripforeign")
    assert button.label.replace("\\", "") == "Strip “doc-” (2 match)"
    button.click().run()
    assert_sound(app)
    assert goes_into(app).value == "c"
    import_now(app)
    assert Store.open(store).read().runs()["collection_id"].to_list() == ["c"]


@pytest.mark.slow
def test_ids_with_other_texts_are_no_match(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    held(store)
    table = b"query_id,question,passage_id,rank\nq1,how long may I wait,1,1\nq2,where is my parcel,2,1\n"
    app = upload(open_page(store, "add"), mine_csv=table)
    assert_sound(app)
    assert goes_into(app).value == "mine", "a new one is proposed"
    said = "2 of 2 query ids exist in c, 0 with the same text"
    assert said in everything(app)
    assert "q1 is “how long may I wait” in the files, and “one” in c." in everything(app)
    goes_into(app).set_value("c").run()
    assert said in everything(app)
    assert app.button(key="add_now").disabled
    app.button(key="own0").click().run()
    import_now(app)
    assert Store.open(store).read().runs()["collection_id"].to_list() == ["c mine"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "collections"),
    [("strip0", ["c", "c"]), ("own0", ["c", "c theirs"]), ("without0", ["c"])],
)
def test_of_several_files_the_one_with_foreign_ids_waits(
    open_page: OpenPage, tmp_path: Path, choice: str, collections: list[str]
):
    store = tmp_path / "store"
    held(store)
    own, theirs = RUN.replace(b" p", b" "), FOREIGN.replace(b"mine", b"theirs")
    app = upload(open_page(store, "add"), own_trec=own, theirs_trec=theirs)
    goes_into(app).set_value("c").run()
    assert_sound(app)
    assert "theirs.trec waits for you" in everything(app)
    assert app.button(key="add_now").disabled
    app.button(key=choice).click().run()
    assert_sound(app)
    import_now(app)
    assert_sound(app)
    assert sorted(Store.open(store).read().runs()["collection_id"]) == collections


@pytest.mark.slow
@pytest.mark.parametrize(("way", "latency"), [("thousands0", 1200.0), ("decimal-comma0", 1.2)])
def test_numbers_that_say_two_things_are_asked_with_their_first_cells(
    open_page: OpenPage, tmp_path: Path, way: str, latency: float
):
    store = tmp_path / "store"
    table = b'stack,nDCG@10,latency_ms\nA,0.5,"1,200"\nB,0.4,"3,400"\n'
    app = upload(open_page(store, "add"), stacks_csv=table)
    assert_sound(app)
    assert "1,200 · 3,400" in everything(app)
    labels = [button.label for button in app.button if button.label.startswith("Read as")]
    assert labels == ["Read as 1200 · 3400 (comma between thousands)", "Read as 1.2 · 3.4 (decimal comma)"]
    app.button(key=way).click().run()
    assert_sound(app)
    app.button(key="undo_numbers").click().run()
    app.button(key=way).click().run()
    import_now(app)
    figures = Store.open(store).read()
    found = figures.aggregates(figures.runs()["run_id"].to_list()).filter(measure="latency_p50")
    assert latency in found["value"].to_list()


@pytest.mark.slow
def test_two_columns_name_a_stack_together(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), f_csv=b"stack,size,ndcg_at_5\nA,big,0.3\nB,big,0.5\n")
    boxes = {box.label: box for box in app.selectbox if str(box.key).startswith("map")}
    boxes["size"].set_value("run")
    app.run()
    assert "one is taken" not in everything(app)
    import_now(app)
    assert sorted(Store.open(store).read().runs()["label"]) == ["A · big", "B · big"]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "labels"), [("stack", ["q1", "q2"]), ("query", ["f"])])
def test_what_a_row_is_is_asked(open_page: OpenPage, tmp_path: Path, row: str, labels: list[str]):
    store = tmp_path / "store"
    app = upload(open_page(store, "add"), f_csv=b"id,ndcg_at_5\nq1,0.3\nq2,0.5\n")
    assert_sound(app)
    assert "A row may be a stack or a query" in everything(app)
    app.button(key=f"each_{row}").click().run()
    assert_sound(app)
    assert app.button_group(key="row0").value == row
    import_now(app)
    assert sorted(Store.open(store).read().runs()["label"]) == labels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "values"), [("share0", [0.85, 0.88, 0.91]), ("percent0", [0.0091, 0.85, 0.88])]
)
def test_shares_beside_percent_are_asked(open_page: OpenPage, tmp_path: Path, way: str, values: list[float]):
    store = tmp_path / "store"
    table = b"stack,recall@10,latency_ms\na,85,10\nb,0.91,10\nc,88,12\n"
    app = upload(open_page(store, "add"), stacks_csv=table)
    assert_sound(app)
    labels = [button.label for button in app.button if button.label.startswith("Read as")]
    assert labels == [
        "Read as 0.0091 · 0.85 · 0.88 (percent)",
        "Read as 0.91 · 0.85 · 0.88 (shares, and percent above 1)",
    ]
    app.button(key=way).click().run()
    import_now(app)
    figures = Store.open(store).read()
    found = figures.aggregates(figures.runs()["run_id"].to_list()).filter(k=10)
    assert sorted(found["value"]) == pytest.approx(values)


def test_more_than_a_measure_can_be_is_refused(open_page: OpenPage, tmp_path: Path):
    table = b"stack,nDCG@10,latency_ms\nhybrid,1.31,20\nbm25,0.62,10\n"
    app = upload(open_page(tmp_path / "store", "add"), stacks_csv=table)
    assert not app.exception
    assert "lies between 0 and 1, and 1.31 does not" in unescaped(app.error[0].value)
    assert "Nothing was written." in everything(app)


def test_tasks_of_mteb_are_asked_for(open_page: OpenPage, tmp_path: Path):
    """Retrieval and reranking unless the visitor takes all; the rest is one line per kind."""
    members = {"m/r/a.json": json.dumps(test_mteb.NEW), "m/r/b.json": test_mteb.other("clustering")}
    app = upload(open_page(tmp_path / "store", "add"), x_zip=zipped(members))
    assert_sound(app)
    box = next(each for each in app.selectbox if each.label == "Tasks")
    assert box.value == "retrieval and reranking"
    assert runs_to_come(app) == 2
    box.select("all").run()
    assert_sound(app)
    assert runs_to_come(app) == 5


def runs_to_come(app: AppTest) -> int:
    taken = next(frame.value for frame in app.dataframe if list(frame.value.columns) == ["what", "rows"])
    return int(taken.set_index("what")["rows"]["stacks"])


@pytest.mark.slow
def test_passages_under_other_names_are_matched_by_where_they_stand(open_page: OpenPage, tmp_path: Path):
    store = tmp_path / "store"
    documents(store)
    table = (
        "stack,query_id,chunk_id,rank,file,text\n"
        'theirs,q1,c1,1,returns.md,"Opened software cannot be returned."\n'
        'theirs,q2,c2,1,shipping.md,"Islands take four days"\n'
    )
    app = upload(open_page(store, "add", ws="guide"), theirs_csv=table.encode())
    assert_sound(app)
    assert "2 of 2 passages stand in guide: 2 by quote" in unescaped(everything(app))
    button = app.button(key="place0")
    assert button.label == "Match 2 by where they stand"
    button.click().run()
    assert_sound(app)
    assert "Passages are those of guide: 2 by quote." in unescaped(everything(app))
    import_now(app)
    assert_sound(app)
    (run,) = Store.open(store).read().runs("guide").iter_rows(named=True)
    assert run["chunking"].startswith("own-theirs-")
    shown = stacks(open_page(store, "decision", ws="guide"))
    assert shown["stack"].to_list() == ["theirs"]


@pytest.mark.slow
def test_filters_on_an_unknown_field_are_refused_by_name_and_empty_ones_named(
    open_page: OpenPage, tmp_path: Path
):
    store, known = tmp_path / "store", b"passage_id,tenant\np1,a\np2,b\n"
    asked = 'query_id,filter\nq1,"{{""{}"": ""{}""}}"\n'
    unknown = asked.format("tenants", "a").encode()
    app = upload(open_page(store, "add"), metadata_csv=known, filters_csv=unknown)
    assert not app.exception
    (error,) = app.error
    assert "filter of query q1: No field of passages 'tenants'" in unescaped(error.value)
    assert not [button for button in app.button if button.key == "add_now"]
    empty = asked.format("tenant", "z").encode()
    app = upload(open_page(store, "add"), metadata_csv=known, filters_csv=empty)
    assert not app.error
    assert "1 filter matches no passage: q1." in unescaped(everything(app))
