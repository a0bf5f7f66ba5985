"""Imported passages under names of their own: found in documents or among passages, counted, and offered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.analysis.scoring.table import score_table
from core.analysis.workspace.units import units
from core.errors import InputError
from core.importers import Upload
from core.importers.meaning import COMPARED
from core.metrics import Measure
from core.pipeline.own.config import MatchBy
from core.records import Batch, Collection, GoldenSet
from core.store import Store
from core.tables import frame
from core.work.imports.imports import elsewhere, knowing, plan, read_into, store_import
from core.work.imports.matching import UnmatchedError
from tests.stores import Lab, add

pytestmark = pytest.mark.slow

RETURNS = "Parcels can be returned within 30 days."
SOFTWARE = "Opened software cannot be returned."
GUIDE = {
    "returns.md": f"# Returns\n\n{RETURNS}\n\n## Software\n\n{SOFTWARE}\n\n## Box\n\nThe box is yours.",
    "shipping.md": "# Shipping\n\nIslands take four days by boat.",
}
PLACE = GUIDE["returns.md"].index(SOFTWARE)
QUERIES = {"q1": "software", "q2": "islands"}


def documents(path: Path) -> Store:
    """Two documents with judged places, and a run that found the documents."""
    about = {"collection_id": ["guide"] * 2, "passage_id": list(GUIDE), "source": list(GUIDE)}
    spans = {
        "golden_set_id": ["quotes"] * 2, "query_id": ["q1", "q2"], "source": list(GUIDE),
        "start_char": [PLACE, 12], "end_char": [PLACE + len(SOFTWARE), 30], "grade": [5, 5], "raw": [5, 5],
        "judge": ["me", "me"],
    }  # fmt: skip
    asked = {"collection_id": ["guide"] * 2, "query_id": list(QUERIES), "text": list(QUERIES.values())}
    batch = Batch(
        collections=(Collection(collection_id="guide", name="guide"),),
        golden_sets=(GoldenSet(golden_set_id="quotes", collection_id="guide", name="Quotes"),),
        frames={
            "passages": frame("passages", {**about, "text": list(GUIDE.values())}),
            "queries": frame("queries", asked),
            "spans": frame("spans", spans),
        },
    )
    add(path, batch, "seed")
    return Store.open(path)


HEAD = "stack,query_id,chunk_id,rank"
ROWS = {
    "quotes": (
        f"{HEAD},file,chunk_text\n"
        f'mine,q1,c1,1,returns.md,"{RETURNS}"\nmine,q1,c2,2,returns.md,"{SOFTWARE}"\n'
        'mine,q2,c3,1,shipping.md,"Nothing of it."\nmine,q2,c4,2,shipping.md,"Islands take four days"\n',
        "places",
        {"q1": 0.5, "q2": 0.5},
        "3 of 4 passages stand in guide: 3 by quote",
    ),
    "characters": (
        f"{HEAD},source,start_char,end_char\n"
        f"mine,q1,c1,1,/srv/guide/returns.md,{PLACE},{PLACE + 20}\n"
        "mine,q2,c3,1,shipping.md,0,3\nmine,q2,c4,2,shipping.md,12,25\n",
        "places",
        {"q1": 1.0, "q2": 0.5},
        "3 of 3 passages stand in guide: 3 by place in the document",
    ),
    "headings, no ids": (
        "stack,query_id,rank,source,heading\nmine,q1,1,returns.md,Box\nmine,q1,2,returns.md,Software\n"
        "mine,q2,1,shipping.md,Boats\n",
        "headings",
        {"q1": 0.5, "q2": 0.0},
        "2 of 3 passages stand in guide: 2 by source and heading",
    ),
    "a document's id beside that of its part": (
        f'stack,query_id,doc_id,chunk_id,rank,text\nmine,q1,returns.md,1,1,"{SOFTWARE}"\n'
        'mine,q2,shipping.md,2,1,"Islands take four days"\n',
        "places",
        {"q1": 1.0, "q2": 1.0},
        "2 of 2 passages stand in guide: 2 by quote",
    ),
}


def offered(text: str) -> list[Upload]:
    return [Upload("mine.csv", text.encode())]


def quality(store: Store) -> dict[str, float]:
    snapshot = store.read()
    rows = score_table(snapshot, snapshot.runs("guide"), "quotes", [Measure.parse("RR@5")], per_query=True)
    return dict(rows.select("query_id", "value").iter_rows())


@pytest.mark.parametrize("case", ROWS)
def test_passages_of_documents_are_offered_and_judged_by_their_places(tmp_path: Path, case: str) -> None:
    text, match, expected, said = ROWS[case]
    store = documents(tmp_path / "store")
    snapshot = store.read()
    options = knowing(snapshot, collection_id="guide")
    plain = read_into(offered(text), options, snapshot)
    (found,) = elsewhere(snapshot, plain)
    assert (str(found), found.match) == (said, match)
    with pytest.raises(UnmatchedError, match=f"--match {match}"):
        store_import(store, plain, "mine")
    wanted: MatchBy = "headings" if match == "headings" else "places"
    placed = read_into(offered(text), options, snapshot, by=wanted)
    assert {why for report in placed.reports for why in report.left_out.values()} <= {COMPARED}
    fresh = store_import(store, placed, "mine").fresh
    assert fresh
    (run,) = store.read().runs("guide").iter_rows(named=True)
    assert run["chunking"].startswith("own-mine-")
    assert units(store.read(), "guide") == {run["run_id"]: "passages"}
    assert quality(store) == expected
    assert store.read().passages("guide").height == len(GUIDE)
    assert not store_import(store, read_into(offered(text), options, store.read(), by=wanted), "mine").fresh


def test_a_place_that_a_run_never_found_counts_as_missed(tmp_path: Path) -> None:
    store = documents(tmp_path / "store")
    text = f'{HEAD},file,text\nmine,q1,c1,1,returns.md,"{RETURNS}"\nmine,q2,c1,1,returns.md,"{RETURNS}"\n'
    snapshot = store.read()
    made = read_into(offered(text), knowing(snapshot, collection_id="guide"), snapshot, by="places")
    store_import(store, made, "mine")
    assert quality(store) == {"q1": 0.0, "q2": 0.0}


def test_passages_that_are_cut_otherwise_count_as_the_ones_they_stand_in(tmp_path: Path) -> None:
    lab = Lab("shop").judge({"q1": {"p1": 5}, "q2": {"p2": 5}}).ask(QUERIES)
    lab.hold({"p1": SOFTWARE, "p2": "Islands take four days by boat.", "p3": RETURNS})
    store = lab.write(tmp_path / "store")
    snapshot = store.read()
    text = (
        "stack,query_id,chunk_id,rank,text\nmine,q1,a,1,Opened software\nmine,q1,b,2,cannot be returned\n"
        "mine,q1,p3,3,anything\nmine,q2,c,1,no words of theirs\nmine,q2,d,2,four days by boat\n"
    )
    made = read_into(offered(text), knowing(snapshot, collection_id="shop"), snapshot, by="places")
    rows = made.frames["rankings"].lazy().collect().select("query_id", "rank", "passage_id").rows()
    assert rows == [("q1", 1, "p1"), ("q1", 2, "p3"), ("q2", 1, "c"), ("q2", 2, "p2")]
    assert made.runs[0].chunking is None
    lost = {entry.reason: entry.count for entry in made.left_out if not entry.part}
    assert lost == {"passages that stand nowhere in the collection: they count as unjudged": 1}


def test_ids_of_chunks_that_the_store_has_say_which_chunking_was_searched(tmp_path: Path) -> None:
    store = documents(tmp_path / "store")
    part = Collection(collection_id="guide@x", name="x", part_of="guide")
    place = {"collection_id": "guide@x", "passage_id": "returns.md#x:0", "source": "returns.md"}
    frames = {
        "passages": frame("passages", [{**place, "text": SOFTWARE}]),
        "chunks": frame("chunks", [{**place, "start_char": PLACE, "end_char": PLACE + len(SOFTWARE)}]),
    }
    add(tmp_path / "store", Batch(collections=(part,), frames=frames), "seed")
    snapshot = store.read()
    run = [Upload("x.run", b"q1 Q0 returns.md#x:0 1 2.0 mine\n")]
    made = read_into(run, knowing(snapshot, collection_id="guide"), snapshot)
    assert [each.chunking for each in made.runs] == ["x"]
    assert elsewhere(snapshot, made) == ()
    run = [Upload("x.run", b"q1 Q0 returns.md 1 2.0 mine\n")]
    whole = read_into(run, knowing(snapshot, collection_id="guide"), snapshot)
    assert [each.chunking for each in whole.runs] == [None]


def test_texts_that_come_along_under_other_ids_tell_their_passages(tmp_path: Path) -> None:
    """As evaluation tools write them: passages without ids, of the documents of the open workspace."""
    store = documents(tmp_path / "store")
    row = {"query_id": "q1", "user_input": "software", "retrieved_contexts": [RETURNS, SOFTWARE]}
    snapshot = store.read()
    options = knowing(snapshot, collection_id="guide", format="ragas")
    files = [Upload("ragas.jsonl", json.dumps(row).encode() + b"\n")]
    (found,) = elsewhere(snapshot, read_into(files, options, snapshot))
    assert str(found) == "2 of 2 passages stand in guide: 2 by quote"
    made = read_into(files, options, snapshot, by="places")
    own = made.frames["passages"].lazy().collect()
    assert set(own["collection_id"]) == {f"guide@{made.runs[0].chunking}"}


def test_nothing_is_found_where_nothing_is_told(tmp_path: Path) -> None:
    store = documents(tmp_path / "store")
    snapshot = store.read()
    options = knowing(snapshot, collection_id="guide")
    run = [Upload("x.run", b"q1 Q0 elsewhere 1 2.0 mine\n")]
    assert elsewhere(snapshot, read_into(run, options, snapshot)) == ()
    with pytest.raises(InputError, match="No passage is found by where it is from"):
        read_into(run, options, snapshot, by="places")
    known = [Upload("x.run", b"q1 Q0 returns.md 1 2.0 mine\n")]
    assert elsewhere(snapshot, read_into(known, options, snapshot)) == ()


def test_the_open_workspace_is_offered_for_a_file_of_a_new_one(tmp_path: Path) -> None:
    store = documents(tmp_path / "store")
    text, *_ = ROWS["quotes"]
    made = plan(offered(text), knowing(store.read()), store.read(), workspace="guide")
    assert made.made is not None
    assert {run.collection_id for run in made.made.runs} == {"mine"}
    assert [(each.collection_id, each.found) for each in made.placeable] == [("guide", 3)]
    assert made.placeable[0].named == 4
