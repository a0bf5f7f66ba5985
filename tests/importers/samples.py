"""One small sound file of each format, as its tests make them, for the tests of damaged input.

A format that is registered without a line here fails `test_fuzz.py`.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import cbor2
import lz4.frame
import polars as pl

from core.importers import export
from core.importers.formats.published import DEFAULT_PATH
from tests.importers.formats import (
    test_annbench,
    test_autorag,
    test_beir,
    test_context_grid,
    test_deepeval,
    test_excel,
    test_judged_spans,
    test_mteb,
    test_open_rag_eval,
    test_optuna,
    test_own,
    test_rag_gs,
    test_ragas,
    test_ragged,
    test_rankllm,
    test_rankllm_eval,
    test_ranx,
    test_regressions,
    test_retrieval_response,
    test_table,
    test_traces,
    test_vectordbbench,
)
from tests.importers.helpers import parquet, zipped

RUN = "".join(
    f"q{query} Q0 doc{rank} {rank} {10 - rank / 7} bm25\n" for query in range(5) for rank in range(1, 8)
).encode()
FRAME = pl.DataFrame(
    {"qid": ["q1", "q1", "q2"] * 5, "did": [f"d{n}" for n in range(15)], "score": [n / 3 for n in range(15)]}
)


def own() -> bytes:
    """An export with every kind of record and a row in every table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        export(test_own.everything(), path)
        return path.read_bytes()


SAMPLES: dict[str, tuple[str, bytes]] = {
    "own": ("clq", own()),
    "published": ("published", DEFAULT_PATH.read_bytes()),
    "trec-run": ("trec-run", RUN),
    "trec-qrels": ("trec-qrels", b"q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"),
    "gz": ("trec-run", gzip.compress(RUN)),
    "csv": ("table", test_table.CSV.encode()),
    "csv-full": ("table", test_table.FULL.encode()),
    "csv-aggregated": ("table", test_table.AGGREGATED.encode()),
    "jsonl": ("table", FRAME.write_ndjson().encode()),
    "parquet": ("table", parquet(FRAME)),
    "excel": ("excel", test_excel.book()),
    "beir-corpus": ("beir", test_beir.FILES["corpus.jsonl"].encode()),
    "beir-zip": ("beir", zipped(test_beir.FILES)),
    "judged-spans": ("judged-spans", test_judged_spans.CSV.encode()),
    "retrieval-response": (
        "retrieval-response",
        test_retrieval_response.FILES["graded.jsonl"].encode(),
    ),
    "autorag": ("autorag", zipped(test_autorag.project(), 0)),
    "ragas-csv": ("ragas", str(test_ragas.FORMS["r.csv"]).encode()),
    "ragas-json": ("ragas", str(test_ragas.FORMS["r.json"]).encode()),
    "deepeval": ("deepeval", json.dumps(test_deepeval.RUN).encode()),
    "rag-gs": ("rag-gs", zipped(test_rag_gs.run(), 0)),
    "ragged": ("ragged", zipped({"bm25.jsonl": test_ragged.RETRIEVER, **test_ragged.READER}, 0)),
    "ragged-gold": ("ragged", zipped({"bm25.jsonl": test_ragged.RETRIEVER, **test_ragged.GOLD}, 0)),
    "ragged-evaluation": ("ragged", test_ragged.EVALUATION.encode()),
    "context-grid": (
        "context-grid",
        json.dumps({"runs": [test_context_grid.RUN, test_context_grid.OTHER]}).encode(),
    ),
    "open-rag-eval": ("open-rag-eval", test_open_rag_eval.PLACES.encode()),
    "ranx": ("ranx-run", test_ranx.DATA),
    "ranx-lz4": ("ranx-run", lz4.frame.compress(lz4.frame.compress(cbor2.dumps(test_ranx.RUN)))),
    "ranx-cbor": ("ranx-run", cbor2.dumps(test_ranx.RUN)),
    "ranx-qrels": ("ranx-qrels", json.dumps(test_ranx.QRELS).encode()),
    "mteb": ("mteb", json.dumps(test_mteb.NEW).encode()),
    "mteb-old": ("mteb", json.dumps(test_mteb.OLD).encode()),
    "mteb-bare": ("mteb", json.dumps(test_mteb.BARE).encode()),
    "vectordbbench": ("vectordbbench", test_vectordbbench.file(test_vectordbbench.entry()).encode()),
    "optuna": ("optuna", test_optuna.storage()),
    "optuna-csv": ("optuna-csv", test_optuna.table().encode()),
    "rank-llm": ("rank-llm", json.dumps(test_rankllm.RESULTS).encode()),
    "rank-llm-results": ("rank-llm-results", test_rankllm_eval.jsonl(test_rankllm_eval.LINES).encode()),
    "rank-llm-metrics": ("rank-llm-results", json.dumps(test_rankllm_eval.OBJECTS).encode()),
    "regressions": ("regressions", test_regressions.PAGE.encode()),
    "langsmith": ("langsmith", test_traces.as_lines(test_traces.LANGSMITH).encode()),
    "openinference": ("openinference", json.dumps(test_traces.PHOENIX).encode()),
    "openinference-csv": ("openinference", test_traces.as_csv(test_traces.PHOENIX, repr).encode()),
    "langfuse": ("langfuse", test_traces.as_csv(test_traces.LANGFUSE).encode()),
    "ann-benchmarks": ("ann-benchmarks", test_annbench.result()),
}
"""Name → the format that it is read as, and the file."""
