"""All of it: documents, three chunkers, one golden set of spans, a store, and scores that compare."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis.export import batch_of
from core.analysis.workspace.scores import at_cutoff, evidence
from core.importers import Options
from core.metrics import Measure
from core.pipeline.anchors import judged, read_spans
from core.pipeline.chunk import Chunked, chunk
from core.pipeline.documents import read_documents
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store, doctor
from core.tables import frame

DOCUMENTS = {
    "wings.md": "# Wings\n\nLift comes from the wing. Drag slows it down.\n\nWings bend.\n",
    "engines.txt": "Thrust comes from the engine.\n\nFuel is burnt there. It is loud.\n",
}
SPANS = """query_id,source,quote,grade
lift,wings.md,Lift comes from the wing.,5
lift,wings.md,Wings bend.,2
fuel,engines.txt,Fuel is burnt there. It is loud.,4
"""
CHUNKERS = [
    {"method": "sentence", "size": 16, "overlap": 0},
    {"method": "paragraph", "metadata": "none"},
    {"method": "none"},
]


@pytest.fixture
def documents(tmp_path: Path) -> pl.DataFrame:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    (tmp_path / "gold.csv").write_text(SPANS)
    return read_documents(folder).frame


def run_of(cut: Chunked, query: str) -> tuple[Run, pl.DataFrame]:
    """A stack that ranks every passage in the order of the documents, for one query."""
    run_id = f"run-{cut.name}"
    run = Run(
        run_id=run_id,
        collection_id="air",
        stack=Stack({"mode": "sparse", "chunker": dict(cut.chunker)}),
        label=run_id,
        origin=Origin.RUN,
        chunking=cut.name,
    )
    ids = cut.passages["passage_id"].to_list()
    ranks = range(1, len(ids) + 1)
    rows = [
        {"run_id": run_id, "query_id": query, "stage": "final", "rank": rank, "passage_id": name}
        for rank, name in zip(ranks, ids, strict=True)
    ]
    return run, frame("rankings", rows)


@pytest.mark.slow
def test_three_chunkers_on_one_golden_set(documents, tmp_path):
    whole = Collection(collection_id="air", name="Air")
    gold = read_spans(tmp_path / "gold.csv", documents, Options(collection_id="air", golden_set_id="gold"))
    cuts = [chunk(documents, chunker, collection=whole) for chunker in CHUNKERS]
    (golden,), spans = gold.golden_sets, gold.frames["spans"].lazy().collect()
    grades = [judged(golden, spans, cut) for cut in cuts]
    assert all(each.lost.is_empty() and not each.unasked for each in grades)
    ranked = [run_of(cut, "fuel") for cut in cuts]
    queries = [{"collection_id": "air", "query_id": query, "text": "?"} for query in ("lift", "fuel")]

    store = Store(tmp_path / "store")
    with store.write("run") as writer:
        writer.add(
            Batch(
                collections=(whole, *(cut.collection for cut in cuts if cut.name)),
                golden_sets=(golden, *(each.golden_set for each in grades[:2])),
                runs=tuple(run for run, _ in ranked),
                frames={
                    "queries": frame("queries", queries),
                    "passages": pl.concat([cut.passages for cut in cuts]),
                    "chunks": pl.concat([cut.chunks for cut in cuts]),
                    "spans": spans,
                    "judgements": pl.concat([each.judgements for each in grades]),
                    "rankings": pl.concat([rankings for _, rankings in ranked]),
                },
            )
        )
    assert doctor.examine(store).sound
    snapshot = store.read()
    assert snapshot.collections()["collection_id"].to_list() == ["air"]
    assert snapshot.golden_sets().select("golden_set_id", "queries").rows() == [("gold", 2)]

    found = evidence(snapshot, [run.run_id for run, _ in ranked], "gold")
    # Of the span of "fuel" the first chunk of two sentences has one, the second the other; it is the second
    # paragraph, and half of the document.
    assert [found.counts_of(run)[0].tolist() for run in range(3)] == [
        [0, 0, 0, 2, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 0],
    ]
    scores = at_cutoff(found, Measure.parse("N-Recall4+@1"))[:, 0]
    assert scores.tolist() == [1.0, 0.0, 1.0]
    assert batch_of(snapshot).runs == tuple(run for run, _ in ranked)


def test_the_golden_set_of_a_chunker_names_itself(documents, tmp_path):
    gold = GoldenSet(golden_set_id="g", collection_id="air", name="G")
    cut = chunk(documents, CHUNKERS[0], collection=Collection(collection_id="air", name="Air"))
    spans = read_spans(tmp_path / "gold.csv", documents, Options()).frames["spans"].lazy().collect()
    made = judged(gold, spans, cut)
    assert (made.golden_set.name, made.golden_set.part_of) == (f"G, {cut.name}", "g")
