"""Kills of a process at random steps of everything that writes, and what is there afterwards.

Each child does one thing to a store and ends itself with SIGKILL just before one of the steps that Python
takes on files (opening, renaming, removing, making), chosen at random among those that it took the last time.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from core.records import Batch
from core.store import Store, doctor, upkeep
from tests import warm
from tests.cli.everything import command, prepare
from tests.store.material import rankings, run

STEPS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.copyfile", "os.truncate"}
)
_FIRST_LIGHT = Path(__file__).with_name("first_light.zip")


def grow(folder: Path, name: str) -> None:
    """Import a run."""
    new = run(name, collection_id="c")
    with Store.open(folder / "store").write("import", name) as writer:
        writer.add(Batch(runs=(new,), frames={"rankings": rankings(name, {"q1": [*"abc"], "q2": [*"cab"]})}))


def turn(folder: Path, name: str) -> None:
    """Delete a run that is there, or restore one that was deleted."""
    store = Store.open(folder / "store")
    removed = store.read().runs(removed=True)["run_id"].to_list()
    with store.write("delete", name) as writer:
        if removed:
            writer.restore("run", removed)
        else:
            writer.remove("run", store.read().runs()["run_id"].to_list()[-1:])


def evaluate(folder: Path, name: str) -> None:
    """Run the tiny evaluation, with what was measured before left alone."""
    spec = folder / "spec.toml"
    text = spec.read_text().partition("# ")[0]
    spec.write_text(
        f"{text}# {name}\n".replace("repeats = 1", f"repeats = {1 + int(name.rpartition('-')[2]) % 9}")
    )
    assert command(folder / "store", folder, "run").code == 0


def copy(folder: Path, name: str) -> None:
    """Back the store up."""
    upkeep.backup(Store.open(folder / "store"), folder / "backup")


def bring(folder: Path, name: str) -> None:
    """Restore the store from the backup, every other time by going back."""
    upkeep.restore(Store.open(folder / "store"), folder / "backup", back=name[-1] in "02468")


def upgrade(folder: Path, name: str) -> None:
    """Open a store of the first release."""
    Store.open(folder / "old").read()


THINGS: dict[str, Callable[[Path, str], None]] = {
    "import": grow,
    "delete": turn,
    "run": evaluate,
    "backup": copy,
    "restore": bring,
    "migrate": upgrade,
}


def child(thing: str, folder: Path, name: str, last: int, told: Path) -> None:
    """Do one thing and die before its step `last`; note how many steps it took if it comes to its end."""
    steps, inside = 0, str(folder)

    def step(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        if event in STEPS and inside in str(arguments[0]):
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)
    THINGS[thing](folder, name)
    steps, taken = -1_000_000, steps
    told.write_text(str(taken))


def content(path: Path) -> dict[str, object]:
    """Runs and their rankings, queries, passages and judgements of a store."""
    snapshot = Store.open(path).read().with_deleted()
    collections = snapshot.collections(parts=True)["collection_id"]
    found: dict[str, object] = {
        f"run {each}": snapshot.rankings([each]).rows() for each in snapshot.runs()["run_id"]
    }
    found |= {f"texts {each}": snapshot.passages(each).rows() for each in collections}
    golden = snapshot.golden_sets(parts=True)["golden_set_id"]
    return found | {f"golden {each}": snapshot.judgements(each).rows() for each in golden}


def check(folder: Path, thing: str, before: dict[str, object], number: int) -> str:
    """What is wrong after a kill; empty where nothing is."""
    for name in ("store", "backup", "old"):
        report = doctor.examine(Store.open(folder / name))
        if not report.sound:
            return f"{thing}: {name} is damaged: {report.findings[0].found}"
    now = content(folder / "store")
    kept = content(folder / "backup") if thing == "restore" else before
    if any(now.get(key) != rows for key, rows in before.items() if key in kept or thing != "restore"):
        return f"{thing}: something of the store is lost"
    if content(folder / "old") != content(folder / "new"):
        return f"{thing}: the store of the first release changed"
    grow(folder, f"after-{number}")
    return (
        "" if f"run after-{number}" in content(folder / "store") else f"{thing}: the store cannot be written"
    )


def again(folder: Path) -> None:
    """A store of the first release, as it was written."""
    shutil.rmtree(folder / "old", ignore_errors=True)
    shutil.unpack_archive(_FIRST_LIGHT, folder / "old")


def repeat(kills: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Kill children until so many have died.

    Returns:
        How often each thing was killed, and what was wrong.
    """
    draw = np.random.default_rng(seed)
    died: Counter[str] = Counter()
    wrong: list[str] = []
    taken = dict.fromkeys(THINGS, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder / "store", folder)
        copy(folder, "")
        again(folder)
        upgrade(folder, "")
        shutil.copytree(folder / "old", folder / "new")
        number = 0
        while died.total() < kills and not wrong:
            number += 1
            thing = list(THINGS)[number % len(THINGS)]
            if thing == "migrate":
                again(folder)
            before, told = content(folder / "store"), folder / "told"
            told.unlink(missing_ok=True)
            last = int(draw.integers(1, taken[thing] + 1)) if taken[thing] else 0
            process = warm.process(child, thing, folder, f"{thing}-{number}", last, told)
            process.join()
            if process.exitcode == 0:
                taken[thing] = int(told.read_text())
            elif process.exitcode == -signal.SIGKILL:
                died[thing] += 1
            else:
                wrong.append(f"{thing}: ended with {process.exitcode}")
            if problem := check(folder, thing, before, number):
                wrong.append(f"{problem} (step {last} of {taken[thing]})")
    return died, wrong
