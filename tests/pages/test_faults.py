"""The table of faults: what every command and page says of a store that something happened to.

Either a command works and its numbers are right, or it says in one sentence what is wrong and the store stays
as it is, byte by byte. The doctor finds the fault, and what it advises mends it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.store.engine import ENGINE
from core.store.read import graded
from tests.cli.everything import READERS, WRITERS, Outcome, outcomes, prepare
from tests.pages.reading import FIRST
from tests.shared import once

pytestmark = pytest.mark.slow

COMMANDS = (*READERS, "page decision", *WRITERS)
ALL = frozenset(COMMANDS)


class Fault(NamedTuple):
    """What happens to a store.

    Attributes:
        harm: Does it.
        sentence: What is said of it, by commands and by the doctor.
        refused: What cannot go on.
        mend: The command that mends it; empty where reading does.
    """

    harm: Callable[[Path], object]
    sentence: str
    refused: frozenset[str] = ALL
    mend: str = "repair"


def catalogue(store: Path) -> Path:
    return store / "catalogue" / (store / "CURRENT").read_text().strip()


def part(store: Path, name: str) -> Path:
    return next(path for path in sorted(store.glob(f"parts/*/{name}")) if path.parent.name > "00000002")


def flip(path: Path, at: float = 0.5, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 1 << bit
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


FAULTS = {
    "no pointer": Fault(lambda store: (store / "CURRENT").unlink(), "The pointer CURRENT is missing"),
    "an empty pointer": Fault(lambda store: (store / "CURRENT").write_text(""), "is not a catalogue"),
    "a bit of the pointer": Fault(lambda store: flip(store / "CURRENT", 0.1), "current catalogue is missing"),
    "no current catalogue": Fault(lambda store: catalogue(store).unlink(), "catalogue is missing"),
    "a bit of the catalogue": Fault(lambda store: flip(catalogue(store)), "other bytes than were written"),
    "half a catalogue": Fault(lambda store: cut(catalogue(store)), "other bytes than were written"),
    "a bit of the rankings": Fault(
        lambda store: flip(part(store, "rankings.parquet")),
        "rankings.parquet has other bytes",
        frozenset({"score", "reimport", "page decision"}),  # both look at first results
        "restore",
    ),
    "half a part": Fault(
        lambda store: cut(part(store, "rankings.parquet")),
        "rankings.parquet has",
        frozenset({"score", "reimport", "page decision"}),
        "restore",
    ),
    "no folder of a part": Fault(
        lambda store: shutil.rmtree(part(store, "rankings.parquet").parent),
        "s.parquet is missing",
        frozenset({"score", "reimport", "page decision"}),
        "restore",
    ),
    "no parts": Fault(
        lambda store: shutil.rmtree(store / "parts"),
        "is missing",
        frozenset({"score", "import", "reimport", "run", "page decision"}),
        "restore",
    ),
    "a bit of the codes": Fault(
        lambda store: flip(part(store, "rankings.codes.arrow"), 0.9),
        "rankings.codes.arrow has other bytes",
        frozenset(),
    ),
    "no codes": Fault(
        lambda store: part(store, "judgements.codes.arrow").unlink(),
        "judgements.codes.arrow is missing",
        frozenset(),
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store at revision 3, its backup and what the commands read; to be copied."""

    def build(store: Path) -> None:
        store.parent.mkdir(exist_ok=True)
        prepare(store, store.parent)
        seen = outcomes(store, store.parent, ["import", "backup", "score"])
        assert not any(outcome.code for outcome in seen.values())
        (store.parent / "score.txt").write_text(seen["score"].said)

    return once(tmp_path_factory, "faults", build).parent


@pytest.fixture
def ruined(whole: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes a new copy of the folder, harms its store, and lets this process forget what it had verified."""

    def make(fault: str) -> Path:
        folder = tmp_path / f"copy-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(whole, folder)
        FAULTS[fault].harm(folder / "store")
        anew()
        return folder

    return make


def anew() -> None:
    """As a new process would read."""
    graded.forget()
    ENGINE._cache.clear()


def published(store: Path) -> dict[str, bytes]:
    """Every file that a later write could lose."""
    kept = ("CURRENT", "catalogue/*", "parts/*/*")
    return {str(file): file.read_bytes() for glob in kept for file in store.glob(glob)}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_said_or_does_no_harm(ruined: Callable[[str], Path], fault: str) -> None:
    row = FAULTS[fault]
    refused = set()
    for name in COMMANDS:
        folder = ruined(fault)
        before = published(folder / "store")
        (outcome,) = outcomes(folder / "store", folder, [name]).values()
        assert outcome.clear(), (name, outcome)
        if outcome.code:
            refused.add(name)
            assert row.sentence in outcome.said, (name, outcome)
            assert published(folder / "store") == before
        elif name == "score":
            assert _numbers(outcome) == _numbers(Outcome(0, (folder / "score.txt").read_text()))
    assert refused == row.refused


@pytest.mark.parametrize("fault", FAULTS)
def test_the_doctor_finds_it_and_its_advice_mends_it(ruined: Callable[[str], Path], fault: str) -> None:
    row, folder = FAULTS[fault], ruined(fault)
    store = folder / "store"
    kept = published(store)
    sick = outcomes(store, folder, ["doctor"])["doctor"]
    assert sick.code == bool(row.refused)
    assert row.sentence in sick.said
    advice = {"repair": "doctor --repair", "restore": "store restore BACKUP"}[row.mend]
    assert advice in sick.said
    mended = outcomes(store, folder, [row.mend, "doctor", "import", *COMMANDS])
    assert not any(outcome.code for outcome in mended.values()), mended
    assert _numbers(mended["score"]) == _numbers(Outcome(0, (folder / "score.txt").read_text()))
    held = {file.read_bytes() for file in store.rglob("*") if file.is_file()}
    sound = {data for file, data in kept.items() if "CURRENT" not in file and "codes" not in file}
    assert fault in ("a bit of the rankings", "half a part") or sound <= held, "a repair deletes nothing"


def _numbers(outcome: Outcome) -> list[str]:
    return [word for word in outcome.said.split() if word.replace(".", "").isdigit()]


def test_all_is_verified_where_that_is_asked_for(ruined: Callable[[str], Path]) -> None:
    store = ruined("a bit of the rankings") / "store"
    for words, code in (([], 0), (["--verify"], 1)):
        result = CliRunner().invoke(app, ["--store", str(store), *words, "list", "runs"])
        assert (result.exit_code, "rankings.parquet has other bytes" in result.output) == (code, bool(code))


@pytest.mark.parametrize("name", [*FIRST, "add/formats"])
def test_every_page_says_that_a_store_is_damaged(ruined: Callable[[str], Path], name: str) -> None:
    folder = ruined("no pointer")
    (outcome,) = outcomes(folder / "store", folder, [f"page {name}"]).values()
    assert outcome.clear(), outcome
    assert FAULTS["no pointer"].sentence in outcome.said or name in ("add/formats", "measures")
