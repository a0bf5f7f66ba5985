"""What the tests of damaged input share: how many, with which seed, and what an import must be."""

from __future__ import annotations

import json
import os
import random

import polars as pl

from core.errors import ClqError
from core.importers import Import, Options, ReadLimits, load, preview
from core.importers.formats.own import _run, _run_row
from core.store.rules import RULES
from core.tables import TABLES
from tests.importers.formats.test_judged_spans import at_hand
from tests.importers.helpers import SHARED, up

CASES = int(os.environ.get("CLQ_FUZZ_CASES", "450"))
"""Damaged files in all: a third each damaged samples, samples with odd values, and real files."""
SEED = os.environ.get("CLQ_FUZZ_SEED", "clq")
OPTIONS = Options(
    limits=ReadLimits(total_bytes=1 << 24, grace_bytes=1 << 20),
    split="test",
    known_collections=frozenset({"held"}),
    documents=at_hand,
)
REAL = sorted(
    path
    for folder in ("peer_outputs", "runs", "collections/cranfield/qrels")
    for path in (SHARED / folder).rglob("*")
    if path.is_file() and 0 < path.stat().st_size < 1 << 15 and path.suffix not in ("", ".md", ".readme")
)


def chance(name: str) -> random.Random:
    """Random numbers that are the same for the same seed and name."""
    return random.Random(f"{SEED} {name}")  # noqa: S311


def mutated(data: bytes, source: random.Random) -> bytes:
    """The bytes with one to four random damages."""
    made = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(made) + 1)
        length = source.choice([1, 1, 2, 8, 64])
        kind = source.randrange(6)
        if kind == 0:
            made[at : at + length] = source.randbytes(length)
        elif kind == 1:
            del made[at : at + length]
        elif kind == 2:
            made[at:at] = made[at : at + length]
        elif kind == 3:
            made[at:at] = source.choice(
                [b"\0", b"\n", b'"', b"\t", b",", b"{", b"NaN", b"-1", b"\xff", b"1e999", b"\r"]
            )
        elif kind == 4:
            del made[at:]
        elif made:
            made[min(at, len(made) - 1)] ^= 1 << source.randrange(8)
    return bytes(made)


def offered(data: bytes, options: Options = OPTIONS, name: str = "x") -> Import | None:
    """Look and import; None if it was refused. Anything but that fails the test by itself."""
    seen = preview([up(name, data)], options)
    assert seen
    try:
        made = load([up(name, data)], options)
    except ClqError as error:
        return _explained(error)
    assert made.taken
    return made


def _explained(error: ClqError) -> None:
    assert error.found
    assert "panicked" not in str(error)


def tried(data: bytes, options: Options = OPTIONS) -> str:
    """What becomes of a file; what is taken of it is sound."""
    made = offered(data, options)
    if made is None:
        return "refused"
    if {each.format for each in made.detected} != {"clq"}:  # the store checks what it once exported
        check(made)
    return "taken"


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
        written = json.dumps(_run_row(run), allow_nan=False)
        written.encode()
        assert _run(json.loads(written), "runs.jsonl") == run  # what pages read of it is of its kind
        assert run.stack.label
