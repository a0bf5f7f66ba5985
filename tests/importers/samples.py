"""One small file of each tool's format, as its tests make them, for the tests of damaged input."""

from __future__ import annotations

import json

import cbor2
import lz4.frame

from tests.importers import (
    test_annbench,
    test_excel,
    test_mteb,
    test_optuna,
    test_rankllm,
    test_ranx,
    test_regressions,
    test_traces,
    test_vectordbbench,
)

TOOLS = {
    "ranx": test_ranx.DATA,
    "ranx-lz4": lz4.frame.compress(lz4.frame.compress(cbor2.dumps(test_ranx.RUN))),
    "ranx-cbor": cbor2.dumps(test_ranx.RUN),
    "ranx-qrels": json.dumps(test_ranx.QRELS).encode(),
    "mteb": json.dumps(test_mteb.NEW).encode(),
    "mteb-old": json.dumps(test_mteb.OLD).encode(),
    "vectordbbench": test_vectordbbench.file(test_vectordbbench.entry()).encode(),
    "optuna": test_optuna.storage(),
    "optuna-csv": test_optuna.table().encode(),
    "excel": test_excel.book(),
    "rank-llm": json.dumps(test_rankllm.RESULTS).encode(),
    "regressions": test_regressions.PAGE.encode(),
    "langsmith": test_traces.as_lines(test_traces.LANGSMITH).encode(),
    "openinference": json.dumps(test_traces.PHOENIX).encode(),
    "openinference-csv": test_traces.as_csv(test_traces.PHOENIX, repr).encode(),
    "langfuse": test_traces.as_csv(test_traces.LANGFUSE).encode(),
    "ann-benchmarks": test_annbench.result(),
}
