"""Frames come back as they were given, whatever is in them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.answers import MODES
from core.filters import Kind
from core.records import Basis, Batch
from core.store import Store
from core.store.rules import RULES
from core.tables import TABLES
from tests.store.material import CORPUS, GOLD, run

pytestmark = pytest.mark.slow

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_ID = _TEXT.filter(bool)
_COUNT = st.integers(1, 2**15 - 1)
_AMOUNT = st.floats(0, 1e12)
_OWNERS = {"collection": ["corpus"], "golden_set": ["gold"], "run": ["a", "b"]}
_SPECIAL = {
    "tags": st.none() | st.lists(_TEXT, max_size=3),
    "grade": st.integers(1, 5),
    "raw": st.none() | st.integers(-(2**15), 2**15 - 1),
    "score": st.none() | st.floats(),
    "rank": _COUNT,
    "repeat": _COUNT,
    "place": st.none() | _COUNT,
    "nugget": st.integers(0, 63),
    "vital": st.booleans(),
    "support": st.none() | st.floats(0, 1),
    "ms": _AMOUNT,
    "amount": _AMOUNT,
    "basis": st.sampled_from(list(Basis)).map(lambda basis: basis.value),
    "value": st.floats(allow_nan=False, allow_infinity=False),
    "tokens": st.none() | _COUNT,
    "k": st.none() | _COUNT,
    "n": st.none() | _COUNT,
    "start_char": st.integers(0, 2**40),
    "end_char": st.integers(2**40 + 1, 2**62),
    "low": st.none() | st.floats(),
    "high": st.none() | st.floats(),
    "seconds": st.none() | _AMOUNT,
    "usd": st.none() | _AMOUNT,
    "input_tokens": st.none() | _COUNT,
    "output_tokens": st.none() | _COUNT,
    "exposures": st.none() | _COUNT,
    "locks": st.none() | _COUNT,
    "contradictions": st.none() | _COUNT,
    "information": st.none() | _AMOUNT,
    "temperature": st.none() | _AMOUNT,
    "mode": st.none() | st.sampled_from(MODES),
    "pass": st.none() | _COUNT,
    "position": st.integers(0, 2**15 - 1),
    "truncated": st.none() | st.booleans(),
    "first_token_ms": st.none() | _AMOUNT,
}
_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_OF_TABLE = {
    ("answers", "ms"): st.none() | _AMOUNT,
    ("diagnostics", "dim"): st.none() | _COUNT,
    ("diagnostics", "run"): st.none() | _COUNT,
    ("rankings", "stage"): st.sampled_from(["pool", "final"]),
    ("gradings", "grade"): st.none() | st.integers(1, 5),
    ("orders", "score"): _FINITE,
    ("fields", "permission"): st.booleans(),
    ("fields", "kind"): st.none() | st.sampled_from(list(Kind)),
    ("criteria", "weight"): _FINITE,
    ("ratings", "rating"): _FINITE,
}


def _cell(table: str, column: str) -> st.SearchStrategy[object]:
    rules = RULES[table]
    if column == rules.owner:
        return st.sampled_from(_OWNERS[rules.kind])
    if (special := _OF_TABLE.get((table, column), _SPECIAL.get(column))) is not None:
        return special
    return (_ID if column.endswith("_id") else _TEXT) if column in rules.required else st.none() | _TEXT


@st.composite
def _frames(draw: st.DrawFn, table: str) -> pl.DataFrame:
    row = st.fixed_dictionaries({column: _cell(table, column) for column in TABLES[table]})
    keys = [lambda row, names=names: tuple(row[name] for name in names) for names in RULES[table].unique]
    rows = draw(st.lists(row, min_size=1, max_size=12, unique_by=tuple(keys) or None))
    return pl.DataFrame(rows, schema=TABLES[table], orient="row")


_READ = {
    "queries": lambda snapshot: snapshot.queries("corpus"),
    "passages": lambda snapshot: snapshot.passages("corpus"),
    "judgements": lambda snapshot: snapshot.judgements("gold"),
    "rankings": lambda snapshot: snapshot.rankings(["a", "b"]),
    "timings": lambda snapshot: snapshot.timings(["a", "b"]),
    "usage": lambda snapshot: snapshot.usage(["a", "b"]),
    "aggregates": lambda snapshot: snapshot.aggregates(["a", "b"]),
    "signals": lambda snapshot: snapshot.signals(["a", "b"]),
    "answers": lambda snapshot: snapshot.answers(["a", "b"]),
    "answer_scores": lambda snapshot: snapshot.answer_scores(["a", "b"]),
    "nuggets": lambda snapshot: snapshot.nuggets("gold"),
    "passage_metadata": lambda snapshot: snapshot.passage_metadata("corpus"),
    "query_filters": lambda snapshot: snapshot.query_filters("corpus"),
    "fields": lambda snapshot: snapshot.fields("corpus"),
    "clusters": lambda snapshot: snapshot.clusters("corpus"),
    "gold_answers": lambda snapshot: snapshot.gold_answers("corpus"),
    "chunks": lambda snapshot: snapshot.chunks("corpus"),
    "spans": lambda snapshot: snapshot.spans("gold"),
    "gradings": lambda snapshot: snapshot.gradings("gold"),
    "diagnostics": lambda snapshot: snapshot.diagnostics(["corpus"]),
    "orders": lambda snapshot: snapshot.orders("gold"),
    "criteria": lambda snapshot: snapshot.criteria(["a", "b"]),
    "ratings": lambda snapshot: snapshot.ratings(["a", "b"]),
}


@pytest.mark.parametrize("table", list(TABLES))
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_frames_come_back(table: str, data: st.DataObject) -> None:
    rows = data.draw(_frames(table))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store")
        batch = Batch(
            collections=(CORPUS,), golden_sets=(GOLD,), runs=(run("a"), run("b")), frames={table: rows}
        )
        for _ in range(2):  # the second time nothing is new, which compares what was written
            with store.write("import") as writer:
                writer.add(batch)
        assert store.revision() == 1
        read = _READ[table](store.read())
        assert read.schema == TABLES[table]
        assert sorted(map(repr, read.rows())) == sorted(map(repr, rows.rows()))
