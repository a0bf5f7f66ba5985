"""Golden sets with grades anchored to documents: what the evidence page shows of their parts."""

from __future__ import annotations

import pytest

from core.analysis.workspace.scope import Quality, Scope
from core.records import Batch
from core.store import Snapshot, Store
from core.views.golden import charts, data, sections
from tests.store import chunked
from tests.store.material import rankings, run
from tests.views.made import table

ANCHORED, TIED = Scope("corpus", "gold"), Scope("corpus", "tied")
AT_2 = Quality("Precision4+", 2)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = Store(tmp_path_factory.mktemp("snapshot") / "store")
    with store.write("seed") as writer:
        writer.add(chunked.batch())
        other = Batch(
            runs=(run("h2", chunking="halves"),),
            frames={"rankings": rankings("h2", {"q1": ["h0", "h1"], "q2": ["h0"]})},
        )
        writer.add(other)
    return store.read()


def test_each_chunking_and_the_spans_can_be_looked_at(snapshot: Snapshot):
    parts = data.parts(snapshot, ANCHORED)
    assert [each.name for each in parts] == ["halves", "pages", data.SPANS]
    halves, pages, spans = (data.judged(snapshot, ANCHORED, part) for part in parts)
    assert halves is not None
    assert pages is not None
    assert spans is not None
    assert [found.mix["total"][-1] for found in (halves, pages, spans)] == [3, 1, 2]
    assert halves.queries.select("query_id", "grade 5", "grade 4").rows() == [("q1", 2, 0), ("q2", 0, 1)]
    assert spans.queries["fallback"].to_list() == [False, True]
    assert sections.summary(spans, table(snapshot, ANCHORED, AT_2), AT_2)[0].startswith(
        "2 graded spans of 2 queries"
    )
    assert "2 query" not in sections.summary(pages, table(snapshot, ANCHORED, AT_2), AT_2)[0]
    assert charts.mix_figure(spans).layout.xaxis.title.text == "spans per query"
    first = data.judged(snapshot, ANCHORED)
    assert first is not None
    assert first.queries.equals(halves.queries)


def test_grades_of_passages_have_no_parts(snapshot: Snapshot):
    assert data.parts(snapshot, TIED) == ()
    found = data.judged(snapshot, TIED)
    assert found is not None
    assert found.mix["total"][-1] == 1


def test_pool_bias_is_among_runs_of_one_chunking(snapshot: Snapshot):
    """h1 of q1 was brought by h2 alone, h2 of q1 by nobody's grade, h2 of q2 by h alone at rank 3."""
    rows = data.pool_bias(snapshot, ANCHORED, AT_2)
    assert rows.select("run_id", "unique", "score", "without", "bias").rows() == [
        ("h2", 1, 0.5, 0.25, 0.25),
        ("h", 1, 0.25, 0.5, -0.25),
    ]
