"""Disks that are full, may only be read or deny permission, for real: every command and every page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import pytest

from core.views.pages import PAGES as PAGES_OF
from tests import warm
from tests.cli.everything import READERS, WRITERS, Outcome, outcomes
from tests.pages.reading import FIRST, PAGES
from tests.pages.test_faults import published, whole  # noqa: F401 - a fixture

NOBODY = 65534
BESIDE = (*READERS, "doctor", *WRITERS, "backup", "repair")
_IDLE = ("readers",)
SCORING = [
    name
    for name in PAGES
    if PAGES_OF[name.partition("/")[0]].group != "Data" and name.partition("/")[0] not in _IDLE
]
"""Pages of data read no part of a run, nor does Readers where no run has answers."""
REFUSED = frozenset({*WRITERS, "backup", "repair"})


class Refusal(NamedTuple):
    """A disk that refuses.

    Attributes:
        sentence: What is said of it.
        refused: By which ways in.
        nobody: Whether nobody is the user.
        places: What is opened: each section where it may read or write what the others do not.
        homeless: Whether neither the working folder nor the home may be read.
    """

    sentence: str
    refused: frozenset[str] = REFUSED
    nobody: bool = False
    places: Sequence[str] = FIRST
    homeless: bool = False


REFUSALS = {
    "full": Refusal("the disk is full"),
    "read-only": Refusal("the disk may only be read", places=PAGES),
    "not writable": Refusal("permission is missing", nobody=True),
    "unreadable parts": Refusal(
        "ermission", REFUSED | {"score", "doctor"} | {f"page {name}" for name in SCORING}, nobody=True,
        places=PAGES,
    ),
    "unreadable store": Refusal(
        "permission is missing", frozenset([*BESIDE, *(f"page {name}" for name in FIRST)]), nobody=True
    ),
    "no home": Refusal("", frozenset(), nobody=True, homeless=True),
}  # fmt: skip


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small disk takes more rights than these tests have")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def turn(fault: str, disk: Path) -> None:
    """Make the disk, or the store on it, refuse."""
    if fault == "full":
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
    elif fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    elif fault == "unreadable parts":
        (disk / "work" / "store" / "parts").chmod(0o700)
    elif fault == "unreadable store":
        (disk / "work" / "store").chmod(0o700)
    elif fault == "no home":
        subprocess.run(["chmod", "-R", "a+rwX", str(disk / "work")], check=True)
        (disk / "home").mkdir(0o700)


def turn_back(fault: str, disk: Path) -> None:
    """There is space again, and everything is allowed."""
    if fault == "full":
        (disk / "filler").unlink()
    elif fault == "read-only":
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    else:
        subprocess.run(["chmod", "-R", "a+rwX", str(disk)], check=True)


def seen(disk: Path, names: tuple[str, ...], *, nobody: bool, homeless: bool = False) -> dict[str, Outcome]:
    """What the commands and pages say in a process of its own."""
    home = disk / "home" if homeless else Path("/tmp")  # noqa: S108
    environ = {**os.environ, "HOME": str(home), "TMPDIR": "/tmp"}  # noqa: S108
    child = warm.Child(environ, _try, disk / "work", names, nobody, home if homeless else None)
    printed, said = child.communicate()
    assert child.returncode == 0, said[-2000:]
    found = json.loads(printed.splitlines()[-1])
    return {name: Outcome(**outcome) for name, outcome in found.items()}


def _try(work: Path, names: tuple[str, ...], nobody: bool, here: Path | None) -> None:
    sys.dont_write_bytecode = True
    tempfile.tempdir = None
    if here is not None:
        os.chdir(here)
    if nobody:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    found = outcomes(work / "store", work, names)
    print(json.dumps({name: asdict(outcome) for name, outcome in found.items()}), flush=True)


@pytest.mark.slow
@pytest.mark.parametrize("fault", REFUSALS)
def test_a_disk_that_refuses_is_said_and_nothing_is_lost(fault: str, whole: Path, tmp_path: Path) -> None:  # noqa: F811
    row = REFUSALS[fault]
    if row.nobody and os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    with mounted(Path(f"/tmp/disk-{os.getpid()}-{tmp_path.name[-8:]}")) as disk:  # noqa: S108
        disk.chmod(0o755)
        shutil.copytree(whole, disk / "work")
        subprocess.run(["chmod", "-R", "a+rX,go-w", str(disk / "work")], check=True)
        before = published(disk / "work" / "store")
        turn(fault, disk)
        pages = tuple(f"page {name}" for name in row.places)
        said = seen(
            disk,
            (*READERS, "doctor", *pages, *WRITERS, "backup", "repair"),
            nobody=row.nobody,
            homeless=row.homeless,
        )
        for name, outcome in said.items():
            assert outcome.clear(), (name, outcome)
            assert not outcome.code or row.sentence in outcome.said, (name, outcome)
        assert {name for name, outcome in said.items() if outcome.code} == row.refused
        if not row.refused:
            return
        turn_back(fault, disk)
        assert published(disk / "work" / "store") == before
        again = seen(disk, ("doctor", *READERS, *WRITERS, "backup", "repair", "doctor"), nobody=row.nobody)
        assert not any(outcome.code for outcome in again.values()), again
