"""Rows that others have replaced lie on in an earlier part, beside current rows: no reader returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb
import polars as pl
import pytest

from core.records import Batch
from core.store import Store, doctor
from core.store.query import query, statements
from core.store.rules import RULES
from tests.store.material import CORPUS, GOLD, small

OWNERS = {"collection": ["corpus", "other"], "golden_set": ["gold", "silver"]}
OTHER = {"corpus": "other", "gold": "silver"}
REPLACEABLE = [table for table, rules in RULES.items() if rules.replaced]
WHOLE: Mapping[str, pl.DataFrame] = {table: small().frames[table] for table in REPLACEABLE}
LESS = {table: rows.slice(1 if rows.height > 1 else 0) for table, rows in WHOLE.items()}


def _beside(first: Mapping[str, pl.DataFrame]) -> Batch:
    """Return some rows of a collection and its golden set, beside all rows of another one."""
    others = {
        table: rows.with_columns(pl.col(RULES[table].owner).replace(OTHER)) for table, rows in WHOLE.items()
    }
    return Batch(
        collections=(CORPUS, replace(CORPUS, collection_id="other")),
        golden_sets=(GOLD, replace(GOLD, golden_set_id="silver", collection_id="other")),
        frames={table: pl.concat([rows, others[table]]) for table, rows in first.items()},
    )


@pytest.fixture
def replaced(store: Store) -> Store:
    """A store of two collections in the same parts; tables of the first one have a row less since."""
    with store.write("import") as writer:
        writer.add(_beside(WHOLE))
    with store.write("import") as writer:
        writer.add(
            Batch(collections=(CORPUS,), golden_sets=(GOLD,), frames=LESS), replacing=["corpus", "gold"]
        )
    return store


@pytest.mark.parametrize("table", REPLACEABLE)
def test_no_reader_returns_replaced_rows(replaced: Store, table: str):
    snapshot, owners = replaced.read(), OWNERS[RULES[table].kind]
    rows = LESS[table].height + WHOLE[table].height
    assert snapshot._rows(table, owners).height == rows
    assert sum(snapshot._rows(table, [owner]).height for owner in owners) == rows
    with duckdb.connect() as db:
        db.execute(statements(snapshot, replaced.path))
        assert db.sql(f"FROM {table}").shape[0] == rows


@pytest.mark.parametrize(
    ("asked", "found"), [("q1", {"corpus": [], "other": ["q1"]}), ("q2", {"corpus": ["q2"], "other": ["q2"]})]
)
def test_ids_of_replaced_rows_are_not_found(replaced: Store, asked: str, found: Mapping[str, list[str]]):
    snapshot, owners = replaced.read(), OWNERS["collection"]
    assert {owner: snapshot.existing("queries", [owner], "query_id", [asked]) for owner in owners} == found
    assert snapshot.existing("queries", owners, "query_id", [asked], most=1) == [asked]
    assert sorted(snapshot.existing("queries", owners, "query_id")) == ["q1", "q2", "q3"]


@pytest.mark.slow
def test_sql_of_ones_own_counts_current_rows_only(replaced: Store):
    counted = " UNION ALL ".join(
        f"SELECT '{table}' AS t, count(*) AS n FROM {table}"  # noqa: S608 - own names
        for table in WHOLE
    )
    counts = dict(query(replaced, counted).iter_rows())
    assert counts == {table: LESS[table].height + WHOLE[table].height for table in WHOLE}


def test_equal_rows_are_recognised_beside_replaced_ones(replaced: Store):
    revision = replaced.revision()
    with replaced.write("import") as writer:
        writer.add(_beside(LESS))
    assert replaced.revision() == revision
    assert doctor.examine(replaced).sound
