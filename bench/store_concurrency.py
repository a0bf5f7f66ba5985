"""One writer and four readers for twenty seconds: no failed read, no lost write, and how long each takes.

The peer keeps the same rows in a single DuckDB file that every operation opens and, when it is locked, tries
again for up to five seconds. Both sides hold a million ranking rows and 100,000 judgements and do the same.

A read opens the store afresh, lists the runs, and then three times of four shows one query's ranking of one
run and once grades a whole run (100,000 ranks) down to rank 10. A reader rests 0.1 s between reads: four
people who each move something eight times a second. The writer imports a run of 1,000 ranks and rests 0.2 s.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from core.records import Batch
from core.store import Store
from tests.store.material import GOLD, large

SECONDS = 20.0
READERS = 4
READ_PAUSE_S = 0.1
WRITE_PAUSE_S = 0.2
DEPTH = 10
RETRY_S = 5.0
RUNS = 10

Answer = tuple[int, int]
Operation = Callable[[Path, int], Answer]


def _batch(number: int) -> Batch:
    """What the writer imports: a run of 10 queries × 100 ranks."""
    return large(1, queries=10, prefix=f"new-{number}")


def _fill() -> Batch:
    many = large(RUNS)
    rows = many.frames["rankings"].lazy().filter(run_id="large-0").collect()
    judged = rows.select(
        pl.lit("gold").alias("golden_set_id"),
        "query_id",
        "passage_id",
        (pl.col("rank") % 5 + 1).cast(pl.Int8).alias("grade"),
        pl.lit(None, pl.Int16).alias("raw"),
        pl.lit(None, pl.String).alias("judge"),
    )
    return Batch(
        collections=many.collections,
        golden_sets=(GOLD,),
        runs=many.runs,
        frames={**many.frames, "judgements": judged},
    )


def read_store(path: Path, number: int) -> Answer:
    """List the runs, then show one query of one or grade one, as pages do."""
    snapshot = Store.open(path).read()
    runs = snapshot.runs()
    run_id = runs["run_id"][number % len(runs)]
    if number % 4:
        return len(runs), snapshot.rankings([run_id], query_id=_query(number)).height
    return len(runs), int((snapshot.graded([run_id], "gold", depth=DEPTH).grades > 0).sum())


def write_store(path: Path, number: int) -> Answer:
    """Import one run."""
    with Store.open(path).write("import") as writer:
        writer.add(_batch(number))
    return writer.revision, 0


def _query(number: int) -> str:
    return f"q{number % 10:04d}"


def fill_store(path: Path) -> None:
    """Make the store that both sides start from."""
    with Store.open(path).write("import") as writer:
        writer.add(_fill())


_PEER_QUERY = """
SELECT * FROM rankings WHERE run_id = ? AND query_id = ? ORDER BY run_id, stage, query_id, rank
"""
_PEER_GRADES = """
SELECT r.query_id, r.rank, coalesce(j.grade, 0) AS grade FROM rankings r
LEFT JOIN judgements j USING (query_id, passage_id) WHERE r.run_id = ? AND r.stage = 'final' AND r.rank <= ?
"""


def _retried(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    until = time.monotonic() + RETRY_S
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only)
        except duckdb.IOException:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def read_peer(path: Path, number: int) -> Answer:
    """The same question to a single file."""
    with _retried(path, read_only=True) as connection:
        runs = connection.execute("SELECT run_id, spec FROM runs ORDER BY run_id").fetchall()
        run_id = runs[number % len(runs)][0]
        if number % 4:
            return len(runs), connection.sql(_PEER_QUERY, params=[run_id, _query(number)]).pl().height
        grades = connection.execute(_PEER_GRADES, [run_id, DEPTH]).fetchnumpy()
    return len(runs), int((grades["grade"] > 0).sum())


def write_peer(path: Path, number: int) -> Answer:
    """The same import into a single file."""
    batch = _batch(number)
    with _retried(path, read_only=False) as connection:
        connection.execute("BEGIN")
        _insert_peer(connection, batch)
        connection.execute("COMMIT")
    return number, 0


def _insert_peer(connection: duckdb.DuckDBPyConnection, batch: Batch) -> None:
    for table, rows in batch.frames.items():
        connection.register("incoming", rows.lazy().collect())
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608
        connection.unregister("incoming")
    for run in batch.runs:
        connection.execute("INSERT INTO runs VALUES (?, ?)", [run.run_id, run.stack.label])


def fill_peer(path: Path) -> None:
    """The same start for a single file."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs (run_id VARCHAR, spec VARCHAR)")
        connection.execute(
            "CREATE TABLE rankings (run_id VARCHAR, query_id VARCHAR, stage VARCHAR, rank INTEGER,"
            " passage_id VARCHAR, score DOUBLE)"
        )
        connection.execute(
            "CREATE TABLE judgements (golden_set_id VARCHAR, query_id VARCHAR, passage_id VARCHAR,"
            " grade TINYINT, raw SMALLINT, judge VARCHAR)"
        )
        _insert_peer(connection, _fill())


