"""JSON with values of other kinds than expected, anywhere: an error that a user can read, or sound rows."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from core.errors import ClqError
from core.importers import Import, Options, load
from core.store.rules import RULES
from core.tables import TABLES
from tests.importers.helpers import up, zipped
from tests.importers.test_context_grid import OTHER
from tests.importers.test_context_grid import RUN as GRID
from tests.importers.test_deepeval import RUN as CASES
from tests.importers.test_rag_gs import run as rag_gs
from tests.importers.test_ragas import SAMPLES
from tests.importers.test_ragged import READER, RETRIEVER

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 2**63, 10**400, "", " ", "1", "NaN", "\ud800",
    "a\0b", "=1+1", "<b>", "\u202e", [], {}, [None], [[]], {"a": 1}, [1, "a"], ["a", "a"], {"": ""},
)  # fmt: skip
TURNS = 30
FILES: dict[str, dict[str, str]] = {
    "ragas": {"r.json": json.dumps(SAMPLES)},
    "deepeval": {"run.json": json.dumps(CASES)},
    "context-grid": {"results.json": json.dumps({"runs": [GRID, OTHER]})},
    "rag-gs": rag_gs(),
    "ragged": {"bm25.jsonl": RETRIEVER, **READER},
}


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a JSON value."""
    if path:
        yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in within:
        yield from places(each, (*path, key))


def changed(text: str, source: random.Random) -> str:
    """JSON with one value replaced, removed or repeated."""
    value = json.loads(text)
    found = list(places(value))
    if not found:
        return json.dumps(copy.deepcopy(source.choice(ODD)))
    *way, last = source.choice(found)
    holder = value
    for key in way:
        holder = holder[key]
    odd, kind = copy.deepcopy(source.choice(ODD)), source.randrange(4)
    if kind == 0 and isinstance(holder, dict):
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    else:
        holder[last] = odd
    return json.dumps(value)


def damaged(text: str, source: random.Random) -> str:
    """A file with one of its JSON values changed: of one value, or of a line."""
    try:
        return changed(text, source)
    except json.JSONDecodeError:
        lines = text.splitlines() or ["{}"]
        place = source.randrange(len(lines))
        lines[place] = changed(lines[place], source)
        return "\n".join(lines)


def check(made: Import) -> None:
    """What the store would ask of the rows, and what goes into its catalogue."""
    for table, held in made.frames.items():
        rows = held.lazy().collect()
        assert rows.schema == TABLES[table]
        for column in RULES[table].required:
            assert not rows[column].null_count(), (table, column)
            assert not column.endswith("_id") or not (rows[column] == "").any(), (table, column)
        for key in RULES[table].unique:
            assert rows.select(pl.struct(key).n_unique()).item() == rows.height, (table, key)
        for column in {"value", "ms", "amount", "score"} & set(rows.columns):
            assert rows[column].drop_nulls().is_finite().all(), (table, column)
    for run in made.runs:
        json.dumps([run.label, dict(run.manifest), dict(run.stack.spec)], allow_nan=False).encode()


@pytest.mark.parametrize("form", FILES)
def test_odd_values(form):
    source = random.Random(f"clq odd {form}")  # noqa: S311
    outcomes = set()
    for _ in range(TURNS):
        files = dict(FILES[form])
        name = source.choice([each for each in files if files[each].strip()])
        files[name] = damaged(files[name], source)
        offered = up("x.zip", zipped(files, 0)) if len(files) > 1 else up(name, files[name])
        try:
            check(load([offered], Options(collection_id="c", format=form)))
            outcomes.add("taken")
        except ClqError as error:
            outcomes.add("refused" if error.found else "silent")
    assert outcomes == {"taken", "refused"}
