"""Damaged input of every format: a clean import or an error that a user can read, nothing else.

`CLQ_FUZZ_CASES` makes more of it, `CLQ_FUZZ_SEED` other cases.
"""

from __future__ import annotations

import pytest

from core.analysis.export import batch_of
from core.errors import ClqError
from core.importers import FORMATS, Options, load
from core.records import Batch
from core.store import Store
from core.work.imports.imports import store_import
from tests.importers.fuzzing import CASES, OPTIONS, REAL, chance, mutated, offered, tried
from tests.importers.helpers import SHARED, needs, refusal, up, zipped
from tests.importers.odd_files import odd_file
from tests.importers.samples import SAMPLES

EACH = CASES // 3 // len(SAMPLES) + 1


def test_every_format_has_a_sample():
    assert {form for form, _ in SAMPLES.values()} == {each.name for each in FORMATS}


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_bytes(name):
    form, data = SAMPLES[name]
    assert {each.format for each in load([up("x", data)], OPTIONS).detected} == {form}
    source = chance(name)
    for _ in range(EACH):
        tried(mutated(data, source))


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_that_no_format_may_take(name):
    """Half of a file whose end matters; bytes that are no text in a file of text."""
    _, data = SAMPLES[name]
    half = len(data) // 2
    text = data.isascii() and b"\0" not in data
    broken = data[:half] + b"\xff\0" + data[half:] if text else data[:half]
    assert "broken" in refusal(up("broken", broken), split="test")
    if data[:1] in b"{[" and b"\n" not in data.strip():
        assert "broken" in refusal(up("broken", data[:half]), split="test")


@pytest.mark.parametrize("form", ["trec-run", "trec-qrels", "table", "beir", "clq"])
def test_every_format_forced_on_every_sample(form):
    for _, data in SAMPLES.values():
        tried(data, Options(format=form, limits=OPTIONS.limits))


def test_noise():
    source = chance("noise")
    for length in (1, 2, 3, 10, 100, 5000):
        for _ in range(5):
            tried(source.randbytes(length))


def test_damaged_parquet_in_a_damaged_zip():
    data = zipped({"t.parquet": SAMPLES["parquet"][1]}, 0)
    source = chance("zip")
    for _ in range(EACH):
        tried(mutated(data, source))


@pytest.mark.slow
@needs(SHARED / "peer_outputs")
def test_damaged_real_files():
    source = chance("real")
    outcomes = set()
    for number in range(CASES // 3):
        data = source.choice(REAL).read_bytes()
        outcomes.add(tried((mutated if number % 2 else odd_file)(data, source)))
    assert outcomes == {"refused", "taken"}


def counted(batch: Batch) -> dict[str, int]:
    """Things and rows of a batch, as an import announces them."""
    few = {"collections": batch.collections, "golden sets": batch.golden_sets, "runs": batch.runs}
    counts = {name: len(things) for name, things in few.items()}
    counts |= {table: held.lazy().collect().height for table, held in batch.frames.items()}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.slow
def test_what_is_taken_of_damaged_files_is_written_whole_or_not_at_all(tmp_path):
    """All that an import announces is in the store afterwards; what the store refuses leaves nothing."""
    source = chance("store")
    written = 0
    for number, name in enumerate(source.choices(list(SAMPLES), k=CASES // 30)):
        made = offered(odd_file(SAMPLES[name][1], source), name=f"x{number}")
        if made is None:
            continue
        store = Store.open(tmp_path / str(number))
        try:
            fresh = store_import(store, made, name).fresh
        except ClqError:
            assert store.revision() == 0
            assert not list((store.path / "parts").iterdir())
            continue
        written += 1
        assert (fresh, store.revision()) == (True, 1)
        assert counted(batch_of(store.read())) == made.taken
    assert written