@dataclass(frozen=True)
class Job:
    """What one process repeats: an operation on a path, resting `pause` seconds between two."""

    operation: Operation
    path: Path
    pause: float
    seed: int


def _work(job: Job, start: Any, out: Any) -> None:
    """Repeat a job until the time is up; report latencies in seconds and errors. Job 0 is the writer."""
    numbers = np.random.default_rng(job.seed).permutation(100_000)
    if job.seed:
        job.operation(job.path, 0)  # imports and the first opening are not what is measured
        job.operation(job.path, 1)
    start.wait()
    until = time.monotonic() + SECONDS
    taken: list[float] = []
    failed: list[str] = []
    while time.monotonic() < until:
        began = time.perf_counter()
        try:
            job.operation(job.path, int(numbers[len(taken)]) if job.seed else len(taken))
        except Exception as error:
            failed.append(repr(error))
        taken.append(time.perf_counter() - began)
        time.sleep(job.pause)
    out.put((job.seed, taken, failed))


def contend(read: Operation, write: Operation, path: Path) -> tuple[list[float], list[float], list[str]]:
    """Run one writer beside the readers.

    Returns:
        Latencies of reads and of writes in seconds, and the errors of both.
    """
    spawn = multiprocessing.get_context("spawn")
    start, out = spawn.Barrier(READERS + 1), spawn.Queue()
    jobs = [Job(write, path, WRITE_PAUSE_S, 0)] + [
        Job(read, path, READ_PAUSE_S, seed) for seed in range(1, READERS + 1)
    ]
    processes = [spawn.Process(target=_work, args=(job, start, out)) for job in jobs]
    for process in processes:
        process.start()
    told = [out.get(timeout=SECONDS + 120) for _ in processes]
    for process in processes:
        process.join()
    reads = [taken for seed, latencies, _ in told if seed for taken in latencies]
    writes = next(latencies for seed, latencies, _ in told if not seed)
    return reads, writes, [error for _, _, failed in told for error in failed]


def _lost_store(path: Path, writes: int) -> int:
    snapshot = Store.open(path).read()
    whole = [
        run_id
        for run_id in snapshot.runs()["run_id"].to_list()
        if run_id.startswith("new-") and snapshot.rankings([run_id]).height == 1_000
    ]
    return writes - len(whole)


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; ratio = peer / here (None where there is none).
    """
    with tempfile.TemporaryDirectory() as folder:
        store, file = Path(folder) / "store", Path(folder) / "peer.duckdb"
        fill_store(store)
        reads, writes, errors = contend(read_store, write_store, store)
        lost = _lost_store(store, len(writes))
        fill_peer(file)
        peer_reads, peer_writes, peer_errors = contend(read_peer, write_peer, file)
    peer = "one DuckDB file, opened per operation with retry"

    def row(name: str, value: float, peer_value: float, unit: str) -> dict[str, Any]:
        ratio = peer_value / value if value else None
        return {
            "name": f"store, 1 writer + {READERS} readers, {SECONDS:g} s: {name}",
            "value": value,
            "unit": unit,
            "peer": peer,
            "peer_value": peer_value,
            "ratio": ratio,
        }

    rows = [
        row(
            f"{what} p{level} of {len(both[0])}",
            *(1_000 * float(np.percentile(taken, level)) for taken in both),
            "ms",
        )
        for what, both in (("read", (reads, peer_reads)), ("write", (writes, peer_writes)))
        for level in (50, 95)
    ]
    rows.append(row("failed operations", len(errors), len(peer_errors), "count"))
    rows.append(row("lost writes", lost, 0, "count"))
    return rows


if __name__ == "__main__":
    for entry in run():
        print(entry)
