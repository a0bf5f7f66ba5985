"""Imported spans judge what a store has: the documents, and the chunks of every chunking."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Scope
from core.importers import Import, Options, Upload, load
from core.pipeline.anchors import judged
from core.pipeline.chunk import Chunked, chunk
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import frame
from core.views.golden import data
from core.work.imports.anchored import StoredDocuments, with_chunks_graded
from core.work.imports.background import IfStored
from core.work.imports.imports import store_import

TEXTS = {
    "a": "The wing lifts it. " * 3 + "Drag slows it down.",
    "b": "Zebras run.\n\nLions sleep all day long.",
}
DOCUMENTS = pl.DataFrame({"source": list(TEXTS), "title": "", "text": list(TEXTS.values())})
CORPUS = Collection(collection_id="c", name="c")
CSV = (
    "query_id,source,quote,grade\n"
    "q1,a,Drag slows it down.,5\nq2,b,Zebras run.,4\nq2,b,sleep all,2\nq2,a,gone,1\n"
)
SIZES = (16, 60)


def cut(size: int) -> Chunked:
    return chunk(DOCUMENTS, {"method": "fixed", "size": size, "overlap": 0}, collection=CORPUS)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two documents and the chunks of the first chunker."""
    made = Store.open(tmp_path / "store")
    whole = chunk(DOCUMENTS, {"method": "none"}, collection=CORPUS)
    queries = frame("queries", {"collection_id": ["c", "c"], "query_id": ["q1", "q2"], "text": ["x", "y"]})
    with made.write("evaluation") as writer:
        writer.add(Batch(collections=(CORPUS,), frames={"passages": whole.passages, "queries": queries}))
    add(made, SIZES[0])
    return made


def add(store: Store, size: int) -> Chunked:
    found = cut(size)
    with store.write("evaluation") as writer:
        writer.add(
            Batch(
                collections=(found.collection,),
                frames={"passages": found.passages, "chunks": found.chunks},
            )
        )
    return found


def offer(store: Store, text: str = CSV, choice: IfStored | None = None) -> tuple[Import, bool, str]:
    snapshot = store.read()
    known = frozenset(snapshot.collections()["collection_id"])
    options = Options(known_collections=known, documents=StoredDocuments.of(snapshot))
    made = load([Upload("spans.csv", text.encode())], options)
    done = store_import(store, made, "", choice=choice)
    return made, done.fresh, done.said


def grades(store: Store, golden: str) -> pl.DataFrame:
    return store.read().judgements(golden).select("query_id", "passage_id", "grade")


@pytest.mark.slow
def test_the_chunks_of_every_chunking_are_graded_as_an_evaluation_would(store: Store):
    made, fresh, said = offer(store)
    assert fresh
    first = cut(SIZES[0])
    expected = judged(made.golden_sets[0], made.frames["spans"].lazy().collect(), first)
    part = f"c-spans@{first.name}"
    assert expected.judgements.height
    assert grades(store, part).rows() == expected.judgements.select(grades(store, part).columns).rows()
    assert grades(store, "c-spans").rows() == [("q1", "a", 5), ("q2", "b", 4)]
    graded = expected.judgements.height + 2
    assert f"{graded} passages graded from spans, in 1 chunking and as documents." in said
    assert not offer(store)[1], "the same again is nothing new"


@pytest.mark.slow
def test_runs_of_the_chunks_are_judged_and_the_page_shows_them(store: Store):
    offer(store)
    name = cut(SIZES[0]).name
    passage = grades(store, f"c-spans@{name}")["passage_id"][0]
    run = Run(
        run_id="r", collection_id="c", stack=Stack({"name": "s"}), label="s", origin=Origin.RUN, chunking=name
    )
    ranked = {"run_id": ["r"], "query_id": ["q1"], "stage": ["final"], "rank": [1], "passage_id": [passage]}
    with store.write("run") as writer:
        writer.add(Batch(runs=(run,), frames={"rankings": frame("rankings", ranked)}))
    snapshot = store.read()
    assert snapshot.judging(["r"], "c-spans") == {"r": f"c-spans@{name}"}
    scope = Scope(collection_id="c", golden_set_id="c-spans")
    assert [part.name for part in data.parts(snapshot, scope)] == [name, data.SPANS]


