"""Passages with equal scores: the file's own ranks, or trec_eval's order, and agreement with its scores."""

from __future__ import annotations

import ir_measures
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, nDCG

from core.analysis.scoring.files import score_files
from core.importers import Import, Options, ReadLimits, load
from core.metrics import parse_list
from tests.cli.test_commands import Cli, cli
from tests.importers.helpers import rows, up

__all__ = ["cli"]
QRELS = "".join(f"q{query} 0 d{doc} {(query * doc) % 3}\n" for query in range(1, 4) for doc in range(1, 9))
PAIRS = {"nDCG@3": nDCG @ 3, "P@2": P(rel=2) @ 2, "RR@8": RR(rel=2), "AP@8": AP(rel=2)}


def trec(scores: list[list[float]]) -> str:
    """Runs of three queries whose ranks follow the list, whatever the scores are."""
    return "".join(
        f"q{query} Q0 d{place} {place} {score!r} t\n"
        for query, listed in enumerate(scores, 1)
        for place, score in enumerate(listed, 1)
    )


def order(made: Import, query: str = "q1") -> list[str]:
    return rows(made, "rankings").filter(query_id=query).sort("rank")["passage_id"].to_list()


CASES = {
    "ties": ([2.0, 1.0, 1.0], ["d1", "d3", "d2"], "scores tie in 1 rankings"),
    "ties in trec_eval's own order": ([1.0], ["d1"], None),
    "single precision": ([1.00000001, 1.0], ["d2", "d1"], None),
    "scores against ranks": ([1.0, 2.0, 2.0], ["d3", "d2", "d1"], "disagree in 1 rankings"),
    "no ties": ([3.0, 2.0], ["d1", "d2"], None),
}


@pytest.mark.parametrize(("scores", "theirs", "says"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("rows_in_memory", [1_000, 1])
def test_the_files_ranks_win_unless_trec_evals_order_is_asked_for(
    scores: list[float], theirs: list[str], says: str | None, rows_in_memory: int
) -> None:
    file, limits = up("a.trec", trec([scores])), ReadLimits(rows_in_memory=rows_in_memory)
    own = load([file], Options(collection_id="c", limits=limits))
    assert order(own) == [f"d{place}" for place in range(1, len(scores) + 1)]
    said = [note for note in own.notes if "trec_eval" in note]
    assert [says in note for note in said] == ([True] if says else [])
    other = load([file], Options(collection_id="c", limits=limits, tie_order="trec_eval"))
    assert order(other) == theirs
    assert sorted(rows(other, "rankings")["score"].to_list()) == sorted(scores)  # as they stood
    assert other.runs[0].run_id != own.runs[0].run_id
    assert not any("own ranks are used" in note for note in other.notes)


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from([0.5, 1.0, 1.00000001, 2.0]), min_size=1, max_size=8),
                min_size=3, max_size=3))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_scores_of_tied_data_agree_with_trec_eval(scores: list[list[float]]) -> None:
    text = trec(scores)
    run, qrels = (up(name, words) for name, words in (("a.trec", text), ("g.qrels", QRELS)))
    made = load([run, qrels], Options(collection_id="c", tie_order="trec_eval", grades="0→1, 1→2, 2→5"))
    table = score_files(made, parse_list(",".join(PAIRS)), per_query=True)
    found = {(row["measure"], row["query_id"]): row["value"] for row in table.iter_rows(named=True)}
    judged = list(ir_measures.read_trec_qrels(QRELS))
    named = {str(theirs): ours for ours, theirs in PAIRS.items()}
    for each in ir_measures.iter_calc(PAIRS.values(), judged, list(ir_measures.read_trec_run(text))):
        ours = found[named[str(each.measure)], each.query_id]
        assert (0.0 if ours is None else ours) == pytest.approx(each.value, abs=1e-6)


TABLE = "query_id,passage_id,rank,score\nq1,d1,1,1.0\nq1,d2,2,1.0\n"


@pytest.mark.slow
def test_tables_and_commands_know_the_order(cli: Cli) -> None:
    made = load([up("a.csv", TABLE)], Options(collection_id="c", tie_order="trec_eval"))
    assert order(made) == ["d2", "d1"]
    run, qrels = cli.file("a.trec", trec([[1.0, 1.0]])), cli.file("g.qrels", "q1 0 d1 1\nq1 0 d2 0\n")
    words = ("score", run, "--qrels", qrels, "--measures", "RR@2")
    assert cli.rows(*words)[0]["value"] == 1.0
    assert "scores tie in 1 rankings" in cli(*words).stderr
    assert cli.rows(*words, "--tie-order", "trec_eval")[0]["value"] == 0.5
    assert "does not go with the store" in cli(
        "score", "--measures", "P@1", "--tie-order", "trec_eval", code=1
    ).stderr  # fmt: skip
    cli("import", run, "--collection", "c", "--tie-order", "trec_eval")
    snapshot = cli.store.read()
    ranked = snapshot.rankings(snapshot.runs()["run_id"].to_list())
    assert ranked.sort("rank")["passage_id"].to_list() == ["d2", "d1"]
    assert snapshot.runs().select(pl.col("manifest").str.contains("trec_eval")).item()
