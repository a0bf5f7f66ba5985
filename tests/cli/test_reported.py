"""Measures that runs came with and nothing here computes: listed, explained and scored by their name."""

from __future__ import annotations

import pytest

from tests.cli.test_commands import QRELS, RUN, Cli

TABLE = "stack,ANN-Recall@10,ANN-Recall@100,nDCG@10,latency_p50_ms\nflat,1.0,0.99,0.5,7\nhnsw,0.9,,0.4,3\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A store with averages only in one collection and a ranking in another; to be read only."""
    cli = Cli(tmp_path_factory.mktemp("reported"))
    cli("import", cli.file("stacks.csv", TABLE), "--collection", "ann")
    cli("import", cli.file("mine.trec", RUN), cli.file("gold.qrels", QRELS), "--collection", "texts")
    return cli


def values(rows: list[dict[str, object]]) -> dict[tuple[object, object], object]:
    return {(row["stack"], row["measure"]): row["value"] for row in rows}


def test_a_reported_measure_is_scored_beside_one_that_is_computed(filled: Cli) -> None:
    asked = "ANN-Recall@100,P@1,ANN-Recall@10"
    ann = filled.rows("score", "--measures", asked, "--collection", "ann")
    assert values(ann) == {
        ("flat", "ANN-Recall@10"): 1.0, ("hnsw", "ANN-Recall@10"): 0.9, ("flat", "ANN-Recall@100"): 0.99,
        ("hnsw", "ANN-Recall@100"): None, ("flat", "P@1"): None, ("hnsw", "P@1"): None,
    }  # fmt: skip
    assert all(row["reason"] for row in ann if row["value"] is None)
    whole = filled.rows("score", "--measures", asked)
    assert values(whole)["bm25", "P@1"] == 1.0
    assert values(whole)["bm25", "ANN-Recall@10"] is None
    assert len(whole) == 3 * 3


@pytest.mark.parametrize(
    ("measures", "more", "says"),
    [
        ("ANN-Recal@100", (), "No measure 'ANN-Recal'. Nearest: ANN-Recall. Found: "),
        ("latency_p50@10", (), "No measure 'latency_p50'"),
        ("RA-nWG(foo=1)@10", (), "No parameter 'foo'. Found: alpha"),
        ("ANN-Recall@10", ("--per-query",), "ANN-Recall@10 is known as an average only."),
        ("ANN-Recall@10", ("--collection", "texts"), "No measure 'ANN-Recall'"),
    ],
)
def test_measures_that_no_run_has_are_refused_with_what_there_is(
    filled: Cli, measures: str, more: tuple[str, ...], says: str
) -> None:
    assert says in filled("score", "--measures", measures, *more, code=1).stderr


def test_reported_measures_are_listed_and_explained(filled: Cli) -> None:
    listed = {str(row["measure"]): row for row in filled.rows("measures")}
    assert "2 runs came with it, at K = 10, 100." in str(listed["ANN-Recall"]["says"])
    assert listed["RA-nWG"]["formula"]
    assert "latency_p50" not in listed
    assert len(listed) == len({name.casefold() for name in listed}), "nDCG stands once"
    told = {row["item"]: row["text"] for row in filled.rows("measures", "ANN-Recall@100")}
    assert told["values"] == "0.9 to 1"
    assert {row["item"] for row in filled.rows("measures", "nDCG")} > {"at K", "range"}
    assert "No measure 'ANN'" in filled("measures", "ANN", code=1).stderr
