"""Filters and leaks on every surface, and after every way out of a store and into another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import core as clq
from core.agents.answers import Answers
from core.cli.app import app
from core.store import Store, upkeep
from tests.analysis.workspace.test_filters import ASKER, CLEAN, PASSAGES, QUERIES, TENANT, stored

LEAKY = {**CLEAN, "q3": ["p00", *CLEAN["q3"]], "q5": [*CLEAN["q5"][:2], "p02", "p03"]}
LEAKS = {"leaky": 2 / 12, "clean": 0.0}
ASKED = ("--collection", "corpus", "--measure", "RA-nWG@5")
TABLES = ("passage_metadata", "query_filters", "fields")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filtered") / "store"
    stored(path, {"leaky": LEAKY, "clean": CLEAN})
    return path


def call(store: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--store", str(store), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def leaks(store: Path) -> dict[str, object]:
    table = clq.open(store).workspace("corpus").decide(measure="RA-nWG@5").view.table
    return dict(table.select("name", "leak").iter_rows())


def test_page_command_interface_record_and_agents_say_the_same_of_leaks(store: Path, tmp_path: Path):
    assert leaks(store) == pytest.approx(LEAKS)
    decision = clq.open(store).workspace("corpus").decide(measure="RA-nWG@5")
    assert decision.chosen is not None
    assert decision.chosen.name == "clean"
    reason = "0.167 over the leak limit (query q3)"
    assert decision.table.filter(stack="leaky")["reason"].to_list() == [reason]

    printed = json.loads(call(store, "decide", *ASKED, "--format", "json"))
    assert printed["chosen"]["stack"] == "clean"
    assert printed["asked"]["max_leak"] == decision.data["asked"]["max_leak"] == 0
    record, html = decision.record(tmp_path / "r.json", tmp_path / "r.html", replace=True)
    said = json.loads(record.read_text())
    assert said["chosen"]["leak"] == printed["chosen"]["leak"] == 0
    assert [row["reason"] for row in said["excluded"]] == [reason]
    assert said["asked"]["max_leak"] == 0
    assert reason in html.read_text()

    agents = Answers(clq.open(store), tmp_path)
    told = agents.decide("corpus", {"measure": "RA-nWG@5"})
    assert told["ship"]["stack"] == "clean"
    assert told["ship"]["leaks"]["value"] == 0
    assert told["ship"]["leaks"]["measure"] == "Leak@5"
    assert told["asked"]["max_leak"] == 0
    query = agents.query("corpus", "q3", "leaky", {"measure": "RA-nWG@5"})
    assert query["untrusted_filter"] == '{"tenant":"d"}'
    assert [each["mark"] for each in query["passages"][:2]] == ["forbidden", None]

    page = decision.page("latency", "filters", {"lats": ["leaky"]})
    bins = page.tables["filters"].filter(bin="all questions with a filter")
    assert dict(bins.select("name", "leak").iter_rows()) == pytest.approx(LEAKS)
    assert page.tables["forbidden"].select("query_id", "passage_id").rows() == [
        ("q3", "p00"), ("q5", "p02"), ("q5", "p03"),
    ]  # fmt: skip
    scored = json.loads(
        call(store, "score", "--collection", "corpus", "--measures", "Leak@5", "--format", "json")
    )
    assert {row["stack"]: row["value"] for row in scored} == pytest.approx(LEAKS)


@pytest.mark.parametrize("way", ["export", "backup"])
def test_filters_are_kept_over_export_and_backup(store: Path, tmp_path: Path, way: str):
    other = tmp_path / "other"
    if way == "backup":
        upkeep.backup(Store.open(store), other)
    else:
        call(store, "export", str(tmp_path / "all.zip"), "--format", "own")
        call(other, "import", str(tmp_path / "all.zip"))
    before, after = Store.open(store).read(), Store.open(other).read()
    for table in TABLES:
        assert_frame_equal(getattr(before, table)("corpus"), getattr(after, table)("corpus"))
    assert before.access("corpus").permissions == after.access("corpus").permissions == {"tenant"}
    assert_frame_equal(before.within("gold"), after.within("gold"))
    assert leaks(other) == pytest.approx(LEAKS)


@pytest.mark.slow
@given(st.sets(st.tuples(st.sampled_from(QUERIES), st.integers(0, 9), st.sampled_from(PASSAGES)), max_size=8))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_leaks_planted_in_an_imported_run_are_all_found(store: Path, tmp_path_factory, planted):
    ranked = {query: list(of) for query, of in CLEAN.items()}
    for query, rank, passage in sorted(planted):
        if passage not in ranked[query]:
            ranked[query].insert(rank, passage)
    folder = tmp_path_factory.mktemp("planted")
    lines = [
        f"{query} Q0 {passage} {rank} {100 - rank} theirs"
        for query, of in ranked.items()
        for rank, passage in enumerate(of, 1)
    ]
    (folder / "theirs.run").write_text("\n".join(lines) + "\n")
    upkeep.backup(Store.open(store), folder / "store")
    call(folder / "store", "import", str(folder / "theirs.run"), "--collection", "corpus")
    decision = clq.open(folder / "store").workspace("corpus").decide(measure="RA-nWG@10", max_leak=1)
    found = decision.page("latency", "filters", {"lats": ["theirs"]}).tables.get("forbidden")
    theirs = (
        [] if found is None else found.filter(name="theirs").select("query_id", "rank", "passage_id").rows()
    )
    assert theirs == [
        (query, rank, passage)
        for query in sorted(ranked)
        for rank, passage in enumerate(ranked[query][:10], 1)
        if TENANT[passage] != ASKER[query]
    ]
