"""Damaged input of every format: a clean import or an error that a user can read, nothing else."""

from __future__ import annotations

import gzip
import io
import json
import os
import random

import polars as pl
import pytest

from core.errors import ClqError
from core.importers import Limits, Options, export, load, preview
from core.store import Store
from tests.importers.helpers import SHARED, needs, parquet, up, zipped
from tests.importers.samples import TOOLS
from tests.importers.test_autorag import project as autorag
from tests.importers.test_beir import FILES
from tests.importers.test_context_grid import RUN as GRID
from tests.importers.test_deepeval import RUN as CASES_RUN
from tests.importers.test_open_rag_eval import PLACES
from tests.importers.test_own import everything
from tests.importers.test_rag_gs import run as rag_gs
from tests.importers.test_ragas import FORMS as RAGAS
from tests.importers.test_ragged import READER, RETRIEVER
from tests.importers.test_retrieval_response import FILES as RESPONSES
from tests.importers.test_table import AGGREGATED, CSV, FULL

RUN = "".join(
    f"q{query} Q0 doc{rank} {rank} {10 - rank / 7} bm25\n" for query in range(5) for rank in range(1, 8)
)
FRAME = pl.DataFrame(
    {"qid": ["q1", "q1", "q2"] * 5, "did": [f"d{n}" for n in range(15)], "score": [n / 3 for n in range(15)]}
)
SAMPLES = {
    "trec-run": RUN.encode(),
    "trec-qrels": b"q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n",
    "gz": gzip.compress(RUN.encode()),
    "csv": CSV.encode(),
    "csv-full": FULL.encode(),
    "csv-aggregated": AGGREGATED.encode(),
    "jsonl": FRAME.write_ndjson().encode(),
    "parquet": parquet(FRAME),
    "beir-corpus": FILES["corpus.jsonl"].encode(),
    "beir-zip": zipped(FILES),
    "retrieval-response": RESPONSES["graded.jsonl"].encode(),
    "autorag": zipped(autorag(), 0),
    "ragas-csv": str(RAGAS["r.csv"]).encode(),
    "ragas-json": str(RAGAS["r.json"]).encode(),
    "deepeval": json.dumps(CASES_RUN).encode(),
    "rag-gs": zipped(rag_gs(), 0),
    "ragged": zipped({"bm25.jsonl": RETRIEVER, **READER}, 0),
    "context-grid": json.dumps({"runs": [GRID]}).encode(),
    "open-rag-eval": PLACES.encode(),
    **TOOLS,
}
CASES = int(os.environ.get("CLQ_FUZZ_CASES", "400"))
"""Damaged files in all; half of them are damaged samples, half damaged real files."""
EACH = CASES // 2 // len(SAMPLES) + 1
REAL = sorted(
    path
    for folder in ("peer_outputs", "runs", "collections/cranfield/qrels")
    for path in (SHARED / folder).rglob("*")
    if path.is_file() and 0 < path.stat().st_size < 1 << 15
)
OPTIONS = Options(limits=Limits(total_bytes=1 << 24, grace_bytes=1 << 20), split="test")


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


def tried(data: bytes, options: Options = OPTIONS) -> str:
    """Import and look; anything but an import or a `ClqError` fails the test by itself."""
    preview([up("x", data)], options)
    try:
        made = load([up("x", data)], options)
    except ClqError as error:
        return "refused" if error.found else "silent"
    assert made.taken
    return "taken"


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_bytes(name):
    source = random.Random(f"clq {name}")  # noqa: S311
    assert tried(SAMPLES[name]) == "taken"
    for _ in range(EACH):
        tried(mutated(SAMPLES[name], source))


def test_damaged_exports(tmp_path):
    export(everything(), tmp_path / "x.zip")
    data = (tmp_path / "x.zip").read_bytes()
    source = random.Random("clq own")  # noqa: S311
    assert "refused" in [tried(mutated(data, source)) for _ in range(EACH)]


@pytest.mark.parametrize("form", ["trec-run", "trec-qrels", "table", "beir", "clq"])
def test_every_format_forced_on_every_sample(form):
    for data in SAMPLES.values():
        tried(data, Options(format=form, limits=OPTIONS.limits))


def test_noise():
    source = random.Random("clq noise")  # noqa: S311
    for length in (1, 2, 3, 10, 100, 5000):
        for _ in range(5):
            tried(source.randbytes(length))


def test_damaged_parquet_in_a_damaged_zip():
    buffer = io.BytesIO(zipped({"t.parquet": SAMPLES["parquet"]}, 0))
    source = random.Random("clq zip")  # noqa: S311
    for _ in range(EACH):
        tried(mutated(buffer.getvalue(), source))


@needs(SHARED / "peer_outputs")
def test_damaged_real_files():
    source = random.Random("clq real")  # noqa: S311
    outcomes = set()
    for _ in range(CASES // 2):
        data = source.choice(REAL).read_bytes()
        outcomes.add(tried(mutated(data, source)))
    assert outcomes == {"refused", "taken"}


def test_what_is_taken_of_damaged_files_is_written_whole_or_not_at_all(tmp_path):
    """Values that an importer lets through and the store does not are refused with nothing written."""
    source = random.Random("clq store")  # noqa: S311
    store = Store(tmp_path / "store")
    for number in range(CASES // 40):
        data = mutated(source.choice([*SAMPLES.values()]), source)
        try:
            made = load([up(f"x{number}", data)], OPTIONS)
        except ClqError:
            continue
        before = store.revision()
        try:
            with store.write("import") as writer:
                writer.add(made.batch)
        except ClqError:
            assert store.revision() == before
        parts = {path.name for path in (store.path / "parts").iterdir()}
        assert not any(name.startswith(".") for name in parts)
