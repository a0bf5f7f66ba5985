"""`kill -9` in the middle of an import of a million rows leaves the store as it was, and writable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.records import Batch
from core.store import Store
from core.store.upkeep.doctor import examine
from tests.store.material import large, rankings, run

_IMPORT = """
import sys
from pathlib import Path
import polars as pl
from core.records import Batch
from core.store import Store
from tests.store.material import CORPUS, run

path, rows, prefix = sys.argv[1:]
frame = pl.scan_parquet(rows).with_columns(run_id=prefix + pl.col("run_id"))
runs = tuple(run(f"{prefix}large-{number}") for number in range(10))
with Store.open(Path(path)).write("import a million") as writer:
    print("writing", flush=True)
    writer.add(Batch(collections=(CORPUS,), runs=runs, frames={"rankings": frame}))
"""
_TRIES = 10


def _start(store: Store, rows: Path, prefix: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _IMPORT, str(store.path), str(rows), prefix],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
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
    process.communicate()
    whole = time.monotonic() - timed
    assert scratch.read().runs().height == 10

    shares = np.random.default_rng(2026).permutation(np.linspace(0.02, 0.9, _TRIES))
    killed = torn = 0
    while killed < _TRIES:
        before = _state(filled)
        process = _start(filled, rows, f"{killed}-{len(filled.read().runs())}-")
        time.sleep(shares[killed] * whole)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        if filled.revision() != before[0]:  # it was faster than the one that was timed: all of it is there
            whole *= 0.8
            assert filled.read().runs().height == len(before[1]) + 10
            continue
        assert process.returncode == -signal.SIGKILL
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
