"""Whole documents and passages of them are never on one scale, whatever finds more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from core.analysis.scoring.table import score_table
from core.analysis.workspace.narrow import NarrowChoices, narrow
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.analysis.workspace.units import other_units, units
from core.metrics import Measure
from core.records import Batch, Collection
from core.store import Snapshot, Store
from core.tables import frame
from tests.store import chunked
from tests.store.material import rankings, run
from tests.stores import Lab, add
from tests.views.made import AT_10, BOOK, LAB

QUERIES = [f"q{number}" for number in range(1, 21)]
PASSAGES = {query: [f"d{query}#1", "d0#1"] for query in QUERIES}
DOCUMENTS = {query: [f"d{query}"] for query in QUERIES}
WHY = "retrieves whole documents, most retrieve passages"
SOURCES = {f"d{query}#{part}": f"d{query}" for query in ["0", *QUERIES] for part in (1, 2)}

RANKED = {
    "documents beside passages": (
        {"a": PASSAGES, "b": PASSAGES, "c": DOCUMENTS},
        {"a": "passages", "b": "passages", "c": "documents"},
        {"c": WHY},
    ),
    "most are documents": (
        {"a": PASSAGES, "b": DOCUMENTS, "c": DOCUMENTS},
        {"a": "passages", "b": "documents", "c": "documents"},
        {"a": "retrieves passages, most retrieve whole documents"},
    ),
    "as many of both: those of the first": (
        {"a": PASSAGES, "c": DOCUMENTS},
        {"a": "passages", "c": "documents"},
        {"c": WHY},
    ),
    "documents alone": ({"a": DOCUMENTS, "b": DOCUMENTS}, {"a": "documents", "b": "documents"}, {}),
    "passages alone": ({"a": PASSAGES}, {"a": "passages"}, {}),
    "ids of nothing": (
        {"a": PASSAGES, "b": PASSAGES, "c": DOCUMENTS, "x": {query: ["?"] for query in QUERIES}},
        {"a": "passages", "b": "passages", "c": "documents"},
        {"c": WHY},
    ),
    "mostly documents": (
        {"a": PASSAGES, "b": PASSAGES, "c": {**DOCUMENTS, "q1": ["dq1#1"], "q2": ["?"]}},
        {"a": "passages", "b": "passages", "c": "documents"},
        {"c": WHY},
    ),
}


def lab(path: Path, ranked: Mapping[str, Mapping[str, list[str]]]) -> Snapshot:
    """A collection of passages with sources; documents are judged as the passages are."""
    made = Lab().judge({query: {f"d{query}": 5, f"d{query}#1": 3, f"d{query}#2": 5} for query in QUERIES})
    made.hold(dict.fromkeys(SOURCES, "text"), SOURCES)
    for name, final in ranked.items():
        made.run(name, final=final, manifest={"order": name})
    return made.write(path).read()


@pytest.mark.parametrize("case", RANKED)
def test_the_unit_follows_from_what_is_ranked_first(tmp_path: Path, case: str) -> None:
    ranked, expected, apart = RANKED[case]
    snapshot = lab(tmp_path / "store", ranked)
    assert units(snapshot, "lab") == expected
    found, words = other_units(snapshot, snapshot.runs("lab"))
    assert found == apart
    assert bool(words) == bool(apart)


def test_the_chunks_of_a_chunking_are_passages_of_what_is_searched_whole(tmp_path: Path) -> None:
    add(tmp_path / "store", chunked.batch(), "seed")
    snapshot = Store.open(tmp_path / "store").read()
    assert units(snapshot, "corpus") == {"h": "passages", "p": "passages", "w": "documents"}
    names = dict(runs_in(snapshot, Scope("corpus")).select("run_id", "name").iter_rows())
    assert names["w"].endswith(" · whole documents")
    assert "documents" not in names["h"] + names["p"]


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ({"d1#1": "d1", "d2#1": "d2"}, "passages"),
        ({"d1#1": "d1", "d1#2": "d1"}, "documents"),
        ({"d1#1": "d1", "d2#1": "d2", "d2#2": "d2"}, "documents"),
    ],
)
def test_where_each_document_is_one_passage_both_are_the_same(
    tmp_path: Path, cut: Mapping[str, str], whole: str
) -> None:
    rows = [{"collection_id": "corpus@s", "passage_id": name, "source": of} for name, of in cut.items()]
    documents = [{"collection_id": "corpus", "passage_id": name, "text": "text"} for name in ("d1", "d2")]
    batch = Batch(
        collections=(chunked.WHOLE, Collection(collection_id="corpus@s", name="Cut", part_of="corpus")),
        runs=(run("a", chunking="s"), run("w")),
        frames={
            "passages": frame("passages", [*documents, *({**row, "text": "text"} for row in rows)]),
            "chunks": frame("chunks", [{**row, "start_char": 0, "end_char": 3} for row in rows]),
            "rankings": pl.concat([rankings("a", {"q1": ["d1#1"]}), rankings("w", {"q1": ["d1"]})]),
        },
    )
    add(tmp_path / "store", batch, "seed")
    snapshot = Store.open(tmp_path / "store").read()
    assert units(snapshot, "corpus") == {"a": "passages", "w": whole}
    assert bool(other_units(snapshot, snapshot.runs("corpus"))[1]) == (whole == "documents")


def test_what_finds_documents_is_set_apart_and_shown_together_where_that_is_asked(tmp_path: Path) -> None:
    snapshot = lab(tmp_path / "store", RANKED["documents beside passages"][0])
    found = narrow(snapshot, LAB, AT_10, Latency(), BOOK)
    assert found.table["name"].to_list() == ["a", "b"]
    assert found.compared.apart.rows() == [("c · whole documents", WHY)]
    assert found.compared.sentences == (
        "1 stack retrieves whole documents, 2 others passages. They are set apart.",
    )
    together = narrow(snapshot, LAB, AT_10, Latency(), BOOK, choices=NarrowChoices(as_they_are=True))
    assert together.table["name"].to_list() == ["a", "b", "c · whole documents"]
    assert together.compared.apart.is_empty()
    assert together.compared.sentences == (
        "1 stack retrieves whole documents, 2 others passages. They stand on one scale, though they do not "
        "compare.",
    )
    assert together.table.filter(run_id="c")["quality"].item() > found.table["quality"].max()


def test_runs_that_are_chosen_compare_among_themselves(tmp_path: Path) -> None:
    snapshot = lab(tmp_path / "store", RANKED["most are documents"][0])
    chosen = Scope("lab", "gold", ("b", "c"))
    found = narrow(snapshot, chosen, AT_10, Latency(), BOOK)
    assert found.table["name"].to_list() == ["b · whole documents", "c · whole documents"]
    assert found.compared.sentences == ()


def test_scores_of_both_units_are_said_not_to_compare(tmp_path: Path) -> None:
    snapshot, said = lab(tmp_path / "store", RANKED["documents beside passages"][0]), []
    score_table(snapshot, snapshot.runs("lab"), "gold", [Measure.parse("RR@10")], tell=said.append)
    assert said[0].startswith("1 stack retrieves whole documents, 2 others passages.")
