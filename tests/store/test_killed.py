"""`kill -9` in the middle of an import of a million rows leaves the store as it was, and writable."""

from __future__ import annotations

import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.records import Batch
from core.store import Store
from core.store.doctor import examine
from tests import warm
from tests.store.material import CORPUS, large, rankings, run

_TRIES = 10


def _import(path: Path, rows: Path, prefix: str, begun: Path) -> None:
    frame = pl.scan_parquet(rows).with_columns(run_id=prefix + pl.col("run_id"))
    runs = tuple(run(f"{prefix}large-{number}") for number in range(10))
    with Store.open(path).write("import a million") as writer:
        begun.touch()
        writer.add(Batch(collections=(CORPUS,), runs=runs, frames={"rankings": frame}))


def _start(store: Store, rows: Path, prefix: str) -> ForkServerProcess:
    """Begin an import; returns as it writes."""
    begun = rows.with_name(f"begun-{prefix}")
    process = warm.process(_import, store.path, rows, prefix, begun)
    while not begun.exists():
        assert process.is_alive()
        time.sleep(0.001)
    return process


def _state(store: Store) -> tuple[object, ...]:
    snapshot = store.read()
    return (
        store.revision(),
        snapshot.runs().rows(),
        snapshot.collections().rows(),
        snapshot.rankings(["a", "b"]).rows(),
        (store.path / "CURRENT").read_text(),
        *(path.read_bytes() for path in sorted(store.path.glob("parts/00000001-*/*"))),
    )


@pytest.mark.slow
def test_killed_imports(filled: Store, tmp_path: Path) -> None:
    rows = tmp_path / "million.parquet"
    frame = large(10).frames["rankings"]
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 1_000_000
    frame.write_parquet(rows)
    scratch = Store.open(tmp_path / "scratch")
    process = _start(scratch, rows, "")
    timed = time.monotonic()
    process.join()
    whole = time.monotonic() - timed
    assert scratch.read().runs().height == 10

    shares = np.random.default_rng(2026).permutation(np.linspace(0.02, 0.9, _TRIES))
    killed = torn = 0
    while killed < _TRIES:
        before = _state(filled)
        process = _start(filled, rows, f"{killed}-{len(filled.read().runs())}-")
        time.sleep(shares[killed] * whole)
        process.kill()
        process.join()
        if filled.revision() != before[0]:  # it was faster than the one that was timed: all of it is there
            whole *= 0.8
            assert filled.read().runs().height == len(before[1]) + 10
            continue
        assert process.exitcode == -signal.SIGKILL
        assert _state(filled) == before
        assert examine(filled).sound
        torn += bool(list(filled.path.glob("*/.0*")))
        after = f"after-{killed}"
        with filled.write("small", wait_s=2) as writer:
            writer.add(Batch(runs=(run(after),), frames={"rankings": rankings(after, {"q": ["p"]})}))
        assert filled.read().rankings([after]).height == 1
        assert not list(filled.path.glob("*/.0*"))
        killed += 1
    assert torn == _TRIES, "a kill that leaves nothing behind came too early or too late to test anything"
