"""What comparing every byte of a part with its checksum adds to the first reading of a process.

Ten runs of 100,000 ranks each: all their rows, and their grades. Processor seconds of all threads, the least
of several tries, each as by a process that has read nothing yet; the peer trusts the files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.cpu import faster, least_cpu
from core.store import Snapshot, Store
from core.store.read import graded
from core.store.seals import Sealed
from tests.store.material import GOLD, judgements, large

RUNS = 10


def first(snapshot: Snapshot, read: Callable[[Snapshot], object], *, trusting: bool) -> Callable[[], object]:
    """A first reading."""

    def action() -> object:
        graded.forget()
        if not trusting:
            return read(snapshot)
        with patch.object(Sealed, "problem", lambda _: ""):
            return read(snapshot)

    return action


def run() -> list[dict[str, Any]]:
    """Measure and compare.

    Returns:
        Rows of {name, value, unit, peer, peer_value, ratio}; processor seconds, ratio = peer / here.
    """
    with tempfile.TemporaryDirectory() as name:
        store, batch = Store.open(Path(name) / "store"), large(RUNS)
        grades = judgements({f"q{number:04d}": {"passage-000001": 3} for number in range(1_000)})
        with store.write("import") as writer:
            writer.add(replace(batch, golden_sets=(GOLD,), frames={**batch.frames, "judgements": grades}))
        snapshot, ids = store.read(), [each.run_id for each in batch.runs]
        rows = []
        for what, read in (
            ("rows", lambda found: found.rankings(ids)),
            ("grades", lambda found: found.graded(ids, GOLD.golden_set_id)),
        ):
            taken = least_cpu({str(each): first(snapshot, read, trusting=each) for each in (False, True)})
            label = f"first reading of {RUNS * 100_000:,} {what}, verified"
            rows.append(faster(label, taken["False"], "trusting the files", taken["True"]))
    return rows