@pytest.mark.slow
def test_a_chunking_that_came_later_is_graded_when_the_file_is_offered_again(store: Store):
    offer(store)
    later = add(store, SIZES[1])
    made, fresh, _ = offer(store)
    assert fresh
    expected = judged(made.golden_sets[0], made.frames["spans"].lazy().collect(), later)
    assert grades(store, f"c-spans@{later.name}").height == expected.judgements.height > 0


@pytest.mark.slow
def test_changed_spans_replace_the_grades_or_stand_beside_them(store: Store):
    offer(store)
    part = f"c-spans@{cut(SIZES[0]).name}"
    before = grades(store, part)
    other = CSV.replace(".,5", ".,3")
    offer(store, other, "new")
    assert grades(store, part).rows() == before.rows()
    assert grades(store, part.replace("spans@", "spans-2@"))["grade"].max() == 4
    offer(store, CSV.replace(".,5", ".,1"), "replace")
    assert grades(store, part.replace("spans@", "spans-2@")).filter(query_id="q1")["grade"].to_list() == [1]
    assert store.read().spans("c-spans-2").height == 3


def test_documents_that_come_along_are_judged(tmp_path: Path):
    store = Store.open(tmp_path / "new")
    corpus = '{"_id": "a", "text": "Drag slows it down."}\n{"_id": "b", "text": "Zebras run. sleep all"}\n'
    made = load(
        [Upload("corpus.jsonl", corpus.encode()), Upload("spans.csv", CSV.encode())],
        Options(collection_id="c"),
    )
    assert store_import(store, made, "").fresh
    assert grades(store, "c-spans").rows() == [("q1", "a", 5), ("q2", "b", 4)]


@pytest.mark.slow
def test_a_new_way_of_cutting_is_graded_by_every_golden_set_of_the_documents(store: Store):
    made, *_ = offer(store)
    golden = frame(
        "judgements",
        {
            "golden_set_id": ["whole"] * 2, "query_id": ["q1", "q2"], "passage_id": ["a", "b"],
            "grade": [5, 4], "raw": [5, 4], "judge": [None, None],
        },
    )  # fmt: skip
    whole = GoldenSet(golden_set_id="whole", collection_id="c", name="Documents")
    with store.write("import") as writer:
        writer.add(Batch(golden_sets=(whole,), frames={"judgements": golden}))
    found = cut(SIZES[1])
    frames = {"passages": found.passages, "chunks": found.chunks}
    batch = with_chunks_graded(store.read(), Batch(collections=(found.collection,), frames=frames))
    spans = made.golden_sets[0].golden_set_id
    assert sorted(golden.golden_set_id for golden in batch.golden_sets) == sorted(
        [f"{spans}@{found.name}", f"whole@{found.name}"]
    )
    with store.write("evaluation") as writer:
        writer.add(batch)
    expected = judged(made.golden_sets[0], made.frames["spans"].lazy().collect(), found)
    assert (
        grades(store, f"{spans}@{found.name}").rows()
        == expected.judgements.select("query_id", "passage_id", "grade").sort("query_id", "passage_id").rows()
    )
    by_source = dict(found.passages.select("passage_id", "source").iter_rows())
    of_whole = grades(store, f"whole@{found.name}").rows()
    assert {(query, by_source[passage], grade) for query, passage, grade in of_whole} == {
        ("q1", "a", 5), ("q2", "b", 4)
    }  # fmt: skip
    assert len(of_whole) == found.passages.height
    again = with_chunks_graded(store.read(), Batch(collections=(found.collection,), frames=frames))
    assert again.golden_sets == ()
