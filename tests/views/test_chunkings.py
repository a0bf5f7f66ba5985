"""Runs that searched differently cut documents, side by side."""

from __future__ import annotations

import pytest

from core.analysis import per_query as queries
from core.analysis.export import batch_of
from core.analysis.scoring.table import score_table
from core.analysis.workspace.choices import workspaces
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence
from core.errors import InputError
from core.metrics import Measure
from core.store import Snapshot, Store
from core.views.queries.one_query import one_query
from tests.store import chunked
from tests.views.made import table

ANCHORED, TIED = Scope("corpus", "gold"), Scope("corpus", "tied")
AT_1 = Quality("RA-nWG", 1)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = Store(tmp_path_factory.mktemp("snapshot") / "store")
    with store.write("seed") as writer:
        writer.add(chunked.batch())
    return store.read()


def test_a_golden_set_of_spans_can_be_chosen(snapshot: Snapshot) -> None:
    assert workspaces(snapshot) == {"corpus": ("gold", "tied")}


def test_each_ideal_comes_from_its_chunking(snapshot: Snapshot) -> None:
    """N-Recall5@2 of q1: one of two good halves, the only good page; alone or together."""
    measure = Measure.parse("N-Recall5@2")
    together = evidence(snapshot, ["h", "p"], "gold")
    assert at_cutoff(together, measure)[:, 0].tolist() == [0.5, 1.0]
    for row, run_id in enumerate(["h", "p"]):
        alone = evidence(snapshot, [run_id], "gold")
        assert at_cutoff(alone, measure)[0, 0] == at_cutoff(together, measure)[row, 0]
        assert alone.counts_of(0)[0].tolist() == together.counts_of(row)[0].tolist()


def test_stacks_and_scores_of_several_chunkings(snapshot: Snapshot) -> None:
    stacks = table(snapshot, ANCHORED, AT_1)
    assert stacks.select("run_id", "quality", "n", "unjudged_queries").rows() == [
        ("h", 0.5, 2, 1),
        ("p", 0.0, 1, 1),
        ("w", None, 0, 1),
    ]
    rows = score_table(
        snapshot, snapshot.runs("corpus"), "gold", [Measure.parse("Precision4+@1")], per_query=True
    )
    by_run = {(row["run"], row["query_id"]): (row["value"], row["reason"]) for row in rows.to_dicts()}
    assert by_run["p", "q1"] == (0.0, None)
    assert by_run["p", "q2"] == (None, "No passage of the query is judged.")


def test_judgements_tied_to_passages_compare_one_chunking_only(snapshot: Snapshot) -> None:
    assert table(snapshot, Scope("corpus", "tied", ("h",)), AT_1)["quality"].to_list() == [1.0]
    for ask in (
        lambda: table(snapshot, TIED, AT_1),
        lambda: queries.query_table(snapshot, TIED, AT_1, "h", "p"),
        lambda: score_table(snapshot, snapshot.runs("corpus"), "tied", [Measure.parse("Hit@1")]),
    ):
        with pytest.raises(
            InputError, match=r"\(corpus, .*corpus@pages\).*tied to passages|\(corpus@halves, corpus@pages\)"
        ):
            ask()


def test_one_query_reads_what_each_run_searched(snapshot: Snapshot) -> None:
    found = one_query(snapshot, ANCHORED, Quality("RA-nWG", 2), "q1", {"h": "Halves", "p": "Pages"})
    left, right = found.sides
    assert [judged.golden_set_id for judged in found.judged] == ["gold@halves", "gold@pages"]
    assert (left.judged.ideal, right.judged.ideal) == (2.0, 1.0)
    assert (left.score, right.score) == (0.5, 1.0)
    assert left.ranking.select("grade", "text").rows() == [(5, "text of h0"), (None, "text of h2")]
    assert right.ranking.select("grade", "text").rows() == [(None, "text of p1"), (5, "text of p0")]
    assert left.ranking["change"].is_null().all()
    assert left.missed["passage_id"].to_list() == ["h1"]


def test_queries_of_a_run_whose_chunks_nobody_judged(snapshot: Snapshot) -> None:
    rows = queries.query_table(snapshot, ANCHORED, AT_1, "p", "h")
    assert rows.select("query_id", "score", "other", "judged", "note").rows() == [
        ("q1", 0.0, 1.0, 1, None),
        ("q2", None, 0.0, 0, queries.UNJUDGED),
        ("q3", None, None, 0, queries.UNJUDGED),
    ]


def test_export_holds_the_parts(snapshot: Snapshot) -> None:
    batch = batch_of(snapshot, run_ids=["p"])
    assert [each.golden_set_id for each in batch.golden_sets] == [
        "gold",
        "gold@halves",
        "gold@pages",
        "tied",
    ]
    assert batch.runs[0].chunking == "pages"
    assert batch.frames["judgements"].lazy().collect().height == 5
