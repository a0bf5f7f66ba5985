"""A collection cut by two chunkers, with a golden set anchored to the documents and one tied to passages."""

from __future__ import annotations

import polars as pl

from core.records import Batch, Collection, GoldenSet
from core.tables import frame
from tests.store.material import judgements, rankings, run

WHOLE = Collection(collection_id="corpus", name="Documents")
HALVES = Collection(collection_id="corpus@halves", name="Halves", part_of="corpus")
PAGES = Collection(collection_id="corpus@pages", name="Pages", part_of="corpus")
GOLD = GoldenSet(golden_set_id="gold", collection_id="corpus", name="Gold")
GOLD_HALVES = GoldenSet(
    golden_set_id="gold@halves", collection_id="corpus@halves", name="Gold", part_of="gold"
)
GOLD_PAGES = GoldenSet(golden_set_id="gold@pages", collection_id="corpus@pages", name="Gold", part_of="gold")
TIED = GoldenSet(golden_set_id="tied", collection_id="corpus", name="Tied to halves")


def _passages(collection_id: str, ids: list[str]) -> pl.DataFrame:
    return frame(
        "passages",
        {
            "collection_id": [collection_id] * len(ids),
            "passage_id": ids,
            "text": [f"text of {name}" for name in ids],
            "source": ["d"] * len(ids),
        },
    )


def batch() -> Batch:
    """Three runs: of halves (h), of pages (p), of the documents as they are (w).

    Query q1 has grades for both chunkings (two halves, one page), q2 for halves only.
    """
    return Batch(
        collections=(WHOLE, HALVES, PAGES),
        golden_sets=(GOLD, GOLD_HALVES, GOLD_PAGES, TIED),
        runs=(run("h", chunking="halves"), run("p", chunking="pages"), run("w")),
        frames={
            "queries": frame(
                "queries",
                {"collection_id": ["corpus"] * 3, "query_id": ["q1", "q2", "q3"], "text": ["?"] * 3},
            ),
            "passages": pl.concat(
                [_passages("corpus@halves", ["h0", "h1", "h2"]), _passages("corpus@pages", ["p0", "p1"])]
            ),
            "spans": frame(
                "spans",
                {
                    "golden_set_id": ["gold"] * 2,
                    "query_id": ["q1", "q2"],
                    "source": ["d"] * 2,
                    "start_char": [0, 5],
                    "end_char": [4, 9],
                    "grade": [5, 4],
                },
            ),
            "judgements": pl.concat(
                [
                    judgements({"q1": {"h0": 5, "h1": 5}, "q2": {"h2": 4}}, "gold@halves"),
                    judgements({"q1": {"p0": 5}}, "gold@pages"),
                    judgements({"q1": {"h0": 3}}, "tied"),
                ]
            ),
            "rankings": pl.concat(
                [
                    rankings("h", {"q1": ["h0", "h2"], "q2": ["h0", "h1", "h2"], "q3": ["h0"]}),
                    rankings("p", {"q1": ["p1", "p0"], "q2": ["p0"]}),
                    rankings("w", {"q1": ["d"]}),
                ]
            ),
        },
    )
