"""Single flipped bits in every kind of file of a store, and what reading it and examining it then say.

Each flip happens to a copy of the store. A process of its own, which may crash, lets the doctor examine it
and reads all that it holds; what the doctor advises must bring everything back.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from hashlib import blake2b
from pathlib import Path

import numpy as np

from core.errors import StoreError
from core.records import Batch
from core.store import Store, doctor, upkeep
from core.store.doctor import Level
from core.tables import TABLES
from tests import warm
from tests.store.material import run, small


def make(folder: Path) -> None:
    """A store with rows in every table and three catalogues, and its backup."""
    store = Store.open(folder / "store")
    with store.write("import", "small") as writer:
        writer.add(small())
    for name in ("c", "d"):
        with store.write("import", name) as writer:
            writer.add(Batch(runs=(run(name),)))
    upkeep.backup(store, folder / "backup")


def kinds(store: Path) -> dict[str, list[Path]]:
    """Files by what they are: the pointer, the current catalogue, others, parts by table, codes."""
    current = (store / "CURRENT").read_text().strip()
    found: dict[str, list[Path]] = {"CURRENT": [store / "CURRENT"]}
    for path in sorted(store.glob("catalogue/*")):
        found.setdefault("catalogue" if path.name == current else "older catalogue", []).append(path)
    for path in sorted(store.glob("parts/*/*")):
        found.setdefault(path.name, []).append(path)
    return found


def numbers(store: Store) -> str:
    """A digest of every record, every row and every grade of a store."""
    snapshot = store.read()
    runs, digest = snapshot.runs()["run_id"].to_list(), blake2b(digest_size=16)
    owners = {"golden_set_id": ["gold"], "collection_id": ["corpus"], "run_id": runs}
    graded = snapshot.graded(runs, "gold")
    sources = snapshot.sources(runs, "gold", depth=3)
    arrays = (graded.grades, graded.pool_counts, graded.unjudged_queries, sources.codes, sources.facets)
    for frame in (snapshot.collections(), snapshot.golden_sets(), snapshot.runs(), snapshot.stacks()):
        digest.update(repr(frame.rows()).encode())
    for table, columns in TABLES.items():
        ids = next(owners[name] for name in owners if name in columns)
        read = getattr(snapshot, table)
        asked = ids if "run_id" in columns or table == "diagnostics" else ids[0]
        digest.update(repr(read(asked).rows()).encode())
    for array in (*arrays, np.array(graded.gains)):
        digest.update(array.tobytes())
    return digest.hexdigest()


def child(store: Path, told: Path) -> None:
    """Examine and read a store, and write down what was seen."""
    report = doctor.examine(Store.open(store))
    try:
        read = numbers(Store.open(store))
    except StoreError as error:
        read = f"refused: {error}"
    findings = [finding.found for finding in report.findings if finding.level is not Level.NOTE]
    told.write_text(json.dumps({"read": read, "findings": findings, "sound": report.sound}))


def mended(folder: Path) -> str:
    """The numbers after the advice of the doctor was followed."""
    store = Store.open(folder / "store")
    if not doctor.examine(store).sound:
        try:
            upkeep.repair(store)
        finally:
            upkeep.restore(store, folder / "backup", back=True)
    return numbers(store)


def repeat(flips: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Flip bits, one at a time.

    Returns:
        What was seen ("refused" or "the same numbers") by kind of file, and what was wrong.
    """
    draw = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        whole, folder, told = Path(name) / "whole", Path(name) / "copy", Path(name) / "told"
        make(whole)
        right = numbers(Store.open(whole / "store"))
        for number in range(flips):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            files = kinds(folder / "store")
            kind = list(files)[number % len(files)]
            path = files[kind][int(draw.integers(len(files[kind])))]
            data = bytearray(path.read_bytes())
            at, bit = int(draw.integers(len(data))), int(draw.integers(8))
            data[at] ^= 1 << bit
            path.write_bytes(data)
            told.unlink(missing_ok=True)
            process = warm.process(child, folder / "store", told)
            process.join()
            where = f"{kind}, byte {at} of {len(data)}, bit {bit}"
            if process.exitcode:
                wrong.append(f"{where}: the process ended with {process.exitcode}")
                continue
            said = json.loads(told.read_text())
            refused = said["read"].startswith("refused")
            seen[f"{kind}: {'refused' if refused else 'the same numbers'}"] += 1
            if not refused and said["read"] != right:
                wrong.append(f"{where}: other numbers")
            if not said["findings"]:
                wrong.append(f"{where}: the doctor found nothing")
            if refused and said["sound"]:
                wrong.append(f"{where}: refused, and the doctor finds it sound")
            if mended(folder) != right:
                wrong.append(f"{where}: the advice of the doctor did not mend it")
    return seen, wrong
