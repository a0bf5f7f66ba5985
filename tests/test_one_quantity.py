"""One number, one place: what two pages say of the same quantity of the same stack is the same.

Every table of every section that has one row a stack is read, as the command `page` gives it, and what it
says of a stack's quality, latency, cost, n, unjudged share, headroom or K is compared with the table of
stacks.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import core as clq
from core.analysis import sides
from core.api.decision import Decision
from core.stats.significance import Setup
from core.views.pages import PAGES
from tests.pipeline import cranfield
from tests.shared import once
from tests.test_one_answer import call, swept

SAME = {
    "quality": ("quality", "score", "reached"),
    "quality_low": ("quality_low",),
    "quality_high": ("quality_high",),
    "latency_ms": ("latency_ms", "p50"),
    "latency_low": ("latency_low", "p50_low"),
    "latency_high": ("latency_high", "p50_high"),
    "cost": ("cost",),
    "n": ("n",),
    "hole": ("hole",),
    "candidates": ("candidates", "k_asked"),
}
"""Columns of other tables, by the column of the table of stacks that they repeat."""
OTHER = {
    ("efficiency_False", "latency_ms"),  # of the reranker alone
    ("ranges", "quality"),  # of RA-nWG, whose weights are moved, whatever measure is asked for
    ("latency", "n"),  # queries timed
    ("run", "n"),  # queries of the run
    ("graded_samples", "n"),  # answers of a reader
    *(("kinds", column) for column in ("quality", "quality_low", "quality_high", "n")),  # of one kind
}
"""Columns, by their table, that are of something else by what they are named."""
HEADROOM = ("proc", "pct_proc", "ordering", "retrieval")


def sections(decision: Decision) -> Iterator[tuple[str, dict[str, pl.DataFrame]]]:
    """The tables of every section that answers by command."""
    for page in PAGES.values():
        for section in (page.sections or (None,)) if page.home else ():
            try:
                told = decision.page(page.name, section)
            except clq.errors.UnknownNameError:
                continue  # drawn on the page alone
            yield f"{page.name} · {section}", told.tables


def by_stack(table: pl.DataFrame, stacks: pl.DataFrame) -> pl.DataFrame | None:
    """Rows of a table by run_id, where it has at most one of each stack."""
    if "run_id" not in table.columns:
        name = next((name for name in ("name", "stack") if name in table.columns), None)
        if name is None or not table[name].is_unique().all():
            return None
        table = table.join(stacks.select("run_id", pl.col("name").alias(name)), on=name)
    return table if table["run_id"].is_unique().all() else None


def differing(decision: Decision) -> tuple[list[str], int]:
    """What any two places say differently, and how many numbers were compared."""
    stacks = decision.view.table
    truth = {row["run_id"]: row for row in stacks.to_dicts()}
    found, compared = [], 0
    headroom: dict[tuple[str, str], float] = {}
    for where, tables in sections(decision):
        for name, table in tables.items():
            rows = by_stack(table, stacks)
            if rows is None:
                continue
            for row in rows.filter(pl.col("run_id").is_in(list(truth))).to_dicts():
                known = {key: truth[row["run_id"]].get(key) for key in SAME}
                said = [
                    (key, known[key], row[word])
                    for key, words in SAME.items()
                    for word in words
                    if word in row
                ]
                said += [
                    (key, headroom.setdefault((row["run_id"], key), row[key]), row[key])
                    for key in HEADROOM
                    if row.get(key) is not None
                ]
                compared += len(said)
                found += [
                    f"{where}, {name}: {key} of {row['run_id']} is {there}, not {here}"
                    for key, here, there in said
                    if not same(here, there) and (name, key) not in OTHER
                ]
    return found, compared


def same(here: object, there: object) -> bool:
    if isinstance(here, float) and isinstance(there, float):
        return math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12)
    return here == there


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collection", "asked"),
    [
        ("docs-search", {}),
        ("docs-search", {"sla_ms": 20.0}),
        ("docs-search", {"measure": "nDCG@5", "sla_ms": 1000.0}),
        ("clq-paper", {"sla_ms": 500.0, "budget": 2.5}),
    ],
)
def test_pages_say_the_same_of_a_stack_of_the_demo(shipped_store: Path, collection, asked):
    found, compared = differing(clq.open(shipped_store).workspace(collection).decide(**asked))
    assert not found, "\n".join(found)
    assert compared > 100


SHARE = "%PROC[RA-nWG]@10"


def shares(store: Path, folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """What each surface says of %PROC, by run: page, table, API, command, record, comparison."""
    workspace = clq.open(store).workspace("docs-search")
    usual, asked = workspace.decide(measure="RA-nWG@10"), workspace.decide(measure=SHARE)
    stacks = asked.view.table
    yield "table of stacks, column %PROC", dict(usual.view.table.select("run_id", "pct_proc").iter_rows())
    headroom = by_stack(usual.page("headroom").tables["headroom"], usual.view.table)
    yield "page headroom", dict(headroom.select("run_id", "pct_proc").iter_rows())
    yield "quality of the decision", dict(stacks.select("run_id", "quality").iter_rows())
    scores = workspace.score(SHARE)
    yield "api, score", dict(scores.select("run", "value").iter_rows())
    options = ["--store", str(store), "score", "--collection", "docs-search", "--measures", SHARE]
    printed = json.loads(call(*options, "--format", "json"))
    yield "command score", {row["run"]: row["value"] for row in printed}
    record, _ = asked.record(folder / "share.json", folder / "share.html")
    yield "record", {row["run_id"]: row["quality"] for row in json.loads(record.read_text())["stacks"]}
    names = stacks["name"].to_list()
    pairs = [(names[0], other) for other in names[1:3]]
    compared = [
        sides.sources(usual.view.snapshot, usual.view.scope, usual.view.quality, ids, Setup(resamples=20))
        for ids in (
            [dict(stacks.select("name", "run_id").iter_rows())[name] for name in pair] for pair in pairs
        )
    ]
    values = dict(stacks.select("name", "quality").iter_rows())
    for pair, table in zip(pairs, compared, strict=True):
        yield f"compare {pair}", {"difference": table.filter(measure=SHARE)["difference"][0]}
        yield f"compare {pair}", {"difference": values[pair[1]] - values[pair[0]]}


@pytest.mark.slow
def test_the_share_of_a_ceiling_is_one_number(shipped_store: Path, tmp_path: Path):
    known: dict[str, float] = {}
    for where, said in shares(shipped_store, tmp_path):
        for run, value in said.items():
            key = f"{where} {run}" if run == "difference" else run
            assert value == pytest.approx(known.setdefault(key, value), abs=1e-12), where
    per_query = clq.open(shipped_store).workspace("docs-search").score(f"%PROC-per-query{SHARE[5:]}")
    other = dict(per_query.select("run", "value").iter_rows())
    assert len(other) > 20
    assert max(abs(other[run] - known[run]) for run in other) > 0.02


@pytest.mark.slow
@pytest.mark.skipif(not cranfield.FOLDER.is_dir(), reason=f"no Cranfield collection at {cranfield.FOLDER}")
def test_pages_say_the_same_of_a_stack_of_a_classic_collection(tmp_path_factory):
    results = clq.open(once(tmp_path_factory, "cranfield-swept", swept))
    found, compared = differing(results.workspace("cranfield").decide(sla_ms=50.0))
    assert not found, "\n".join(found)
    assert compared > 100
