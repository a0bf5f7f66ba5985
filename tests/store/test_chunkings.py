"""Parts of collections and golden sets: found by runs of their chunking, hidden from everybody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.errors import ClqError, UnknownNameError
from core.records import Batch, Collection, GoldenSet
from core.store import Store, doctor
from tests import stores
from tests.store import chunked
from tests.store.material import CORPUS, run


@pytest.fixture
def cut(store: Store) -> Store:
    stores.filled(store.path, "chunked", lambda path: stores.add(path, chunked.batch(), "fill"))
    return store


def test_parts_are_hidden(cut: Store) -> None:
    snapshot = cut.read()
    assert snapshot.collections()["collection_id"].to_list() == ["corpus"]
    assert snapshot.collections(parts=True)["passages"].to_list() == [0, 3, 2]
    assert snapshot.golden_sets()["golden_set_id"].to_list() == ["gold", "tied"]
    assert snapshot.golden_sets("corpus").select("queries", "judgements", "spans").rows() == [
        (2, 0, 2),
        (1, 1, 0),
    ]
    parts = snapshot.golden_sets(parts=True).drop_nulls("part_of")
    assert parts.select("golden_set_id", "collection_id", "queries").rows() == [
        ("gold@halves", "corpus@halves", 2),
        ("gold@pages", "corpus@pages", 1),
    ]


def test_runs_find_their_parts(cut: Store) -> None:
    snapshot = cut.read()
    assert snapshot.searched(["w", "p", "h"]) == {"w": "corpus", "p": "corpus@pages", "h": "corpus@halves"}
    assert snapshot.judging(["h", "p", "w"], "gold") == {"h": "gold@halves", "p": "gold@pages", "w": "gold"}
    assert snapshot.judging(["h", "p"], "tied") == {"h": "tied", "p": "tied"}
    assert (snapshot.searched([]), snapshot.judging([], "gold")) == ({}, {})
    for ask in (snapshot.searched, lambda ids: snapshot.judging(ids, "gold")):
        with pytest.raises(UnknownNameError):
            ask(["nope"])
    with pytest.raises(UnknownNameError):
        snapshot.judging(["h"], "nope")


def test_one_chunking_is_graded_by_its_part(cut: Store) -> None:
    found = cut.read().graded(["h"], "gold")
    assert found.query_ids == ("q1", "q2")
    assert found.grades.tolist() == [[[5, 0, -1], [0, 0, 4]]]
    assert found.pool_counts.tolist() == [[0, 0, 0, 0, 2], [0, 0, 0, 1, 0]]
    assert found.unjudged_queries.tolist() == [1]


def test_each_run_has_the_pool_of_its_chunking(cut: Store) -> None:
    found = cut.read().graded(["p", "h", "w"], "gold")
    assert (found.run_ids, found.query_ids) == (("p", "h", "w"), ("q1", "q2"))
    assert found.grades.tolist() == [
        [[0, 5, -1], [0, -1, -1]],
        [[5, 0, -1], [0, 0, 4]],
        [[0, -1, -1], [-1, -1, -1]],
    ]
    assert found.pool_counts.tolist() == [
        [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]],
        [[0, 0, 0, 0, 2], [0, 0, 0, 1, 0]],
        [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    ]
    assert found.unjudged_queries.tolist() == [1, 1, 1]
    alone = cut.read().graded(["p"], "gold")
    assert alone.query_ids == ("q1",)
    assert alone.unjudged_queries.tolist() == [1]


def test_what_is_tied_to_passages_judges_all_alike(cut: Store) -> None:
    found = cut.read().graded(["h", "p"], "tied", depth=2)
    assert found.pool_counts.tolist() == [[0, 0, 1, 0, 0]]
    assert found.grades.tolist() == [[[3, 0]], [[0, 0]]]


@pytest.mark.slow
def test_an_earlier_revision_has_no_later_parts(store: Store) -> None:
    whole = chunked.batch()
    with store.write("fill") as writer:
        writer.add(
            replace(
                whole,
                golden_sets=(chunked.GOLD, chunked.GOLD_HALVES, chunked.TIED),
                frames={
                    **whole.frames,
                    "judgements": whole.frames["judgements"].filter(golden_set_id="tied"),
                },
            )
        )
    with store.write("fill") as writer:
        writer.add(whole)
    assert store.read(1).judging(["p"], "gold") == {"p": "gold"}
    assert store.read().judging(["p"], "gold") == {"p": "gold@pages"}


@pytest.mark.slow
def test_doctor_knows_parts(cut: Store) -> None:
    report = doctor.examine(cut)
    assert report.sound
    said = " ".join(finding.found for finding in report.findings)
    assert "golden set" not in said
    assert "no queries" not in said
    assert "no passages" not in said
    bare = Collection(collection_id="corpus@bare", name="Bare", part_of="corpus")
    with cut.write("more") as writer:
        writer.add(Batch(collections=(bare,)))
    said = [finding.found for finding in doctor.examine(cut).findings]
    assert "1 collection with no passages, so their texts cannot be shown: 'corpus@bare'." in said


@pytest.mark.slow
def test_doctor_finds_strays_of_parts(store: Store) -> None:
    whole = chunked.batch()
    rows = whole.frames["passages"].filter(whole.frames["passages"]["passage_id"] != "h1")
    asked = whole.frames["queries"].filter(query_id="q1")
    with store.write("fill") as writer:
        writer.add(replace(whole, frames={**whole.frames, "passages": rows, "queries": asked}))
    said = " ".join(finding.found for finding in doctor.examine(store).findings)
    assert "'gold@halves' has 1 judgements of passages that the collection 'corpus@halves'" in said
    assert "'gold@halves' has 1 judged queries that the collection 'corpus' " in said
    assert "'gold' has 1 queries judged by spans that the collection 'corpus'" in said


def test_delete_and_restore_leave_parts(cut: Store) -> None:
    with cut.write("delete") as writer:
        writer.remove("run", ["h"])
    with pytest.raises(UnknownNameError):
        cut.read().searched(["h"])
    assert cut.read().graded(["p"], "gold").grades.tolist() == [[[0, 5]]]
    with cut.write("restore") as writer:
        writer.restore("run", ["h"])
    assert cut.read().judging(["h"], "gold") == {"h": "gold@halves"}


def _part(**changes: str) -> Collection:
    return Collection(**{"collection_id": "corpus@x", "name": "X", "part_of": "corpus", **changes})


_GOLD_PART = GoldenSet(golden_set_id="gold@x", collection_id="corpus", name="X", part_of="gold")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Batch(collections=(_part(part_of="nope"),)), "'corpus@x': It is part of 'nope', which is absent"),
        (
            Batch(collections=(CORPUS, _part(), _part(collection_id="corpus@x@y", part_of="corpus@x"))),
            "part of 'corpus@x', which is a part itself",
        ),
        (Batch(collections=(CORPUS, _part(collection_id="x"))), "so its id is 'corpus@name of the chunking'"),
        (Batch(collections=(CORPUS, _part(collection_id="corpus@"))), "so its id is"),
        (Batch(collections=(CORPUS,), golden_sets=(_GOLD_PART,)), "golden set 'gold@x': It is part of"),
        (Batch(collections=(CORPUS,), runs=(run("a", chunking="x"),)), "a: No collection 'corpus@x'"),
    ],
)
def test_parts_that_could_not_be_found_are_refused(store: Store, batch: Batch, message: str) -> None:
    with pytest.raises(ClqError, match=message), store.write("import") as writer:
        writer.add(batch)
    assert store.revision() == 0


def test_another_whole_is_refused(cut: Store) -> None:
    with pytest.raises(ClqError, match="another part_of"), cut.write("import") as writer:
        writer.add(Batch(collections=(replace(chunked.PAGES, part_of=None),)))
